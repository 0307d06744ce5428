"""The tags of a format: the literals that begin them, their kinds, and the pieces that a broken one leaves."""

import re
from enum import Enum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from callwright.reading.tagged.other_closers import OTHER_CLOSER, OtherClosers
from callwright.reading.tagged.tags import ParameterTags
from callwright.streaming.reader import Markers

# The length of a piece of a tag: of its begin, and of its end.
_BEGIN: Final = 4
_END: Final = 5


class TagKind(Enum):
    """The element of a tag: a value, a call, a block of calls; or the tag is a stop token."""

    VALUE = "value"
    CALL = "call"
    BLOCK = "block"
    STOP = "stop"


class Tag(Struct, frozen=True):
    """A tag, or the literal that begins it: `text` as written, and the name of its closer.

    `key` names the parameter or the tool. `known`: such a tool is offered. `head`: all of the name of a tag of marks.
    """

    text: str
    closer: str
    kind: TagKind
    closes: bool = False
    key: str = ""
    known: bool = True
    head: str = ""

    @property
    def opens(self) -> bool:
        """Whether it opens an element."""
        return not self.closes and self.kind is not TagKind.STOP


class NamedMarks(Struct, frozen=True):
    """Tags that are a mark with a name: the marks, a pattern for a piece of one, the names of the tags of a call and
    of the elements around it. `around_json` are tags that may be around arguments in JSON.
    """

    marks: tuple[str, ...]
    piece: re.Pattern[str]
    calls: tuple[str, ...]
    around_json: tuple[str, ...] = ()


class TagLiterals:
    """The literals that begin a tag in a value, and in the text after a closer."""

    def __init__(self, literals: tuple[str, ...], ends: tuple[str, ...], others: OtherClosers) -> None:
        self.ends = ends
        self.in_value = Markers(*literals)
        self.flowing = Markers(*literals, OTHER_CLOSER)
        self.others = others
        self.behind = sorted(dict.fromkeys((*literals, *ends)), key=len, reverse=True)
        self.closers: dict[str, Tag] = {}
        self.openings: tuple[str, ...] = ()  # of a parameter and a call
        self.call_closer = ""
        self.named = False  # each value has a closer of its own
        self.outermost = ""  # closes an answer
        self.inner: tuple[str, ...] = ()  # tags between a parameter's name and its value
        self.key_ends = re.compile("(?!)")  # the tags between them, if the name is an element
        self.pieces = self.tags = re.compile("(?!)")

    def lacks_key(self, text: str) -> bool:
        """Whether the element of a parameter's name in a text is closed without being opened."""
        return len(self.key_ends.findall(text)) > text.count(self.openings[0])

    def is_markup(self, text: str) -> bool:
        """Whether a text contains an apparent piece of a tag, a whole tag or a control token."""
        return self.pieces.search(text) is not None or self.tags.search(text) is not None


@lru_cache(maxsize=256)
def tag_literals(form: ParameterTags, ends: tuple[str, ...]) -> TagLiterals:
    """The literals of a format, whose output may end at `ends`, too."""
    begins = tuple(dict.fromkeys(begin for begin, _ in form.blocks))
    block_ends = tuple(dict.fromkeys(end for _, end in form.blocks))
    tags = (form.parameter_end, form.parameter, form.call_end, form.call, *block_ends, *begins)
    others = OtherClosers(form.parameter_end, form.end, *form.inner)
    found = TagLiterals((*tags, *ends), ends, others)
    for kind, closers in (
        (TagKind.BLOCK, block_ends),
        (TagKind.CALL, (form.call_end,)),
        (TagKind.VALUE, (form.parameter_end,)),
    ):
        found.closers |= {closer: Tag(closer, closer, kind, closes=True) for closer in closers}
    found.closers |= {end: Tag(end, end, TagKind.STOP) for end in ends}
    found.openings, found.call_closer = (form.parameter, form.call), form.call_end
    found.pieces = _pieces(form)
    found.inner = (*form.inner, *((form.end,) if len(form.end) > 1 else ()))
    if len(form.end) > 1 and form.inner:
        found.key_ends = re.compile(rf"{re.escape(form.end)}\s*{re.escape(form.inner[0])}")
    found.tags = re.compile("|".join([*map(re.escape, (*tags, *ends, *found.inner)), r"<[|｜][^\s<>]+[|｜]>"]))
    return found


@lru_cache(maxsize=256)
def named_marks(form: NamedMarks, ends: tuple[str, ...]) -> TagLiterals:
    """The same for a format of marks with names; a stop token counts only after a closer."""
    found = TagLiterals(form.marks, ends, OtherClosers(""))
    found.closers = {end: Tag(end, end, TagKind.STOP) for end in ends}
    found.named = True
    found.openings, found.call_closer = form.marks, form.calls[0]
    found.outermost = form.calls[-1]
    found.pieces = form.piece
    return found


def _pieces(form: ParameterTags) -> re.Pattern[str]:
    """Finds apparent pieces of a broken tag of a parameter."""
    broken = (form.parameter, form.parameter_end, *form.inner, *((form.end,) if len(form.end) > 1 else ()))
    whole = (*broken, form.call, form.call_end, *[tag for block in form.blocks for tag in block])
    found = []
    for tag in dict.fromkeys(broken):
        head, tail = tag[: min(_BEGIN, len(tag) - 1)], tag[-min(_END, len(tag) - 1) :]
        goes_on = "|".join(re.escape(each[len(head) :]) for each in whole if each.startswith(head))
        comes_from = "".join(f"(?<!{re.escape(each[: -len(tail)])})" for each in whole if each.endswith(tail))
        found += [f"{re.escape(head)}(?!{goes_on})", f"{comes_from}{re.escape(tail)}"]
    return re.compile("|".join(found))


def broken_tag(form: ParameterTags, text: str) -> bool:
    """Whether a text between tags seems to hold one, or a piece of one, so that its meaning is unknown."""
    return tag_literals(form, ()).is_markup(text)
