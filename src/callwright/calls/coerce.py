"""Type coercion: the rules that turn one value into the type its schema wants, where nothing has to be guessed.

A rule changes how a value is written (`"5"` to `5`), never what it says: no rounding, no nearest enum member, no
arithmetic, nothing that depends on a language. What no rule fits stays as it is, and the check reports it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from callwright.calls.aliases import fold
from callwright.schema.resolve import TYPE_NAMES, Schema
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.tolerant_json.reader import read_json
from callwright.tolerant_json.scalars import is_number
from callwright.tolerant_json.tree import Item, Node

__all__ = ["RULES", "CoercionRule", "fold_enum", "node_text"]

CoercionRule = Literal[
    "text_to_integer",
    "text_to_number",
    "text_to_boolean",
    "scalar_to_text",
    "object_to_text",
    "json_in_text",
    "value_to_list",
    "item_of_list",
    "enum_spelling",
]
Rule: TypeAlias = Callable[[Node, Schema], Node | None]

_WHOLE = re.compile(r"(-?(?:0|[1-9]\d*))(?:\.0+)?").fullmatch
_SCHEMA_KEYS: Final = frozenset(("properties", "required", "items", "enum", "description", "$ref", "anyOf"))


def node_text(node: Node) -> str | None:
    """The decoded text of a string or an unquoted word; None for any other value."""
    if node.kind not in ("string", "word"):
        return None
    try:
        return str(decode(node.json))
    except NotJsonError:
        return None


def text_to_integer(node: Node, _: Schema) -> Node | None:
    """`"5"` and `"5.0"` become `5`."""
    found = _WHOLE((node_text(node) or "").strip())
    return Node("number", found[1], found[1]) if found else None


def text_to_number(node: Node, _: Schema) -> Node | None:
    """`"1.10"` becomes `1.10`, digit by digit."""
    text = (node_text(node) or "").strip()
    return Node("number", text, text) if is_number(text) else None


def text_to_boolean(node: Node, _: Schema) -> Node | None:
    """`"True"` becomes `true`. `"yes"` and `"1"` stay as they are."""
    text = (node_text(node) or "").strip().lower()
    return Node("literal", text, text) if text in ("true", "false") else None


def scalar_to_text(node: Node, _: Schema) -> Node | None:
    """A number or a boolean becomes the text that was written: `1.10` becomes `"1.10"`."""
    if node.kind == "number" or (node.kind == "literal" and node.json != "null"):
        return Node("string", encode(node.written).decode())
    if node.kind == "half":
        return Node("string", encode(node.json).decode())
    return None


def object_to_text(node: Node, _: Schema) -> Node | None:
    """An object becomes its JSON text, unless it looks like a schema: then the model copied the declaration."""
    if node.kind != "object" or not node.members:
        return None
    kind = node.get("type")
    keys = {member.name for member in node.members}
    if (kind is not None and node_text(kind) in TYPE_NAMES) or keys <= _SCHEMA_KEYS | {"type"}:
        return None
    return Node("string", encode(node.text()).decode())


def json_in_text(node: Node, schema: Schema) -> Node | None:
    r"""An object or array that was sent as a string is decoded: `"{\"a\": 1}"` becomes `{"a": 1}`; up to two layers
    deep.
    """
    text = node_text(node)
    for _ in range(2):
        if text is None:
            return None
        inside = read_json(text.strip())
        if inside is None:
            return None
        if inside.kind == schema.get("type"):
            return inside
        text = node_text(inside) if inside.kind == "string" else None
    return None


def value_to_list(node: Node, _: Schema) -> Node | None:
    """`1` becomes `[1]`."""
    if node.kind in ("array", "missing", "half") or node.json == "null":
        return None
    return Node("array", items=[Item("", "", node)])


def item_of_list(node: Node, _: Schema) -> Node | None:
    """`[1]` becomes `1`."""
    return node.items[0].value if node.kind == "array" and len(node.items) == 1 else None


def fold_enum(node: Node, schema: Schema) -> Node | None:
    """The enum member that was spelled differently (`"Celsius"` for `"celsius"`); None if not exactly one fits."""
    members = schema.get("enum")
    text = node_text(node)
    if not isinstance(members, list) or text is None or text in members:
        return None
    same = [member for member in members if isinstance(member, str) and fold(member) == fold(text)]
    return Node("string", encode(same[0]).decode()) if len(same) == 1 and fold(text) else None


# By the wanted type: the rules that are tried, in order, on a value of another type.
RULES: Final[Mapping[str, tuple[tuple[CoercionRule, Rule], ...]]] = {
    "integer": (("text_to_integer", text_to_integer), ("item_of_list", item_of_list)),
    "number": (("text_to_number", text_to_number), ("item_of_list", item_of_list)),
    "boolean": (("text_to_boolean", text_to_boolean), ("item_of_list", item_of_list)),
    "string": (
        ("scalar_to_text", scalar_to_text),
        ("item_of_list", item_of_list),
        ("object_to_text", object_to_text),
    ),
    "object": (("json_in_text", json_in_text), ("item_of_list", item_of_list)),
    "array": (("json_in_text", json_in_text), ("value_to_list", value_to_list)),
}
