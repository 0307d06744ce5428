"""DSML, the markup of DeepSeek V3.2 and later: named parameters between tags that begin with the token `｜DSML｜`.

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="f">
    <｜DSML｜parameter name="k" string="true">v</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>

`string` declares a value to be raw text or JSON; the schema wins if the value cannot have the declared type. White
space in a value belongs to it. The versions differ in the names of the tags and in the text of the prompt.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from callwright.conversation import (
    AssistantTurn,
    Call,
    Conversation,
    ConversationTurn,
    Item,
    Message,
    ToolTurn,
    TurnsAlong,
)
from callwright.dialects._dsml_reader import TOKEN, DsmlCalls, dsml_layout, odd_openings
from callwright.dialects.base import RenderOptions, TurnMarks
from callwright.dialects.prompts.chat_messages import (
    first_instruction,
    format_note,
    gather_instructions,
    is_of_user,
    last_asked,
    plain_text,
    split_instructions,
)
from callwright.dialects.prompts.kept_parts import put_tools, put_turns
from callwright.dialects.prompts.told import ToldTurns
from callwright.layout.calls import CallLayout
from callwright.memo.prefixes import fold
from callwright.prompt import Prompt, PromptBuilder, own_words
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader

_BEGIN: Final = "<｜begin▁of▁sentence｜>"
_END: Final = "<｜end▁of▁sentence｜>"
_SYSTEM: Final = "<｜System｜>"
_USER: Final = "<｜User｜>"
_ASSISTANT: Final = "<｜Assistant｜>"
_CONTROLS: Final = (_BEGIN, _END, _SYSTEM, _USER, _ASSISTANT, "<think>", "</think>", TOKEN)
_SYSTEM_ROLES: Final = ("system", "developer")
_Whose: TypeAlias = Literal["user", "blank", "assistant", "tool", "system"]


class DsmlOptions(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `off` with a closed, empty one."""

    thinking: Literal["open", "off"] = "open"

    @property
    def effort(self) -> str:
        """How much is thought; `none` without a thought."""
        return "high" if self.thinking == "open" else "none"


class EffortOptions(DsmlOptions, frozen=True, kw_only=True):
    """`reasoning_effort`: the model knows three, the other levels of the API are rounded to them; `none` is `thinking`
    `off`.
    """

    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] = "high"

    @property
    def effort(self) -> str:
        asked = _ROUNDED.get(self.reasoning_effort, self.reasoning_effort)
        return asked if self.thinking == "open" else "none"


# As deepseek-recipe rounds them.
_ROUNDED: Final = {"minimal": "low", "medium": "high", "xhigh": "high"}


class DsmlForm(Struct, frozen=True):
    """The specifics of one version: the name of its blocks, the prefix of its other tags' names, the instructions
    around the tools, and the position of tool outputs.

    `results`: the texts before, around each, between and after outputs, which are part of a user turn or
    (`inline`) follow the calls. `keeps`: with tools, all reasoning remains in the prompt; without, only that after the
    last outputs. `kin`: block name and tag prefix of another version whose calls are also read, because engines and
    models confuse the two.

    `no_arguments`: the body of a call without arguments. `efforts`: texts at the very start of the prompt, by
    reasoning effort. `gap` precedes the tools even if there are no instructions. `system`: the token before each system
    text; without one, all of them are at the start. `formats`: the instructions for any JSON object and for a schema as
    the answer; None: those shared by all dialects.
    """

    calls: str
    lead: str
    how_to: tuple[str, str]
    results: tuple[str, str, str, str, str]
    inline: bool = False
    keeps: bool = False
    kin: tuple[str, str] | None = None
    no_arguments: str = ""
    efforts: tuple[tuple[str, str], ...] = ()
    gap: str = ""
    system: str = ""
    formats: tuple[str, str] | None = None

    @property
    def layout(self) -> CallLayout:
        return dsml_layout(self.calls, self.lead, self.no_arguments)

    @property
    def in_name_of_user(self) -> tuple[str, ...]:
        """The kinds of turns that a following user message joins."""
        return () if self.inline else ("user", "blank", "tool")

    @property
    def marks(self) -> TurnMarks:
        return TurnMarks(thought=("<think>", "</think>"), controls=_CONTROLS)

    def outputs(self, texts: Iterable[str]) -> str:
        """Outputs of tools as the model is shown them."""
        begin, before, behind, between, end = self.results
        return begin + between.join(f"{before}{text}{behind}" for text in texts) + end

    def render(self, conversation: Conversation, options: DsmlOptions) -> Prompt:
        """The whole prompt up to the open or closed thought of the answer."""
        out = PromptBuilder().control(_BEGIN)
        is_open = options.effort != "none"
        items = self._head(out, conversation, dict(self.efforts).get(options.effort, ""))
        asked = self._last_hidden_turn(conversation, items)
        last = put_turns(
            out, items, self._turn, asked=asked, leaves=_whose_with_system if self.system else _whose, is_open=is_open
        )
        start = "assistant"
        if options.add_generation_prompt:
            _assistant(out, self, last).control("<think>" if is_open else "</think>")
            start = "reasoning" if is_open else "assistant"
        return Prompt(out.pieces(), _CONTROLS, start=start)

    def _last_hidden_turn(self, conversation: Conversation, items: Sequence[Item]) -> int:
        """The number of the turn after which reasoning is shown."""
        if not self.keeps:
            return last_asked(conversation, items)
        if conversation.tools or conversation.keeps_reasoning:
            return -1
        return max(fold(items, TurnsAlong(), _in_name_of_user).made, default=-1)

    def _head(self, out: PromptBuilder, conversation: Conversation, effort: str) -> Sequence[Item]:
        """Append everything before the turns and return the items of the turns."""
        given = conversation.items
        if self.keeps:  # the encoder of V4 passes over empty system messages
            empty = [
                id(item) for item in given if type(item) is Message and item.role in _SYSTEM_ROLES and _is_empty(item)
            ]
            given = tuple([item for item in given if id(item) not in empty]) if empty else given
        gather = first_instruction if self.system else gather_instructions if self.keeps else split_instructions
        instructions, items = gather(given)
        format_ = self._format(conversation)
        has_tools = bool(conversation.tools)
        begin = effort + "\n\n".join(instructions)
        out.control(self.system if begin or has_tools or format_ else "").text(begin)
        if has_tools:
            put_tools(out.text("\n\n" if instructions else self.gap), conversation, _tools, self)
        out.text("".join(f"\n\n{words}" for words in format_))
        return items

    def _format(self, conversation: Conversation) -> list[str]:
        """The words for the answer's format, if there is one."""
        wanted = conversation.response_format
        if wanted is None or self.formats is None:
            return format_note(conversation)
        if wanted.schema is None:
            return [self.formats[0]]
        return [self.formats[1] + json.dumps(wanted.schema, ensure_ascii=False)]

    def _turn(
        self,
        out: PromptBuilder,
        turn: ConversationTurn,
        number: int,
        *,
        is_open: bool,
        reasons: bool,
        left: _Whose | None,
    ) -> None:
        """Append a turn of the history, after a turn of kind `left`."""
        match turn:
            case Message("user"):
                text = plain_text(turn.parts, number)
                if self.keeps and not self.system and (left == "blank" or (left == "user" and not text)):
                    out.text(text)
                else:
                    _user(out, self, left).text(text)
            case Message():
                out.control(self.system).text(plain_text(turn.parts, number))
            case AssistantTurn(reasoning, message, calls):
                _assistant(out, self, left)
                if is_open and reasons:
                    out.control("<think>").text(reasoning or "")
                out.control("</think>").text(plain_text(message.parts, number) if message else "")
                _block(out, self, calls).control(_END)
            case ToolTurn(outputs):
                if not self.inline:
                    _user(out, self, left)
                out.text(self.outputs(plain_text(output.parts, number) for _, output in outputs))
            case _:
                assert_never(turn)

    def write(self, turn: AssistantTurn) -> str:
        """A turn as the model writes it: one block for all calls."""
        return Prompt(_write_answer(self, turn).pieces(), _CONTROLS).text

    def messages(self, conversation: Conversation, options: DsmlOptions) -> list[dict[str, Any]]:
        """Chat messages with the tools in the system message, calls and outputs as the format's text."""
        told = ToldTurns(_CONTROLS, self._wire_text, self._chat_outputs)
        return told.messages(conversation, _tools, self)

    def _wire_text(self, turn: AssistantTurn) -> str:
        return Prompt(_write_answer(self, turn).pieces(), _CONTROLS).wire_text.strip()

    def _chat_outputs(self, outputs: Sequence[tuple[str, str]]) -> str:
        return self.outputs(text for _, text in outputs).strip()

    def reader(self, text: AnswerText) -> CallReader:
        """The reader of the calls in one answer."""
        return DsmlCalls(text, ((self.calls, self.lead), *((self.kin,) if self.kin else ())))

    @property
    def openings(self) -> tuple[str, ...]:
        """Further openers of a call: the token of the format between other bars."""
        return odd_openings("DSML")


_V4_WORDS: Final = """## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a \
"<｜DSML｜{calls}>" block like the following:

<｜DSML｜{calls}>
<｜DSML｜{lead}invoke name="$TOOL_NAME">
<｜DSML｜{lead}parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜{lead}parameter>
...
</｜DSML｜{lead}invoke>
<｜DSML｜{lead}invoke name="$TOOL_NAME2">
...
</｜DSML｜{lead}invoke>
</｜DSML｜{calls}>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, \
objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> \
BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

"""


_SCHEMA: Final = "## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n"
_EFFORT_HIGH: Final = """Reasoning Effort: Absolute maximum with no shortcuts permitted.
You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, \
rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.
Explicitly write out your entire deliberation process, documenting every intermediate step, considered alternative, \
and rejected hypothesis to ensure absolutely no assumption is left unchecked.

"""
_EFFORT_MAX: Final = """Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.
You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: exhaustively decompose the \
problem into its most fundamental components, trace every causal chain to its root, and resolve the underlying cause \
rather than any surface symptom.
Do not stop reasoning until you have independently verified the solution from multiple angles and are certain that no \
assumption remains unchecked and no error remains undiscovered.

"""
_EFFORT_NUMBER: Final = "Reasoning Effort: {} (range 1-100, the higher the value, the more thorough the reasoning)\n\n"


def form_v4() -> DsmlForm:
    """The prompt of V4."""
    json_words = (
        "You are a helpful assistant designed to output JSON.\n## Response Format:\n\nReply with JSON object ONLY."
    )
    return replace(
        _v4_words("tool_calls", ""),
        kin=(" calls", " "),
        efforts=(("high", _EFFORT_HIGH), ("max", _EFFORT_MAX)),
        formats=(json_words, _SCHEMA),
    )


def form_v41() -> DsmlForm:
    """The prompt of V4.1: other tags, a token before each system text, and the effort as a number."""
    return replace(
        _v4_words(" calls", " "),
        kin=("tool_calls", ""),
        no_arguments="\n",
        efforts=tuple((name, _EFFORT_NUMBER.format(size)) for name, size in (("low", 50), ("high", 75), ("max", 100))),
        system=_SYSTEM,
        formats=(_SCHEMA + '{"type": "json_object"}', _SCHEMA),
    )


def _v4_words(calls: str, lead: str) -> DsmlForm:
    """The form shared by V4 and V4.1, with this block name and tag prefix."""
    closing = "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n"
    return DsmlForm(
        calls=calls,
        lead=lead,
        how_to=(_V4_WORDS.format(calls=calls, lead=lead), closing),
        results=("", "<tool_result>", "</tool_result>", "\n\n", ""),
        keeps=True,
        gap="\n\n",
    )


# --- prompts ---


def _user(out: PromptBuilder, form: DsmlForm, before: _Whose | None) -> PromptBuilder:
    """Begin or continue a user turn: outputs and the user message after them are one turn."""
    return out.text("\n\n") if before in form.in_name_of_user else out.control(_USER)


def _whose(before: _Whose | None, turn: ConversationTurn) -> _Whose | None:
    """The kind of the last turn; `blank` is an empty user turn. Developer messages between turns do not count."""
    match turn:
        case Message("user"):
            return "user" if turn.text or before == "user" else "blank"
        case Message():
            return before
        case AssistantTurn():
            return "assistant"
        case ToolTurn():
            return "tool"
        case _:
            assert_never(turn)


def _whose_with_system(before: _Whose | None, turn: ConversationTurn) -> _Whose | None:
    """Like `_whose`, but developer messages count as turns."""
    return "system" if isinstance(turn, Message) and not is_of_user(turn) else _whose(before, turn)


def _is_empty(message: Message) -> bool:
    return not (message.text or message.has_media)


def _in_name_of_user(before: TurnsAlong, items: Sequence[Item], _: int) -> TurnsAlong:
    """The numbers of user turns: those with user messages or outputs."""

    def number_of(turn: ConversationTurn, number: int) -> list[int]:
        return [number] if isinstance(turn, ToolTurn) or is_of_user(turn) else []

    return before.more(items, number_of)


def _assistant(out: PromptBuilder, form: DsmlForm, before: _Whose | None) -> PromptBuilder:
    return out.text("\n\n") if before == "tool" and form.inline else out.control(_ASSISTANT)


def _tools(out: PromptBuilder, conversation: Conversation, form: DsmlForm) -> PromptBuilder:
    begin, end = form.how_to
    functions = [tool.as_openai()["function"] for tool in conversation.tools]
    if form.keeps:  # as the encoder of V4 shows a tool without a description
        functions = [{"name": "", "description": "", "parameters": {}, **function} for function in functions]
    shown = [json.dumps(function, ensure_ascii=False) for function in functions]
    return own_words(own_words(out, begin, _CONTROLS).text("\n".join(shown)), end, _CONTROLS)


def _write_answer(form: DsmlForm, turn: AssistantTurn) -> PromptBuilder:
    out = PromptBuilder()
    if turn.reasoning:
        out.control("<think>").text(turn.reasoning).control("</think>")
    return _block(out.text(turn.text), form, turn.calls)


def _block(out: PromptBuilder, form: DsmlForm, calls: Sequence[Call]) -> PromptBuilder:
    """The block that holds these calls, if there are any."""
    if not calls:
        return out
    return form.layout.put(out, calls, controls=_CONTROLS)
