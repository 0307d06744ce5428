"""Hermes: `<tool_call>` around `{"name": …, "arguments": {…}}`.

The format of Qwen2.5, QwQ, Qwen3, Hermes 2 to 4, Granite 4, SmolLM3 and most fine-tunes. Prompts follow Qwen's
template: the tools stand as JSON lines in the system turn, outputs come back in a user turn. Source: the chat
templates of Qwen2.5-7B-Instruct and Qwen3-32B; NousResearch Hermes Function Calling.
"""

import json
from typing import Any, Final, Literal, assert_never

import msgspec

from toolwright.conversation import AssistantTurn, Call, Conversation, Message, NamedTool, ToolTurn
from toolwright.dialects._chat import format_note, plain_text, split_instructions, told_messages
from toolwright.dialects._marked_json import MarkedJson
from toolwright.dialects._prose import Marks, ProseReader
from toolwright.dialects.base import RenderOptions
from toolwright.events import Markup, Problem
from toolwright.jsonfind import TRAILING
from toolwright.jsonspan import JsonStops, gather_json
from toolwright.meant import in_a_sentence, introduces_no_call
from toolwright.prompt import Prompt, PromptBuilder, neutralise_json
from toolwright.source import Markers, Source, Steps, gather
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
_AFTER: Final = (_OPEN, "<think>", *_ENDS)
# A call that is shown in a sentence is at most so long, and what is behind it is looked at so far.
_MAX_SHOWN: Final = 2_000
_MAX_BEHIND: Final = 64
_BLOCK_ENDS = Markers(_CLOSE, _OPEN, *_ENDS)
_BLOCK = JsonStops(_CLOSE, _OPEN, *_ENDS, then=(_CLOSE, _OPEN, *_ENDS))


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
    instructions += format_note(conversation)
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
                    out.text(f"\n{_call_json(_safe(call))}\n").control(_CLOSE)
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
    out = PromptBuilder()
    _tools(out, conversation)
    return told_messages(
        conversation,
        controls=_CONTROLS,
        tools=Prompt(out.pieces(), _CONTROLS).wire_text,
        write=write,
        results=lambda outputs: "\n".join(f"<tool_response>\n{text}\n</tool_response>" for _, text in outputs),
    )


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


def _safe(call: Call) -> Call:
    """The call for a prompt: look-alikes of control tokens in its arguments are escaped."""
    return msgspec.structs.replace(call, arguments=neutralise_json(call.arguments, _CONTROLS))


def _begin(out: PromptBuilder, role: str) -> PromptBuilder:
    return out.control("<|im_start|>").text(f"{role}\n")


# --- output ---


def parse(source: Source, start: str, tools: Toolset) -> Steps[None]:
    """Events of an output. `start`: `reasoning` when the prompt left `<think>` open."""
    return _Reader(source, tools).read(start)


class _Reader(ProseReader):
    """Prose, and between `<tool_call>` and `</tool_call>` a call."""

    def __init__(self, source: Source, tools: Toolset) -> None:
        super().__init__(source, tools, Marks(tags=(_OPEN, _CLOSE)))
        self._opened = False  # a block that begins a line and is no JSON

    def _marked(self, blanks: str, tag: str) -> Steps[None]:
        """Behind `<tool_call>`: a block, another opener, nothing, or the mention of the tag in a text."""
        if tag == _CLOSE:
            # Without its opener: the rest of a block when a call came before, else a mention.
            self.emit(Markup(blanks + tag) if self._apart else self._say(blanks + tag))
            if self._opened:
                yield from self._shown()
            return
        starts_line = self._at_line_start(blanks)
        inner = yield from self._held_blanks()
        while self.source.more(len(_CLOSE)) and self.source.text.startswith("<", self.source.at):
            yield
        begin = self.source.text[self.source.at :]
        if begin.startswith(("{", "[", "`")):
            if introduces_no_call(self._before, marked=True):
                yield from self._held(blanks + tag + inner)
            elif starts_line or not (yield from self._in_a_sentence(blanks, tag + inner)):
                yield from self._block(blanks + tag + inner)
        elif begin.startswith(_OPEN):
            self.emit(Markup(blanks + tag + inner))
        elif begin.startswith(_CLOSE):
            self.emit(Markup(blanks + tag + inner + self.source.take(self.source.at + len(_CLOSE))))
            self.emit(Problem("malformed_call", "a call with nothing in it"))
        else:
            self._opened = starts_line
            self.emit(self._say(blanks + tag + inner))

    def _shown(self) -> Steps[None]:
        """Behind `</tool_call>` of what was shown as text: when its line ends there, it was to be a call."""
        self._opened = False
        blanks = yield from self._held_blanks()
        if "\n" in blanks or self.source.done or self.source.text.startswith("<", self.source.at):
            self.emit(Problem("malformed_call", "a marked call that is no call in JSON"))
        self.source.unread(blanks)

    def _in_a_sentence(self, blanks: str, opening: str) -> Steps[bool]:
        """Whether a block behind words stands in the middle of their sentence: then it is shown, not meant."""
        source = self.source
        block, closed, stop = yield from gather_json(source, _BLOCK, _MAX_SHOWN)
        shown = block + stop
        if closed:
            rest, stop = yield from gather(source, _BLOCK_ENDS, _MAX_SHOWN)
            shown += rest + stop
        behind = ""
        while stop == _CLOSE:
            line, line_feed, _ = source.ahead(_MAX_BEHIND).partition("\n")
            behind = line[TRAILING.match(line).end() :]  # type: ignore[union-attr]  # matches always
            if line_feed or (behind and not behind.startswith("<")) or not source.more(_MAX_BEHIND):
                break
            yield
        before = (self._before + blanks).rpartition("\n")[2]
        if behind and not behind.startswith(_AFTER) and in_a_sentence(before, behind):
            self.emit(self._say(blanks + opening + shown))
            return True
        source.unread(shown)
        return False

    def _block(self, opening: str) -> Steps[None]:
        apart = self._apart
        self._call_begins()
        block = MarkedJson(self.source, self.tools, _BLOCK, self.calls)
        stop, rest = yield from block.read()
        self.calls = block.calls
        closing = stop if stop == _CLOSE else ""
        if block.refused:
            self._apart = apart
            self.emit(self._say(opening + block.refused + closing))
        else:
            self.emit(Markup(opening))
            self.markup(closing)
        lead = len(rest) - len(rest.lstrip())
        self.markup(rest[:lead])
        if rest[lead:]:
            self._replay(rest[lead:])
        if stop and not closing:
            self.source.at -= len(stop)  # the next call, or the end of the turn
        yield from self._skip_blanks()

    def _may_begin_call(self, tag: str) -> Steps[bool]:
        """See `ProseReader`."""
        yield from ()
        return self.source.text.startswith(("{", "["), self.source.at)

    def _last_call(self, text: str) -> int:
        """The begin of the blocks with which a text ends."""
        at = len(text)
        end = len(text.rstrip())
        while (begin := text.rfind(_OPEN, 0, end)) >= 0:
            block = text[begin + len(_OPEN) : end].strip()
            if not block.startswith("{") or _CLOSE in block.removesuffix(_CLOSE) or not block.endswith((_CLOSE, "}")):
                break
            at, end = begin, len(text[:begin].rstrip())
        return at if at < len(text) else super()._last_call(text)
