"""Chooses the reader for a layout of calls, among those of the declared formats."""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from callwright.chat_template.repeats import special
from callwright.dialects.base import CallFormat
from callwright.layout.calls import CallLayout, JsonArguments, Slot, TaggedArguments, pieces_of
from callwright.layout.key_values import KeyValueTags
from callwright.layout.literal import PythonArguments
from callwright.reading.json.marked import CallMarks
from callwright.reading.literal.python import PythonForm
from callwright.reading.tagged.calls import ParameterForm, ParameterTags
from callwright.reading.tagged.key_values import KeyValueForm
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.reading.text.marks import Marks

_TAG: Final = r"<[^<>]*>"
_PAIRS: Final = re.compile(
    rf"(?P<gap>\s*)(?P<key><[^<>]*>)\$\{{key\}}(?P<key_end></[^<>]*>)(?P<lead>\s*)(?P<value>{_TAG})"
)
_PAIRS_HEAD: Final = re.compile(rf"(?P<call>{_TAG})\$\{{name\}}(?P<name_end>(?:{_TAG})?)(?P<gap>\s*)")
_PAIRS_TAIL: Final = re.compile(rf"(?P<gap>\s*)(?P<call_end>{_TAG})\s*")
_SLOTS: Final = {"name": r"([^\s<>{}\[\]]+?)", "number": r"\d*", "index": r"\d*", "id": r"[^\s<>{}\[\]]*?"}
# The marker after JSON in a layout.
_BEHIND_JSON: Final = re.compile(r"[^\]}`]*\Z")
_SHORTEST_TAG: Final = 2
_IN_JSON: Final = ('"', "\\")


class ToldCalls(Struct, frozen=True):
    """Calls as described in the prompt: blocks of JSON in a text. `thoughts` are the tags around reasoning, `tags`
    those around texts.
    """

    layout: CallLayout
    thoughts: tuple[tuple[str, str], ...]
    tags: tuple[str, ...] = ()

    def reader(self, text: AnswerText) -> CallReader:
        """The reader of the calls in one answer."""
        return CallReader(text, Marks(thoughts=self.thoughts, ends=self.tags))


def reader_of(
    layout: CallLayout,
    is_token: Callable[[str], bool],
    thoughts: tuple[tuple[str, str], ...],
    ends: tuple[str, ...],
    tags: tuple[str, ...] = (),
) -> CallFormat | None:
    """The reader; None if no reader can read such calls.

    `is_token`: whether a text is a control token. `ends` are stop tokens, `tags` those around texts.
    """
    match layout.arguments:
        case JsonArguments():
            marked = _json(layout, is_token, thoughts, ends, tags)
            return marked if marked is None or _is_readable(marked) else None
        case PythonArguments():
            block = (layout.open.rstrip("[ \n"), layout.close.lstrip("] \n"))
            return PythonForm(layout, (block,) if block[0] else (), ends, is_token(block[0]), thoughts)
        case TaggedArguments():
            return _pairs(layout, thoughts, ends) or _tagged(layout, is_token, thoughts, ends)
    return None


def _json(
    layout: CallLayout,
    is_token: Callable[[str], bool],
    thoughts: tuple[tuple[str, str], ...],
    ends: tuple[str, ...],
    tags: tuple[str, ...],
) -> CallMarks | None:
    head = layout.open + layout.begin
    at = head.index("${name")
    marker = special(head[:at])
    opener = marker[-1] if marker else ""
    inside = head[:at].rpartition(opener)[2] if opener else head[:at]
    if "{" in _words(inside):
        # everything before the JSON begins the calls, so that none of it is left over as text
        opener = head[: head.index(inside) + min(inside.find(sign) for sign in "[{" if sign in inside)].strip()
        keyed = head[at:].startswith("${name:json}: ") and not head[:at].rstrip().endswith(":")
        closer = _BEHIND_JSON.search(layout.end + layout.close)
        return CallMarks(
            layout=layout,
            opens=(opener,) if opener else (),
            closes=tuple(filter(None, [closer.group().strip()])) if closer else (),
            around=tags,
            keyed=keyed,
            bare=not opener,
            special=bool(opener) and is_token(opener),
            thoughts=thoughts,
            ends=ends,
        )
    begin = layout.begin
    inner = special(begin[: begin.index("${name")])
    first = inner[0] if inner else opener or begin.partition("${")[0].strip()
    if not first:
        return None
    behind = begin.partition(first)[2] if first in begin else begin
    around = [*special(layout.open), *special(layout.close), *tags]
    return CallMarks(
        layout=layout,
        opens=(first,),
        closes=_closes(layout.end),
        around=tuple(dict.fromkeys(word for word in around if word != first)),
        header=_header(behind),
        special=is_token(first),
        thoughts=thoughts,
        ends=ends,
    )


def _is_readable(form: CallMarks) -> bool:
    """Whether the end of each part is unambiguous: no marker is one of reasoning, too, or begins like a text or escape
    in JSON.
    """
    tags = {tag for pair in form.thoughts for tag in pair}
    marks = (*form.opens, *form.closes, *form.around)
    return all(mark and mark not in tags and mark[0] not in _IN_JSON for mark in marks)


def _words(layout: str) -> str:
    """The text of a layout, without its slots."""
    return "".join(piece if isinstance(piece, str) else piece.lead for piece in pieces_of(layout))


def _closes(end: str) -> tuple[str, ...]:
    """The closer of a call: a token, or else the words there."""
    words = end.strip()
    return tuple(special(end)[-1:]) or ((words,) if words and "${" not in words else ())


def _header(text: str) -> re.Pattern[str]:
    """The pattern between the marker of a call and its arguments; its group is the tool's name."""
    parts: list[str] = [r"\s*"]
    named = False
    for piece in pieces_of(text):
        if isinstance(piece, Slot):
            pattern = _SLOTS[piece.what]
            if piece.what == "name" and named:
                pattern = r"[^\s<>{}\[\]]+?"
            named = named or piece.what == "name"
            if piece.form == "json":
                pattern = f'"{pattern}"'
            lead = re.escape(piece.lead)
            parts.append(f"(?:{lead}{pattern})?" if piece.lead else pattern)
        else:
            parts.append(re.sub(r"(?:\\?\s)+", r"\\s*", re.escape(piece)))
    return re.compile("".join(parts) + r"\s*")


def _pairs(layout: CallLayout, thoughts: tuple[tuple[str, str], ...], ends: tuple[str, ...]) -> CallFormat | None:
    """`<call>NAME<key>K</key><value>V</value></call>`."""
    arguments = layout.arguments
    assert isinstance(arguments, TaggedArguments)
    head, pair = _PAIRS_HEAD.fullmatch(layout.begin), _PAIRS.fullmatch(arguments.begin)
    behind = re.fullmatch(rf"(?P<value_end>{_TAG})(?P<gap>\s*)", arguments.end + arguments.between)
    tail = _PAIRS_TAIL.fullmatch(layout.end)
    if head is None or pair is None or behind is None or tail is None:
        return None
    before_key = head["gap"] or behind["gap"] or pair["gap"]
    block = (layout.open.strip(), layout.close.strip())
    tags = KeyValueTags(
        call=head["call"],
        call_end=tail["call_end"],
        key=pair["key"],
        key_end=pair["key_end"],
        value=pair["value"],
        value_end=behind["value_end"],
        name_end=head["name_end"],
        blocks=(block,) if all(block) else (),
        gaps=(before_key, pair["lead"], before_key),
        between=layout.between or layout.end[len(layout.end.rstrip()) :],
    )
    return KeyValueForm(tags, thoughts, ends)


def _tagged(
    layout: CallLayout,
    is_token: Callable[[str], bool],
    thoughts: tuple[tuple[str, str], ...],
    ends: tuple[str, ...],
) -> CallFormat | None:
    try:
        found = ParameterTags.of(layout)
    except AssertionError:
        return None
    if min(map(len, (found.call, found.parameter))) < _SHORTEST_TAG or not found.parameter_end:
        return None  # a name that is a tag itself: its begin is ambiguous
    blocks = tuple(block for block in found.blocks if all(block))
    control = is_token(blocks[0][0] if blocks else found.call)
    return ParameterForm(layout, ParameterTags.of(layout, blocks=blocks, control=control), thoughts, ends)
