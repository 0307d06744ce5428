"""The gateway's OpenAPI document as it is given to schemathesis: with names of models, and with more that fits."""

from copy import deepcopy
from typing import Any, Final, TypeAlias

from callwright.wire.responses.item_types import BY_TYPE
from callwright.wire.sealed import sealed

__all__ = ["deepened", "with_models"]

JsonSchema: TypeAlias = dict[str, Any]


def with_models(document: JsonSchema, names: list[str]) -> JsonSchema:
    """The document of a gateway that serves models of these names."""
    document = deepcopy(document)
    for request in ("ChatRequestBody", "ResponsesRequest"):
        document["components"]["schemas"][request]["properties"]["model"] = {"enum": names}
    return document


def deepened(document: JsonSchema) -> JsonSchema:
    """The document with fields that fit together, so that most requests come past the first things that are checked.

    It forbids what is right, too: it is good for requests that fit only.
    """
    document = deepcopy(document)
    schemas = document["components"]["schemas"]
    assert WHOLE.keys() <= schemas.keys()
    schemas |= WHOLE
    for owner, fields in FIELDS.items():
        known = schemas[owner]["properties"]
        assert fields.keys() <= known.keys(), f"{owner} has not all of {list(fields)}"
        known |= fields
    schemas["ChatRequestBody"]["properties"]["messages"] |= {"minItems": 1, "maxItems": 5}
    schemas["ChatRequestBody"]["required"] += ["tools", "tool_choice", "stream"]
    schemas["ResponsesRequest"]["required"] += ["input", "tools", "tool_choice", "stream"]
    for type_ in BY_TYPE.values():
        fields = schemas[f"Input{type_.__name__}"].get("properties", {})
        fields |= {name: schema for name, schema in _OF_CALLS.items() if name in fields}
    return document


def _one_of(*values: Any) -> JsonSchema:
    return {"enum": list(values)}


def _any_of(*schemas: JsonSchema) -> JsonSchema:
    return {"anyOf": list(schemas)}


def _list(items: JsonSchema, least: int = 0, most: int = 3) -> JsonSchema:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def _object(*optional: str, **properties: JsonSchema) -> JsonSchema:
    """An object with these properties and no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _to(name: str) -> JsonSchema:
    return {"$ref": f"#/components/schemas/{name}"}


def _schema(levels: int) -> JsonSchema:
    """The schema of JSON Schemas, right ones and odd ones, with so many levels."""
    if not levels:
        return _one_of({}, True, {"type": "string"}, {"type": "strng"}, {"enum": [1, "a"]})
    inner = _schema(levels - 1)
    return _any_of(
        inner,
        _object("pattern", type=_one_of("string"), pattern=_TEXT),
        _object("enum", type=_one_of("integer", "number", ["boolean", "null"]), enum={"type": "array"}),
        _object("minItems", type=_one_of("array"), items=inner, minItems=_one_of(0, 1, 2.0, 3)),
        _object("required", type=_one_of("object"), properties=_members(inner), required=_list(_PROPERTY)),
        _object(anyOf=_list(inner)),
    )


def _members(inner: JsonSchema) -> JsonSchema:
    return {"type": "object", "propertyNames": _PROPERTY, "additionalProperties": inner, "maxProperties": 3}


_TEXT: Final[JsonSchema] = {"type": "string"}
_NULL: Final[JsonSchema] = {"type": "null"}
_FLAG: Final = _one_of(None, False, True)
_PROPERTY: Final = _one_of("city", "unit", "", "a b", "commands")
_NAMES: Final = ("get_weather", "send_mail", "run")
_NAME: Final = _one_of(*_NAMES)
_ID: Final = _one_of("call_1", "call_2")
_OF_CALLS: Final = {"id": _NULL, "call_id": _ID, "name": _NAME}
_PARAMETERS: Final = _object(
    "required", type=_one_of("object"), properties=_members(_schema(2)), required=_list(_PROPERTY)
)
_WORDS: Final = ("required", "auto", "none", None)
_GRAMMARS: Final = (
    *({"syntax": "lark", "definition": text} for text in ('start: "a"+', "start: word\nword: /[a-z]+/", "start: none")),
    *({"syntax": "regex", "definition": text} for text in ("[a-z]{1,4}", "(?<=a)b", "(")),
)
_KINDS: Final = _one_of(
    *("tool_search", "shell", "local_shell", "apply_patch", "web_search", "image_generation", "web_search_preview")
)
_CHAT_NAMED: Final = [{"type": "function", "function": {"name": name}} for name in _NAMES]
_FLAT_NAMED: Final = [{"type": kind, "name": name} for kind in ("function", "custom") for name in _NAMES]
_MODES: Final = ("auto", "required")
_CALLED: Final = _object(name=_NAME, arguments=_any_of(_TEXT, _one_of("{}", '{"city": "Paris"}', '{"city": ')))
_STREAM_OPTIONS: Final = _one_of(None, {"include_usage": True}, {"include_obfuscation": False})


def _part(kind: str) -> JsonSchema:
    return _object(type=_one_of(kind), text=_TEXT)


# Schemas that take the place of the document's, and fields that do.
WHOLE: Final[dict[str, JsonSchema]] = {
    "ChatContentPart": _part("text"),
    "ChatToolCall": _any_of(
        _object(id=_ID, type=_one_of("function"), function=_CALLED),
        _object(id=_ID, type=_one_of("custom"), custom=_object(name=_NAME, input=_TEXT)),
    ),
    "InputMessage": _any_of(
        _object(
            type=_one_of("message"),
            role=_one_of("user", "system", "developer"),
            content=_any_of(_TEXT, _list(_part("input_text"))),
        ),
        _object(
            "phase",
            type=_one_of("message"),
            role=_one_of("assistant"),
            content=_any_of(_TEXT, _list(_part("output_text"))),
            phase=_one_of("commentary", "final_answer"),
        ),
    ),
    "InputPart": _part("input_text"),
    "InputItem": _any_of(*(_to(f"Input{type_.__name__}") for tag, type_ in BY_TYPE.items() if tag != "item_reference")),
    "ResponsesTool": _any_of(
        {"allOf": [_to("FunctionFields"), {"properties": {"type": _one_of("function")}, "required": ["type"]}]},
        {"allOf": [_to("CustomFields"), {"properties": {"type": _one_of("custom")}, "required": ["type"]}]},
        _object(type=_one_of("namespace"), name=_one_of("mail", "maps"), tools=_list(_to("NamespaceTool"))),
        _object("execution", type=_KINDS, execution=_one_of("client", "server")),
    ),
}
FIELDS: Final[dict[str, dict[str, JsonSchema]]] = {
    "FunctionFields": {"name": _NAME, "parameters": _any_of(_NULL, _PARAMETERS), "strict": _FLAG},
    "CustomFields": {
        "name": _NAME,
        "format": _any_of(
            _one_of(None, {"type": "text"}),
            _object(type=_one_of("grammar"), grammar=_one_of(*_GRAMMARS)),
            _one_of(*({"type": "grammar", **grammar} for grammar in _GRAMMARS)),
        ),
    },
    "ChatRequestBody": {
        "tools": _list(_to("Tool"), 1),
        "functions": _one_of(None),
        "tool_choice": _one_of(
            *_WORDS,
            *_CHAT_NAMED,
            *(
                {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [named]}}
                for mode in _MODES
                for named in _CHAT_NAMED
            ),
        ),
        "function_call": _one_of(None),
        "response_format": _any_of(
            _one_of(None, {"type": "text"}, {"type": "json_object"}),
            _object(
                type=_one_of("json_schema"),
                json_schema=_object("strict", name=_NAME, schema=_PARAMETERS, strict=_FLAG),
            ),
        ),
        "n": _one_of(None, 1),
        "modalities": _one_of(None, ["text"]),
        "stream_options": _STREAM_OPTIONS,
    },
    "ChatToolMessage": {"tool_call_id": _ID},
    "ChatFunctionMessage": {"name": _NAME},
    "ChatAssistantMessage": {"function_call": _any_of(_NULL, _CALLED)},
    "InputCompaction": {"encrypted_content": _one_of(sealed("What was said before."))},
    "InputReasoning": {"encrypted_content": _one_of(None, sealed("Hm."), "gAAAAA")},
    "InputUpdatedText": {"format": _one_of(None, {"type": "text"}, {"type": "json_object"})},
    "ResponsesRequest": {
        "tools": _list(_to("ResponsesTool"), 1),
        "tool_choice": _one_of(
            *_WORDS,
            *_FLAT_NAMED,
            *({"type": "allowed_tools", "mode": mode, "tools": [named]} for mode in _MODES for named in _FLAT_NAMED),
        ),
        "input": _any_of(_TEXT, _list(_to("InputItem"), 1, 6)),
        "stream_options": _STREAM_OPTIONS,
        "previous_response_id": _NULL,
        "conversation": _NULL,
        "prompt": _NULL,
        "store": _one_of(None, True),
        "service_tier": _one_of(None, "auto", "default"),
        "include": _one_of(None, [], ["reasoning.encrypted_content"], ["message.output_text.logprobs"]),
        "metadata": _any_of(_NULL, {"type": "object", "additionalProperties": _TEXT, "maxProperties": 3}),
    },
    "ResponsesText": {
        "format": _any_of(
            _one_of(None, {"type": "text"}, {"type": "json_object"}),
            _object("strict", type=_one_of("json_schema"), name=_NAME, schema=_PARAMETERS, strict=_FLAG),
        )
    },
}
