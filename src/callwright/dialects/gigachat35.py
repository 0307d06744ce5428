"""GigaChat 3.5: the form of DSML with another token, `<｜GCML｜tool_calls>`.

Source: the chat template of GigaChat3.5-432B-A28B (llama.cpp, models/templates/GigaChat3.5.jinja). Tools stand as
TypeScript before the first question, their names behind each message of the user and each turn of outputs. The
template refuses a turn that only reasons; it is shown here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Literal

from callwright.calls.toolset import Toolset
from callwright.conversation import AssistantTurn, Conversation, ConversationTurn, FunctionTool, Message, ToolTurn
from callwright.dialects._dsml_reader import DsmlReader, dsml_layout
from callwright.dialects.base import Dialect, PromptBy, ReadBy, RenderOptions, TurnMarks
from callwright.dialects.prompts.chat_messages import (
    first_instruction,
    format_note,
    is_of_user,
    last_asked,
    plain_text,
    user_turns,
)
from callwright.dialects.prompts.kept_parts import Apart, put_tools, put_turns
from callwright.dialects.prompts.template import in_words, tell_tools
from callwright.dialects.prompts.told import ToldTurns
from callwright.prompt import Prompt, PromptBuilder
from callwright.schema.keywords import properties, required
from callwright.schema.resolve import pointed_at
from callwright.schema.shown import ShownKeywords
from callwright.stream_reader import Parse, StreamReader

__all__ = ["DIALECT"]

_TOKEN: Final = "｜GCML｜"
_ROLE: Final = "<|role_sep|>"
_END: Final = "<|message_sep|>"
_STOPS: Final = (_END, "</s>")
_CONTROLS: Final = ("<s>", "</s>", _ROLE, _END, _TOKEN, "<think>", "</think>")
_NAMES: Final = (("tool_calls", ""),)
_LAYOUT: Final = dsml_layout("tool_calls", "", token=_TOKEN, gap="")
_ABOUT: Final = """Вызов функций: последовательный
Безопасность: соответствует законодательству РФ.
Текущая дата: {}
Ограничение знаний: Декабрь, 2025.
Ты сделан на базе нейросети GigaChat."""


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, as models do that were trained to. `current_date` (YYYY-MM-DD)
    is told to the model.
    """

    thinking: Literal["open", "off"] = "off"
    current_date: str | None = None


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt, up to where the model's answer begins."""
    out = PromptBuilder().control("<s>")
    _message(out, "developer system", _ABOUT.format(options.current_date or ""))
    instructions, items = first_instruction(conversation.items)
    instructions += format_note(conversation)
    _message(out, "system", "\n\n".join(instructions))
    names = json.dumps([tool.name for tool in conversation.tools], ensure_ascii=False)
    users = user_turns(items)
    first = next((item for item in items if is_of_user(item)), None)
    apart: Apart | None = None
    if conversation.tools and isinstance(first, Message):
        apart = Apart(users[0], partial(_first_question, conversation, first, users[0], names))
    put_turns(out, items, _turn, names, asked=last_asked(conversation, items), apart=apart)
    thinks = options.add_generation_prompt and options.thinking == "open"
    if options.add_generation_prompt:
        _begin(out, "assistant").control("<think>" if thinks else "")
    return Prompt(out.pieces(), _CONTROLS, start="reasoning" if thinks else "assistant")


def _begin(out: PromptBuilder, role: str) -> PromptBuilder:
    return out.text(role).control(_ROLE).text("\n")


def _message(out: PromptBuilder, role: str, text: str) -> PromptBuilder:
    return _begin(out, role).text(text).control(_END).text("\n\n")


def _first_question(
    conversation: Conversation, message: Message, number: int, names: str, out: PromptBuilder, _: object
) -> None:
    """Append the first message of the user behind the tools."""
    put_tools(out, conversation, _functions)
    _turn(out, message, number, names, reasons=True)


def _functions(out: PromptBuilder, conversation: Conversation) -> None:
    shown = "\n".join(map(_declaration, conversation.tools))
    _message(out, "function descriptions", f"namespace functions {{\n{shown}\n}} // namespace functions\n\n")


def _turn(out: PromptBuilder, turn: ConversationTurn, number: int, names: str, *, reasons: bool) -> None:
    """Append a turn of the history."""
    match turn:
        case Message(role, parts):
            _message(out, "user" if role == "user" else "system", plain_text(parts, number))
            if role == "user":
                _message(out, "available functions", names)
        case AssistantTurn(reasoning, message, calls):
            _begin(out, "assistant")
            _said(out, AssistantTurn(reasoning if reasons else None, message, calls))
            out.control(_END).text("\n\n")
        case ToolTurn(outputs):
            results = [
                f'<function_response name="{name}">{plain_text(output.parts, number)}</function_response>'
                for name, output in outputs
            ]
            _message(out, "function result", "\n".join(results))
            _message(out, "available functions", names)


def _said(out: PromptBuilder, turn: AssistantTurn) -> PromptBuilder:
    """Append what an assistant's turn holds, empty lines between its parts."""
    if turn.reasoning:
        out.control("<think>").text(turn.reasoning).control("</think>")
    if turn.text:
        out.text("\n\n" if turn.reasoning else "", turn.text)
    if turn.calls:
        _LAYOUT.put(out.text("\n\n" if turn.reasoning or turn.text else ""), turn.calls, controls=_CONTROLS)
    return out


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for all calls."""
    return Prompt(_said(PromptBuilder(), turn).pieces(), _CONTROLS).text


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls as the format's text."""
    told = ToldTurns(_CONTROLS, _wire_text, in_words)
    return told.messages(conversation, tell_tools, _LAYOUT, _CONTROLS)


def _wire_text(turn: AssistantTurn) -> str:
    return Prompt(_said(PromptBuilder(), turn).pieces(), _CONTROLS).wire_text.strip()


# --- tools as TypeScript, with what the template makes of a schema ---

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
    if kind == "array":
        return _array(schema, root, indent, seen)
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
    """The lines of a member, with its name; its type stands at `\\0`."""
    known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    about = known.get("description")
    for line in about.split("\n") if isinstance(about, str) else ():
        if line.strip():
            yield name, f"{indent}// {line}\n"
    for key, value in known.items():
        if key in _REMARKS and value is not None:
            yield name, f"{indent}// {key}: {_told(value)}\n"
    default = f" // default: {_told(known['default'])}" if "default" in known else ""
    yield name, f"{indent}{name}{'' if is_needed else '?'}: \0,{default}\n"


def _told(value: object) -> str:
    """A value as the template, which is Python's, prints it; a text in quotation marks."""
    return f'"{value}"' if isinstance(value, str) else str(value)


# --- output ---


def parse(source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
    """Events of an output. `start`: `reasoning` when the prompt left `<think>` open."""
    return DsmlReader(source, tools, _NAMES, _TOKEN, _STOPS).read(start)


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
    prompt=PromptBy(
        render=render,
        messages=messages,
        write=write,
        marks=TurnMarks(thought=("<think>", "</think>\n\n"), controls=_CONTROLS),
    ),
    calls=ReadBy(_LAYOUT, parse),
)
