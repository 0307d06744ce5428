"""Decides the end of a value between tags, for all formats that write values as plain text.

A value may contain the format's own tags, as in a page about them. The following tag decides; nothing is guessed: a
value's closer ends it if another tag of the format follows. Otherwise, if another closer is found before the next tag,
the value extends to it; if not, the text after the closer is not part of a value. An opening tag is part of a value if
everything it opens is closed again before the value's own closer; if not, the value's closer is missing, and the value
ends there. Undecided text is held; values that contain tags are reported.

A closer may be written twice, or be named after its parameter, or as another format names it. It is not part of the
value if nothing that it could close was opened in the value and it is followed by something that may follow a value.

The formats themselves, the spelling of keys and the beginning of calls, are in the lexer (`TagLexer`).
"""

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from callwright.calls.toolset import Toolset
from callwright.reading.arguments_writer import ArgumentsWriter, written_stretch
from callwright.reading.tagged.lexer import TagLexer
from callwright.reading.tagged.literals import Tag, TagKind, TagLiterals
from callwright.reading.tagged.nesting import Fit, Nesting, Shown
from callwright.reading.tagged.other_closers import OTHER_CLOSER
from callwright.streaming.reader import Parse, StreamReader

# The most times that a value's closer is read again.
_MAX_AGAIN: Final = 16
_NO_TAG: Final = Tag("", "", TagKind.STOP)  # the end of the output


class Ending(Enum):
    """How a value ended: at its closer; at another tag, its own is missing; not at all, the output ended first."""

    CLOSED = "closed"
    MISSING = "missing"
    CUT = "cut"


class TaggedValue(NamedTuple):
    """A value: its pieces, how it ended, and anything unusual about it.

    `holds`: it contains tags of the format. `odd`: anything unusual about its end, or `""`. `sure`: certainly all of
    this, and nothing else, was meant.
    """

    pieces: list[str]
    ending: Ending
    holds: bool
    odd: str
    sure: bool

    @property
    def text(self) -> str:
        """The value."""
        return "".join(self.pieces)


class _Value:
    """One value while it is read. `own`: its closer; `key`: its name; `around`: the closers of the elements that hold
    it; `declares`: whether a parameter of a name may follow.
    """

    def __init__(self, own: str, key: str, declares: Callable[[str], bool], around: tuple[str, ...]) -> None:
        self.own = own
        self.key = key
        self.declares = declares
        self.around = around
        self.pieces: list[str] = []
        self.text = ""  # before the latest tag
        self.between = ""  # the text between the tags after its closer
        self.closed_by = ""  # the latest tag
        self.stray = ""  # a closer of a call that was not opened in it, with which it may end
        self.ends_odd = ""
        self.is_odd = False
        self.holds = False  # tags
        self.hopeless = False  # an opening in it is never closed
        self.opened = False  # an opening was in it


class ValueReader:
    """Reads values of one format. `lines`: a line break on each side of a value is the format's; `gap`: so is this
    before a missing closer.
    """

    def __init__(self, reader: TagLexer, known: TagLiterals, *, lines: bool = False, gap: str = "") -> None:
        self._reader = reader
        self._known = known
        self._lines = lines
        self._gap = gap
        # For the current source: openings known never to be closed (from a search that passed them, so that none starts
        # there again), and the place up to which the intended reading is unknown.
        self._source: StreamReader | None = None
        self._never_closed: set[int] = set()
        self._doubt_to = -1
        self._lost = False
        self._value = _Value("", "", bool, ())  # that is being read

    @property
    def lost(self) -> bool:
        """Whether the end of an earlier value was uncertain, so that nothing after it is certain."""
        self._here()
        return self._lost

    def read(
        self,
        own: str,
        key: str,
        writer: ArgumentsWriter | None,
        declares: Callable[[str], bool],
        around: tuple[str, ...] = (),
    ) -> Parse[TaggedValue]:
        """Read the value of a parameter to its end; its closer (`own`) is read, and any other tag that ends it is not.

        `writer` writes the pieces of a value that flows. `declares`: whether a parameter of this name may come next.
        `around` are the closers of the elements that hold it.
        """
        source, marks, others = self._reader.source, self._known.flowing, self._known.others
        value = self._value = _Value(own, key, declares, around)
        lost, begun = self.lost, ""
        if self._lines:
            begun = yield from self._line_feed()
        keeps = len(self._gap) + self._lines
        stretch = written_stretch(marks, writer, value.pieces.append, holds="\n" if keeps else "", most=keeps)
        while True:
            text, literal = source.scan(marks)
            text, held, stretch.held = stretch.held + text, "", ""  # held: the last line breaks may be the format's
            ending: Ending | None = None
            if text.strip():
                value.stray = ""
            if literal == OTHER_CLOSER:
                text += literal + (yield from others.rest(source, key))
            elif literal and (tag := (yield from self._reader.tag(literal))):
                text, ending = yield from self._take_tag(text, tag)
            elif literal:
                text += literal
            elif source.done:
                ending = Ending.CUT
            if ending is not None:
                text, held = self._split_end(key, text, ending)
            elif text:
                at = others.place(text, key)
                kept = max(at - keeps, len(text[:at].rstrip("\n"))) if keeps else at
                text, stretch.held = text[:kept], text[kept:]
            if text:
                value.pieces.append(text)
                if writer is not None:
                    writer.text(text)
            if ending is not None:
                source.markup(held)
                return self._make_value(ending, begun, held, was_lost=lost)
            if not literal:
                source.wait_in(stretch)
                yield

    def _line_feed(self) -> Parse[str]:
        """Read the line feed before a value, which belongs to the format; `""` if absent."""
        source = self._reader.source
        while source.more(1):
            yield
        if not source.text.startswith("\n", source.at):
            return ""
        source.markup(source.take(source.at + 1))
        return "\n"

    def _take_tag(self, text: str, tag: Tag) -> Parse[tuple[str, Ending | None]]:
        """Take a tag, just read after `text`; returns the text that belongs to the value, and the ending."""
        value = self._value
        value.text = text
        ending, inside = yield from self._judge(tag)
        if ending is Ending.MISSING:
            self._lost = self._in_doubt() or value.hopeless
        value.closed_by = tag.text
        if ending is not None:
            return text, ending
        value.holds = value.holds or inside != "" or not tag.opens
        value.hopeless = value.hopeless or inside is None
        value.opened = value.opened or tag.opens
        inside = inside or ""
        is_stray = tag.closes and tag.kind is not TagKind.VALUE and not (value.opened or inside.strip())
        value.stray = tag.text if is_stray else ""
        return text + tag.text + inside, None

    def _make_value(self, ending: Ending, begun: str, held: str, *, was_lost: bool) -> TaggedValue:
        """The value, which ended so. `begun` and `held` are the format's on its two sides; `was_lost`: nothing is
        certain since an earlier value.
        """
        value, pieces, known = self._value, self._value.pieces, self._known
        whole = "".join(pieces)
        if ending is Ending.MISSING:
            self._lost = self._lost or known.is_markup(whole) or (known.named and f"</{value.own}" in whole)
            value.is_odd = value.is_odd or not pieces  # the value is absent
        elif ending is Ending.CLOSED:
            value.holds = value.holds or any(tag in whole for tag in (value.closed_by[:-1], *known.inner))
            value.is_odd = value.is_odd or (value.stray != "" and whole.strip() != value.stray)
            value.is_odd = value.is_odd or (value.holds and known.lacks_key(whole))
            if self._lines and bool(begun) != bool(held) and any(pieces):
                value.ends_odd = value.ends_odd or "a line break is on one side of a value only"
        return TaggedValue(
            pieces,
            ending,
            value.holds,
            value.ends_odd,
            (was_lost or not self._lost) and not value.is_odd,
        )

    def _in_doubt(self) -> bool:
        """Whether it is unknown if the next tag, before which a value has ended, belongs to the value. If so, nothing
        after it is certain.
        """
        return self._lost or self._here() < self._doubt_to

    def _split_end(self, key: str, text: str, ending: Ending) -> tuple[str, str]:
        """The end of a value, and the text after it that belongs to the format: line breaks, or a tag used as its
        closer.
        """
        said, others = text, self._known.others
        if ending is Ending.MISSING:
            at = others.place(text, key)
            closes = at < len(text) and others.closes(self._value.pieces, text, at)
            closes = closes and not self._known.pieces.search("".join((*self._value.pieces, text[:at])))
            said = text[:at] if closes else text.removesuffix(self._gap)
        if self._lines:
            said = said.removesuffix("\n")
        return said, text[len(said) :]

    # --- the meaning of a tag in a value ---

    def _judge(self, tag: Tag) -> Parse[tuple[Ending | None, str | None]]:
        """How a tag, just read, ends the value. If it does not: None, and the text after it that also belongs to the
        value, or None if the tag opens something that is never closed.
        """
        source = self._reader.source
        if tag.closes and tag.closer == self._value.own:
            return (yield from self._closer(tag))
        if tag.opens:
            inside = None if self._value.hopeless else (yield from self._balanced(tag))
            if inside is not None:
                return None, inside
            is_next = self._is_next(tag)
            is_value = tag.kind is TagKind.VALUE
            self._value.is_odd = self._value.is_odd or (tag.key == self._value.key if is_value else is_next)
            if is_next:
                source.unread(tag.text)
                return Ending.MISSING, ""
            return None, None
        if tag.closes and tag.kind is TagKind.VALUE and tag.closer not in self._value.around:
            return None, ""
        ending = Ending.MISSING if tag.closes else Ending.CUT
        inside = None
        follows = yield from self._what_follows()
        if follows is None or not (follows is _NO_TAG or self._may_follow(follows, ending)):
            inside = yield from self._up_to_closer()
        if inside is None and follows is not _NO_TAG and ending is Ending.CUT:
            inside = yield from self._balanced(None)
        if inside is None:
            yield from self._closes_again()
            source.unread(tag.text)
            return ending, ""
        return None, inside

    def _is_next(self, tag: Tag) -> bool:
        """Whether an opening is that of a neighbour: the next parameter, or a call of a known tool."""
        return self._value.declares(tag.key) if tag.kind is TagKind.VALUE else tag.known

    def _may_follow(self, tag: Tag, ending: Ending) -> bool:
        """Whether a tag after another closer, or after a stop token, shows that this one is markup."""
        if self._value.around or tag.kind is TagKind.BLOCK:
            return tag.opens or ending is Ending.MISSING
        return tag.kind is TagKind.CALL if tag.opens else ending is Ending.MISSING and tag.kind is TagKind.STOP

    def _closer(self, closer: Tag) -> Parse[tuple[Ending | None, str]]:
        """Whether the value's closer, which was just read, ends it."""
        source = self._reader.source
        follows = yield from self._what_follows()
        if follows is None and (again := (yield from self._comes_again())):
            if self._known.others.is_open(self._value.pieces, self._value.text):
                source.unread(again)
                return None, ""
            source.markup(closer.text + again)
            self._value.ends_odd = f"{closer.text} is repeated"
            yield from self._closes_again()
            return Ending.CLOSED, ""
        if follows is None:
            inside = yield from self._up_to_closer()
            if inside is not None and not self._known.pieces.search(self._value.between):
                self._value.is_odd = self._value.is_odd or inside.lstrip().startswith(self._known.openings)
                return None, inside
            source.unread(inside or "")
        elif not follows.opens and follows.kind is not TagKind.VALUE and follows is not _NO_TAG:
            yield from self._closes_again()
        source.markup(closer.text)
        return Ending.CLOSED, ""

    def _comes_again(self) -> Parse[str]:
        """Read repetitions of the value's closer, if a tag that may follow a value is next; else read nothing and
        return `""`.
        """
        source = self._reader.source
        read: list[str] = []
        follows: Tag | None = None
        while follows is None and len(read) < 2 * _MAX_AGAIN:
            blanks = yield from self._reader.gap()
            tag = yield from self._next()
            if tag is None or not tag.closes or tag.closer != self._value.own:
                source.unread(blanks)
                break
            read += (blanks, source.take(source.at + len(tag.text)))
            follows = yield from self._what_follows()
        if follows is None:
            source.unread("".join(read))
            return ""
        return "".join(read)

    def _closes_again(self) -> Parse[None]:
        """Look past the closers of calls that follow: if one of a value is among them, they may all have been part of a
        value.
        """
        source = self._reader.source
        read: list[str] = []
        is_own = False
        while not is_own:
            read.append((yield from self._reader.gap()))
            tag = yield from self._next()
            is_value = tag is not None and tag.kind is TagKind.VALUE
            if tag is None or tag.opens or (is_value and tag.closer != self._value.own):
                break
            read.append(source.take(source.at + len(tag.text)))
            is_own = is_value
        source.unread("".join(read))
        self._lost = self._lost or is_own

    def _what_follows(self) -> Parse[Tag | None]:
        """The tag that follows white space, `_NO_TAG` at the end of the output or before another message, None if there
        is other text, or another closer of the value.
        """
        source = self._reader.source
        blanks = yield from self._reader.gap()
        tag = yield from self._next()
        if tag is not None and tag.kind is TagKind.STOP:  # followed by other text, it is only mentioned
            source.take(source.at + len(tag.text))
            behind = yield from self._reader.gap()
            is_over = (yield from self._literal()) not in ("", self._value.own) or source.done
            is_over = is_over or (yield from self._reader.message_begins())
            source.unread(tag.text + behind)
            tag = tag if is_over else None
        if tag is None and (source.done or (yield from self._reader.message_begins())):
            tag = _NO_TAG
        source.unread(blanks)
        is_again = (
            tag is not None
            and tag.closes
            and tag.closer == self._value.own
            and self._value.own not in self._value.around
        )
        return None if is_again else tag

    def _next(self) -> Parse[Tag | None]:
        """The next tag, or None. Nothing is read."""
        source = self._reader.source
        literal = yield from self._literal()
        if not literal:
            return None
        source.take(source.at + len(literal))
        tag = yield from self._reader.tag(literal)
        source.unread(tag.text if tag else literal)
        return tag

    def _literal(self) -> Parse[str]:
        """The next literal with which a tag may begin, or `""`."""
        source, literals = self._reader.source, self._known.behind
        size = len(literals[0])
        while True:
            begin = source.ahead(size)
            if not (source.more(size) and any(literal.startswith(begin) for literal in literals if literal != begin)):
                return next((literal for literal in literals if begin.startswith(literal)), "")
            yield

    # --- cases that the next tag does not decide ---

    def _up_to_closer(self) -> Parse[str | None]:
        """Read up to the value's next closer, if it precedes the next parameter or call and any outer closer that
        counts because a tag or the end follows it; else return None and read nothing.
        """
        source = self._reader.source
        read: list[str] = []
        between: list[str] = []
        while True:
            text, literal = source.scan(self._known.in_value)
            tag = (yield from self._reader.tag(literal)) if literal else None
            if tag is not None and tag.closes and tag.closer == self._value.own:
                source.unread(tag.text)
                self._value.between = "".join((*between, text))
                return "".join((*read, text))
            between += (text, "\0" if tag else literal)
            read += (text, tag.text if tag else literal)
            if tag is not None:
                is_outer = not tag.opens and self._is_outer(tag)
                if self._is_next(tag) if tag.opens else is_outer and (yield from self._what_follows()) is not None:
                    break
            elif not literal:
                if source.done:
                    break
                yield
        source.unread("".join(read))
        return None

    def _balanced(self, opening: Tag | None) -> Parse[str | None]:
        """Read from an opening, or a stop token (None), up to the value's closer, if everything opened is closed by
        then; else return None and read nothing. If the intended reading is unknown, the calls up to there are in
        doubt.
        """
        source = self._reader.source
        start = self._here()
        if start in self._never_closed:
            return None
        shown = Shown(Nesting(self._value.own, named=self._known.named), self._reader.is_foreign, self._known.outermost)
        if opening is not None:
            shown.open(opening)
        read: list[str] = []
        between: list[str] = []
        fit = Fit.INSIDE
        while fit is Fit.INSIDE:
            text, literal = source.scan(self._known.in_value)
            tag = (yield from self._reader.tag(literal)) if literal else None
            between += (text, "\0" if tag else literal)
            read += (text, tag.text if tag else literal)
            if tag is None:
                if not literal:
                    if source.done:
                        break
                    yield
            elif tag.opens:
                shown.open(tag, source.place)
            elif tag.closes:
                fit = shown.close(tag, is_outer=self._is_outer(tag))
            elif self._known.call_closer in self._known.ends:
                shown.stop(self._known.call_closer)
        if fit is Fit.OWN:
            source.unread(read.pop())
            return "".join(read)
        if fit is not Fit.INSIDE:
            yield from self._closes_again()
        unclosed = source.done and shown.nesting.is_open(self._value.own, self._known.call_closer)
        broken = self._known.pieces.search("".join(between)) is not None
        if fit is Fit.UNKNOWN or unclosed or shown.has_foreign or broken:
            self._doubt_to = max(self._doubt_to, self._here())
        # No search has to begin there again.
        self._never_closed.update((start, *shown.nesting.never_closed))
        source.unread("".join(read))
        return None

    def _is_outer(self, tag: Tag) -> bool:
        """Whether a closer is that of a call, or of an element that holds the value."""
        return tag.kind is not TagKind.VALUE or tag.closer in self._value.around

    def _here(self) -> int:
        """The current place. Known places are reset when the source changes."""
        source = self._reader.source
        if source is not self._source:
            self._source, self._never_closed, self._doubt_to, self._lost = source, set(), -1, False
        return source.place


def too_many_parameters(tools: Toolset) -> str:
    """The message for a call with more parameters than are read."""
    return f"a call of more than {tools.max_parameters} parameters: the others are not read"
