"""Renders conversations as Harmony.

Three forms of one content: a raw prompt as the Harmony library makes it, the same as the gpt-oss chat template
makes it (`flavour="hf"`), and chat messages for servers that do not template for Harmony at all (`messages`).
Sources: openai/harmony 0.0.8; gpt-oss chat template, copies of 2026; OpenAI's guide on handling the raw chain of
thought.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any, Literal, NamedTuple, assert_never

import msgspec

from callwright.conversation import (
    AssistantTurn,
    Call,
    Conversation,
    ConversationTurn,
    EarlierCalls,
    FunctionTool,
    Item,
    Message,
    NamedTool,
    ResponseFormat,
    ToolTurn,
    TurnsAlong,
    turns_of,
)
from callwright.dialects.base import RenderOptions, TurnMarks
from callwright.dialects.harmony.builtin import (
    BuiltinName,
    is_builtin,
    multi_tool_use_section,
    namespace_section,
    section,
)
from callwright.dialects.harmony.tokens import (
    CALL,
    CALLS,
    CHANNEL,
    CONSTRAIN,
    CONTROLS,
    END,
    MARKS,
    MESSAGE,
    RETURN,
    START,
)
from callwright.dialects.prompts.chat_messages import (
    chat_content,
    chat_message,
    choice_note,
    plain_text,
    split_instructions,
)
from callwright.dialects.prompts.kept_parts import put_tools, put_turns
from callwright.dialects.prompts.told import told_messages, told_system
from callwright.memo.prefixes import fold, once
from callwright.prompt import Control, Prompt, PromptBuilder, Text, neutralise, neutralise_json
from callwright.schema import typescript, typescript_hf

_IDENTITY = "You are ChatGPT, a large language model trained by OpenAI."
# The model knows three; what other APIs offer is rounded to them.
_EFFORTS = {"none": "low", "minimal": "low", "xhigh": "high", "max": "high"}


class Options(RenderOptions, frozen=True, kw_only=True):
    """`header_order`: the position of a call's recipient, in the role part, the channel part, or as in oss-harmony.

    `drop_analysis`: which reasoning of earlier turns leaves the prompt: all before the last final answer, as the
    library does, or none. `multi_tool_use`: add a tool that makes several calls in one, as OpenAI's models know it.
    `training`: the last final answer ends as it does in training data. `current_date` (YYYY-MM-DD) has no default: the
    library reads no clock. `tool_results`: how `messages` shows outputs, as a user message or as Harmony text.
    """

    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] = "medium"
    current_date: str | None = None
    knowledge_cutoff: str | None = "2024-06"
    model_identity: str = _IDENTITY
    valid_channels: tuple[str, ...] = ("analysis", "commentary", "final")
    builtin_tools: tuple[BuiltinName, ...] = ()
    multi_tool_use: bool = False
    response_format: dict[str, Any] | None = None
    system_message: bool = True
    header_order: Literal["role", "channel", "oss"] = "channel"
    drop_analysis: Literal["last_final", "library", "none"] = "last_final"
    training: bool = False
    flavour: Literal["library", "hf"] = "library"
    tool_results: Literal["user", "harmony"] = "user"

    def __hash__(self) -> int:
        """Of some of it: a response format has no hash."""
        return hash((self.reasoning_effort, self.current_date, self.header_order, self.flavour))

    def wanted_format(self) -> ResponseFormat | None:
        """The response format, when it was given as an option."""
        given = (self.response_format or {}).get("json_schema")
        if given is None:
            return None
        return ResponseFormat("json_schema", given.get("name", ""), given.get("description"), given.get("schema"))


class _Head(NamedTuple):
    """The prompt before the turns, without the tools: sections of the system message, of the developer message before
    and after those of the tools, and how tools are shown.
    """

    system: list[str]
    instructions: list[str]
    formats: list[str]
    flavour: str
    several: bool


marks: TurnMarks = MARKS


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt up to `<|start|>assistant`, and up to the arguments of a call that is forced."""
    out = PromptBuilder()
    instructions, items = split_instructions(conversation.items)
    put_tools(out, conversation, _put_head, _head(conversation, instructions, options))
    if options.flavour == "hf":
        _history_hf(out, msgspec.structs.replace(conversation, items=items).turns(), options)
    else:
        own = _own_builtins(conversation.tools)
        border = _analysis_border(items, "none" if conversation.keeps_reasoning else options.drop_analysis)
        last = len(turns_of(items, EarlierCalls())) - 1 if options.training else None
        put_turns(out, items, _turn, own, options.header_order, last, asked=border)
    prefill = ""
    if options.add_generation_prompt:
        out.add((Control, START), (Text, "assistant"))
        prefill = _prefill(out, conversation)
    return Prompt(pieces=out.pieces(), controls=CONTROLS, prefill=prefill)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it after `<|start|>assistant`."""
    written = [f"{CHANNEL}analysis{MESSAGE}{turn.reasoning}{END}"] if turn.reasoning else []
    if turn.text and turn.calls:
        written.append(f"{CHANNEL}commentary{MESSAGE}{turn.text}{END}")
    elif turn.text or not (turn.calls or written):
        written.append(f"{CHANNEL}final{MESSAGE}{turn.text}{RETURN}")
    written += [CALLS.text([call]) for call in turn.calls]
    return f"{START}assistant".join(written)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with everything Harmony needs in one system message, for servers that render nothing of it."""
    instructions, items = split_instructions(conversation.items)
    system = told_system(
        conversation, _told_head, _head(conversation, instructions, options), choice_note(conversation)
    )
    return system + told_messages(items, _turn_messages, _own_builtins(conversation.tools), options.tool_results)


def _told_head(conversation: Conversation, head: _Head, notes: Sequence[str]) -> str | None:
    sections = [*head.system, *_developer_sections(conversation.tools, head), *notes]
    return neutralise("\n\n".join(sections), CONTROLS) or None


def _turn_messages(turn: ConversationTurn, _: int, own: Collection[str], form: str) -> list[dict[str, Any]]:
    match turn:
        case Message():
            return [chat_message(turn, CONTROLS)]
        case AssistantTurn(_, message, calls):
            # Dropped on purpose: the reasoning, which such a server would show as an answer, and by default the calls:
            # their outputs name the tools, and a call in plain text invites copies of it.
            said = [{"role": "assistant", "content": chat_content(message.parts, CONTROLS)}] if message else []
            written = [_call_text(call, own) for call in calls] if form == "harmony" else []
            return said + [{"role": "assistant", "content": text} for text in written]
        case ToolTurn(outputs):
            texts = [(name, neutralise(output.text, CONTROLS)) for name, output in outputs]
            return _output_messages(texts, own, form)
        case _:
            assert_never(turn)


def _call_text(call: Call, own: Collection[str]) -> str:
    recipient, _ = _address(call.name, own)
    to = neutralise(recipient, CONTROLS)
    return f"{CHANNEL}commentary to={to}{MESSAGE}{neutralise_json(call.arguments, CONTROLS)}{CALL}"


def _output_messages(outputs: Sequence[tuple[str, str]], own: Collection[str], form: str) -> list[dict[str, Any]]:
    if form == "harmony":
        roles = [neutralise(_address(name, own)[0], CONTROLS) for name, _ in outputs]
        return [
            {"role": "user", "content": f"{START}{role} to=assistant{CHANNEL}commentary{MESSAGE}{text}{END}"}
            for role, (_, text) in zip(roles, outputs, strict=True)
        ]
    results = "\n\n".join(f"**{neutralise(name, CONTROLS) or 'tool'}**:\n{text}" for name, text in outputs)
    text = f"[Tool Results]\n{results}\n\nNow provide your response based on the tool results above."
    return [{"role": "user", "content": text}]


# --- the texts that all forms share ---


def _head(conversation: Conversation, instructions: list[str], options: Options) -> _Head:
    joined = "\n\n".join(instructions)
    return _Head(
        system=_system_sections(conversation.tools, options) if options.system_message else [],
        instructions=[f"# Instructions\n\n{joined}"] if instructions else [],
        formats=_format_sections(options.wanted_format() or conversation.response_format),
        flavour=options.flavour,
        several=options.multi_tool_use and conversation.parallel_tool_calls,
    )


def _system_sections(tools: Sequence[FunctionTool], options: Options) -> list[str]:
    identity = [options.model_identity]
    if options.knowledge_cutoff:
        identity.append(f"Knowledge cutoff: {options.knowledge_cutoff}")
    if options.current_date:
        identity.append(f"Current date: {options.current_date}")
    effort = _EFFORTS.get(options.reasoning_effort, options.reasoning_effort)
    sections = ["\n".join(identity), f"Reasoning: {effort}"]
    if options.builtin_tools:
        sections += ["# Tools", *(section(name) for name in sorted(options.builtin_tools))]
    if options.valid_channels:
        channels = ", ".join(options.valid_channels)
        line = f"# Valid channels: {channels}. Channel must be included for every message."
        if tools:
            line += "\nCalls to these tools must go to the commentary channel: 'functions'."
        sections.append(line)
    return sections


def _developer_sections(tools: Sequence[FunctionTool], head: _Head) -> list[str]:
    if not tools:
        return head.instructions + head.formats
    declare = typescript_hf.declaration if head.flavour == "hf" else typescript.declaration
    shown = ["# Tools", namespace_section("functions", "", [declare(tool) for tool in tools])]
    if head.several:
        shown.append(multi_tool_use_section(declare))
    return head.instructions + shown + head.formats


def _format_sections(wanted: ResponseFormat | None) -> list[str]:
    if wanted is None:
        return []
    form = wanted.schema if wanted.schema is not None else {"type": "object"}
    schema = json.dumps(form, ensure_ascii=False, separators=(",", ":"))
    comment = f"// {wanted.description}\n" if wanted.description else ""
    return ["# Response Formats", f"## {wanted.name or wanted.type}", f"{comment}{schema}"]


def _own_builtins(tools: Sequence[FunctionTool]) -> frozenset[str]:
    """The names of the client's own tools that are called as built-in ones are."""
    return once(tools, "builtin", lambda: frozenset([tool.name for tool in tools if is_builtin(tool.name)]))


def _address(name: str, own: Collection[str]) -> tuple[str, str]:
    """The recipient and the channel of a call. A tool of the client's `own` is a function, whatever it is called."""
    if is_builtin(name) and name not in own:
        return name, "analysis"
    return f"functions.{name or 'unknown'}", "commentary"


# --- raw prompts ---


def _message(out: PromptBuilder, role: str, body: str, channel: str = "", end: str = END) -> None:
    of_channel = ((Control, CHANNEL), (Text, channel)) if channel else ()
    out.add((Control, START), (Text, role), *of_channel, (Control, MESSAGE), (Text, body), (Control, end))


def _put_head(out: PromptBuilder, conversation: Conversation, head: _Head) -> None:
    if head.system:
        _message(out, "system", "\n\n".join(head.system))
    developer = _developer_sections(conversation.tools, head)
    if developer:
        _message(out, "developer", "\n\n".join(developer))


def _turn(
    out: PromptBuilder,
    turn: ConversationTurn,
    number: int,
    own: Collection[str],
    header_order: str,
    last: int | None,
    *,
    reasons: bool,
) -> None:
    """Append a turn of the history. `last` is the number of the one that ends as the model ends it."""
    match turn:
        case Message("user", parts):
            _message(out, "user", plain_text(parts, number))
        case Message(_, parts):
            _message(out, "developer", f"# Instructions\n\n{plain_text(parts, number)}")
        case AssistantTurn(reasoning, message, calls):
            if reasoning is not None and reasons:
                _message(out, "assistant", reasoning, "analysis")
            if message:
                end = RETURN if number == last and not calls else END
                channel = "commentary" if calls else "final"
                _message(out, "assistant", plain_text(message.parts, number), channel, end)
            for call in calls:
                _call(out, call, _address(call.name, own), header_order)
        case ToolTurn(outputs):
            for name, output in outputs:
                _output(out, _address(name, own), plain_text(output.parts, number), header_order)
        case _:
            assert_never(turn)


def _call(out: PromptBuilder, call: Call, address: tuple[str, str], order: str) -> None:
    recipient, channel = address
    builtin = channel == "analysis"
    to = f" to={recipient}"
    out.control(START).text("assistant", to if order == "role" else "")
    out.control(CHANNEL).text(channel, "" if order == "role" else to, " code" if builtin else " ")
    if not builtin:
        out.control(CONSTRAIN).text("json")
    out.control(MESSAGE).json(call.arguments).control(CALL)


def _output(out: PromptBuilder, address: tuple[str, str], body: str, order: str) -> None:
    recipient, channel = address
    out.control(START).text(recipient, "" if order == "oss" else " to=assistant")
    out.control(CHANNEL).text(channel, " to=assistant" if order == "oss" else "")
    out.control(MESSAGE).text(body).control(END)


def _history_hf(out: PromptBuilder, turns: Sequence[ConversationTurn], options: Options) -> None:
    """As the template does: one call for each turn, outputs named after the last call, no late system message."""
    answered = max((number for number, turn in enumerate(turns) if _is_answer(turn)), default=-1)
    name = ""
    for number, turn in enumerate(turns):
        match turn:
            case Message(role, parts):
                if role == "user":
                    _message(out, "user", plain_text(parts, number))
            case AssistantTurn(_, message, []):
                last = number == len(turns) - 1 and not options.add_generation_prompt
                _message(out, "assistant", message.text if message else "", "final", RETURN if last else END)
            case AssistantTurn(reasoning, message, calls):
                thoughts = [text for text in (reasoning, message and message.text) if text]
                for text in thoughts if number > answered else ():
                    _message(out, "assistant", text, "analysis")
                name = calls[0].name
                out.control(START).text(f"assistant to=functions.{name}").control(CHANNEL)
                out.text("commentary json").control(MESSAGE).json(calls[0].arguments).control(CALL)
            case ToolTurn(outputs):
                for _, output in outputs:
                    body = plain_text(output.parts, number)
                    _message(out, f"functions.{name} to=assistant", body, "commentary")
            case _:
                assert_never(turn)


def _prefill(out: PromptBuilder, conversation: Conversation) -> str:
    """Begin the call that is forced. Without its dot the namespace leaves the next token to the model."""
    choice = conversation.tool_choice
    if choice == "required" and len(conversation.tools) == 1 and conversation.allowed_tools is None:
        choice = NamedTool(conversation.tools[0].name)
    match choice:
        case NamedTool(name):
            to = f"commentary to=functions.{name} "
            out.control(CHANNEL).text(to).control(CONSTRAIN).text("json").control(MESSAGE)
            return f"{CHANNEL}{to}{CONSTRAIN}json{MESSAGE}"
        case "required":
            to = "commentary to=functions"
            out.control(CHANNEL).text(to)
            return f"{CHANNEL}{to}"
    return ""


def _is_answer(turn: ConversationTurn) -> bool:
    return isinstance(turn, AssistantTurn) and turn.message is not None and not turn.calls


def _analysis_border(items: Sequence[Item], rule: str) -> int:
    """The number of the last turn whose reasoning leaves the prompt, with all before it; -1 for none."""
    if rule == "none":
        return -1
    ours = fold(items, TurnsAlong(), _assistants).made
    finals: list[int] = [number for number, is_answer in ours if is_answer]
    if not finals:
        return -1
    if rule == "last_final":
        return finals[-1]
    return finals[0] if ours[-1] == (finals[-1], True) else -1


def _assistants(before: TurnsAlong, items: Sequence[Item], _: int) -> TurnsAlong:
    """The numbers of the assistant's turns, and which of them are answers."""
    return before.more(
        items, lambda turn, number: [(number, _is_answer(turn))] if isinstance(turn, AssistantTurn) else []
    )
