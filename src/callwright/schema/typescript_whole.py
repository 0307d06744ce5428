"""Function tools as TypeScript in which all of a schema is seen, for prompts that are tied to no renderer's quirks.

Simple schemas look as `callwright.schema.typescript` shows them. References are followed; unions, constants and members
of enumerations that are no texts are written as types, every other keyword as a comment line over its parameter.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from callwright.conversation import FunctionTool
from callwright.schema.keywords import properties, required
from callwright.schema.plain import resolved_schema

_NAMES: Final = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}
# Keywords that the type or its lines express.
_SHOWN: Final = frozenset(
    ("type", "enum", "anyOf", "oneOf", "properties", "required", "items", "description", "title", "default", "examples")
)
_SILENT: Final = frozenset(("$schema", "$defs", "definitions", "$comment", "$id", "nullable"))


def whole_declaration(tool: FunctionTool) -> str:
    """One tool as comment lines and `type NAME = … => any;`, or the type that it answers, without a final line feed."""
    return tool.once("typescript whole", _declared)


def _declared(tool: FunctionTool) -> str:
    comment = "".join(f"// {line}\n" for line in (tool.description or "").splitlines())
    schema = resolved_schema(tool)
    notes = "" if schema is None else "".join(_notes(schema, ""))
    parameters = "" if schema is None else f"_: {_object(schema, '') if properties(schema) else _type(schema, '')}"
    answer = "any" if tool.output_schema is None else _type(tool.output_schema, "")
    return f"{comment}{notes}type {tool.name} = ({parameters}) => {answer};"


def _type(schema: object, indent: str) -> str:
    if not isinstance(schema, Mapping):
        return "never" if schema is False else "any"
    members, kinds = schema.get("enum"), schema.get("type")
    if isinstance(members, list) and members:
        return " | ".join(json.dumps(member, ensure_ascii=False) for member in members)
    unions = [part for key in ("anyOf", "oneOf") for part in schema.get(key) or () if isinstance(schema[key], list)]
    if unions:
        return " | ".join(dict.fromkeys(_variant(part, indent) for part in unions))
    if isinstance(kinds, list):
        return " | ".join(dict.fromkeys(_type({**schema, "type": kind}, indent) for kind in kinds)) or "any"
    if kinds == "array":
        if "items" not in schema:
            return "Array<any>"
        inner = _variant(schema["items"], indent)
        return f"({inner})[]" if " | " in inner or " // " in inner else f"{inner}[]"
    if kinds == "object" or properties(schema):
        return _object(schema, indent)
    return _NAMES.get(str(kinds), "any")


def _variant(schema: object, indent: str) -> str:
    """A nested type, followed by its notes."""
    text = _type(schema, indent)
    if not isinstance(schema, Mapping):
        return text
    notes = [note.strip().removeprefix("// ") for note in _notes(schema, "")]
    described = [] if text.startswith(("{", "//")) else _texts(schema, "description")
    notes += [*described, *_default(schema)]
    return f"{text} /* {'; '.join(notes)} */" if notes else text


def _object(schema: Mapping[str, Any], indent: str) -> str:
    lines = [f"{indent}// {text}\n" for text in _texts(schema, "description")]
    needed = set(required(schema))
    body = "".join(_property(key, part, key in needed, indent) for key, part in properties(schema).items())
    return f"{''.join(lines)}{{\n{body}{indent}}}"


def _property(key: str, schema: object, needed: bool, indent: str) -> str:
    mark = "" if needed else "?"
    if not isinstance(schema, Mapping):
        return f"{indent}{key}{mark}: {_type(schema, indent)},\n"
    lines = [f"{indent}// {text}\n{indent}//\n" for text in _texts(schema, "title")]
    lines += [f"{indent}// {text}\n" for text in _texts(schema, "description")]
    examples = schema.get("examples")
    if isinstance(examples, list) and examples:
        lines.append(f"{indent}// Examples:\n")
        lines += [f"{indent}// - {json.dumps(example, ensure_ascii=False)}\n" for example in examples]
    lines += _notes(schema, indent)
    shown = {key: value for key, value in schema.items() if key != "description"} if properties(schema) else schema
    default = "".join(f" // {text}" for text in _default(schema))
    lines.append(f"{indent}{key}{mark}: {_type(shown, indent + '    ')},{default}\n")
    return "".join(lines)


def _texts(schema: Mapping[str, Any], key: str) -> list[str]:
    return [schema[key]] if isinstance(schema.get(key), str) and schema[key] else []


def _default(schema: Mapping[str, Any]) -> list[str]:
    if "default" not in schema:
        return []
    value = schema["default"]
    bare = isinstance(value, str) and isinstance(schema.get("enum"), list)
    return [f"default: {value if bare else json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"]


def _notes(schema: Mapping[str, Any], indent: str) -> Iterator[str]:
    """The keywords that a type cannot express."""
    for key, value in schema.items():
        if key in _SHOWN or key in _SILENT or (key == "additionalProperties" and isinstance(value, bool)):
            continue
        yield f"{indent}// {key}: {json.dumps(value, ensure_ascii=False)}\n"
