"""Function tools as TypeScript, the way Harmony prompts show them.

Two flavours exist and models have seen both: that of the Harmony library (`library`) and that of the chat template
(`hf`, `callwright.schema.typescript_hf`). Source: openai/harmony 0.0.8, whose quirks are reproduced on purpose:
the models were trained on this text, which no TypeScript compiler would accept.
"""

import json
import re
from typing import Any

from callwright.conversation import FunctionTool
from callwright.memo.by_text import kept_by_text
from callwright.schema.keywords import properties, required
from callwright.tolerant_json.codec import decode, encode


def declaration(tool: FunctionTool) -> str:
    """One tool as comment lines and `type NAME = … => any;`, or the type that it answers, without a final line feed."""
    return tool.once("typescript", _declared)


def _declared(tool: FunctionTool) -> str:
    return _declared_as(encode((tool.name, tool.description, tool.parameters, tool.output_schema)))


@kept_by_text
def _declared_as(text: bytes) -> str:
    name, description, schema, output = decode(text)
    comment = "".join(f"// {line}\n" for line in _lines(description or ""))
    parameters = "" if schema is None else f"_: {_type(schema, '')}"
    answer = "any" if output is None else _type(output, "")
    return f"{comment}type {name} = ({parameters}) => {answer};"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    ended, last = lines[:-1], lines[-1]
    return [line.removesuffix("\r") for line in ended] + ([last] if last else [])


def _type(schema: object, indent: str) -> str:
    if not isinstance(schema, dict):
        return "any"
    if isinstance(schema.get("oneOf"), list):
        return "".join(_variant(variant, indent) for variant in schema["oneOf"])
    kind = schema.get("type")
    match kind:
        case list():
            names = [name for name in kind if isinstance(name, str)]
            return " | ".join("number" if name == "integer" else name for name in names) or "any"
        case "object":
            return _object(schema, indent)
        case "string":
            names = [f'"{member}"' for member in _string_members(schema)]
            return " | ".join(names) or "string"
        case "number" | "integer":
            return "number"
        case "boolean":
            return "boolean"
        case "array":
            return f"{_type(schema['items'], indent)}[]" if "items" in schema else "Array<any>"
    return "any"


def _object(schema: dict[str, Any], indent: str) -> str:
    comment = f"{indent}// {schema['description']}\n" if isinstance(schema.get("description"), str) else ""
    needed = set(required(schema))
    lines = "".join(_property(key, value, key in needed, indent) for key, value in properties(schema).items())
    return f"{comment}{{\n{lines}{indent}}}"


def _property(key: str, schema: object, needed: bool, indent: str) -> str:
    mark = "" if needed else "?"
    if not isinstance(schema, dict):
        return f"{indent}{key}{mark}: any,\n"
    one_of = schema.get("oneOf")
    described = isinstance(schema.get("description"), str)
    lines = [f"{indent}// {schema['title']}\n{indent}//\n"] if isinstance(schema.get("title"), str) else []
    if described and not isinstance(one_of, list):
        lines.append(f"{indent}// {schema['description']}\n")
    examples = schema.get("examples")
    if isinstance(examples, list) and examples:
        lines.append(f"{indent}// Examples:\n")
        lines += [f'{indent}// - "{example}"\n' for example in examples if isinstance(example, str)]
    if isinstance(one_of, list):
        lines.append(_one_of_property(key, schema, one_of, mark, indent))
    else:
        default = f" // default: {_default(schema)}" if "default" in schema else ""
        lines.append(f"{indent}{key}{mark}: {_nullable(schema, _type(schema, indent + '    '))},{default}\n")
    return "".join(lines)


def _one_of_property(key: str, schema: dict[str, Any], variants: list[Any], mark: str, indent: str) -> str:
    description = schema.get("description")
    first = variants[0].get("description") if variants and isinstance(variants[0], dict) else None
    shown = isinstance(description, str) and description != first
    lines = [f"{indent}// {description}\n"] if shown else []
    if "default" in schema:
        lines.append(f"{indent}// default: {_default(schema)}\n")
    lines.append(f"{indent}{key}{mark}:\n")
    for number, variant in enumerate(variants):
        # The first variant's own text is dropped as soon as the property has one: the library does so.
        hidden = {description} | ({first} if number == 0 and shown else set())
        lines.append(f"{indent} | {_variant_type(variant, indent, hidden)}\n")
    return "".join([*lines, f"{indent},\n"])


def _variant(variant: object, indent: str) -> str:
    # Outside a property the library writes the default of an enumeration as JSON.
    return f"\n{indent} | {_variant_type(variant, indent, set(), as_json=True)}"


def _variant_type(variant: object, indent: str, hidden: set[str | None], *, as_json: bool = False) -> str:
    text = _type(variant, indent + "   ")
    if not isinstance(variant, dict):
        return text
    notes = [variant["description"]] if isinstance(variant.get("description"), str) else []
    notes = [note for note in notes if note not in hidden]
    if "default" in variant:
        notes.append(f"default: {_default(variant, as_json=as_json)}")
    return _nullable(variant, text) + (f" // {' '.join(notes)}" if notes else "")


def _nullable(schema: dict[str, Any], text: str) -> str:
    return f"{text} | null" if schema.get("nullable") is True and "null" not in text else text


def _string_members(schema: dict[str, Any]) -> list[str]:
    members = schema.get("enum")
    return [member for member in members if isinstance(member, str)] if isinstance(members, list) else []


def _default(schema: dict[str, Any], *, as_json: bool = False) -> str:
    value = schema["default"]
    if isinstance(value, str) and not (isinstance(schema.get("enum"), list) and schema["enum"]):
        return f'"{value}"'
    if isinstance(value, str) and not as_json:
        return value
    if isinstance(value, float):
        return re.sub(r"e(?=\d)", "e+", encode(value).decode())
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
