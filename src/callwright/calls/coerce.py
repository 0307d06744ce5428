"""Type coercion: the rules that convert a value to the type of its schema without guessing.

A rule changes how a value is written (`"5"` to `5`), never its meaning: no rounding, no nearest enum member, no
arithmetic, nothing that depends on a language. A value that no rule fits is unchanged, and validation reports it.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, Literal, TypeAlias

from callwright.calls.aliases import fold
from callwright.schema.resolve import TYPE_NAMES, Schema
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.tolerant_json.reader import read_json
from callwright.tolerant_json.scalars import is_number
from callwright.tolerant_json.tree import Item, Kind, Node

CoercionRule = Literal[
    "text_to_integer",
    "text_to_number",
    "text_to_boolean",
    "text_to_null",
    "scalar_to_text",
    "object_to_text",
    "json_in_text",
    "value_to_list",
    "item_of_list",
    "enum_spelling",
]
Rule: TypeAlias = Callable[[Node, Schema], Node | None]

_WHOLE = re.compile(r"\+?(-?)0*(\d+)(?:\.0+)?").fullmatch
_RADIX = re.compile(r"[+-]?0[xXoObB][0-9a-fA-F]{1,32}").fullmatch
_GROUPED = re.compile(r"[+-]?\d+(?:_\d+)+(?:\.\d+)?").fullmatch
_PADDING = re.compile(r"\A\+?(-?)0*(?=\d)")
_QUOTES: Final = ('\\"', '"', "'")
_NULLS: Final = frozenset(("null", "none", "nil"))
_MAX_EXPANDED: Final = 2**64
# No number that is worth it has more digits.
_MAX_DIGITS: Final = 40
_SCHEMA_KEYS: Final = frozenset(("properties", "required", "items", "enum", "description", "$ref", "anyOf"))


def node_text(node: Node) -> str | None:
    """The decoded text of a string or an unquoted word; None for any other value."""
    if node.kind not in ("string", "word"):
        return None
    try:
        return str(decode(node.json))
    except NotJsonError:
        return None


def constant(node: Node | None) -> object:
    """The value of a scalar, which may choose a branch of a union; `...` for anything else."""
    if node is None or node.kind not in ("string", "word", "number", "literal"):
        return ...
    try:
        return node.value()
    except NotJsonError:
        return ...


def bare_text(text: str) -> str:
    r"""A text that is to be a number or a literal, without the quotes around it: `"5"` and `\"5\"` are `5`."""
    text = text.strip()
    for quote in _QUOTES:
        if len(text) > 2 * len(quote) and text.startswith(quote) and text.endswith(quote):
            return text[len(quote) : -len(quote)].strip()
    return text


def as_integer(number: str, *, is_integer: bool = False) -> str:
    """A JSON number as an integer if it is a whole one that ends in zeros: `500.0` is `500`; else as it is.

    `is_integer`: also one with an exponent, `1e3`.
    """
    if is_integer and "e" in number.lower() and abs(whole := Decimal(number)) < _MAX_EXPANDED and whole == int(whole):
        return str(int(whole))
    found = _WHOLE(number) if "." in number else None
    if found is None or len(found[2]) > _MAX_DIGITS:
        return number
    return found[2] if found[2] == "0" else found[1] + found[2]


def read_number(text: str) -> str:
    """The JSON of a number in a text, also in forms that JSON does not have: `+7`, `007`, `1_000`, `0x10`; `""` if it
    has no number.
    """
    bare = bare_text(text)
    if _RADIX(bare):
        return str(int(bare, 0))
    number = _PADDING.sub(r"\1", bare.replace("_", "") if _GROUPED(bare) else bare)
    return as_integer(number) if is_number(number) else ""


def text_to_integer(node: Node, _: Schema) -> Node | None:
    """`"5"`, `"5.0"`, `"05"` and `"0x5"` become `5`."""
    text = node_text(node) or ""
    found = _WHOLE(bare_text(text)) or _WHOLE(read_number(text))
    number = found and (found[1] + found[2] if found[2] != "0" else "0")
    return Node("number", number, number) if number else None


def text_to_number(node: Node, _: Schema) -> Node | None:
    """`"1.10"` becomes `1.10`, digit by digit."""
    text = read_number(node_text(node) or "")
    return Node("number", text, text) if text else None


def text_to_null(node: Node, _: Schema) -> Node | None:
    """`"None"` and `"nil"` become `null`."""
    return Node("literal", "null", "null") if bare_text(node_text(node) or "").lower() in _NULLS else None


def text_to_boolean(node: Node, _: Schema) -> Node | None:
    """`"True"` becomes `true`. `"yes"` and `"1"` stay as they are."""
    text = bare_text(node_text(node) or "").lower()
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
    """`1` becomes `[1]`. A text with half of a list's brackets is a list that was broken, and no item of one."""
    if node.kind in ("array", "missing", "half") or node.json == "null":
        return None
    if node.kind == "string" and (text := node_text(node) or "").count("[") != text.count("]"):
        return None
    return Node("array", items=[Item("", "", node)])


def item_of_list(node: Node, _: Schema) -> Node | None:
    """`[1]` becomes `1`."""
    return node.items[0].value if node.kind == "array" and len(node.items) == 1 else None


def fold_enum(node: Node, schema: Schema) -> Node | None:
    """The enum member that was spelled differently (`"Celsius"` for `"celsius"`, `7` for `"7"`); None if not exactly
    one fits.
    """
    members = [schema["const"]] if "const" in schema else schema.get("enum")
    text = node_text(node)
    written = node.written if text is None and node.kind in ("number", "literal") else text
    if not isinstance(members, list) or not written or (text is not None and text in members):
        return None
    if text is None and any(encode(member).decode() == node.json for member in members):
        return None
    same = [member for member in members if isinstance(member, str) and fold(member) == fold(written)]
    same += [member for member in members if not isinstance(member, str) and encode(member).decode() == written.strip()]
    if len(same) != 1 or not fold(written):
        return None
    made = encode(same[0]).decode()
    kind: Kind = "string" if isinstance(same[0], str) else "literal" if made in ("true", "false", "null") else "number"
    return Node(kind, made, made)


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
    "null": (("text_to_null", text_to_null),),
}
