"""Parsed JSON that preserves its source: a tree that yields strict JSON text with the model's white space."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from callwright.tolerant_json.codec import NotJsonError, decode

Kind: TypeAlias = Literal["object", "array", "string", "number", "half", "literal", "word", "missing"]


class Node(msgspec.Struct, gc=False):  # a tree has no cycles for the garbage collector to find
    """One JSON value.

    A scalar has its strict JSON in `json` and the model's text in `written` (not for strings). A `missing` or
    `half` value is not JSON: `json` is the model's text, `written` its likely meaning (`tru`: `true`). A `word` is an
    unquoted text, as a string. `tail` is the white space before the closing bracket. `closed`: the model wrote the end
    of the value itself.
    """

    kind: Kind
    json: str = ""
    written: str = ""
    members: "Sequence[Member]" = ()
    items: "Sequence[Item]" = ()
    tail: str = ""
    closed: bool = True

    def text(self, *, completed: bool = False) -> str:
        """The whole value as text: strict JSON, unless a part of it is `missing` or `half`.

        `completed`: write null for such a part, or its likely meaning.
        """
        return "".join(_texts(self, completed=completed))

    def value(self, *, completed: bool = False) -> object:
        """The decoded value. Raises `NotJsonError` if a part is `missing` or `half`, or for a lone surrogate."""
        return decode(self.text(completed=completed))

    def get(self, key: str) -> "Node | None":
        """The value of a member; of the last one if the name was written twice."""
        return next((member.value for member in reversed(self.members) if member.name == key), None)


class Item(msgspec.Struct, gc=False):
    """An item of an array: `before` and `after` are the white space on both sides of the comma that leads to it."""

    before: str
    after: str
    value: Node

    def lead(self, *, first: bool) -> str:
        """The comma before the item with its white space; the first item has no comma."""
        return self.before + ("" if first else ",") + self.after


class Member(Item, gc=False):
    """A member of an object. `key` is the key as written, `name` the key decoded, `colon` all text between key and
    value.
    """

    key: Node
    colon: str
    name: str


def _texts(root: Node, *, completed: bool) -> Iterator[str]:
    """The text of a value in pieces. A stack of iterators, no recursion: the depth is the model's choice."""
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
    """The decoded key; its JSON text if it cannot be decoded."""
    if key.json.isascii() and key.json.isprintable() and "\\" not in key.json:  # most keys
        return key.json[1:-1]
    try:
        return str(decode(key.json))
    except NotJsonError:
        return key.json


def given_once(members: Sequence[Member]) -> tuple[Sequence[Member], int]:
    """The members without duplicates of equal value, and the number of those that give a name a different value."""
    if len({member.name for member in members}) == len(members):
        return members, 0
    kept: list[Member] = []
    given: dict[str, object] = {}
    others = 0
    for member in members:
        value = _comparable(member.value)
        first = given.setdefault(member.name, value)
        if first is not value and first == value and type(first) is type(value):
            continue
        kept.append(member)
        others += first is not value
    return kept, others


def _comparable(node: Node) -> object:
    """The value in a list of its own, so that no two are one object; the node itself if it has no value."""
    try:
        return [node.value(), node.kind]
    except NotJsonError:
        return node
