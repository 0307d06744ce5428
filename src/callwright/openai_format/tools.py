"""Function and custom tools as they come in requests, in the Chat and in the Responses shape.

The library takes any name and schema; `check_tools` holds what OpenAI's API enforces of a request.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec

from callwright.calls.custom_tools import custom_tool
from callwright.conversation import Call, FunctionTool
from callwright.errors import GrammarError, RequestError
from callwright.memo.by_text import kept_by_text
from callwright.memo.prefixes import once
from callwright.openai_format.errors import missing, quote_list, type_error, wrong_type
from callwright.openai_format.request_rules import STRICT, RequestRules
from callwright.schema.plain import plain_schema
from callwright.schema.strict import MAX_LEVELS, TOO_DEEP, form_problems, levels, schema_problems, strict_problems
from callwright.tolerant_json.codec import decode, encode

if TYPE_CHECKING:
    from callwright.grammar.grammar import Grammar


_MAX_NAME = 64
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_KINDS = ("function", "custom")
# `any` of the two APIs; `function`: a bare function, as before there were tools.
ApiShape: TypeAlias = Literal["any", "chat", "responses", "function"]


class FoundTool(NamedTuple):
    """A tool, and the path of its fields in the request."""

    tool: FunctionTool
    path: str


class FunctionFields(msgspec.Struct):
    """A function as a request writes it."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    output_schema: dict[str, Any] | None = None
    is_async: bool | None = msgspec.field(default=None, name="async")


class CustomFields(msgspec.Struct):
    """A custom tool as a request writes it."""

    name: str
    description: str | None = None
    format: dict[str, Any] | None = None
    is_async: bool | None = msgspec.field(default=None, name="async")


class _GrammarFormat(msgspec.Struct):
    syntax: str
    definition: str


class _CallFunction(msgspec.Struct):
    name: str
    arguments: Any = msgspec.field(default_factory=dict)


class _ToolCall(msgspec.Struct):
    function: _CallFunction


def read_tools(given: Sequence[Mapping[str, Any]] | None) -> tuple[FunctionTool, ...]:
    """Tools without their paths; see `find_tools`."""
    return tuple(found.tool for found in find_tools(given))


def find_tools(
    given: Sequence[Mapping[str, Any]] | None, param: str = "tools", shape: ApiShape = "any"
) -> tuple[FoundTool, ...]:
    """The function and custom tools of a list. Raises `RequestError` that names the field."""
    if given is None:
        return ()
    if not isinstance(given, list | tuple):
        raise wrong_type(param, "array", given)
    return tuple(find_tool(tool, f"{param}[{number}]", shape) for number, tool in enumerate(given))


def offered_tools(given: Sequence[Mapping[str, Any]] | None, param: str, shape: ApiShape) -> tuple[FunctionTool, ...]:
    """The validated tools of a list decoded from JSON. Cached by their text, as a client sends the same ones with each
    request. Raises `RequestError` that names the field.
    """
    return once(given or (), f"{shape} {param}", lambda: _offered(encode(given), param, shape))


@kept_by_text
def _offered(text: bytes, param: str, shape: ApiShape) -> tuple[FunctionTool, ...]:
    found = find_tools(decode(text), param, shape)
    check_tools(found)
    return tuple(tool for tool, _ in found)


def find_tool(given: object, param: str, shape: ApiShape) -> FoundTool:
    """One tool. Raises `RequestError` that names the field, for a bad grammar with line and column."""
    if not isinstance(given, Mapping):
        raise wrong_type(param, "object", given)
    kind = _kind(given, param, shape)
    is_bare = shape in ("function", "responses") or (shape == "any" and "name" in given and kind not in given)
    path = param if is_bare else f"{param}.{kind}"
    if not is_bare and kind not in given:
        raise missing(path)
    fields = given if is_bare else given[kind]
    tool = _read_custom(fields, path, is_flat=is_bare) if kind == "custom" else _read_function(fields, path)
    return FoundTool(tool, path)


def _kind(given: Mapping[str, Any], param: str, shape: ApiShape) -> str:
    if shape == "function":
        return "function"
    kind = given.get("type", "function" if shape == "any" and given.keys() & {"function", "name"} else None)
    if kind is None:
        raise missing(f"{param}.type")
    if kind not in _KINDS:
        raise RequestError(
            f"Invalid value: '{kind}'. Supported values are: {quote_list(_KINDS)}.",
            param=f"{param}.type",
            code="unsupported_value",
        )
    return str(kind)


def _read_function(given: object, path: str) -> FunctionTool:
    try:
        function = msgspec.convert(given, FunctionFields)
    except msgspec.ValidationError as error:
        raise type_error(error, path, given) from error
    for field, schema in (("parameters", function.parameters), ("output_schema", function.output_schema)):
        if levels(schema) > MAX_LEVELS:
            raise RequestError(
                f"Invalid schema for function '{function.name}': {TOO_DEEP}",
                param=f"{path}.{field}",
                code="invalid_function_parameters",
            )
    return FunctionTool(
        function.name,
        function.description,
        function.parameters,
        function.strict,
        output_schema=function.output_schema,
    )


def _read_custom(given: object, path: str, *, is_flat: bool) -> FunctionTool:
    try:
        custom = msgspec.convert(given, CustomFields)
    except msgspec.ValidationError as error:
        raise type_error(error, path, given) from error
    grammar = _read_grammar(custom.format, f"{path}.format", is_flat=is_flat) if custom.format is not None else None
    return custom_tool(custom.name, custom.description, grammar)


def _read_grammar(given: Mapping[str, Any], path: str, *, is_flat: bool) -> "Grammar | None":
    """The grammar of an input, in the Chat shape one level deeper; None where any text will do."""
    kind = given.get("type")
    if kind is None:
        raise missing(f"{path}.type")
    if kind == "text":
        return None
    if kind != "grammar":
        raise RequestError(
            f"Invalid value: '{kind}'. Supported values are: 'text' and 'grammar'.",
            param=f"{path}.type",
            code="invalid_value",
        )
    inner: object = given
    if not is_flat or "grammar" in given:
        path = f"{path}.grammar"
        inner = given.get("grammar")
        if inner is None:
            raise missing(path)
    try:
        read = msgspec.convert(inner, _GrammarFormat)
    except msgspec.ValidationError as error:
        raise type_error(error, path, inner) from error
    if read.syntax not in ("lark", "regex"):
        raise RequestError(
            f"Invalid value: '{read.syntax}'. Supported values are: 'lark' and 'regex'.",
            param=f"{path}.syntax",
            code="invalid_value",
        )
    try:
        from callwright.grammar.grammar import Grammar  # its engine is loaded with the first grammar

        return Grammar(read.syntax, read.definition)
    except GrammarError as error:
        error.param = f"{path}.definition"
        raise


def read_call(given: object, param: str) -> Call:
    """A call as OpenAI's tool call, or as bare name and arguments; these are JSON text or the value itself."""
    if not isinstance(given, Mapping):
        raise wrong_type(param, "object", given)
    try:
        if "function" in given:
            function = msgspec.convert(given, _ToolCall).function
        else:
            function = msgspec.convert(given, _CallFunction)
        arguments = function.arguments
        return Call(function.name, arguments if isinstance(arguments, str) else encode(arguments).decode())
    except msgspec.ValidationError as error:
        raise type_error(error, param, given) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(f"The arguments at '{param}' are not valid JSON: {error}.", param=param) from error


def check_tools(found: Sequence[FoundTool]) -> None:
    """What OpenAI's API refuses in tools, but for too many of them: see `callwright.wire.bounds`."""
    seen: set[str] = set()
    for tool, path in found:
        check_name(tool.name, f"{path}.name")
        if tool.name in seen:
            raise twice(tool.name, path)
        seen.add(tool.name)
        check_parameters(tool, f"{path}.parameters")


def twice(name: str, path: str) -> RequestError:
    """The error for a second tool of one name."""
    return RequestError(
        f"Invalid '{path}.name': two tools are called '{name}'. Expected a name of its own for each tool.",
        param=f"{path}.name",
        code="invalid_value",
    )


def check_name(name: str, param: str, rules: RequestRules = STRICT) -> None:
    """A name that OpenAI's API takes; by lenient rules any that is not empty."""
    if not name:
        raise RequestError(
            f"Invalid '{param}': empty string. Expected a string with minimum length 1, but got an empty string "
            "instead.",
            param=param,
            code="empty_string",
        )
    if rules.is_lenient:
        return
    if len(name) > _MAX_NAME:
        raise RequestError(
            f"Invalid '{param}': string too long. Expected a string with maximum length {_MAX_NAME}, but got a string "
            f"with length {len(name)} instead.",
            param=param,
            code="string_above_max_length",
        )
    if not _NAME.fullmatch(name):
        raise RequestError(
            f"Invalid '{param}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'.",
            param=param,
            code="invalid_value",
        )


def check_parameters(tool: FunctionTool, param: str, rules: RequestRules = STRICT) -> None:
    """A schema that OpenAI's API takes; by lenient rules any that JSON Schema can be read in."""
    if not tool.parameters and not tool.strict:
        return
    given = tool.parameters or {}
    if rules.is_lenient:
        problems = form_problems(plain_schema(given))
    else:
        problems = (strict_problems if tool.strict else schema_problems)(given)
    if problems:
        raise RequestError(
            f"Invalid schema for function '{tool.name}': {problems[0]}", param=param, code="invalid_function_parameters"
        )
