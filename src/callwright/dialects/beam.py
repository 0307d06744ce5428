"""Beam: Harmony's headers, and calls whose arguments are named parameters in place of JSON.

     to=f<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="k">
    v
    </rfl:parameter><|call|>

The recipient makes a message a call; else its channel decides its kind. A line feed on each side of a value is
structure. Source: vLLM's parser for Beam. How its template shows tools and outputs is unknown: here they are
shown as in Harmony, the tools in words.
"""

import re
from typing import Final

from callwright.dialects.base import Dialect, ParsedBy
from callwright.dialects.harmony.bodies import ANY, BODY_END, STOPS, Bodies
from callwright.dialects.harmony.header import read_header
from callwright.dialects.harmony.tokens import CALL, CHANNEL, CONSTRAIN, CONTROLS, END, MESSAGE, RETURN, START
from callwright.dialects.prompts.turns import Turns
from callwright.events import Markup, Problem, ProblemKind
from callwright.layout.calls import CallLayout, TaggedArguments
from callwright.reading.tagged.call import TaggedCall
from callwright.reading.tagged.lexer import TagLexer
from callwright.reading.tagged.literals import Tag, TagKind
from callwright.reading.tagged.marks import parameter_marks
from callwright.reading.tagged.tags import ParameterTags
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.foreign import Formats
from callwright.reading.text.foreign_in_text import ForeignInText
from callwright.reading.text.other_answers import reads_others
from callwright.streaming.reader import Markers, Parse, read_until

_TAGS: Final = ParameterTags(
    call=START, call_end=CALL, parameter="<rfl:parameter name=", parameter_end="</rfl:parameter>", lines=True
)
_NEXT: Final = f"{END}{START}assistant"
_CALLS: Final = CallLayout(
    begin=f" to=${{name}}{CHANNEL}analysis {CONSTRAIN}xml{MESSAGE}",
    arguments=TaggedArguments(begin='<rfl:parameter name="${key}">\n', end="\n</rfl:parameter>"),
    between=_NEXT,
    stop=CALL,
)
# What belongs into a header.
_KNOWN: Final = re.compile(r"<\|[a-z]+\|>|\bto=\S+|\b(?:assistant|analysis|commentary|final|xml|json|code)\b")
_BEGUN: Final = ("assistant", "to=")  # with which an output may end
_HEADER_END: Final = Markers(MESSAGE, START, *STOPS)
_TO: Final = re.compile(r"\bto=([^\s<]++)")
# The header of a message that follows another without `<|start|>`, and a text that may become one.
_HEADER: Final = re.compile(
    rf"\s*+(?:assistant)?\s*+(?:to=(?P<to>[^\s<]++))?\s*+(?:{re.escape(CHANNEL)}|{re.escape(MESSAGE)})"
)
_MAY_BE_HEADER: Final = re.compile(r"\s*+[^<\n]*+(?:<\|?+[a-z]*+\|?+)?\Z")
# Maximum length of held text without a header (longer text is streamed as an answer), and of a header.
_MAX_BARE: Final = 256
_MAX_HEADER: Final = 2_000


# --- prompts ---


_TURNS: Final = Turns(
    controls=CONTROLS,
    head="«text|tools¦<|start|>system<|message|>$text«text tools¦\n\n»$tools<|end|>»",
    system="«after_outputs¦<|end|>»<|start|>system<|message|>$text<|end|>",
    user="«after_outputs¦<|end|>»<|start|>user<|message|>$text<|end|>",
    assistant="<|start|>assistant$written«!calls¦<|end|>»",
    written=(
        "«<|channel|>analysis<|message|>$thought:trim<|end|><|start|>assistant»"
        "«<|channel|>final<|message|>$text»«text calls¦<|end|><|start|>assistant»$calls"
    ),
    outputs="$each",
    output="<|start|>$name to=assistant<|channel|>analysis<|message|>$text<|end|>",
    close="«after_outputs¦<|end|>»",
    answer="<|start|>assistant",
    calls=_CALLS,
)


# --- output ---


_OWN: Final = ("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>")


def _parse(text: AnswerText, start: str, formats: Formats) -> Parse[None]:
    """Events of an output. `start`: as for Harmony, `reasoning` in an open analysis message."""
    if not (yield from reads_others(text, start, formats, own=_OWN)):
        yield from _Reader(text, formats).read(start)


class _Lexer(TagLexer):
    """Reads the tags in a message."""

    def tag(self, literal: str) -> Parse[Tag | None]:
        """A tag; `<|start|>` opens a call if its message is to a tool."""
        if literal != START:
            return (yield from super().tag(literal))
        header = yield from self._header()
        name = (header and header["to"]) or ""
        return Tag(START, CALL, TagKind.CALL, key=name, known=name in self.text.tools) if name else None

    def message_begins(self) -> Parse[bool]:
        """Whether a header without `<|start|>` is next, which names a tool or a channel."""
        return (yield from self._header()) is not None

    def _header(self) -> Parse[re.Match[str] | None]:
        """The header that is next, after its `<|start|>`. Nothing is read."""
        while True:
            ahead = self.source.ahead(_MAX_BARE)
            header = _HEADER.match(ahead)
            if header or not self.source.more(_MAX_BARE) or not _MAY_BE_HEADER.match(ahead):
                return header
            yield


class _Call(TaggedCall):
    """A call, which is a message."""

    def _next_tag(self) -> Parse[str]:
        """Read up to the next tag; none if another message begins, although no token ends this one."""
        return "" if (yield from self.lexer.message_begins()) else (yield from super()._next_tag())

    def _ends_call(self, marker: str) -> bool:
        """Whether a token ends a message, and so a call."""
        return marker in STOPS


class _Reader:
    """Consecutive messages."""

    def __init__(self, text: AnswerText, formats: Formats) -> None:
        self.text = text
        self._foreign = ForeignInText(text, formats)
        self._call = _Call(text, _Lexer(text, parameter_marks(_TAGS, thoughts=(), ends=STOPS)))
        self._bodies = Bodies(text.source, text.tools)

    def read(self, start: str) -> Parse[None]:
        """Read the whole answer."""
        source = self.text.source
        if start == "reasoning":
            yield from self._text("analysis")
        has_role = start == "message"
        while not source.done:
            lead, token = yield from read_until(source, ANY, _MAX_BARE)
            if token in (CHANNEL, CONSTRAIN, MESSAGE):
                yield from self._headed(lead + token, token, has_role=has_role)
            elif lead.strip() and (token or not (has_role and source.done)):
                self._bodies.say("final", lead)
                self.text.begun = self.text.begun or lead
                self.text.markup(token)
                if not token and not source.done:
                    self.text.markup((yield from self._bodies.more_text("final")))
            elif not any(word.startswith(_KNOWN.sub("", lead).strip()) for word in _BEGUN):
                self.text.emit(Problem("malformed_header", "a header without a body", text=lead))
            else:
                self.text.markup(lead + token)
            has_role = token == START
        if not self.text.calls:
            self._foreign.name_in(self.text.begun)

    def _headed(self, written: str, token: str, *, has_role: bool) -> Parse[None]:
        """Read a message whose header was read up to and including `token`."""
        if token != MESSAGE:
            rest, token = yield from read_until(self.text.source, _HEADER_END, _MAX_HEADER)
            written += rest
        header = read_header(written.removesuffix(MESSAGE), self.text.tools, has_role=has_role)
        if token != MESSAGE:
            kind: ProblemKind = "malformed_call" if header.name in self.text.tools else "malformed_header"
            self.text.emit(Problem(kind, "a header without a body", text=written))
            self.text.source.unread(token)
            return
        written = written.removesuffix(MESSAGE)
        # A tool may have the name of a reader: only a call has a constraint.
        to = _TO.search(written) if CONSTRAIN in written else None
        name = header.name or (to[1] if to and to[1] in self.text.tools else "")
        self.text.emit(Markup(written + MESSAGE))
        if _KNOWN.sub("", written).strip():
            self.text.emit(Problem("malformed_header", f"header {written!r}", call=self.text.calls if name else None))
        if name:
            self._call.start(name)
            yield from self._call.arguments(name)
        else:
            yield from self._text(header.channel or "final")

    def _text(self, channel: str) -> Parse[None]:
        """Text of a channel up to the end of its message."""
        self._bodies.calls = self.text.calls
        token = yield from self._bodies.text(channel, BODY_END)
        self.text.calls = self._bodies.calls
        if token == START:
            self.text.source.unread(token)
        else:
            self.text.markup(token)


DIALECT = Dialect(
    name="beam",
    model_families="Beam",
    model_globs=("beam",),
    template_markers=("<rfl:parameter",),
    source="vLLM's parser for Beam",
    tokenizers=("beam",),
    stops=(RETURN, CALL),
    prompt=_TURNS,
    calls=ParsedBy(_CALLS, _parse),
)
