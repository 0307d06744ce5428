"""JSON values with their places in a text, for traces. The text may be as broken as a `JsonReader` accepts."""

import re
from typing import NamedTuple

from callwright.streaming.reader import Parse, finished, silent_reader
from callwright.tolerant_json.reader import JsonReader, TooDeepError, Where
from callwright.tolerant_json.strings import QUOTES
from callwright.tolerant_json.tree import Item, Member, Node, name_of

_OPENING = re.compile(r"[{\[]").search


class PlacedValue(NamedTuple):
    """A value, and its characters `begin` to `end`: those inside its quotation marks, if it has any."""

    node: Node
    begin: int
    end: int

    @property
    def text(self) -> str | None:
        """The text that it means; None for any other value."""
        return name_of(self.node) if self.node.kind in ("string", "word") else None


def placed_values(text: str, at: int, end: int) -> list[PlacedValue]:
    """All values of the JSON in `text[at:end]`, and the keys of its objects, in order; other text is skipped."""
    found: list[PlacedValue] = []
    text = text[:end]
    while opening := _OPENING(text, at):
        source = silent_reader(text)
        source.at = opening.start()
        reader = _PlacedReader(source)
        try:
            finished(reader.value("top"))
        except TooDeepError:
            return found
        found += (_inside(text, one) for one in reader.placed)
        at = max(source.at, opening.end())
    return found


class _PlacedReader(JsonReader):
    """Notes the places of the values that it reads."""

    placed: list[PlacedValue]

    def value(self, where: Where) -> Parse[Node]:
        self.placed = []
        self._numbers: dict[int, int] = {}  # of the open containers
        return super().value(where)

    def begin(self, where: Where) -> Parse[tuple[Node, bool]]:
        begin = self.source.at
        node, is_open = yield from super().begin(where)
        self._numbers[id(node)] = len(self.placed)
        self.placed.append(PlacedValue(node, begin, self.source.at))
        return node, is_open

    def next(self, container: Node, *, first: bool) -> Parse[Member | Item | None]:
        entry = yield from super().next(container, first=first)
        if entry is None:
            number = self._numbers[id(container)]
            self.placed[number] = self.placed[number]._replace(end=self.source.at)
        return entry

    def member(self, node: Node, *, first: bool) -> Parse[Member | None]:
        entry = yield from super().member(node, first=first)
        if entry is not None:
            written = self.source.text[self.key_at : self.source.at].rstrip()
            end = self.key_at + len(written.rstrip(":=>").rstrip())
            self.placed.append(PlacedValue(entry.key, self.key_at, end))
        return entry


def _inside(text: str, found: PlacedValue) -> PlacedValue:
    begin, end = found.begin, found.begin + len(text[found.begin : found.end].rstrip())
    if found.node.kind == "string" and text[begin : begin + 1] in QUOTES:
        begin, end = begin + 1, end - (end > begin + 1 and found.node.closed)
    return PlacedValue(found.node, begin, end)
