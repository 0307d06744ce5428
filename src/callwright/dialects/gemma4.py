"""Gemma 4: `<|tool_call>call:f{k:<|"|>v<|"|>,n:3}<tool_call|>`, with strings between `<|"|>`.

Source: the chat template of gemma-4-31B-it. Tools are declared in the notation of the calls; a turn goes on behind the
results of its calls. Reasoning stands in `<|channel>thought … <channel|>` and is switched on by `<|think|>` in the
system turn.
"""

from typing import Any, Final, Literal

from callwright.calls.toolset import Toolset
from callwright.conversation import AssistantTurn, Conversation
from callwright.dialects._gemma import SHOWN, GemmaTurns, declare
from callwright.dialects.base import Dialect, PromptBy, ReadBy, RenderOptions, TurnMarks
from callwright.dialects.prompts.chat_messages import (
    format_note,
    last_asked,
    split_instructions,
)
from callwright.dialects.prompts.kept_parts import put_tools
from callwright.dialects.prompts.told import ToldTurns
from callwright.dialects.readers.notation import Notation, NotationReader
from callwright.events import Markup
from callwright.prompt import Prompt, PromptBuilder
from callwright.stream_reader import Parse, StreamReader

__all__ = ["DIALECT"]

_STOPS: Final = ("<turn|>", "<|tool_response>")

_RESULT: Final = ("<|tool_response>", "<tool_response|>")
_THOUGHT: Final = ("<|channel>", "<channel|>")
_FORM: Final = Notation("<|tool_call>", "<tool_call|>", '<|"|>', _RESULT, ends=_STOPS, thoughts=(_THOUGHT,))
_THOUGHT_NAME: Final = "thought\n"
_TOOL: Final = ("<|tool>", "<tool|>")
_CONTROLS: Final = (
    *("<bos>", "<|turn>", "<turn|>", "<|think|>", _FORM.call, _FORM.call_end, _FORM.quote),
    *(*_THOUGHT, *_RESULT, *_TOOL),
)
_TURNS: Final = GemmaTurns(
    _FORM, _CONTROLS, ("<|turn>", "<turn|>"), "system", (_THOUGHT[0] + _THOUGHT_NAME, f"\n{_THOUGHT[1]}")
)


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `on` lets the model think, `off` begins the answer behind a closed, empty thought."""

    thinking: Literal["on", "off"] = "on"


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to `<|turn>model`, or to the results of the last calls."""
    out = PromptBuilder().control("<bos>")
    instructions, items = split_instructions(conversation.items)
    instructions += format_note(conversation)
    thinks = options.thinking == "on"
    if instructions or conversation.tools or thinks:
        _TURNS.begin(out, "system")
        if thinks:
            out.control("<|think|>").text("\n")
        out.text("\n\n".join(instructions).strip())
        put_tools(out, conversation, _tools)
        _TURNS.end(out)
    answering = _TURNS.put(out, items, last_asked(conversation, items))
    if options.add_generation_prompt:
        if not answering:
            _TURNS.begin(out, "model")
        if not answering and not thinks:
            out.control(_THOUGHT[0]).text(_THOUGHT_NAME).control(_THOUGHT[1])
    return Prompt(out.pieces(), _CONTROLS)


_TOLD: Final = ToldTurns(
    _CONTROLS,
    lambda turn: _said(turn).wire_text,
    lambda outputs: "\n".join(f"{_RESULT[0]}{_result(*output)}{_RESULT[1]}" for output in outputs),
)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls and outputs as the format's text."""
    return _TOLD.messages(conversation, _tools)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it."""
    return _said(turn).text


def _said(turn: AssistantTurn) -> Prompt:
    out = PromptBuilder()
    if turn.reasoning:
        out.control(_THOUGHT[0]).text(_THOUGHT_NAME + turn.reasoning).control(_THOUGHT[1])
    out.text(turn.text)
    _FORM.layout.put(out, turn.calls, controls=_CONTROLS)
    return Prompt(out.pieces(), _CONTROLS)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    for tool in conversation.tools:
        out.control(_TOOL[0])
        declare(out, _FORM.quote, tool)
        out.control(_TOOL[1])


def _result(name: str, text: str) -> str:
    return f"response:{name}{{value:{_FORM.quote}{text}{_FORM.quote}}}"


# --- output ---


def parse(source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
    """Events of an output. `start`: `reasoning` when the prompt left a thought open."""
    return _Reader(source, tools).read(start)


class _Reader(NotationReader):
    """The notation, and thoughts in a channel that is named behind its opener."""

    def __init__(self, source: StreamReader, tools: Toolset) -> None:
        super().__init__(source, tools, _FORM)
        self._in_channel_thought = False  # a thought was read

    def _marked(self, blanks: str, tag: str) -> Parse[None]:
        """See `ProseReader`; a channel that is named begins within a line, too."""
        if tag != _THOUGHT[0]:
            yield from super()._marked(blanks, tag)
        elif self._apart or self.at_line_start(blanks) or (yield from self.comes(_THOUGHT_NAME)):
            yield from self._thinks(blanks, tag)
        else:
            self.emit(self.say(blanks + tag))

    def _think(self, close: str) -> Parse[None]:
        self._in_channel_thought = True
        yield from self.skip_blanks()
        while (yield from self.comes(_THOUGHT[0])):  # twice
            self.emit(Markup(self.source.take(self.source.at + len(_THOUGHT[0]))))
        yield from self.skip(_THOUGHT_NAME)
        yield from super()._think(close)

    def lone_close(self, written: str) -> None:
        """The end of a thought behind one that ended says nothing of the text between them."""
        if self._in_channel_thought:
            self.emit(Markup(written))
        else:
            super().lone_close(written)


DIALECT = Dialect(
    name="gemma4",
    aliases=("gemma_4",),
    model_families="Gemma 4",
    model_globs=("gemma-4", "diffusiongemma"),
    template_markers=("<|tool_call>",),
    source="chat template of gemma-4-31B-it",
    tokenizers=("gemma4",),
    stops=_STOPS,
    options=Options,
    shown_keywords=SHOWN,
    prompt=PromptBy(
        render=render,
        messages=messages,
        write=write,
        marks=TurnMarks(thought=(_THOUGHT[0] + _THOUGHT_NAME, _THOUGHT[1]), controls=_CONTROLS),
    ),
    calls=ReadBy(_FORM.layout, parse),
)
