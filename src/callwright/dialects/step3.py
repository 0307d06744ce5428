"""Step-3: `<steptml:invoke name="f">` and its parameters, between tokens that look like DeepSeek's.

    <｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>
    <steptml:invoke name="f"><steptml:parameter name="k">v</steptml:parameter></steptml:invoke>
    <｜tool_call_end｜><｜tool_calls_end｜>

Values are text, all of it. Source: the parsers of vLLM and SGLang; turns as vLLM prompts Step-3. Nothing says how its
template shows tools and outputs: they stand in the system text and in a turn `tool`.
"""

from typing import Final

from callwright.calls.toolset import Toolset
from callwright.dialects.base import Dialect, ReadBy
from callwright.dialects.call_layout import CallLayout, TaggedArguments
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.dialects.readers.parameters import ParameterReader
from callwright.dialects.readers.tagged_values import ParameterTags
from callwright.events import Markup
from callwright.stream_reader import Parse, StreamReader

__all__ = ["DIALECT"]


_BEGIN: Final = "<｜begin▁of▁sentence｜>"
_END: Final = "<|EOT|>"
_OPEN: Final = "<｜tool_calls_begin｜>"
_CLOSE: Final = "<｜tool_calls_end｜>"
_CALL: Final = "<｜tool_call_begin｜>"
_CALL_END: Final = "<｜tool_call_end｜>"
_SEP: Final = "<｜tool_sep｜>"
_HEADER: Final = f"function{_SEP}"
_CALLS: Final = CallLayout(
    open=_OPEN,
    begin=f'{_CALL}{_HEADER}<steptml:invoke name="${{name}}">',
    arguments=TaggedArguments(begin='<steptml:parameter name="${key}">', end="</steptml:parameter>"),
    end=f"</steptml:invoke>{_CALL_END}",
    close=_CLOSE,
)
_TAGS: Final = ParameterTags.of(_CALLS, blocks=((_OPEN, _CLOSE), (_CALL, _CALL_END)))
_CONTROLS: Final = (_BEGIN, "<|BOT|>", _END, _OPEN, _CLOSE, _CALL, _CALL_END, _SEP, "<think>", "</think>")


# --- prompts ---


_TURNS: Final = Turns(
    controls=_CONTROLS,
    head="<｜begin▁of▁sentence｜>«text|tools¦<|BOT|>system\n$text«text tools¦\n\n»$tools<|EOT|>»",
    system="<|BOT|>system\n$text<|EOT|>",
    user="<|BOT|>user\n$text<|EOT|>",
    assistant="<|BOT|>assistant\n$written<|EOT|>",
    written="«<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n»$calls",
    outputs="$each",
    output="<|BOT|>tool\n$text<|EOT|>",
    answer="<|BOT|>assistant\n«off¦<think>\n\n</think>\n\n»«open¦<think>\n$thought»",
    calls=_CALLS,
)


# --- output ---


def parse(source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
    """Events of an output. `start`: `reasoning` when the prompt left `<think>` open."""
    return _Reader(source, tools, _TAGS, ends=(_END,), tokens=(_SEP,)).read(start)


class _Reader(ParameterReader):
    """Prose, and calls behind up to two tokens and a header, each of which may be missing."""

    def _call_follows(self) -> Parse[bool]:
        """See `ParameterReader`: what stands around a call is read past on the way to the next."""
        yield from self._frame(_CALL_END)
        return (yield from self._begins_call())

    def _may_begin_call(self, tag: str) -> Parse[bool]:
        """See `ProseReader`."""
        if tag not in (_OPEN, _CALL):
            return (yield from super()._may_begin_call(tag))
        return (yield from self._begins_call(peek=True))

    def _marked(self, blanks: str, tag: str) -> Parse[None]:
        """See `ParameterReader`."""
        if tag not in (_OPEN, _CALL) or not (yield from self._begins_call(peek=True)):
            yield from super()._marked(blanks, tag)
            return
        self._opens_block(blanks + tag, tag)
        yield from self._begins_call()
        yield from self._calls("")

    def call_comes(self) -> Parse[bool | None]:
        """See `ParameterReader`."""
        return True if (yield from self._begins_call(peek=True)) else None

    def _begins_call(self, *, peek: bool = False) -> Parse[bool]:
        """Whether a call comes next, behind what may stand before it, and reading up to it. `peek`: not reading."""
        source = self.source
        read = ""
        for literal in (_OPEN, _CALL, _HEADER, self._form.call):
            read += yield from self.held_blanks()
            if (yield from self.comes(literal)):
                if literal == self._form.call:
                    source.take(source.at + len(literal))
                    names = yield from self._names_call()
                    source.unread(literal)
                    if not names:
                        break
                    if peek:
                        source.unread(read)
                    else:
                        self.markup(read)
                    return True
                read += source.take(source.at + len(literal))
        source.unread(read)
        return False

    def _frame(self, literal: str) -> Parse[None]:
        yield from self.skip_blanks()
        if (yield from self.comes(literal)):
            self.emit(Markup(self.source.take(self.source.at + len(literal))))


DIALECT = Dialect(
    name="step3",
    model_families="Step-3",
    model_globs=("step-3",),
    template_markers=("<steptml:",),
    source="Step-3 parsers and prompts of vLLM and SGLang",
    tokenizers=("step3",),
    stops=("<|EOT|>",),
    options=ThinkingOptions,
    prompt=_TURNS,
    calls=ReadBy(_CALLS, parse),
)
