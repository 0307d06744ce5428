"""MiniCPM5: `<function name="f"><param name="k">v</param></function>`, values with markup in them in CDATA.

Values are text, all of it; no entities are decoded, because the format has none. Prompts are checked against the chat
template of MiniCPM5-1B.
"""

from collections.abc import Callable
from typing import Final

from callwright.dialects.base import Dialect, ReadBy
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.events import Markup
from callwright.layout.calls import CallLayout, TaggedArguments, values_as
from callwright.layout.literal import with_python_booleans
from callwright.reading.arguments_writer import ArgumentsWriter, written_stretch
from callwright.reading.tagged.call import TaggedCall
from callwright.reading.tagged.calls import TaggedCalls
from callwright.reading.tagged.lexer import TagLexer
from callwright.reading.tagged.marks import parameter_marks
from callwright.reading.tagged.tags import ParameterTags
from callwright.reading.tagged.values import Ending, TaggedValue
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.streaming.reader import Markers, Parse, read_until

_CDATA: Final = "<![CDATA["
_CDATA_END: Final = "]]>"
_MAX_VALUE: Final = 4_194_304


def _in_cdata(text: str) -> str:
    if not any(mark in text for mark in "<&\n"):
        return text
    return f"{_CDATA}{text.replace(_CDATA_END, f']]{_CDATA_END}{_CDATA}>')}{_CDATA_END}"


_CALLS: Final = CallLayout(
    begin='<function name="${name}">',
    arguments=TaggedArguments(begin='<param name="${key}">', end="</param>", text=_in_cdata),
    end="</function>",
    between="\n",
)
_TAGS: Final = ParameterTags.of(_CALLS, control=False)
_CONTROLS: Final = ("<s>", "</s>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")
_SHOW_TOOLS: Final = """# Tools

You are provided with function signatures within <tools></tools> XML tags:
<tools>
$lines
</tools>

Tool usage guidelines:
- You may call zero or more functions. If no function calls are needed, just answer normally and do not include any \
<function ... </function>.
- When calling a function, return an XML object within <function ... </function> using:
<function name="function-name"><param name="param-name">param-value</param></function>
- param-value may be multi-line. If it contains <, & or newline characters, wrap it in a CDATA block: \
<param name="param-name"><![CDATA[...multi-line value...]]></param>"""


# --- prompts ---


_TURNS: Final = Turns(
    controls=_CONTROLS,
    head="<s>«text|tools¦<|im_start|>system\n$text«text tools¦\n\n»$tools<|im_end|>\n»",
    system="<|im_start|>system\n$text<|im_end|>\n",
    user="<|im_start|>user\n$text<|im_end|>\n",
    assistant="<|im_start|>assistant\n$written<|im_end|>\n",
    written="«<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n»$calls",
    outputs="<|im_start|>user\n$each<|im_end|>\n",
    output="<tool_response>\n$text\n</tool_response>",
    between="\n",
    answer="<|im_start|>assistant\n«off¦<think>\n\n</think>\n\n»«open¦<think>\n$thought»",
    calls=_CALLS,
    past_calls=values_as(_CALLS, with_python_booleans),
    tools=_SHOW_TOOLS,
)


# --- output ---


def _reader(text: AnswerText) -> CallReader:
    """The reader of the calls in one answer."""
    return TaggedCalls(_Call(text, TagLexer(text, parameter_marks(_TAGS))))


class _Call(TaggedCall):
    """A call whose values may be in CDATA."""

    _behind_cdata = Markers(_CDATA_END, _TAGS.parameter_end, _TAGS.parameter, _TAGS.call_end, _TAGS.call)

    def _read_value(
        self, key: str, writer: ArgumentsWriter | None, is_sibling: Callable[[str], bool]
    ) -> Parse[TaggedValue]:
        """Read a value to its end. In CDATA only its end is markup; after it only the end of the value can
        follow.
        """
        if not (yield from self._opens_cdata()):
            value = yield from super()._read_value(key, writer, is_sibling)
            # With text before CDATA, or with half of its markup, the value is ambiguous.
            broken = _CDATA[:-1] in value.text or value.text.rstrip().endswith(_CDATA_END)
            return value._replace(sure=value.sure and not broken)
        source, form = self.text.source, self.form
        pieces: list[str] = []
        holds = False  # an end of CDATA, as text

        def keep(text: str) -> None:
            pieces.append(text)
            if writer is not None:
                writer.text(text)

        stretch = written_stretch(_IN_CDATA, writer, pieces.append)
        while True:
            text, marker = source.scan(_IN_CDATA)
            if text:
                keep(text)
            if marker and (yield from self.text.comes(_CDATA)):
                self.text.emit(Markup(marker + source.take(source.at + len(_CDATA))))
            elif marker and (yield from self._ends_cdata()):
                self.text.emit(Markup(marker))
                break
            elif marker:
                keep(marker)
                holds = True
            elif source.done:
                return TaggedValue(pieces, Ending.CUT, holds=holds, odd="", sure=True)
            else:
                source.wait_in(stretch)
                yield
        behind, marker = yield from read_until(source, self._behind_cdata, _MAX_VALUE)
        if marker != form.parameter_end:
            source.unread(behind + marker)
        else:
            if behind.strip():
                self.sink.odd("text after CDATA", "arguments_trailing_text", behind)
            else:
                self.text.markup(behind)
            self.text.markup(marker)
        ending = Ending.CLOSED if marker == form.parameter_end else Ending.MISSING if marker else Ending.CUT
        return TaggedValue(pieces, ending, holds=holds, odd="", sure=True)

    def _ends_cdata(self) -> Parse[bool]:
        """Whether the end of CDATA, which was just read, is one: another tag follows, or no other end before one."""
        source, form = self.text.source, self.form
        if (yield from self.lexer.followed_by(form.parameter_end, form.parameter, form.call_end, form.call)):
            return True
        text, marker = yield from read_until(source, self._behind_cdata, _MAX_VALUE)
        source.unread(text + marker)
        return marker != _CDATA_END

    def _opens_cdata(self) -> Parse[bool]:
        """Whether a value begins with CDATA after white space; if so, consumes both."""
        blanks = yield from self.text.held_blanks()
        if (yield from self.text.comes(_CDATA)):
            self.text.emit(Markup(blanks + self.text.take(_CDATA)))
            return True
        self.text.source.unread(blanks)
        return False


_IN_CDATA: Final = Markers(_CDATA_END)


DIALECT = Dialect(
    name="minicpm5",
    aliases=("minicpm",),
    model_families="MiniCPM5",
    model_globs=("minicpm-5", "minicpm-sala"),
    template_markers=("<param name= + CDATA",),
    source="chat template of MiniCPM5-1B",
    tokenizers=("minicpm5",),
    stops=("<|im_end|>",),
    options=ThinkingOptions,
    prompt=_TURNS,
    calls=ReadBy(_CALLS, _reader),
)
