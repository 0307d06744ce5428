"""Step-3: `<steptml:invoke name="f">` and its parameters, between tokens that look like DeepSeek's.

    <｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>
    <steptml:invoke name="f"><steptml:parameter name="k">v</steptml:parameter></steptml:invoke>
    <｜tool_call_end｜><｜tool_calls_end｜>

Values are text, all of it. Source: the parsers of vLLM and SGLang; turns as vLLM prompts Step-3. How its
template shows tools and outputs is unknown: here they are in the system text and in a turn `tool`.
"""

from typing import Final

from callwright.dialects.base import Dialect, ReadBy
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.events import Markup
from callwright.layout.calls import CallLayout, TaggedArguments
from callwright.reading.tagged.call import TaggedCall
from callwright.reading.tagged.calls import TaggedCalls
from callwright.reading.tagged.lexer import TagLexer
from callwright.reading.tagged.marks import parameter_marks
from callwright.reading.tagged.tags import ParameterTags
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.streaming.reader import Parse

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


def _reader(text: AnswerText) -> CallReader:
    """The reader of the calls in one answer."""
    return _Calls(TaggedCall(text, _Lexer(text, parameter_marks(_TAGS, ends=(_END,), tokens=(_SEP,)))))


class _Lexer(TagLexer):
    """Tags, and the optional prefix of a call: up to two tokens and a header, each of which may be missing."""

    def call_comes(self) -> Parse[bool | None]:
        """Whether a call follows, after its optional prefix; None if not. Nothing is consumed."""
        return True if (yield from self.begins_call(peek=True)) else None

    def begins_call(self, *, peek: bool = False) -> Parse[bool]:
        """Whether a call follows, after its optional prefix, which is consumed, unless `peek`."""
        source = self.source
        read = ""
        for literal in (_OPEN, _CALL, _HEADER, self.form.call):
            read += yield from self.text.held_blanks()
            if (yield from self.text.comes(literal)):
                if literal == self.form.call:
                    source.take(source.at + len(literal))
                    names = yield from self.names_call()
                    source.unread(literal)
                    if not names:
                        break
                    if peek:
                        source.unread(read)
                    else:
                        self.text.markup(read)
                    return True
                read += source.take(source.at + len(literal))
        source.unread(read)
        return False


class _Calls(TaggedCalls):
    """Calls with an optional prefix."""

    lexer: _Lexer

    def _call_follows(self) -> Parse[bool]:
        """Whether another call follows; the tokens around calls are skipped."""
        yield from self.text.skip_blanks()
        if (yield from self.text.comes(_CALL_END)):
            self.text.emit(Markup(self.text.take(_CALL_END)))
        return (yield from self.lexer.begins_call())

    def may_begin_call(self, tag: str) -> Parse[bool]:
        """Whether a call follows a tag."""
        if tag not in (_OPEN, _CALL):
            return (yield from super().may_begin_call(tag))
        return (yield from self.lexer.begins_call(peek=True))

    def marked(self, blanks: str, tag: str) -> Parse[CallReader | None]:
        """Read a tag, and its calls."""
        if tag not in (_OPEN, _CALL) or not (yield from self.lexer.begins_call(peek=True)):
            return (yield from super().marked(blanks, tag))
        self._opens_block(blanks + tag, tag)
        yield from self.lexer.begins_call()
        yield from self._calls("")
        return None


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
    calls=ReadBy(_CALLS, _reader),
)
