"""JSON values as they were written: trees whose text is strict JSON, for those who judge and mend values."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from callwright.tolerant_json.codec import NotJsonError, decode

__all__ = ["Item", "Kind", "Member", "Node", "name_of"]

Kind: TypeAlias = Literal["object", "array", "string", "number", "half", "literal", "word", "missing"]


class Node(msgspec.Struct, gc=False):  # trees: nothing to collect
    """A value. Of a scalar `json` is strict JSON text, and `written` what stood there (of a string nothing).

    A `missing` value and a `half` one have no JSON text: `json` is what stood there, `written` what may be meant.
    `closed` says whether the model wrote the end of the value itself.
    """

    kind: Kind
    json: str = ""
    written: str = ""
    members: "Sequence[Member]" = ()
    items: "Sequence[Item]" = ()
    tail: str = ""
    closed: bool = True

    def text(self, *, completed: bool = False) -> str:
        """The whole value as strict JSON text, unless a part of it was never written, or only by half.

        `completed`: such a part stands there as null, or as what there is of it.
        """
        return "".join(_texts(self, completed=completed))

    def value(self, *, completed: bool = False) -> object:
        """The value. Raises `NotJsonError` where its text is no JSON, or cannot be held in UTF-8."""
        return decode(self.text(completed=completed))

    def get(self, key: str) -> "Node | None":
        """The value of the last member of this name."""
        return next((member.value for member in reversed(self.members) if member.name == key), None)


class Item(msgspec.Struct, gc=False):
    """An item of a list: the white space before its comma and before itself."""

    before: str
    after: str
    value: Node

    def lead(self, *, first: bool) -> str:
        """What stands before the item."""
        return self.before + ("" if first else ",") + self.after


class Member(Item, gc=False):
    """A member of an object; `colon` is the text between its key and its value."""

    key: Node
    colon: str
    name: str


def _texts(root: Node, *, completed: bool) -> Iterator[str]:
    """The text of a value in pieces, without recursion."""
    stack: list[Iterator[str | Node]] = [iter((root,))]
    while stack:
        part = next(stack[-1], None)
        if part is None:
            stack.pop()
        elif isinstance(part, str):
            yield part
        elif part.kind == "object" or part.kind == "array":
            stack.append(_parts(part))
        else:
            yield part.written if completed and part.kind in ("half", "missing") else part.json


def _parts(node: Node) -> Iterator[str | Node]:
    yield "{" if node.kind == "object" else "["
    for number, member in enumerate(node.members):
        yield member.lead(first=not number) + member.key.json + member.colon
        yield member.value
    for number, item in enumerate(node.items):
        yield item.lead(first=not number)
        yield item.value
    yield node.tail + ("}" if node.kind == "object" else "]")


def name_of(key: Node) -> str:
    """The name that a key is."""
    try:
        return str(decode(key.json))
    except NotJsonError:
        return key.json
