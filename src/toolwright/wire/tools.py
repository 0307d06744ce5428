"""Tools, tool choice and response format as they come in requests, in the Chat and in the Responses shape.

The library takes any name and schema; `check_tools` and `check_choice` hold what OpenAI's API enforces of a request.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from toolwright.conversation import Call, Conversation, FunctionTool, NamedTool, ResponseFormat, ToolChoice
from toolwright.errors import RequestError, did_you_mean
from toolwright.jsontext import encode
from toolwright.schema.strict import MAX_LEVELS, TOO_DEEP, levels, schema_problems, strict_problems
from toolwright.wire.errors import from_validation, listed, missing, wrong_type

__all__ = [
    "CHOICES",
    "Shape",
    "check_choice",
    "check_named",
    "check_tools",
    "read_allowed_tools",
    "read_call",
    "read_function_call",
    "read_response_format",
    "read_tool_choice",
    "read_tools",
    "write_response_format",
    "write_tool_choice",
]

_MAX_TOOLS = 128
_MAX_NAME = 64
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
CHOICES = ("none", "auto", "required")
Shape: TypeAlias = Literal["any", "chat", "function"]


class _Function(msgspec.Struct):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class _ChatTool(msgspec.Struct):
    function: _Function


class _CallFunction(msgspec.Struct):
    name: str
    arguments: Any = msgspec.field(default_factory=dict)


class _ToolCall(msgspec.Struct):
    function: _CallFunction


class _JsonSchema(msgspec.Struct):
    name: str
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


def read_tools(
    given: Sequence[Mapping[str, Any]] | None, param: str = "tools", shape: Shape = "any"
) -> tuple[FunctionTool, ...]:
    """Function tools. Raises `RequestError` that names the field.

    `shape`: of the Chat API, or `any` of the two; `function`: bare functions, as before there were tools.
    """
    if given is None:
        return ()
    if not isinstance(given, list | tuple):
        raise wrong_type(param, "array", given)
    return tuple(_read_tool(tool, f"{param}[{number}]", shape) for number, tool in enumerate(given))


def _read_tool(given: object, param: str, shape: Shape) -> FunctionTool:
    if not isinstance(given, Mapping):
        raise wrong_type(param, "object", given)
    if shape != "function":
        kind = given.get("type", "function" if shape == "any" and given.keys() & {"function", "name"} else None)
        if kind is None:
            raise missing(f"{param}.type")
        if kind != "function":
            raise RequestError(
                f"Invalid value: '{kind}'. Supported values are: 'function'.",
                param=f"{param}.type",
                code="unsupported_value",
            )
    bare = shape == "function" or (shape == "any" and "name" in given and "function" not in given)
    try:
        function = msgspec.convert(given, _Function) if bare else msgspec.convert(given, _ChatTool).function
    except msgspec.ValidationError as error:
        raise _typed(error, param) from error
    if levels(function.parameters) > MAX_LEVELS:
        raise RequestError(
            f"Invalid schema for function '{function.name}': {TOO_DEEP}",
            param=f"{param}.parameters" if bare else f"{param}.function.parameters",
            code="invalid_function_parameters",
        )
    return FunctionTool(function.name, function.description, function.parameters, function.strict)


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
        raise _typed(error, param) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(f"The arguments at '{param}' are no JSON: {error}.", param=param) from error


def read_tool_choice(given: object, tools: Sequence[FunctionTool], param: str = "tool_choice") -> ToolChoice:
    """The choice, by word or as a named function of either shape; None means the default."""
    match given:
        case None:
            return "auto" if tools else "none"
        case "none" | "auto" | "required":
            return given
        case str():
            raise _unknown_choice(given, CHOICES, param)
        case {"type": "function", "function": {"name": str(name)}} | {"type": "function", "name": str(name)}:
            return NamedTool(name)
        case {"type": "function", "function": {"name": name}}:
            raise wrong_type(f"{param}.function.name", "str", name)
        case {"type": "function", "function": _}:
            raise missing(f"{param}.function.name")
        case {"type": "function"}:
            raise missing(f"{param}.function")
        case {"type": "allowed_tools"} if isinstance(given, Mapping):
            mode, names = _allowed(given, param)
            return NamedTool(names[0]) if mode == "required" and len(names) == 1 else mode
        case {"type": kind}:
            raise RequestError(
                f"Invalid value: '{kind}'. Supported values are: 'function' and 'allowed_tools'.",
                param=f"{param}.type",
                code="unsupported_value",
            )
        case Mapping():
            raise missing(f"{param}.type")
    raise wrong_type(param, "str | object", given)


def read_allowed_tools(
    given: object, tools: Sequence[FunctionTool], param: str = "tool_choice"
) -> tuple[str, ...] | None:
    """The names of the tools that may be called, where the choice is a set of them (`allowed_tools`, either shape).

    None: any may. All tools stay in the prompt.
    """
    if not (isinstance(given, Mapping) and given.get("type") == "allowed_tools"):
        return None
    _, names = _allowed(given, param)
    for name in names:
        check_named(NamedTool(name), tools, param)
    return names


def _allowed(given: Mapping[str, Any], param: str) -> tuple[Literal["auto", "required"], tuple[str, ...]]:
    """Mode and names of a set of allowed tools."""
    within = given.get("allowed_tools", given)
    if not isinstance(within, Mapping):
        raise wrong_type(f"{param}.allowed_tools", "object", within)
    param = f"{param}.allowed_tools" if within is not given else param
    mode, listed_tools = within.get("mode"), within.get("tools")
    if mode is None:
        raise missing(f"{param}.mode")
    if mode not in ("auto", "required"):
        raise _unknown_choice(str(mode), ("auto", "required"), f"{param}.mode")
    if not isinstance(listed_tools, list):
        raise missing(f"{param}.tools") if listed_tools is None else wrong_type(f"{param}.tools", "array", listed_tools)
    if not listed_tools:
        raise RequestError(
            f"Invalid '{param}.tools': empty array. Expected an array with minimum length 1, but got an empty array "
            "instead.",
            param=f"{param}.tools",
            code="empty_array",
        )
    names: list[str] = []
    for number, entry in enumerate(listed_tools):
        match entry:
            case {"type": "function", "function": {"name": str(name)}} | {"type": "function", "name": str(name)}:
                names.append(name)
            case _:
                raise missing(f"{param}.tools[{number}].name")
    return mode, tuple(dict.fromkeys(names))


def read_function_call(given: object, functions: Sequence[FunctionTool]) -> ToolChoice:
    """The choice of the API before tools: `none`, `auto`, or an object that names a function."""
    match given:
        case None:
            return "auto" if functions else "none"
        case "none" | "auto":
            return given
        case str():
            raise _unknown_choice(given, ("none", "auto"), "function_call")
        case {"name": str(name)}:
            return NamedTool(name)
    raise missing("function_call.name")


def _unknown_choice(given: str, known: Sequence[str], param: str) -> RequestError:
    return RequestError(
        f"Invalid value: '{given}'. Supported values are: {listed(known)}.{did_you_mean(given, known)}",
        param=param,
        code="invalid_value",
    )


def write_tool_choice(choice: ToolChoice) -> object:
    """The choice in the Chat shape."""
    if isinstance(choice, NamedTool):
        return {"type": "function", "function": {"name": choice.name}}
    return choice


def read_response_format(given: object, param: str = "response_format") -> ResponseFormat | None:
    """The format of the answer; plain text is None."""
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
            if "json_schema" not in given:
                raise missing(f"{param}.json_schema")
            try:
                schema = msgspec.convert(given["json_schema"], _JsonSchema)
            except msgspec.ValidationError as error:
                raise _typed(error, f"{param}.json_schema") from error
            if schema.strict and (problems := strict_problems(schema.schema or {})):
                raise RequestError(
                    f"Invalid schema for response_format '{schema.name}': {problems[0]}",
                    param=param,
                    code="invalid_json_schema",
                )
            return ResponseFormat("json_schema", schema.name, schema.description, schema.schema, schema.strict)
        case None:
            raise missing(f"{param}.type")
        case kind:
            raise RequestError(
                f"Invalid value: '{kind}'. Supported values are: 'json_object', 'json_schema', and 'text'.",
                param=f"{param}.type",
                code="invalid_value",
            )


def write_response_format(wanted: ResponseFormat) -> dict[str, Any]:
    """The format in the Chat shape."""
    if wanted.type == "json_object":
        return {"type": "json_object"}
    fields = {"description": wanted.description, "schema": wanted.schema, "strict": wanted.strict}
    schema = {"name": wanted.name} | {key: value for key, value in fields.items() if value is not None}
    return {"type": "json_schema", "json_schema": schema}


def check_tools(tools: Sequence[FunctionTool], param: str = "tools", inner: str = ".function") -> None:
    """What OpenAI's API refuses in tools. `inner` is the way from a tool to its fields in the shape of the request."""
    if len(tools) > _MAX_TOOLS:
        raise RequestError(
            f"Invalid '{param}': array too long. Expected an array with maximum length {_MAX_TOOLS}, but got an array "
            f"with length {len(tools)} instead.",
            param=param,
            code="array_above_max_length",
        )
    seen: set[str] = set()
    for number, tool in enumerate(tools):
        path = f"{param}[{number}]{inner}"
        _check_name(tool.name, f"{path}.name")
        if tool.name in seen:
            raise RequestError(
                f"Invalid '{path}.name': two tools are called '{tool.name}'. Expected a name of its own for each tool.",
                param=f"{path}.name",
                code="invalid_value",
            )
        seen.add(tool.name)
        _check_parameters(tool, f"{path}.parameters")


def _check_name(name: str, param: str) -> None:
    if not name:
        raise RequestError(
            f"Invalid '{param}': empty string. Expected a string with minimum length 1, but got an empty string "
            "instead.",
            param=param,
            code="empty_string",
        )
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


def _check_parameters(tool: FunctionTool, param: str) -> None:
    if not tool.parameters and not tool.strict:
        return
    problems = (strict_problems if tool.strict else schema_problems)(tool.parameters or {})
    if problems:
        raise RequestError(
            f"Invalid schema for function '{tool.name}': {problems[0]}", param=param, code="invalid_function_parameters"
        )


def check_choice(
    conversation: Conversation, *, choice_given: bool, parallel_given: bool, param: str = "tool_choice"
) -> None:
    """What OpenAI's chat API refuses in the choice. `param`: `function_call` in the API before tools."""
    choice, tools = conversation.tool_choice, conversation.tools
    if not tools:
        for given, field in ((choice_given and choice != "none", param), (parallel_given, "parallel_tool_calls")):
            if given:
                raise _without_tools(field, param)
    check_named(choice, tools, param)


def check_named(choice: ToolChoice, tools: Sequence[FunctionTool], param: str = "tool_choice") -> None:
    """A choice that names a tool names one of the request's."""
    if not isinstance(choice, NamedTool) or any(tool.name == choice.name for tool in tools):
        return
    if not tools:
        raise _without_tools(param, param)
    names = [tool.name for tool in tools]
    raise RequestError(
        f"Invalid value for '{param}': no tool is called '{choice.name}'.{did_you_mean(choice.name, names)} "
        f"The tools of this request are: {', '.join(names)}.",
        param=param,
        code="invalid_value",
    )


def _without_tools(field: str, choice: str) -> RequestError:
    """`choice`: the field of the choice, which is named as the tools are."""
    offered = "functions" if choice == "function_call" else "tools"
    return RequestError(
        f"Invalid value for '{field}': '{field}' is only allowed when '{offered}' are specified.", param=field
    )


def _typed(error: msgspec.ValidationError, param: str) -> RequestError:
    """The error of a part of the request, with its path from the request's root."""
    what, at, path = str(error).partition(" - at `$")
    inner = path.removesuffix("`") if at else ""
    return from_validation(msgspec.ValidationError(f"{what} - at `$.{param}{inner}`"), None, {})
