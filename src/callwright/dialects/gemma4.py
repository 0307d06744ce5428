"""Gemma 4: `<|tool_call>call:f{k:<|"|>v<|"|>,n:3}<tool_call|>`, with strings between `<|"|>`.

Source: the chat template of gemma-4-31B-it. Tools are declared in the notation of the calls; a turn goes on behind the
results of its calls. Reasoning stands in `<|channel>thought … <channel|>` and is switched on by `<|think|>` in the
system turn.
"""

from typing import Final, Literal

from callwright.calls.toolset import Toolset
from callwright.conversation import Conversation
from callwright.dialects._gemma import SHOWN, declare, if_new
from callwright.dialects.base import Dialect, ReadBy, RenderOptions
from callwright.dialects.prompts.turns import Turns
from callwright.dialects.readers.notation import Notation, NotationReader
from callwright.events import Markup
from callwright.prompt import PromptBuilder
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


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `on` lets the model think, `off` begins the answer behind a closed, empty thought."""

    thinking: Literal["on", "off"] = "on"


# --- prompts ---


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    for tool in conversation.tools:
        out.control(_TOOL[0])
        declare(out, _FORM.quote, tool)
        out.control(_TOOL[1])


_RESPONSE: Final = '<|tool_response>response:$name{value:<|"|>$text<|"|>}<tool_response|>'
_TURNS: Final = Turns(
    controls=_CONTROLS,
    head="<bos>«instructed|tools|on¦<|turn>system\n«on¦<|think|>\n»$text$tools<turn|>\n»",
    notes_choice=False,
    system="<|turn>system\n$text<turn|>\n",
    user="<|turn>user\n$text<turn|>\n",
    assistant=if_new("<|turn>model\n")
    + "«thought calls¦<|channel>thought\n$thought\n<channel|>»$text$calls«!calls¦<turn|>\n»",
    written="«<|channel>thought\n$thought<channel|>»$text$calls",
    trims=("system", "user", "assistant"),
    outputs="$each",
    output=_RESPONSE,
    answer=if_new("<|turn>model\n«off¦<|channel>thought\n<channel|>»"),
    calls=_FORM.layout,
    tools=_tools,
    chat_tools=_tools,
    chat_output=_RESPONSE,
    chat_between="\n",
)


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
    prompt=_TURNS,
    calls=ReadBy(_FORM.layout, parse),
)
