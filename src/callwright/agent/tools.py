"""A tool: a Python function, its definition for the model, and the conversion of model calls to function calls.

Arguments come from the model; hidden parameters are filled by the program and are in no schema. Mistakes in a
function (a type without a form in JSON, a documented name that is no parameter) raise `RequestError` when the tool is
made. It runs nothing; see `callwright.agent.execution`.
"""

import functools
import inspect
import re
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, overload

import msgspec
from msgspec import Struct
from msgspec.inspect import Field

from callwright.agent.annotations import Context, From, Hidden, split_annotation
from callwright.agent.function_schema import Types, convert, read_docstring
from callwright.agent.given import check_flag, check_function, check_text, wrong
from callwright.calls.custom_tools import INPUT, custom_tool
from callwright.conversation import FunctionTool, JsonObject
from callwright.errors import RequestError, did_you_mean
from callwright.grammar.grammar import Grammar
from callwright.openai_format.tools import check_parameters
from callwright.schema.strict import strict_problems
from callwright.tolerant_json.codec import NotJsonError, encode

Function: TypeAlias = Callable[..., Any]
if typing.TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
else:
    P = typing.ParamSpec("P")
    R = typing.TypeVar("R")
# True, or a function of the call (`CallReady`) that returns whether a person must approve it.
Approve: TypeAlias = bool | Callable[[Any], Any]


def unasked(_: Any) -> bool:
    """The `approve` of a tool that does not set it: a person must approve its calls."""
    return True


_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_DEFAULT: Final = 60


class ToolOptions(Struct, frozen=True, kw_only=True):
    """How a tool is run.

    `sequential`: alone, after earlier calls have ended. `approve`: a person must agree first, or a function of the
    call that returns whether. `timeout_s`, `result_chars`: its own limits. `repeatable`: the same call may be made any
    number of times. `deferred`: the model has to search for it before it knows of it.
    """

    sequential: bool = False
    approve: Approve = False
    timeout_s: float | None = None
    result_chars: int | None = None
    repeatable: bool = False
    deferred: bool = False


class LiveTools(list["Tool"]):
    """Tools of a server that may add more during a run; agents that were given this list get those, too."""


class HiddenParameter(NamedTuple):
    """A parameter that the program fills: by name, from a function, or with the context."""

    name: str
    source: Literal["value", "context"] | From
    is_optional: bool


class Tool(Generic[P, R]):
    """A function that a model may call; called from Python it is that function, and type checkers know it as that.

    `definition` is sent to the model; `hidden` parameters are not. `agent` is set for tools from `Agent.as_tool`: the
    agent that a call runs.
    """

    def __init__(
        self,
        function: Callable[P, R],
        definition: FunctionTool,
        arguments: Any,
        hidden: tuple[HiddenParameter, ...],
        options: ToolOptions,
    ) -> None:
        self.function = function
        self.definition = definition
        self.hidden = hidden
        self.options = options
        self.agent: Any = None
        self._arguments = arguments
        functools.update_wrapper(self, _inner(function), updated=())

    @property
    def name(self) -> str:
        """The name in the model's calls."""
        return self.definition.name

    @property
    def parameters(self) -> JsonObject:
        """The JSON Schema of its arguments."""
        return self.definition.parameters or {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the parameters that these arguments give. Raises `msgspec.ValidationError`."""
        taken = [hidden.name for hidden in self.hidden if hidden.name in arguments]
        if taken:
            raise msgspec.ValidationError(f"unknown argument {taken[0]!r}")
        if self.definition.custom is not None:
            (name,) = [name for name in inspect.signature(self.function).parameters if name not in self._filled]
            return {name: arguments[INPUT]}
        return dict(arguments) if self._arguments is None else dict(convert(dict(arguments), self._arguments))

    def invoke(self, values: Mapping[str, Any]) -> Any:
        """Call the function with values by name, hidden ones among them."""
        function: Any = self.function
        if self._arguments is None and self.definition.custom is None:
            return function(**values)
        signature = inspect.signature(self.function)
        bound = signature.bind_partial()
        rest: dict[str, Any] = {}
        for name, value in values.items():
            own = signature.parameters.get(name)
            (bound.arguments if own and own.kind is not own.VAR_KEYWORD else rest)[name] = value
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.POSITIONAL_ONLY and parameter.default is not parameter.empty:
                bound.arguments.setdefault(name, parameter.default)
        return function(*bound.args, **bound.kwargs, **rest)

    @property
    def _filled(self) -> set[str]:
        return {hidden.name for hidden in self.hidden}


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    strict: bool | None = None,
    parameters: JsonObject | None = None,
    custom: bool = False,
    grammar: Grammar | None = None,
    sequential: bool = False,
    approve: Approve = False,
    timeout_s: float | None = None,
    result_chars: int | None = None,
    repeatable: bool = False,
    deferred: bool = False,
) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    strict: bool | None = None,
    parameters: JsonObject | None = None,
    custom: bool = False,
    grammar: Grammar | None = None,
    sequential: bool = False,
    approve: Approve = False,
    timeout_s: float | None = None,
    result_chars: int | None = None,
    repeatable: bool = False,
    deferred: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    strict: bool | None = None,
    parameters: JsonObject | None = None,
    custom: bool = False,
    grammar: Grammar | None = None,
    **options: Any,
) -> Tool[..., Any] | Callable[[Function], Tool[..., Any]]:
    """Make a tool of a function; a decorator, with or without options.

    Name, description and schema are the function's: its name, its docstring, its annotations. `parameters` gives the
    schema instead: the function gets the arguments unchanged. `strict`: the schema has the form of OpenAI's strict
    mode, in which an optional parameter is required and may be null. `custom`, `grammar`: the tool takes free text
    in its only parameter, held to the grammar. The other options are those of `ToolOptions`.
    """
    local_names = sys._getframe(1).f_locals
    check_text("tool(name=…)", name, may_be_none=True)
    check_text("tool(description=…)", description, may_be_none=True)
    check_flag("tool(strict=…)", strict, may_be_none=True)
    check_flag("tool(custom=…)", custom)

    def make_tool(function: Function) -> Tool[..., Any]:
        own = ToolOptions(**options)
        _check_options(own)
        if isinstance(function, Tool):
            function = function.function
        called = name if name is not None else str(getattr(_inner(function), "__name__", type(function).__name__))
        if not _NAME.fullmatch(called):
            raise RequestError(
                f"A tool cannot be called {called!r}: expected up to 64 of A-Z, a-z, 0-9, _ and -. Give it a name: "
                "tool(name='…').",
                param="name",
            )
        reader = _FunctionReader(function, called, local_names, strict=bool(strict))
        about = description if description is not None else reader.description
        if custom or grammar is not None:
            reader.check_custom()
            return Tool(function, custom_tool(called, about or None, grammar), None, reader.hidden, own)
        if parameters is not None:
            return Tool(function, _with_schema(called, about, parameters, strict), None, (), own)
        arguments, schema = reader.arguments()
        if strict and (problems := strict_problems(schema)):
            raise RequestError(f"The tool {called!r} cannot be strict: {problems[0]}", param="strict")
        return Tool(function, FunctionTool(called, about or None, schema, strict), arguments, reader.hidden, own)

    return make_tool if function is None else make_tool(function)


def _with_schema(name: str, about: str, parameters: object, strict: bool | None) -> FunctionTool:
    """A tool whose schema was given. Raises `RequestError` for an invalid one."""
    if not isinstance(parameters, Mapping):
        raise wrong("tool(parameters=…)", "a JSON Schema of an object", parameters)
    made = FunctionTool(name, about or None, dict(parameters), strict)
    check_parameters(made, "parameters")
    return made


def _check_options(options: ToolOptions) -> None:
    """Raises `RequestError` for what no option can be; else the first call would fail."""
    if not isinstance(options.approve, bool):
        what = "True, False or a function of the call"
        check_function("tool(approve=…)", options.approve, what, 1, may_take_none=True)
    for name in ("sequential", "repeatable", "deferred"):
        check_flag(f"tool({name}=…)", getattr(options, name))
    for name, kinds, what in (("timeout_s", int | float, "seconds"), ("result_chars", int, "a number of characters")):
        value = getattr(options, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds) or not value > 0):
            raise RequestError(f"tool({name}=…): expected {what}, more than 0, or None, got {value!r:.80}.", param=name)


def bind(given: Tool[..., R], /, **values: Any) -> Tool[..., R]:
    """The tool with some of its arguments fixed by the program: the model does not see them and cannot set them.

    For tools with a schema from outside, such as those of MCP servers. A value may be `Hidden` (taken from the run, by
    its name) or `From(f)`. Raises `RequestError` for a name that is no parameter.
    """
    if not isinstance(given, Tool) or given._arguments is not None or given.definition.custom is not None:
        raise RequestError(
            "bind is for tools whose schema was given. In a function of your own annotate the parameter as Hidden or "
            "From(…), or make a tool of functools.partial."
        )
    properties = dict(given.parameters.get("properties") or {})
    hidden = list(given.hidden)
    for name, value in values.items():
        if properties.pop(name, None) is None:
            raise RequestError(
                f"The tool {given.name!r} has no parameter {name!r}.{did_you_mean(name, properties)}", param=name
            )
        hidden.append(HiddenParameter(name, _source(value), is_optional=False))
    required = [name for name in given.parameters.get("required") or () if name not in values]
    schema = {**given.parameters, "properties": properties, "required": required}
    definition = msgspec.structs.replace(given.definition, parameters=schema)
    return Tool(given.function, definition, None, tuple(hidden), given.options)


def _source(value: Any) -> Literal["value"] | From:
    if value is Hidden:
        return "value"
    return value if isinstance(value, From) else From(lambda: value)


class _FunctionReader:
    """Reads a function's signature, annotations and docstring."""

    def __init__(self, function: Function, name: str, local_names: Mapping[str, Any], *, strict: bool) -> None:
        self._name = name
        self._types = Types(strict=strict)
        bound = function.keywords if isinstance(function, functools.partial) else {}
        try:
            found = inspect.signature(function).parameters
        except (TypeError, ValueError) as error:
            raise self._error(f"its parameters cannot be read: {error}") from error
        parameters = {name: one for name, one in found.items() if name not in bound}
        self._hints = self._evaluated(function, parameters, local_names)
        self.description, documented = read_docstring(_inner(function).__doc__)
        self._documented = documented
        if wrong := [name for name in documented if name not in found]:
            raise self._error(f"its docstring describes {wrong[0]!r}, which is not a parameter", wrong[0])
        self.hidden = tuple(hidden for one in parameters.values() if (hidden := self._hidden(one)))
        filled = {hidden.name for hidden in self.hidden}
        self._asked = [one for name, one in parameters.items() if name not in filled]
        if self._asked and self._asked[0].name in ("self", "cls") and self._asked[0].name not in self._hints:
            raise self._error("it is a method: make a tool of the bound one, tool(thing.method)")

    def arguments(self) -> tuple[Any, JsonObject]:
        """The object of the arguments: its type, and its schema."""
        fields: list[Field] = []
        rest: Any = None
        for one in self._asked:
            if one.kind is one.VAR_POSITIONAL:
                why = "the values of *args have no names. A decorator without functools.wraps is a common cause"
                raise self._error(why, one.name)
            is_optional = one.default is not one.empty
            try:
                type_ = self._types.of(
                    self._hints.get(one.name, Any),
                    is_optional=is_optional,
                    documented=self._documented.get(one.name, ""),
                    default=_default_text(one.default) if is_optional and one.default is not None else "",
                )
            except (TypeError, NameError) as error:
                raise self._error(str(error), one.name) from error
            if one.kind is one.VAR_KEYWORD:
                rest = type_
            else:
                fields.append(Field(one.name, one.name, type_, required=not is_optional))
        made = self._types.object(fields, dict, rest=rest)
        definitions = self._types.definitions
        return made, {**made.schema, **({"$defs": definitions} if definitions else {})}

    def check_custom(self) -> None:
        """Raises when the function does not take one text."""
        if [self._hints.get(one.name, str) for one in self._asked] != [str]:
            raise self._error("a custom tool takes one parameter, a str")

    def _hidden(self, one: inspect.Parameter) -> HiddenParameter | None:
        plain, notes = split_annotation(self._hints.get(one.name, Any))
        is_optional = one.default is not one.empty
        if plain is Context:
            return HiddenParameter(one.name, "context", is_optional)
        for note in notes:
            if note is Hidden or isinstance(note, Hidden):
                return HiddenParameter(one.name, "value", is_optional)
            if isinstance(note, From):
                return HiddenParameter(one.name, note, is_optional)
        return None

    def _evaluated(
        self, function: Function, parameters: Mapping[str, inspect.Parameter], local_names: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The annotations; strings are evaluated with the names in scope at the tool's definition."""
        inner = _inner(function)
        if not inspect.isroutine(inner):
            inner = type(inner).__call__
        wanted = inspect.unwrap(inner)
        try:
            return typing.get_type_hints(wanted, localns=dict(local_names), include_extras=True)
        except NameError as error:
            for name, one in parameters.items():
                if isinstance(one.annotation, str) and str(error.name) in one.annotation:
                    why = f"its annotation {one.annotation!r} cannot be evaluated: {error}"
                    raise self._error(why, name) from error
            own = {key: hint for key, hint in wanted.__annotations__.items() if key != "return"}
            if own == wanted.__annotations__:
                raise self._error(f"an annotation cannot be evaluated: {error}") from error
            globals_ = getattr(wanted, "__globals__", {})
            return typing.get_type_hints(_Annotated(own), globals_, dict(local_names), include_extras=True)

    def _error(self, why: str, parameter: str | None = None) -> RequestError:
        where = f", parameter {parameter!r}" if parameter else ""
        return RequestError(f"The tool {self._name!r}{where}: {why}.", param=parameter)


class _Annotated:
    """Placeholder for a function whose return annotation cannot be evaluated, and need not be."""

    def __init__(self, annotations: dict[str, Any]) -> None:
        self.__annotations__ = annotations


def _inner(function: Function) -> Function:
    """The function inside nested `partial` objects."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _default_text(default: object) -> str:
    """A default in words if it is a short JSON value, else empty."""
    try:
        text = encode(default).decode()
    except (TypeError, NotJsonError, RecursionError, OverflowError):
        return ""
    return f"(default: {text})" if len(text) <= _MAX_DEFAULT else ""
