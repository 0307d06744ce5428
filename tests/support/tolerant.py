"""Values read by the tolerant reader, in any pieces."""

from collections.abc import Iterable
from typing import NamedTuple

from callwright.streaming.reader import StreamReader
from callwright.tolerant_json.reader import JsonReader, JsonRepair
from callwright.tolerant_json.tree import Node

__all__ = ["Read", "read"]


class Read(NamedTuple):
    """What a reader made of a text."""

    text: str
    repairs: dict[JsonRepair, int]
    cut: bool
    rest: str
    node: Node


def read(parts: Iterable[str]) -> Read:
    """Read the value with which a text begins that comes in parts."""
    source = StreamReader(lambda event: None)
    reader = JsonReader(source)
    steps = reader.value("top")
    found: list[Node] = []

    def run() -> None:
        try:
            next(steps)
        except StopIteration as end:
            found.append(end.value)

    for part in parts:
        source.push(part)
        if not found:
            run()
    source.end()
    if not found:
        run()
    assert found, "the reader asks for more behind the end"
    return Read(found[0].text(), reader.repairs, reader.cut, source.text[source.at :], found[0])
