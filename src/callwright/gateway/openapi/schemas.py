"""The schemas of the gateway's OpenAPI document: what is read, and what is answered.

They come from the types that read requests. Where those take any object and a reader looks closer, the object is
described by the types of that reader. Rules that are in no type, such as which fields go together, are not told: what
fits may still be refused, what does not fit is refused.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from callwright.gateway.endpoints.conversations import NewConversation, NewItems, NewMetadata
from callwright.gateway.openapi import response_types
from callwright.openai_format.tool_catalog import NamespaceFields
from callwright.openai_format.tools import CustomFields, FunctionFields
from callwright.wire.chat.types import ChatFields
from callwright.wire.responses.item_types import BY_TYPE
from callwright.wire.responses.request import ResponsesRequest

__all__ = ["JsonSchema", "reference", "schemas"]

JsonSchema: TypeAlias = dict[str, Any]

_AT: Final = "#/components/schemas/"
_NAMESPACE: Final = "namespace"
# What the names of some types begin with in the document: modules have types that are named alike.
_GROUPS: Final[tuple[tuple[str, tuple[type, ...]], ...]] = (
    ("", tuple(getattr(response_types, name) for name in response_types.__all__)),
    ("", (FunctionFields, CustomFields, NamespaceFields)),
    ("", (NewConversation, NewItems, NewMetadata)),
    ("Chat", (ChatFields,)),
    ("Responses", (ResponsesRequest,)),
    ("Input", tuple(BY_TYPE.values())),
)


def reference(type_: type) -> JsonSchema:
    """A reference to the schema of a type."""
    prefix = next(prefix for prefix, types in _GROUPS if type_ in types)
    return _to(_named(type_.__name__, prefix))


def schemas() -> dict[str, JsonSchema]:
    """All schemas, by their names."""
    found: dict[str, JsonSchema] = {}
    for prefix, types in _GROUPS:
        _, parts = msgspec.json.schema_components(types, ref_template="{name}")
        named = {_named(name, prefix): _renamed(part, prefix) for name, part in parts.items()}
        found = _joined(found, named)
    found = _joined(found, {**_tools(), "InputItem": _item(found["InputMessage"])})
    for owner, field, inner in (
        ("ChatRequest", "tools", "Tool"),
        ("ChatRequest", "functions", "FunctionFields"),
        ("ResponsesRequest", "tools", "ResponsesTool"),
        ("ResponsesRequest", "input", "InputItem"),
        ("NamespaceFields", "tools", "NamespaceTool"),
        ("NewConversation", "items", "InputItem"),
        ("NewItems", "items", "InputItem"),
        ("InputAdditionalTools", "tools", "ResponsesTool"),
        ("InputSearchOutput", "tools", "ResponsesTool"),
    ):
        _list_of(found[owner]["properties"][field], _to(inner))
    return found


# --- names ---


def _joined(some: dict[str, JsonSchema], more: dict[str, JsonSchema]) -> dict[str, JsonSchema]:
    assert not some.keys() & more.keys(), "two types have one name in the document"
    return some | more


def _to(name: str) -> JsonSchema:
    return {"$ref": _AT + name}


def _named(name: str, prefix: str) -> str:
    bare = name.removeprefix("_")
    return bare if bare.startswith(prefix) else prefix + bare


def _renamed(value: Any, prefix: str) -> Any:
    """A schema whose references lead to the names in the document."""
    match value:
        case {"$ref": name}:
            return _to(_named(name, prefix))
        case {"propertyName": field, "mapping": mapping}:
            told = {tag: _AT + _named(name, prefix) for tag, name in mapping.items()}
            return {"propertyName": field, "mapping": told}
        case {"title": title, **rest}:
            return {"title": _named(title, prefix), **_renamed(rest, prefix)}
        case dict():
            return {key: _renamed(item, prefix) for key, item in value.items()}
        case list():
            return [_renamed(item, prefix) for item in value]
    return value


# --- what the types leave open ---


def _list_of(field: JsonSchema, item: JsonSchema) -> None:
    """Say what is in the array that a field may be."""
    array = next(way for way in field.get("anyOf", (field,)) if way["type"] == "array")
    array["items"] = item


def _typed(kind: str, **properties: JsonSchema) -> JsonSchema:
    """An object of this `type` with these properties."""
    return {
        "type": "object",
        "properties": {"type": {"const": kind}, **properties},
        "required": ["type", *properties],
    }


def _of_other_type(*kinds: str) -> JsonSchema:
    """An object whose `type` is none of these."""
    return {
        "type": "object",
        "properties": {"type": {"type": "string", "not": {"enum": [*kinds]}}},
        "required": ["type"],
    }


def _tools() -> dict[str, JsonSchema]:
    """Tools: in the Chat shape their fields stand below their type, in the Responses shape beside it."""
    fields = {"function": _to("FunctionFields"), "custom": _to("CustomFields")}
    flat = [{"allOf": [_typed(kind), inner]} for kind, inner in fields.items()]
    spaces = {"allOf": [_typed(_NAMESPACE), _to("NamespaceFields")]}
    return {
        "Tool": {"anyOf": [_typed(kind, **{kind: inner}) for kind, inner in fields.items()]},
        "NamespaceTool": {"anyOf": flat},
        "ResponsesTool": {"anyOf": [*flat, spaces, _of_other_type(*fields, _NAMESPACE)]},
    }


def _item(message: Mapping[str, Any]) -> JsonSchema:
    """An item that a client sends: a message needs no type, a reference with its `id` alone neither."""
    bare_message = {
        **message,
        "properties": {**message["properties"], "type": {"type": "null"}},
        "required": [name for name in message["required"] if name != "type"],
    }
    bare_reference = {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": False,
    }
    known = [_to(_named(type_.__name__, "Input")) for type_ in BY_TYPE.values()]
    return {"anyOf": [*known, bare_message, bare_reference, _of_other_type(*BY_TYPE)]}
