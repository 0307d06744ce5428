"""Finds JSON values in free text: a reply that is only JSON, fenced code blocks, values after a marker such as
`<tool_call>`, and values between words.

Knows no tools: whether a value is meant as a call is for `callwright.free_text` to judge. The search takes linear time.
Fences of other languages, inline code and quoted lines are skipped.
"""

import re
from collections.abc import Collection, Iterator
from html import unescape
from typing import Final, Literal, TypeAlias

import msgspec

from callwright.streaming.reader import finished, silent_reader
from callwright.tolerant_json.certain import doubt
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.tolerant_json.markers import CLOSING_MARKS, JSON_TAGS, MARKS, TRAILING, is_json_tag
from callwright.tolerant_json.reader import JsonReader, JsonRepair, TooDeepError
from callwright.tolerant_json.tree import Member, Node

Place: TypeAlias = Literal["whole", "fence", "marked", "scan"]


_TOKEN = re.compile(
    r"(?P<fence>^[ \t]*(?P<ticks>`{3,}|~{3,})[ \t]*(?P<tag>[\w+-]*))"
    r"|(?P<code>`+)"
    r"|(?P<mark>" + "|".join(map(re.escape, MARKS)) + r")"
    r"|(?P<open>[{\[])",
    re.MULTILINE,
)
# How an object or array must begin between words: `{"a"` or `[1` may be JSON, `{x}` and `[link]` are prose.
_PLAUSIBLE = re.compile(
    r"""\[[\s\ufeff\[]{0,64}+[\]{"'\d-]|\{[\s\ufeff{]{0,64}+(?:["'`“‘}]|//|/\*|\#|[\w$.-]++["']?[\s\ufeff]*+[:=])"""
).match
_BETWEEN_VALUES = re.compile(r"[\s,;]*+")
_CLOSE_MARK = re.compile(r"\s*+(?:" + "|".join(map(re.escape, CLOSING_MARKS)) + ")")
# JSON that is escaped for HTML.
_ENTITIES = re.compile(r"[\[{\s]++&quot;[^\"]*\Z").match
# Marks that begin as an array does, or follow a value.
_NO_VALUES: Final = (*CLOSING_MARKS, *MARKS)
_QUOTED_LINE = re.compile(r"\s*[>|]")
_THOUGHT_END: Final = "</think>"
# The text between the name of a tool and its arguments if a call is the whole text; the token is one of Mistral's.
GLUES: Final = ("", "[ARGS]")
# An unclosed value is searched again from its second character, to find the values nested in it. At most this many
# times, as more would take quadratic time. Then the search continues after the text that was read.
_MAX_UNCLOSED: Final = 16
# Longer than any marker or fence.
_MAX_TOKEN: Final = 100


class JsonPlace(msgspec.Struct):
    """One or more JSON values in a row, found in a text.

    `begin` and `end` span the values with their markers or fence. `nodes` are the parsed values, `texts` the same as
    they were written. `place` is the kind of place. `cut`: the text ended inside the last value. `repairs` counts
    the JSON repairs by rule. `doubt`: why the values are ambiguous. `odd`: how the whole was written, if not as usual.
    """

    begin: int
    end: int
    nodes: list[Node]
    texts: list[str]
    place: Place
    cut: bool
    repairs: dict[JsonRepair, int]
    doubt: str
    odd: str = ""


def json_places(text: str, *, whole: bool = True, names: Collection[str] = ()) -> Iterator[JsonPlace]:
    """All places with JSON in a text, in order.

    `whole`: first try the text as JSON only; then one of the `names` may directly precede the object, as
    in `get_time{"tz": "UTC"}`, or precede Mistral's token before it.
    """
    if whole and (place := _whole(text, names)):
        yield place
        return
    yield from _places(text, 0, len(text))


def _places(text: str, at: int, until: int) -> Iterator[JsonPlace]:
    """The places that begin in `text[at:until]`; their values may reach beyond `until`."""
    unclosed = 0
    while (found := _TOKEN.search(text, at, until + _MAX_TOKEN)) and found.start() < until:
        at = found.end()
        if found["fence"]:
            fence = _Values(text, at) if unclosed < _MAX_UNCLOSED and is_json_tag(found["tag"]) else None
            if fence and fence.nodes:
                unclosed += not fence.closed
                at = _past(rf"\s*+(?:{found['ticks'][0]}{{3,}}+)?[ \t]*+", text, fence.end)
                odd = "" if found["tag"].lower() in JSON_TAGS else f"the language {found['tag']!r} of a code fence"
                yield fence.place(found.start(), _behind(text, at), "fence", odd)
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
            unclosed += not values.closed
            if not values.nodes:
                at = at if unclosed < _MAX_UNCLOSED else max(at, values.end)
                continue
            at = values.end
            line = text[max(text.rfind("\n", 0, begin) + 1, begin - 200) : begin]
            if found["mark"]:
                at = _past(_CLOSE_MARK, text, at)
            elif _QUOTED_LINE.match(line):
                continue
            yield values.place(begin, _behind(text, at), "marked" if found["mark"] else "scan")


def beside_values(text: str, literal: str) -> int:
    """The position of the first `literal` outside all JSON values, -1 if not found."""
    behind = 0  # the end of the last place that was read
    while (at := text.find(literal, behind)) >= 0:
        around = next((place for place in _places(text, behind, at) if place.end > at), None)
        if around is None:
            return at
        behind = around.end
    return -1


def find_json(text: str) -> list[Node]:
    """The JSON values a reply was written for: the whole text if it is JSON, else those in fences, else those between
    words.

    Text up to `</think>` is ignored. A text without objects and arrays is read as one scalar: a number, a literal or a
    word.
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
    if source.done:
        return []
    begin = source.at
    node = finished(reader.value("top"))
    if node.kind == "half" and not any(map(str.isdigit, node.json)):
        return []  # a sign alone is not a value
    if TRAILING.match(source.text, source.at).end() == len(source.text):  # type: ignore[union-attr]  # matches always
        return [node]
    # More than one scalar: words are one text, and a number with more text after it (`5,6`) is not a value.
    return [Node("word", encode(source.text[begin:]).decode())] if node.kind == "word" else []


class _Values:
    """The objects and arrays in a row from `at` on, with only white space, commas and semicolons between them."""

    def __init__(self, text: str, at: int) -> None:
        self.nodes: list[Node] = []
        self.texts: list[str] = []
        self.end = at
        source = silent_reader(text)
        self._reader = JsonReader(source)
        while True:
            begin = _BETWEEN_VALUES.match(text, self.end).end()  # type: ignore[union-attr]  # matches always
            if not text.startswith(("{", "[", "\ufeff{", "\ufeff["), begin) or text.startswith(_NO_VALUES, begin):
                return
            source.at = begin + text.startswith("\ufeff", begin)
            try:
                self.nodes.append(finished(self._reader.value("top")))
            except TooDeepError:
                self.end = source.at if not self.nodes else self.end
                return
            self.end = source.at
            self.texts.append(text[begin : self.end])

    @property
    def closed(self) -> bool:
        """Whether the last one has its closer; no value has none."""
        return bool(self.nodes) and self.nodes[-1].closed

    def place(self, begin: int, end: int, place: Place, odd: str = "") -> JsonPlace:
        """The values as a `JsonPlace` that spans `begin` to `end`."""
        repairs = self._reader.repairs
        why = next((why for text in self.texts if (why := doubt(repairs, text))), "") if repairs else ""
        return JsonPlace(begin, end, self.nodes, self.texts, place, self._reader.cut, repairs, why, odd)


def _whole(text: str, names: Collection[str]) -> JsonPlace | None:
    """The text as JSON and nothing else: one value, or several in a row. None if it is anything else."""
    begin = len(text) - len(text.lstrip("\ufeff \t\r\n\f\v\xa0\u3000"))
    if text.startswith(MARKS, begin):
        return None
    for tag in ("json\n", "json "):  # the tag of a fence whose backticks were lost
        if text.startswith(tag, begin):
            begin += len(tag)
    decoded = _decoded(text[begin:])
    if decoded:
        values = _Values(decoded, 0)
        is_all = values.nodes and values.end == len(decoded)
        return values.place(0, len(text), "whole", "escaped quotes") if is_all else None
    glued = next((name + glue for name in names for glue in GLUES if text.startswith(f"{name}{glue}{{", begin)), "")
    begin += len(glued)
    if not text.startswith(("{", "["), begin):
        return None
    values = _Values(text, begin)
    if glued and len(values.nodes) == 1:
        values.nodes = [_call(glued.removesuffix(GLUES[-1]), values.nodes[0])]
    end = TRAILING.match(text, values.end).end()  # type: ignore[union-attr]  # matches always
    return values.place(0, len(text), "whole") if values.nodes and end == len(text) else None


def _call(name: str, arguments: Node) -> Node:
    """`name{…}` as the object `{"name": name, "arguments": {…}}`."""
    members = [
        Member("", "", value, Node("string", f'"{key}"'), ": ", key)
        for key, value in (("name", Node("string", encode(name).decode())), ("arguments", arguments))
    ]
    return Node("object", members=members, closed=arguments.closed)


def _decoded(text: str) -> str:
    r"""The JSON inside a reply that is a JSON string (`"{\"a\": 1}"`), or whose quotes are all escaped (`{\"a\": 1}`,
    `{&quot;a&quot;: 1}`). Empty if it is neither.
    """
    text = text.strip()
    if _ENTITIES(text):
        return unescape(text)
    if text.startswith('{\\"'):
        text = f'"{text}"'
    try:
        inside = decode(text) if text.startswith('"') else None
    except NotJsonError:
        return ""
    return inside.strip() if isinstance(inside, str) and inside.strip()[:1] in ("{", "[") else ""


def _past(pattern: str | re.Pattern[str], text: str, at: int) -> int:
    """The position after a pattern, or `at` if it does not match there."""
    found = re.compile(pattern).match(text, at)
    return found.end() if found else at


def _fence_end(text: str, fence: re.Match[str]) -> int:
    """The end of a fenced block that is skipped; the end of the text if it was never closed."""
    ticks = fence["ticks"]
    close = re.compile(rf"^[ \t]*{re.escape(ticks)}[{ticks[0]}]*[ \t]*$", re.MULTILINE).search(text, fence.end())
    return close.end() if close else len(text)


def _behind(text: str, at: int) -> int:
    """The end of a place. Trailing closers, leftover fences and stop tokens belong to it if nothing else follows."""
    end = TRAILING.match(text, at).end()  # type: ignore[union-attr]  # matches always
    return end if end == len(text) else at
