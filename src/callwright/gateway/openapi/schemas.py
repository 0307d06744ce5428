"""The schemas of the gateway's OpenAPI document: requests and answers.

They are generated from the types of requests and answers. If a request type accepts any object and a reader checks it
further, the types of that reader describe the object. Rules that are in no type, such as which fields go together, are
not described: a request that fits may still be refused; one that does not fit is refused.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, get_args

import msgspec

from callwright.gateway.endpoints.conversations import NewConversation, NewItems, NewMetadata
from callwright.openai_format.tool_catalog import NamespaceFields
from callwright.openai_format.tools import CustomFields, FunctionFields
from callwright.wire.anthropic.event_types import MessageStreamEvent
from callwright.wire.anthropic.types import MessagesRequest, MessagesResponse, TokenCount
from callwright.wire.chat.types import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionMessageToolCall,
    ChatRequestBody,
)
from callwright.wire.errors import ErrorResponse
from callwright.wire.handed import (
    CompletionRequestBody,
    EmbeddingsRequestBody,
    RerankRequestBody,
    ScoreRequestBody,
)
from callwright.wire.responses.event_types import ResponseStreamEvent
from callwright.wire.responses.item_types import BY_TYPE
from callwright.wire.responses.output_types import OutputItem
from callwright.wire.responses.request import ResponsesRequest
from callwright.wire.responses.types import (
    CompactedResponse,
    Conversation,
    DeletedObject,
    InputTokens,
    Item,
    ItemList,
    Response,
)
from callwright.wire.server import Health, ModelCard, ModelList

JsonSchema: TypeAlias = dict[str, Any]

_AT: Final = "#/components/schemas/"
_NAMESPACE: Final = "namespace"
# What answers are, and those of their parts of which there are several kinds, each a subclass.
_ANSWERS: Final = (
    *(ErrorResponse, ChatCompletion, ChatCompletionChunk, Response, ResponseStreamEvent, InputTokens),
    *(CompactedResponse, Conversation, ItemList, Item, DeletedObject, ModelCard, ModelList, Health),
    *(MessagesResponse, TokenCount, *get_args(MessageStreamEvent)),
)
_BASES: Final = (ChatCompletionMessageToolCall, OutputItem, ResponseStreamEvent)
# Prefixes for type names in the document: some modules have types of the same name.
_GROUPS: Final[tuple[tuple[str, tuple[type, ...]], ...]] = (
    ("", _ANSWERS),
    ("", (FunctionFields, CustomFields, NamespaceFields)),
    ("", (NewConversation, NewItems, NewMetadata)),
    ("", (CompletionRequestBody, EmbeddingsRequestBody, RerankRequestBody, ScoreRequestBody)),
    ("Chat", (ChatRequestBody,)),
    ("Messages", (MessagesRequest,)),
    ("Responses", (ResponsesRequest,)),
    ("Input", tuple(BY_TYPE.values())),
)


def reference(type_: type) -> JsonSchema:
    """A reference to the schema of a type."""
    prefix = next(prefix for prefix, types in _GROUPS if type_ in types)
    return _to(_add_prefix(type_.__name__, prefix))


def schemas() -> dict[str, JsonSchema]:
    """All schemas, by their names."""
    found = _answers()
    for prefix, types in _GROUPS[1:]:
        _, parts = msgspec.json.schema_components(types, ref_template="{name}")
        named = {_add_prefix(name, prefix): _renamed(part, prefix) for name, part in parts.items()}
        found = _joined(found, named)
    found = _joined(found, {**_tools(), "InputItem": _item(found["InputMessage"])})
    for owner, field, inner in (
        ("ChatRequestBody", "tools", "Tool"),
        ("ChatRequestBody", "functions", "FunctionFields"),
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


# --- answers ---


def _answers() -> dict[str, JsonSchema]:
    """The schemas of answers and of their parts."""
    kinds = {base: _kinds(base) for base in _BASES}
    types = (*_ANSWERS, *(kind for some in kinds.values() for kind in some))
    _, parts = msgspec.json.schema_components(types, ref_template=f"{_AT}{{name}}")
    written = {name: _output_schema(part) for name, part in parts.items()}
    for base, some in kinds.items():
        told = {written[kind.__name__]["properties"]["type"]["enum"][0]: _AT + kind.__name__ for kind in some}
        written[base.__name__] = {
            "title": base.__name__,
            "description": written[base.__name__]["description"],
            "anyOf": [_to(kind.__name__) for kind in some],
            "discriminator": {"propertyName": "type", "mapping": told},
        }
    return written


def _kinds(base: type) -> list[type]:
    """The types below a type that nothing is below of."""
    some: list[type] = base.__subclasses__()
    return [kind for one in some for kind in _kinds(one) or [one]]


def _output_schema(part: JsonSchema) -> JsonSchema:
    """The schema of an output type: fields with a default are present, too."""
    fields = part.get("properties", {})
    required = {*part.get("required", ()), *(name for name, field in fields.items() if "default" in field)}
    bare = {name: {key: it for key, it in field.items() if key != "default"} for name, field in fields.items()}
    return {**part, "properties": bare, "required": [name for name in fields if name in required]}


# --- names ---


def _joined(some: dict[str, JsonSchema], more: dict[str, JsonSchema]) -> dict[str, JsonSchema]:
    assert not some.keys() & more.keys(), "two types have one name in the document"
    return some | more


def _to(name: str) -> JsonSchema:
    return {"$ref": _AT + name}


def _add_prefix(name: str, prefix: str) -> str:
    bare = name.removeprefix("_")
    return bare if bare.startswith(prefix) else prefix + bare


def _renamed(value: Any, prefix: str) -> Any:
    """A schema whose references lead to the names in the document."""
    match value:
        case {"$ref": name}:
            return _to(_add_prefix(name, prefix))
        case {"propertyName": field, "mapping": mapping}:
            told = {tag: _AT + _add_prefix(name, prefix) for tag, name in mapping.items()}
            return {"propertyName": field, "mapping": told}
        case {"title": title, **rest}:
            return {"title": _add_prefix(title, prefix), **_renamed(rest, prefix)}
        case dict():
            return {key: _renamed(item, prefix) for key, item in value.items()}
        case list():
            return [_renamed(item, prefix) for item in value]
    return value


# --- parts that the types leave open ---


def _list_of(field: JsonSchema, item: JsonSchema) -> None:
    """Set the item schema of the array that a field may be."""
    array = next(way for way in field.get("anyOf", (field,)) if way["type"] == "array")
    array["items"] = item


def _object_of_type(kind: str, **properties: JsonSchema) -> JsonSchema:
    """An object of this `type` with these properties."""
    return {
        "type": "object",
        "properties": {"type": {"const": kind}, **properties},
        "required": ["type", *properties],
    }


def _of_other_type(*kinds: str) -> JsonSchema:
    """An object whose `type` is not one of these."""
    return {
        "type": "object",
        "properties": {"type": {"type": "string", "not": {"enum": [*kinds]}}},
        "required": ["type"],
    }


def _tools() -> dict[str, JsonSchema]:
    """Tools: in the Chat shape their fields are nested under the type, in the Responses shape next to it."""
    fields = {"function": _to("FunctionFields"), "custom": _to("CustomFields")}
    flat = [{"allOf": [_object_of_type(kind), inner]} for kind, inner in fields.items()]
    never = {"type": "string", "enum": ["never"]}
    server = _object_of_type("mcp", server_label={"type": "string"}, require_approval=never)
    spaces = {"allOf": [_object_of_type(_NAMESPACE), _to("NamespaceFields")]}
    return {
        "Tool": {"anyOf": [*(_object_of_type(kind, **{kind: inner}) for kind, inner in fields.items()), server]},
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
    known = [_to(_add_prefix(type_.__name__, "Input")) for type_ in BY_TYPE.values()]
    return {"anyOf": [*known, bare_message, bare_reference, _of_other_type(*BY_TYPE)]}
