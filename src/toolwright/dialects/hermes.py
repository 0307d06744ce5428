"""Hermes: `<tool_call>` around `{"name": …, "arguments": {…}}`.

The format of Qwen2.5, QwQ, Qwen3, Hermes 2 to 4, Granite 4, SmolLM3 and most fine-tunes. Prompts follow Qwen's
template: the tools stand as JSON lines in the system turn, outputs come back in a user turn. Source: the chat
templates of Qwen2.5-7B-Instruct and Qwen3-32B; NousResearch Hermes Function Calling.
"""

import json
import re
from typing import Any, Final, Literal, assert_never

import msgspec

from toolwright.conversation import AssistantTurn, Call, Conversation, Message, NamedTool, TextPart, ToolTurn
from toolwright.dialects._chat import chat_content, chat_role, choice_note, plain_text, split_instructions
from toolwright.dialects._marked_json import MarkedJson
from toolwright.dialects.base import RenderOptions
from toolwright.events import ContentDelta, Markup, Problem, ReasoningDelta
from toolwright.prompt import Prompt, PromptBuilder, neutralise
from toolwright.source import JsonStops, Markers, Source, Steps, gather, stream_text
from toolwright.toolset import Toolset

__all__ = ["Options", "aliases", "messages", "models", "parse", "render", "source", "stop_token_ids", "stops", "write"]

aliases = ("qwen", "qwen25", "qwen3", "qwen3_json", "granite4", "trinity", "reka", "ernie45")
models = "Qwen2.5, QwQ, Qwen3, Hermes 2-4, Granite 4, SmolLM3, most fine-tunes"
source = "chat templates of Qwen2.5 and Qwen3; NousResearch Hermes Function Calling"
stops = ("<|im_end|>",)
stop_token_ids = ()

_OPEN: Final = "<tool_call>"
_CLOSE: Final = "</tool_call>"
_ENDS: Final = ("<|im_end|>", "<|endoftext|>")
_CONTROLS: Final = (
    *("<|im_start|>", *_ENDS, _OPEN, _CLOSE, "<tool_response>", "</tool_response>", "<tools>", "</tools>"),
    *("<think>", "</think>"),
)
# A draft of a call in open reasoning is held up to this size; what is longer is reasoning.
_MAX_DRAFT: Final = 1_048_576

_IN_TEXT = Markers(_OPEN, "<think>", "</think>", "```", *_ENDS)
_IN_REASONING = Markers("</think>", _OPEN, *_ENDS)
_DRAFT_END = Markers("</think>", *_ENDS)
_BLOCK = JsonStops(_CLOSE, _OPEN, *_ENDS)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, `off` with a closed, empty
    one.
    """

    thinking: Literal["model", "open", "off"] = "model"


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt in ChatML, up to `<|im_start|>assistant`."""
    out = PromptBuilder()
    instructions, items = split_instructions(conversation.items)
    if instructions or conversation.tools:
        _begin(out, "system").text("\n\n".join(instructions))
        if conversation.tools:
            out.text("\n\n" if instructions else "")
            _tools(out, conversation)
        out.control("<|im_end|>").text("\n")
    turns = msgspec.structs.replace(conversation, items=items).turns()
    asked = max((n for n, turn in enumerate(turns) if isinstance(turn, Message) and turn.role == "user"), default=-1)
    for number, turn in enumerate(turns):
        match turn:
            case Message(role):
                _begin(out, "user" if role == "user" else "system").text(plain_text(turn.parts, number))
            case AssistantTurn(reasoning, message, calls):
                _begin(out, "assistant")
                if reasoning and number > asked:
                    out.control("<think>").text(f"\n{reasoning.strip()}\n").control("</think>").text("\n\n")
                out.text(plain_text(message.parts, number) if message else "")
                for count, call in enumerate(calls):
                    out.text("\n" if count or turn.text else "").control(_OPEN)
                    out.text(f"\n{_call_json(call)}\n").control(_CLOSE)
            case ToolTurn(outputs):
                out.control("<|im_start|>").text("user")
                for _, output in outputs:
                    out.text("\n").control("<tool_response>").text(f"\n{plain_text(output.parts, number)}\n")
                    out.control("</tool_response>")
            case _:
                assert_never(turn)
        out.control("<|im_end|>").text("\n")
    start, prefill = "assistant", ""
    if options.add_generation_prompt:
        _begin(out, "assistant")
        if options.thinking == "off":
            out.control("<think>").text("\n\n").control("</think>").text("\n\n")
        prefill = _prefill(conversation)
        if prefill:
            out.control(_OPEN).text(prefill.removeprefix(_OPEN))
        elif options.thinking == "open":
            out.control("<think>").text("\n")
            start = "reasoning"
    return Prompt(out.pieces(), _CONTROLS, start=start, prefill=prefill)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for each call."""
    thought = f"<think>\n{turn.reasoning}\n</think>\n\n" if turn.reasoning else ""
    said = [turn.text] if turn.text else []
    return thought + "\n".join(said + [f"{_OPEN}\n{_call_json(call)}\n{_CLOSE}" for call in turn.calls])


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    instructions, items = split_instructions(conversation.items)
    system = [neutralise(text, _CONTROLS) for text in instructions]
    if conversation.tools:
        out = PromptBuilder()
        _tools(out, conversation)
        system.append(Prompt(out.pieces(), _CONTROLS).wire_text)
        system += choice_note(conversation)
    chat: list[dict[str, Any]] = [{"role": "system", "content": "\n\n".join(system)}] if system else []
    for turn in msgspec.structs.replace(conversation, items=items).turns():
        match turn:
            case Message(role, parts):
                chat.append({"role": chat_role(role), "content": chat_content(parts, _CONTROLS)})
            case AssistantTurn(_, message, calls):
                # Reasoning is dropped on purpose: the server's template has its own place for it, or none.
                said = neutralise(message.text, _CONTROLS) if message else ""
                text = write(AssistantTurn(message=Message("assistant", (TextPart(said),)), calls=calls))
                chat.append({"role": "assistant", "content": text})
            case ToolTurn(outputs):
                texts = [neutralise(plain_text(output.parts, 0), _CONTROLS) for _, output in outputs]
                blocks = [f"<tool_response>\n{text}\n</tool_response>" for text in texts]
                chat.append({"role": "user", "content": "\n".join(blocks)})
            case _:
                assert_never(turn)
    return chat


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    out.text(
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within "
    )
    out.control("<tools>", "</tools>").text(" XML tags:\n").control("<tools>")
    for tool in conversation.tools:
        out.text("\n" + json.dumps(tool.as_openai(), ensure_ascii=False))
    out.text("\n").control("</tools>")
    out.text("\n\nFor each function call, return a json object with function name and arguments within ")
    out.control(_OPEN, _CLOSE).text(" XML tags:\n").control(_OPEN)
    out.text('\n{"name": <function-name>, "arguments": <args-json-object>}\n').control(_CLOSE)


def _prefill(conversation: Conversation) -> str:
    match conversation.tool_choice:
        case NamedTool(name):
            return f'{_OPEN}\n{{"name": "{name}", "arguments": '
        case "required":
            return f'{_OPEN}\n{{"name": "'
    return ""


def _call_json(call: Call) -> str:
    name = json.dumps(call.name, ensure_ascii=False)
    return f'{{"name": {name}, "arguments": {call.arguments or "{}"}}}'


def _begin(out: PromptBuilder, role: str) -> PromptBuilder:
    return out.control("<|im_start|>").text(f"{role}\n")


# --- output ---


def parse(source: Source, start: str, tools: Toolset) -> Steps[None]:
    """Events of an output. `start`: `reasoning` when the prompt left `<think>` open."""
    return _Reader(source, tools).read(start)


class _Reader:
    def __init__(self, source: Source, tools: Toolset) -> None:
        self._source = source
        self.emit = source.emit
        self.markup = source.markup
        self._tools = tools
        self._blocks = MarkedJson(source, tools, _BLOCK)
        self._said = False  # something stands in the answer, so that a thought can no longer begin
        self._last = ""  # the last character of it
        self._in_fence = False
        self._wrapped = False  # a fence around the whole answer

    def read(self, start: str) -> Steps[None]:
        blanks = stop = ""
        if start == "reasoning":
            yield from self._skip_blanks()
            yield from self._skip("<think>")
            stop = yield from self._reasoning()
        while not self._source.done or stop:
            yield from self._part(blanks, stop)
            blanks, stop = yield from stream_text(self._source, _IN_TEXT, self._say)

    def _part(self, blanks: str, marker: str) -> Steps[None]:
        """Read what begins with `marker`, which stood behind `blanks`."""
        match marker:
            case "":
                pass
            case "<tool_call>" if not (self._in_fence or (self._last == "`" and not blanks)):
                yield from self._call(blanks)
            case "```" if not self._said:
                self.markup(blanks)
                yield from self._opening_fence()
            case "```" if self._wrapped:
                self.emit(Markup(blanks + marker))
            case "```":
                self._in_fence = not self._in_fence
                self.emit(self._say(blanks + marker))
            case "<think>" if not self._said:
                self.emit(Markup(blanks + marker))
                yield from self._part("", (yield from self._reasoning()))
            case "</think>" if not (self._blocks.calls or self._last == "`"):
                self.emit(Markup(blanks + marker))
                if self._said:
                    self.emit(
                        Problem("unopened_reasoning", "</think> without <think>: what stood before it was thought")
                    )
                self._said = False
                yield from self._skip_blanks()
            case "<|im_end|>" | "<|endoftext|>":
                self.emit(Markup(blanks + marker))
            case _:
                self.emit(self._say(blanks + marker))

    def _say(self, text: str) -> ContentDelta:
        self._said = True
        self._last = text[-1]
        return ContentDelta(text)

    def _opening_fence(self) -> Steps[None]:
        """A fence before anything else: some models wrap their whole answer, call included, in one."""
        source = self._source
        while not (found := _WRAPPED.match(source.text, source.at)):
            begin = source.text[source.at :]
            if source.ended or len(begin) > _MAX_FENCE or not _MAY_BE_WRAPPED.match(begin):
                self._in_fence = True
                self.emit(self._say("```"))
                return
            yield
        self.emit(Markup("```" + source.take(found.end())))
        self._wrapped = True

    # --- calls ---

    def _call(self, blanks: str) -> Steps[None]:
        """Behind `<tool_call>`: a block, or the mention of the tag in a text."""
        inner = yield from self._held_blanks()
        if self._source.text[self._source.at : self._source.at + 1] not in ("{", "[", "`"):
            self.emit(self._say(blanks + _OPEN + inner))
            return
        self.emit(Markup(blanks + _OPEN + inner))
        stop, rest = yield from self._blocks.read()
        self._said = False
        self._last = ""
        if rest.strip():
            self.emit(self._say(rest))
        else:
            self.markup(rest)
        if stop in (_OPEN, *_ENDS):
            yield from self._part("", stop)
        else:
            self.markup(stop)
            yield from self._skip_blanks()

    # --- reasoning ---

    def _reasoning(self) -> Steps[str]:
        """Reasoning up to its end. A call in it counts only when the reasoning is never closed and ends with it."""
        yield from self._skip_blanks()
        while True:
            blanks, marker = yield from stream_text(self._source, _IN_REASONING, ReasoningDelta)
            draft = ""
            if marker == _OPEN:
                inner = yield from self._held_blanks()
                draft = blanks + _OPEN + inner
                blanks = marker = ""
                if self._source.text[self._source.at : self._source.at + 1] != "{":
                    self.emit(ReasoningDelta(draft))
                    continue
                body, marker = yield from gather(self._source, _DRAFT_END, _MAX_DRAFT)
                draft += body
            if draft and marker != "</think>" and _ENDS_WITH_CALL.search(draft):
                yield from self._replay(draft)
            elif draft:
                stripped = draft.rstrip() if marker else draft
                self.emit(ReasoningDelta(stripped))
                blanks = draft.removeprefix(stripped)
            if marker == "</think>":
                self.emit(Markup(blanks + marker))
                yield from self._skip_blanks()
                return ""
            self.markup(blanks)
            return marker

    def _replay(self, text: str) -> Steps[None]:
        """Read held text again, as what it turned out to be."""
        held = Source(self.emit)
        held.push(text)
        held.end(cut=self._source.cut)
        yield from _Reader(held, self._tools).read("assistant")

    # --- blanks ---

    def _skip_blanks(self) -> Steps[None]:
        self.markup((yield from self._held_blanks()))

    def _held_blanks(self) -> Steps[str]:
        """Read white space up to something else, or the end."""
        blanks = ""
        while True:
            blanks += self._source.blanks()
            if self._source.at < len(self._source.text) or self._source.ended:
                return blanks
            yield

    def _skip(self, literal: str) -> Steps[None]:
        while self._source.more(len(literal)) and literal.startswith(self._source.text[self._source.at :]):
            yield
        if self._source.text.startswith(literal, self._source.at):
            self.emit(Markup(self._source.take(self._source.at + len(literal))))


# A fence whose first content is a call.
_WRAPPED = re.compile(r"[a-zA-Z_]*\s*(?=<tool_call>)")
_MAY_BE_WRAPPED = re.compile(r"[a-zA-Z_]*\s*(?:<[a-z_]*)?\Z")
_MAX_FENCE: Final = 40

# The held end of an output whose last thing is a call: closed, or cut off by the end.
_ENDS_WITH_CALL = re.compile(r"(?:</tool_call>|\})\s*\Z")
