"""The choice of tools: by word, by name, or a set of them that is allowed. In the Chat and in the Responses shape."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from callwright.conversation import Conversation, FunctionTool, NamedTool, ToolChoice
from callwright.errors import RequestError, did_you_mean
from callwright.openai_format.errors import missing, quote_list, wrong_type

CHOICES = ("none", "auto", "required")
_KINDS = ("function", "custom")
# Tools of the Responses API that have no name but their kind.
BUILT_IN = ("tool_search", "shell", "local_shell", "apply_patch")
_PARAM: Final = "tool_choice"
# How the model knows a tool, by the name and the namespace that the client gives it.
Flat: TypeAlias = Callable[[str, str | None], str]


def as_named(name: str, _: str | None) -> str:
    """The name itself: the model knows tools as the client does."""
    return name


def read_tool_choice(given: object, tools: Sequence[FunctionTool], flat: Flat = as_named) -> ToolChoice:
    """The choice, by word or as a named tool of either shape; None means the default."""
    match given:
        case None:
            return "auto" if tools else "none"
        case "none" | "auto" | "required":
            return given
        case str():
            raise _unknown_choice(given, CHOICES, _PARAM)
        case {"type": "function" | "custom"} if isinstance(given, Mapping):
            return NamedTool(_chosen_name(given, _PARAM, flat))
        case {"type": "allowed_tools"} if isinstance(given, Mapping):
            mode, names = _allowed(given, flat)
            return NamedTool(names[0]) if mode == "required" and len(names) == 1 else mode
        case {"type": kind} if kind is not None:
            raise RequestError(
                f"Invalid value: '{kind}'. Supported values are: {quote_list((*_KINDS, 'allowed_tools'))}.",
                param=f"{_PARAM}.type",
                code="unsupported_value",
            )
        case Mapping():
            raise missing(f"{_PARAM}.type")
    raise wrong_type(_PARAM, "str | object", given)


def _chosen_name(given: Mapping[str, Any], param: str, flat: Flat) -> str:
    """The tool that an entry names: `{"type": T, T: {"name"}}`, or `{"type": T, "name"}`."""
    kind = given["type"]
    inner = given.get(kind)
    if inner is None and "name" not in given:
        raise missing(f"{param}.{kind}" if flat is as_named else f"{param}.name")
    if inner is not None and not isinstance(inner, Mapping):
        raise wrong_type(f"{param}.{kind}", "object", inner)
    at = param if inner is None else f"{param}.{kind}"
    name = (given if inner is None else inner).get("name")
    if name is None:
        raise missing(f"{at}.name")
    if not isinstance(name, str):
        raise wrong_type(f"{at}.name", "str", name)
    namespace = given.get("namespace")
    return flat(name, namespace if isinstance(namespace, str) else None)


def read_allowed_tools(given: object, tools: Sequence[FunctionTool], flat: Flat = as_named) -> tuple[str, ...] | None:
    """The names of the tools that may be called, if the choice is a set of them (`allowed_tools`, either shape).

    None: any tool. All tools remain in the prompt.
    """
    if not (isinstance(given, Mapping) and given.get("type") == "allowed_tools"):
        return None
    _, names = _allowed(given, flat)
    for name in names:
        check_named(NamedTool(name), tools)
    return names


def _allowed(given: Mapping[str, Any], flat: Flat) -> tuple[Literal["auto", "required"], tuple[str, ...]]:
    """Mode and names of a set of allowed tools."""
    within = given.get("allowed_tools", given)
    if not isinstance(within, Mapping):
        raise wrong_type(f"{_PARAM}.allowed_tools", "object", within)
    param = f"{_PARAM}.allowed_tools" if within is not given else _PARAM
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
        at = f"{param}.tools[{number}]"
        if not isinstance(entry, Mapping):
            raise wrong_type(at, "object", entry)
        kind = entry.get("type")
        if kind is None:
            raise missing(f"{at}.type")
        if kind in BUILT_IN and flat is not as_named:
            names.append(flat(kind, None))
        elif kind in _KINDS:
            names.append(_chosen_name(entry, at, flat))
        else:
            raise _unknown_choice(str(kind), _KINDS, f"{at}.type")
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
        f"Invalid value: '{given}'. Supported values are: {quote_list(known)}.{did_you_mean(given, known)}",
        param=param,
        code="invalid_value",
    )


def write_tool_choice(choice: ToolChoice) -> object:
    """The choice in the Chat shape, for servers that know functions only."""
    if isinstance(choice, NamedTool):
        return {"type": "function", "function": {"name": choice.name}}
    return choice


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
