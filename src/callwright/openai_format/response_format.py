"""The format of the answer's text: `response_format` of a chat request, `text.format` of the Responses API."""

from collections.abc import Mapping
from typing import Any

import msgspec

from callwright.conversation import ResponseFormat
from callwright.errors import RequestError
from callwright.openai_format.errors import missing, type_error, wrong_type
from callwright.schema.strict import form_problems, strict_problems


class _JsonSchema(msgspec.Struct):
    name: str
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


def read_response_format(
    given: object, param: str = "response_format", *, is_flat: bool = False
) -> ResponseFormat | None:
    """The format of the answer; plain text is None. `is_flat`: a schema is next to its type, as in Responses."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise wrong_type(param, "object", given)
    match given.get("type"):
        case "text":
            return None
        case "json_object":
            return ResponseFormat("json_object")
        case "json_schema":
            return _read_schema(given, param, is_flat=is_flat)
        case None:
            raise missing(f"{param}.type")
        case kind:
            raise RequestError(
                f"Invalid value: '{kind}'. Supported values are: 'json_object', 'json_schema', and 'text'.",
                param=f"{param}.type",
                code="invalid_value",
            )


def _read_schema(given: Mapping[str, Any], param: str, *, is_flat: bool) -> ResponseFormat:
    at = param if is_flat else f"{param}.json_schema"
    inner = given if is_flat else given.get("json_schema")
    if inner is None:
        raise missing(at)
    try:
        schema = msgspec.convert(inner, _JsonSchema)
    except msgspec.ValidationError as error:
        raise type_error(error, at, inner) from error
    if schema.schema is None:
        raise missing(f"{at}.schema")
    if problems := (strict_problems if schema.strict else form_problems)(schema.schema):
        raise RequestError(
            f"Invalid schema for response_format '{schema.name}': {problems[0]}",
            param=f"{at}.schema" if is_flat else param,
            code="invalid_json_schema",
        )
    return ResponseFormat("json_schema", schema.name, schema.description, schema.schema, schema.strict)


def write_response_format(wanted: ResponseFormat) -> dict[str, Any]:
    """The format in the Chat shape."""
    if wanted.type == "json_object":
        return {"type": "json_object"}
    fields = {"description": wanted.description, "schema": wanted.schema, "strict": wanted.strict}
    schema = {"name": wanted.name} | {key: value for key, value in fields.items() if value is not None}
    return {"type": "json_schema", "json_schema": schema}
