"""Where JSON values stand in free text: as the whole of it, in fences, behind marks, between words.

Each character is read a bounded number of times. Code in other languages, quotations and tables are passed over.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from callwright.stream_reader import silent_reader
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.tolerant_json.markers import CLOSING_MARKS, JSON_TAGS, MARKS, TRAILING
from callwright.tolerant_json.reader import JsonReader, JsonRepair, TooDeepError, finished
from callwright.tolerant_json.tree import Member, Node

__all__ = ["JsonPlace", "Place", "beside_values", "find_json", "json_places"]

Place: TypeAlias = Literal["whole", "fence", "marked", "scan"]


_TOKEN = re.compile(
    r"(?P<fence>^[ \t]*(?P<ticks>`{3,}|~{3,})[ \t]*(?P<tag>[\w+-]*))"
    r"|(?P<code>`+)"
    r"|(?P<mark>" + "|".join(map(re.escape, MARKS)) + r")"
    r"|(?P<open>[{\[])",
    re.MULTILINE,
)
# How an object or a list must begin between words.
_PLAUSIBLE = re.compile(
    r"""\[[\s\ufeff\[]{0,64}+[\]{"'\d-]|\{[\s\ufeff{]{0,64}+(?:["'`“‘}]|//|/\*|\#|[\w$.-]++["']?[\s\ufeff]*+[:=])"""
).match
_BETWEEN_VALUES = re.compile(r"[\s,;]*+")
_CLOSE_MARK = re.compile(r"\s*+(?:" + "|".join(map(re.escape, CLOSING_MARKS)) + ")")
_QUOTED_LINE = re.compile(r"\s*[>|]")
_THOUGHT_END: Final = "</think>"
# So many values that are never closed are read; behind them reading goes on where they ended.
_MAX_UNCLOSED: Final = 16
# Longer than any mark or fence.
_MAX_TOKEN: Final = 100


class JsonPlace(msgspec.Struct):
    """Values that stand one behind the other, from `begin` to `end` of the text with what belongs to them.

    `texts` are the values as they were written. `cut`: the text ended in the middle of the last one. `repairs` are
    those of the tolerant reader.
    """

    begin: int
    end: int
    nodes: list[Node]
    texts: list[str]
    place: Place
    cut: bool
    repairs: dict[JsonRepair, int]


def json_places(text: str, *, whole: bool = True, names: Collection[str] = ()) -> Iterator[JsonPlace]:
    """The places with JSON, in order. `whole`: the text may be nothing else; then one of the `names` may stand before
    the object, glued to it.
    """
    if whole and (place := _whole(text, names)):
        yield place
        return
    yield from _places(text, 0, len(text))


def _places(text: str, at: int, until: int) -> Iterator[JsonPlace]:
    """The places with JSON between words that begin at `at` or behind it, but not at `until`."""
    unclosed = 0
    while (found := _TOKEN.search(text, at, until + _MAX_TOKEN)) and found.start() < until:
        at = found.end()
        if found["fence"]:
            fence = _Values(text, at) if unclosed < _MAX_UNCLOSED and found["tag"].lower() in JSON_TAGS else None
            if fence and fence.nodes:
                unclosed += not fence.nodes[-1].closed
                closing = re.compile(rf"\s*+(?:{found['ticks'][0]}{{3,}}+)?[ \t]*+").match(text, fence.end)
                at = closing.end() if closing else fence.end
                yield fence.place(found.start(), _behind(text, at), "fence")
                continue
            unclosed += fence is not None and fence.end > at
            at = _fence_end(text, found)
        elif found["code"]:
            close = text.find(found["code"], at)
            at = close + len(found["code"]) if close >= 0 else at
        else:
            begin = found.start()
            if not found["mark"] and not _PLAUSIBLE(text, begin):
                continue
            values = _Values(text, at if found["mark"] else begin)
            if not values.nodes or not values.nodes[-1].closed:
                unclosed += 1
            if not values.nodes:
                at = at if unclosed < _MAX_UNCLOSED else max(at, values.end)
                continue
            at = values.end
            line = text[max(text.rfind("\n", 0, begin) + 1, begin - 200) : begin]
            if found["mark"]:
                closing = _CLOSE_MARK.match(text, at)
                at = closing.end() if closing else at
            elif _QUOTED_LINE.match(line):
                continue
            yield values.place(begin, _behind(text, at), "marked" if found["mark"] else "scan")


def beside_values(text: str, literal: str) -> int:
    """Where a literal stands that is no part of a JSON value; -1 when it does nowhere."""
    behind = 0  # the last place that was read
    while (at := text.find(literal, behind)) >= 0:
        around = next((place for place in _places(text, behind, at) if place.end > at), None)
        if around is None:
            return at
        behind = around.end
    return -1


def find_json(text: str) -> list[Node]:
    """The values that a text is there for: the text itself, else those in its fences, else those between its words.

    What stands before `</think>` does not count. A text without any is a word or a number itself.
    """
    while (thought := beside_values(text, _THOUGHT_END)) >= 0:
        text = text[thought + len(_THOUGHT_END) :]
    places = list(json_places(text))
    fenced = [place for place in places if place.place == "fence"]
    nodes = [node for place in fenced or places for node in place.nodes]
    if nodes:
        return nodes
    source = silent_reader(text.strip())
    reader = JsonReader(source)
    finished(reader.gap())
    return [] if source.done else [finished(reader.value("top"))]


class _Values:
    """The values from `at` on, one behind the other, with white space and commas between."""

    def __init__(self, text: str, at: int) -> None:
        self.nodes: list[Node] = []
        self.texts: list[str] = []
        self.end = at
        source = silent_reader(text)
        self._reader = JsonReader(source)
        while True:
            begin = _BETWEEN_VALUES.match(text, self.end).end()  # type: ignore[union-attr]  # matches always
            if not text.startswith(("{", "[", "\ufeff{", "\ufeff["), begin) or text.startswith(CLOSING_MARKS, begin):
                return
            source.at = begin + text.startswith("\ufeff", begin)
            try:
                self.nodes.append(finished(self._reader.value("top")))
            except TooDeepError:
                self.end = source.at if not self.nodes else self.end
                return
            self.end = source.at
            self.texts.append(text[begin : self.end])

    def place(self, begin: int, end: int, place: Place) -> JsonPlace:
        """What was found, as it stands from `begin` to `end`."""
        return JsonPlace(begin, end, self.nodes, self.texts, place, self._reader.cut, self._reader.repairs)


def _whole(text: str, names: Collection[str]) -> JsonPlace | None:
    """The text as one JSON value, or a run of them."""
    begin = len(text) - len(text.lstrip("\ufeff \t\r\n\f\v\xa0\u3000"))
    if text.startswith(MARKS, begin):
        return None
    for tag in ("json\n", "json "):  # the word of a fence whose marks were lost
        if text.startswith(tag, begin):
            begin += len(tag)
    decoded = _decoded(text[begin:])
    if decoded:
        values = _Values(decoded, 0)
        return values.place(0, len(text), "whole") if values.nodes and values.end == len(decoded) else None
    glued = next((name for name in names if text.startswith(f"{name}{{", begin)), "")
    begin += len(glued)
    if not text.startswith(("{", "["), begin):
        return None
    values = _Values(text, begin)
    if glued and len(values.nodes) == 1:
        values.nodes = [_call(glued, values.nodes[0])]
    end = TRAILING.match(text, values.end).end()  # type: ignore[union-attr]  # matches always
    return values.place(0, len(text), "whole") if values.nodes and end == len(text) else None


def _call(name: str, arguments: Node) -> Node:
    members = [
        Member("", "", value, Node("string", f'"{key}"'), ": ", key)
        for key, value in (("name", Node("string", encode(name).decode())), ("arguments", arguments))
    ]
    return Node("object", members=members, closed=arguments.closed)


def _decoded(text: str) -> str:
    """The JSON that a reply holds as a JSON string, or with every quote escaped; empty when it does neither."""
    text = text.strip()
    if text.startswith('{\\"'):
        text = f'"{text}"'
    try:
        inside = decode(text) if text.startswith('"') else None
    except NotJsonError:
        return ""
    return inside.strip() if isinstance(inside, str) and inside.strip()[:1] in ("{", "[") else ""


def _fence_end(text: str, fence: re.Match[str]) -> int:
    ticks = fence["ticks"]
    close = re.compile(rf"^[ \t]*{re.escape(ticks)}[{ticks[0]}]*[ \t]*$", re.MULTILINE).search(text, fence.end())
    return close.end() if close else len(text)


def _behind(text: str, at: int) -> int:
    """Where a place ends: with the closers, fence rests and end tokens behind it when nothing else follows."""
    end = TRAILING.match(text, at).end()  # type: ignore[union-attr]  # matches always
    return end if end == len(text) else at
