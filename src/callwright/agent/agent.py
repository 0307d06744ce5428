"""Agents: a model, tools, instructions and limits, validated when they are created."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Required, TypeAlias, TypedDict, Unpack, overload

import msgspec
from msgspec import Struct

from callwright.agent.annotations import Context, Failed, Result
from callwright.agent.given import check_flag, check_function, check_json, check_listed, check_text, in_words, wrong
from callwright.agent.hooks import Hooks
from callwright.agent.output import FINAL_TOOL, Output, OutputWay, Way, chosen_way
from callwright.agent.tools import Approve, LiveTools, Tool, ToolOptions, tool
from callwright.calls.tool_search import SEARCH_TOOL, found_words, search_tools
from callwright.conversation import FunctionTool, NamedTool
from callwright.errors import ConfigError, RequestError, did_you_mean
from callwright.openai_format.tool_choice import check_named, read_allowed_tools, read_tool_choice
from callwright.turn.model import SIMULATED, Model
from callwright.wire.chat.request import CONSUMED
from callwright.wire.pass_rules import KNOWN_FIELDS

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=str)
else:
    from typing import TypeVar

    T = TypeVar("T")


# How an exception in a tool is handled: the model reads that the call failed, the run raises it, or a function returns
# a text for the model.
OnError: TypeAlias = Literal["tell", "raise"] | Callable[[Exception], str]


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of a run; None = unlimited.

    `turns` are requests to the model, `calls` those of tools, checked before each batch: all of it or none. `seconds`
    and `tokens` count the whole run. A tool with invalid calls, or one that raises `Retry`, gets `retries_per_tool`
    more turns in a row; after `failures` turns in a row in which all calls fail the run ends, and after the same call
    for the `repeats`-th time. `parallel` calls run together, each for `tool_timeout_s` at most; the model reads
    `result_chars` characters of each result.
    """

    turns: int = 20
    calls: int | None = 100
    seconds: float | None = None
    tokens: int | None = None
    retries_per_tool: int = 2
    repeats: int | None = 3
    failures: int | None = 5
    parallel: int = 8
    result_chars: int = 60_000
    tool_timeout_s: float | None = 60.0


class _Settings(TypedDict, total=False):
    """The parameters of an agent for type checkers, without `output_type`."""

    model: Required[Model | str]
    name: str
    tools: Sequence[Callable[..., Any] | LiveTools]
    instructions: str | Callable[..., Any]
    output: OutputWay
    tool_choice: str | Mapping[str, Any]
    parallel_tool_calls: bool
    limits: Limits | None
    on_error: OnError
    fields: Mapping[str, Any] | None
    description: str
    handoffs: "Sequence[Agent[Any]]"
    hooks: Sequence[Hooks]


class Agent(Generic[T]):
    """A model with tools.

    `model` is a result of `callwright.connect`, `"simulated"` (or one of its other names), or `URL#name`.
    `tools` are functions, with or without `callwright.tool`, and lists from `mcp_tools`. The model searches for
    deferred ones with one more tool, `tool_search`. `tool_choice` is OpenAI's, or the name of a tool; a forced one
    applies until a call was made. `instructions` may be a function, called once at the start of each run, with the
    `RunContext` if it takes one; it may be async. `output_type` is the type of the answer: a type of a tool's
    parameter, or a JSON schema; `output` selects how the model is asked for it. `fields` are sent with each request to
    the model (`temperature`, …). `name` and `description` are for other agents and for traces. `handoffs` are agents
    that the model may transfer the conversation to; `hooks` are called before and after model and tools. Raises
    `RequestError` or `ConfigError` for invalid arguments.
    """

    @overload
    def __init__(self: "Agent[str]", **settings: Unpack[_Settings]) -> None: ...
    @overload
    def __init__(self: "Agent[T]", *, output_type: type[T], **settings: Unpack[_Settings]) -> None: ...
    @overload
    def __init__(self: "Agent[Any]", *, output_type: Any, **settings: Unpack[_Settings]) -> None: ...
    def __init__(
        self,
        *,
        model: Model | str,
        name: str = "",
        tools: Sequence[Callable[..., Any] | LiveTools] = (),
        instructions: str | Callable[..., Any] = "",
        output_type: Any = str,
        output: OutputWay = "auto",
        tool_choice: str | Mapping[str, Any] = "auto",
        parallel_tool_calls: bool = True,
        limits: Limits | None = None,
        on_error: OnError = "tell",
        fields: Mapping[str, Any] | None = None,
        description: str = "",
        handoffs: "Sequence[Agent[Any]]" = (),
        hooks: Sequence[Hooks] = (),
    ) -> None:
        check_text("Agent(name=…)", name)
        check_text("Agent(description=…)", description)
        check_flag("Agent(parallel_tool_calls=…)", parallel_tool_calls)
        self.model = model
        self.name = name
        self.description = description
        tools = check_listed("Agent(tools=…)", tools, "functions")
        handoffs = check_listed("Agent(handoffs=…)", handoffs, "agents", Agent)
        self.hooks = tuple(check_listed("Agent(hooks=…)", hooks, "Hooks", Hooks))
        self.handoffs: dict[str, Agent[Any]] = {}  # by the tool that makes them
        self._live = [one for one in (tools, *tools) if isinstance(one, LiveTools)]
        self.tools = _by_name(_flat(tools))
        self._with_search()
        self._with_handoffs(handoffs)
        if not isinstance(instructions, str):
            what = "a text, or a function that gives one and takes the RunContext or nothing"
            check_function("Agent(instructions=…)", instructions, what, 1, may_take_none=True)
        self.instructions = instructions
        self.output = None if output_type in (str, None) else Output(output_type)
        self.output_way = output
        chosen_way(output, "native", has_tools=False, takes_choice=True)  # raises for an unknown way
        self.limits = _checked(Limits() if limits is None else limits)
        self.on_error = _checked_on_error(on_error)
        self.fields = _checked_fields({} if fields is None else fields)
        self.parallel_tool_calls = parallel_tool_calls
        self._take_choice(tool_choice)
        _check_model(model)

    def _take_choice(self, tool_choice: object) -> None:
        """Read OpenAI's `tool_choice`, or the name of a tool."""
        definitions = tuple(one.definition for one in self.tools.values())
        if not isinstance(tool_choice, str | Mapping):
            raise wrong("Agent(tool_choice=…)", "'auto', the name of a tool or another choice of OpenAI's", tool_choice)
        if isinstance(tool_choice, str) and tool_choice in self.tools:
            tool_choice = {"type": "function", "function": {"name": tool_choice}}
        choice = read_tool_choice(tool_choice, definitions)
        check_named(choice, definitions)
        self.tool_choice = choice if definitions else "none"
        self.allowed_tools = read_allowed_tools(tool_choice, definitions)
        if not definitions and (choice == "required" or isinstance(choice, NamedTool)):
            raise RequestError("Invalid value for 'tool_choice': the agent has no tools.", param="tool_choice")

    def definitions(self, found: Iterable[str] = ()) -> tuple[FunctionTool, ...]:
        """The tool definitions for the model: those not deferred, in their order, then those it `found`."""
        shown = [one for one in self.tools.values() if not one.options.deferred]
        return tuple(one.definition for one in (*shown, *(self.tools[name] for name in found)))

    def take_new_tools(self) -> None:
        """Add new tools of MCP servers, after the others."""
        for one in [one for live in self._live for one in live]:
            self.tools.setdefault(one.name, one)

    def search(self, query: str) -> list[str]:
        """The names of the deferred tools that fit a query, the best first."""
        deferred = [one.definition for one in self.tools.values() if one.options.deferred]
        return [found.name for found in search_tools(deferred, query)]

    def way(self, model: Model) -> Way:
        """The way to ask this model for the answer."""
        has_tools = bool(self.tools) and self.tool_choice != "none"
        return chosen_way(self.output_way, model.mode, has_tools=has_tools, takes_choice=model.supports_tool_choice)

    def as_tool(
        self, name: str | None = None, description: str | None = None, *, approve: Approve = False
    ) -> Tool[..., Any]:
        """A tool whose calls are runs of this agent: the model gives a `request` in words, and reads the answer.

        Its usage counts for the calling run, whose limits apply. Its events are `NestedEvent`s, and its calls may need
        a person's approval, too. Raises `RequestError` if the name or the description is missing.
        """
        called, about = name or self.name, description or self.description
        if not called or not about:
            raise RequestError(
                "An agent that is a tool needs a name and a description: Agent(name=…, description=…), or as_tool(…)."
            )

        async def function(request: str, context: Context) -> Result:
            result = await context.run(self, request)
            if result.stop != "completed":
                raise Failed(f"{called} did not come to an answer ({result.stop}): {result.detail}")
            is_text = self.output is None
            return Result(result.text) if is_text else Result(data=result.output)

        made = tool(function, name=_tool_name(called), description=about, approve=approve, timeout_s=float("inf"))
        made.agent = self
        return made

    def member(self, name: str) -> "Agent[Any]":
        """The agent of the team with this name; with an empty name this agent. Raises `RequestError` if unknown."""
        found = self.reachable(name) if name else self
        if found is None:
            raise RequestError(
                f"The agent {name!r} has this conversation, and the agent {self.name!r} that was given reaches none "
                "of this name. Continue with the agent that the run began with, with the same handoffs."
            )
        return found

    def reachable(self, name: str) -> "Agent[Any] | None":
        """The agent of this name among those that the conversation can be handed to; this one, too."""
        return next((one for one in self.team() if one.name == name), None)

    def team(self) -> "list[Agent[Any]]":
        """This agent, and all that the conversation can be handed to from it."""
        found: list[Agent[Any]] = [self]
        for one in found:
            found += [other for other in one.handoffs.values() if other not in found]
        return found

    def everyone(self) -> "list[Agent[Any]]":
        """Its team, and the agents that are tools in it, with theirs."""
        found: list[Agent[Any]] = [self]
        for one in found:
            as_tools = [made.agent for made in one.tools.values() if made.agent is not None]
            found += [other for other in (*one.handoffs.values(), *as_tools) if other not in found]
        return found

    def add_handoffs(self, *agents: "Agent[Any]") -> None:
        """Let the model transfer the conversation to these too; for agents that transfer to each other."""
        if not self.tools:
            self.tool_choice = "auto"  # without tools it was "none"
        self._with_handoffs(agents)

    def _with_handoffs(self, agents: "Iterable[Agent[Any]]") -> None:
        """A tool for each agent that the conversation can be handed to."""
        for agent in agents:
            if not agent.name:
                why = "An agent that is handed a conversation needs a name: Agent(name=…)."
                raise RequestError(why, param="handoffs")
            name = f"transfer_to_{_tool_name(agent.name)}"
            if name in self.tools:
                raise RequestError(f"Two tools are called {name!r}.", param="handoffs")
            about = f"Hand the conversation to {agent.name}. {agent.description}".strip()
            definition = FunctionTool(name, about, {"type": "object", "properties": {}})
            words = f"{agent.name} has the conversation now."
            made: Tool[..., Any] = Tool(partial(str, words), definition, None, (), ToolOptions(repeatable=True))
            self.tools[name] = made
            self.handoffs[name] = agent
        check_team(self)

    def _with_search(self) -> None:
        """Add the search tool if a tool is deferred."""
        if not any(one.options.deferred for one in self.tools.values()):
            return
        if SEARCH_TOOL.name in self.tools:
            raise RequestError(f"{SEARCH_TOOL.name!r} is the search for deferred tools: call this tool otherwise.")

        def search(query: str) -> str:
            return found_words(self.search(query))

        self.tools[SEARCH_TOOL.name] = Tool(search, SEARCH_TOOL, None, (), ToolOptions(repeatable=True))


def check_team(agent: Agent[Any]) -> None:
    """Raises `RequestError` if the conversation can be handed to two agents of the same name: a run that waits for a
    person finds its agent by name.
    """
    names: set[str] = set()
    for one in agent.team():
        if one.name in names:
            raise RequestError(
                f"Two agents that the conversation can be handed to are called {one.name!r}. Give each a name of its "
                "own: Agent(name=…).",
                param="handoffs",
            )
        names.add(one.name)


def _flat(tools: Iterable[Any]) -> list[Any]:
    """The tools, with those of nested lists."""
    return [one for given in tools for one in (given if isinstance(given, LiveTools) else [given])]


def _by_name(functions: Iterable[Callable[..., Any]]) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for number, function in enumerate(functions):
        if not callable(function) or function is Agent:
            is_agent = function is Agent or isinstance(function, Agent)
            instead = " For an agent write agent.as_tool(), or handoffs=[agent]." if is_agent else ""
            raise RequestError(
                "Agent(tools=…): expected functions, or what callwright.tool makes of them, got "
                f"{in_words(function)}.{instead}",
                param=f"tools[{number}]",
            )
        made = function if isinstance(function, Tool) else tool(function)
        if made.name == FINAL_TOOL:
            raise RequestError(f"{FINAL_TOOL!r} is the call of the answer: call this tool otherwise.")
        if made.name in found:
            raise RequestError(f"Two tools are called {made.name!r}.", param=f"tools[{number}]")
        found[made.name] = made
    return found


def _tool_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name.strip())[:48]


def _checked_on_error(on_error: OnError) -> OnError:
    if on_error not in ("tell", "raise"):
        what = "'tell', 'raise' or a function of the exception that gives a text"
        check_function("Agent(on_error=…)", on_error, what, 1)
        if inspect.iscoroutinefunction(on_error):
            raise RequestError(f"Agent(on_error=…): expected {what}, got an async one.", param="on_error")
    return on_error


def _check_model(model: object) -> None:
    is_url = isinstance(model, str) and model.startswith("http") and bool(model.partition("#")[2])
    is_simulated = isinstance(model, str) and model in SIMULATED
    if not isinstance(model, Model) and not is_simulated and not is_url:
        raise ConfigError(
            f"Unknown model {model!r}. Expected {', '.join(map(repr, SIMULATED))}, what "
            "callwright.connect('http://localhost:8000/v1', 'name') gives, or the two in one text, URL#name."
        )


def _checked_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Validated fields of the request. Unknown ones are forwarded, too: each server has its own."""
    check_json("Agent(fields=…)", fields)
    for name in fields:
        param = f"fields.{name}"
        if name in CONSUMED:
            instead = f"Agent({name}=…)" if name in ("model", "tools", "tool_choice", "parallel_tool_calls") else ""
            instead = "Agent(output_type=…)" if name == "response_format" else instead
            way_out = f"Use {instead}." if instead else "The run sets it itself: leave it out."
            raise RequestError(f"{name!r} cannot be among `fields`. {way_out}", param=param)
        if name not in KNOWN_FIELDS and (near := did_you_mean(name, KNOWN_FIELDS)):
            raise RequestError(f"No model server is known to have a field {name!r}.{near}", param=param)
    return dict(fields)


def _checked(limits: Limits) -> Limits:
    if not isinstance(limits, Limits):
        raise ConfigError(f"Agent(limits=…): expected Limits(…), got {type(limits).__name__}.")
    for name in limits.__struct_fields__:
        value = getattr(limits, name)
        least = 0 if name == "retries_per_tool" else 1 if isinstance(value, int) else 1e-9
        try:
            msgspec.convert(value, Limits.__annotations__[name])
        except msgspec.ValidationError as error:
            raise ConfigError(f"limits.{name}: {str(error)[:1].lower()}{str(error)[1:]}.") from error
        if value is not None and not value >= least:
            raise ConfigError(f"limits.{name}: expected more than {'-1' if least == 0 else '0'}, got {value!r}.")
    return limits
