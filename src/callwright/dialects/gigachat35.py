"""GigaChat 3.5: the form of DSML with another token, `<｜GCML｜tool_calls>`.

Source: the chat template of GigaChat3.5-432B-A28B (llama.cpp, models/templates/GigaChat3.5.jinja). Tools are shown as
TypeScript before the first question, their names after each message of the user and each turn of outputs. The
template refuses a turn that only reasons; it is shown here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from callwright.conversation import Conversation, FunctionTool
from callwright.dialects._dsml_reader import DsmlCalls, dsml_layout
from callwright.dialects.base import Dialect, ReadBy, RenderOptions, TurnMarks
from callwright.dialects.prompts.chat_messages import first_instruction
from callwright.dialects.prompts.layouts import Values
from callwright.dialects.prompts.turns import Turns
from callwright.prompt import PromptBuilder
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.schema.keywords import properties, required
from callwright.schema.resolve import pointed_at
from callwright.schema.shown import ShownKeywords

_TOKEN: Final = "｜GCML｜"
_ROLE: Final = "<|role_sep|>"
_END: Final = "<|message_sep|>"
_STOPS: Final = (_END, "</s>")
_CONTROLS: Final = ("<s>", "</s>", _ROLE, _END, _TOKEN, "<think>", "</think>")
_NAMES: Final = (("tool_calls", ""),)
_LAYOUT: Final = dsml_layout("tool_calls", "", token=_TOKEN, gap="")
_ABOUT: Final = """Вызов функций: последовательный
Безопасность: соответствует законодательству РФ.
Текущая дата: $current_date
Ограничение знаний: Декабрь, 2025.
Ты сделан на базе нейросети GigaChat."""


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, as models do that were trained to. `current_date` (YYYY-MM-DD)
    is shown in the prompt.
    """

    thinking: Literal["open", "off"] = "off"
    current_date: str | None = None


# --- prompts ---


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    shown = "\n".join(map(_declaration, conversation.tools))
    out.text(f"namespace functions {{\n{shown}\n}} // namespace functions\n\n")


def _names(conversation: Conversation) -> Values:
    return {"names": json.dumps([tool.name for tool in conversation.tools], ensure_ascii=False)}


def _message(role: str, text: str) -> str:
    """The layout of a message."""
    return f"{role}<|role_sep|>\n{text}<|message_sep|>\n\n"


_AVAILABLE: Final = _message("available functions", "$names")
_USER: Final = _message("user", "$text") + _AVAILABLE
_TURNS: Final = Turns(
    controls=_CONTROLS,
    head="<s>" + _message("developer system", _ABOUT) + _message("system", "$text"),
    gather=first_instruction,
    notes_choice=False,
    more=_names,
    system=_message("system", "$text"),
    user=_USER,
    first_user=_message("function descriptions", "$tools") + _USER,
    assistant=_message("assistant", "$written"),
    written="«<think>$thought</think>«text|calls¦\n\n»»$text«text calls¦\n\n»$calls",
    outputs=_message("function result", "$each") + _AVAILABLE,
    output='<function_response name="$name">$text</function_response>',
    between="\n",
    answer="assistant<|role_sep|>\n«open¦<think>$thought»",
    calls=_LAYOUT,
    tools=_tools,
    chat_written="$text:trim«text calls¦\n\n»$calls",
    own_marks=TurnMarks(thought=("<think>", "</think>\n\n"), controls=_CONTROLS),
)


# --- tools as TypeScript, with schemas as the template writes them ---

_REMARKS: Final = (
    *("format", "maxItems", "maximum", "minItems", "minimum", "pattern", "minLength", "maxLength"),
    *("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems", "minProperties", "maxProperties"),
)
_NUMBERS: Final = {"integer": "integer", "int": "integer", "number": "number", "float": "number"}


def _declaration(tool: FunctionTool) -> str:
    about = "".join(f"// {line}\n" for line in (tool.about or "").split("\n") if line.strip())
    schema: Mapping[str, Any] = tool.parameters or {}
    given = f"_: {_type(schema, schema, '  ')}" if properties(schema) else ""
    return f"{about}type {tool.name} = ({given}) => any;\n"


def _type(schema: object, root: Mapping[str, Any], indent: str, seen: tuple[str, ...] = ()) -> str:
    """The type that a schema means. `seen` are the references that it was found by."""
    if not isinstance(schema, Mapping):
        return "any"
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return "any" if reference in seen else _type(pointed_at(reference, root), root, indent, (*seen, reference))
    for keyword, sign in (("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")):
        if isinstance(choices := schema.get(keyword), list):
            return sign.join(f"({_type(choice, root, indent, seen)})" for choice in choices)
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [{**schema, "type": name, "enum": None if name == "null" else schema.get("enum")} for name in kind]
        return " | ".join(f"({_type(one, root, indent, seen)})" for one in kinds)
    if "const" in schema:
        return _constants([schema["const"]])
    if members := schema.get("enum"):
        return _constants(member for member in members if kind != "string" or isinstance(member, str))
    if kind in ("object", "dict") or (kind is None and "properties" in schema):
        return _object(schema, root, indent, seen)
    return _array(schema, root, indent, seen) if kind == "array" else _plain_type(schema, kind)


def _plain_type(schema: Mapping[str, Any], kind: object) -> str:
    if kind == "string":
        return "Date" if schema.get("format") in ("date", "date-time") else "string"
    return _NUMBERS.get(str(kind)) or (str(kind) if kind in ("boolean", "null") else "any")


def _constants(values: Iterable[object]) -> str:
    return " | ".join(f'"{value}"' if isinstance(value, str) else json.dumps(value) for value in values)


def _array(schema: Mapping[str, Any], root: Mapping[str, Any], indent: str, seen: tuple[str, ...]) -> str:
    items = schema.get("prefixItems", schema.get("items"))
    if isinstance(items, list):
        return f"[{', '.join(_type(item, root, indent, seen) for item in items)}]"
    return f"({_type(items, root, indent, seen)})[]" if isinstance(items, Mapping) else "Array<any>"


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], indent: str, seen: tuple[str, ...]) -> str:
    needed = {*required(schema)}
    members = dict(properties(schema))
    others = schema.get("additionalProperties")
    if others is True or isinstance(others, Mapping):
        members["[key: string]"] = {"type": "any"} if others is True else others
        needed.add("[key: string]")
    lines = [line for name, value in members.items() for line in _member(name, value, name in needed, indent)]
    types = {name: _type(value, root, indent + "  ", seen) for name, value in members.items()}
    return "{\n" + "".join(line.replace("\0", types[name]) for name, line in lines) + indent[:-2] + "}"


def _member(name: str, schema: object, is_needed: bool, indent: str) -> Iterator[tuple[str, str]]:
    """The lines of a member, with its name; `\\0` is the place of its type."""
    known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    about = known.get("description")
    for line in about.split("\n") if isinstance(about, str) else ():
        if line.strip():
            yield name, f"{indent}// {line}\n"
    for key, value in known.items():
        if key in _REMARKS and value is not None:
            yield name, f"{indent}// {key}: {_print_value(value)}\n"
    default = f" // default: {_print_value(known['default'])}" if "default" in known else ""
    yield name, f"{indent}{name}{'' if is_needed else '?'}: \0,{default}\n"


def _print_value(value: object) -> str:
    """A value as the template, which is Python's, prints it; a text in quotation marks."""
    return f'"{value}"' if isinstance(value, str) else str(value)


# --- output ---


def _reader(text: AnswerText) -> CallReader:
    """The reader of the calls in one answer."""
    return DsmlCalls(text, _NAMES, _TOKEN, _STOPS)


DIALECT = Dialect(
    name="gigachat35",
    aliases=("gigachat3.5",),
    model_families="GigaChat 3.5",
    model_globs=("gigachat-3.5",),
    template_markers=("｜GCML｜ + tool_calls",),
    source="chat template of GigaChat3.5-432B-A28B (llama.cpp models/templates/GigaChat3.5.jinja)",
    tokenizers=("gigachat3",),
    stops=_STOPS,
    options=Options,
    shown_keywords=ShownKeywords(
        frozenset(("type", "description", "enum", "const", "default", "properties", "required", "items", *_REMARKS)),
        items=frozenset(("type", "enum", "const", "properties", "required", "items")),
        resolves=False,
    ),
    prompt=_TURNS,
    calls=ReadBy(_LAYOUT, _reader),
)
