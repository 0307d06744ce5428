"""What an agent is: a model, tools, instructions and limits. Values, checked when they are made."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from callwright.agent.tools import Tool, ToolOptions, tool
from callwright.calls.tool_search import SEARCH_TOOL, found_words, search_tools
from callwright.conversation import FunctionTool, NamedTool
from callwright.errors import ConfigError, RequestError
from callwright.openai_format.tool_choice import check_named, read_allowed_tools, read_tool_choice
from callwright.turn.model import SIMULATED, Model

__all__ = ["Agent", "Limits", "OnError"]

# What becomes of an exception in a tool: the model hears that it failed, the run raises it, or a function says in words
# for the model why it failed.
OnError: TypeAlias = Literal["tell", "raise"] | Callable[[Exception], str]


class Limits(Struct, frozen=True, kw_only=True):
    """What a run may use; None = any amount.

    `turns` are requests to the model, `calls` those of tools, checked before each batch: all of it or none. `seconds`
    and `tokens` count the whole run. A tool whose calls do not hold, or that raises `Retry`, gets `retries_per_tool`
    more turns in a row; after `failures` turns in a row in which all calls fail the run ends, and where the same call
    comes for the `repeats`-th time. `parallel` calls run at once, each for `tool_timeout_s` at most; the model reads
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


class Agent:
    """A model with tools.

    `model` is a `callwright.turn.run.Model`, `"simulated"` (or one of its other names), or `URL#name` for a chat
    endpoint that reads calls itself.
    `tools` are functions, with or without `callwright.tool`. Of those that are deferred the model learns when it
    searches for them: it gets one more tool, `tool_search`. `tool_choice` is OpenAI's, or the name of a tool; a forced
    one holds until a call was made. `fields` go into each request to the model (`temperature`, …). `name` is for who
    reads traces. Raises
    `RequestError` or `ConfigError` for what cannot be.
    """

    def __init__(
        self,
        *,
        model: Model | str,
        name: str = "",
        tools: Sequence[Callable[..., Any]] = (),
        instructions: str = "",
        tool_choice: str | Mapping[str, Any] = "auto",
        parallel_tool_calls: bool = True,
        limits: Limits | None = None,
        on_error: OnError = "tell",
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.name = name
        self.tools = _by_name(tools)
        self._with_search()
        self.instructions = instructions
        self.limits = Limits() if limits is None else limits
        self.on_error = on_error
        self.fields = dict(fields or {})
        self.parallel_tool_calls = parallel_tool_calls
        definitions = tuple(one.definition for one in self.tools.values())
        if isinstance(tool_choice, str) and tool_choice in self.tools:
            tool_choice = {"type": "function", "function": {"name": tool_choice}}
        choice = read_tool_choice(tool_choice, definitions)
        check_named(choice, definitions)
        self.tool_choice = choice if definitions else "none"
        self.allowed_tools = read_allowed_tools(tool_choice, definitions)
        if not definitions and (choice == "required" or isinstance(choice, NamedTool)):
            raise RequestError("Invalid value for 'tool_choice': the agent has no tools.", param="tool_choice")
        _check(self.limits)
        is_url = isinstance(model, str) and model.startswith("http") and bool(model.partition("#")[2])
        if not isinstance(model, Model) and model not in SIMULATED and not is_url:
            raise ConfigError(
                f"Unknown model {model!r}. Expected {', '.join(map(repr, SIMULATED))}, a URL with the model's name "
                "behind a # (http://localhost:8000/v1#name), or a callwright.turn.run.Model."
            )

    def definitions(self, found: Iterable[str] = ()) -> tuple[FunctionTool, ...]:
        """What the model is told of the tools: in their order those that are not deferred, then those it `found`."""
        shown = [one for one in self.tools.values() if not one.options.deferred]
        return tuple(one.definition for one in (*shown, *(self.tools[name] for name in found)))

    def search(self, query: str) -> list[str]:
        """The names of the deferred tools that fit a query, the best first."""
        deferred = [one.definition for one in self.tools.values() if one.options.deferred]
        return [found.name for found in search_tools(deferred, query)]

    def _with_search(self) -> None:
        """Give the model a search, where something is deferred."""
        if not any(one.options.deferred for one in self.tools.values()):
            return
        if SEARCH_TOOL.name in self.tools:
            raise RequestError(f"{SEARCH_TOOL.name!r} is the search for deferred tools: call this tool otherwise.")

        def search(query: str) -> str:
            return found_words(self.search(query))

        self.tools[SEARCH_TOOL.name] = Tool(search, SEARCH_TOOL, None, (), ToolOptions(repeatable=True))


def _by_name(functions: Iterable[Callable[..., Any]]) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for number, function in enumerate(functions):
        if not callable(function):
            raise RequestError(f"Expected a function, got {type(function).__name__}.", param=f"tools[{number}]")
        made = function if isinstance(function, Tool) else tool(function)
        if made.name in found:
            raise RequestError(f"Two tools are called {made.name!r}.", param=f"tools[{number}]")
        found[made.name] = made
    return found


def _check(limits: Limits) -> None:
    for name in limits.__struct_fields__:
        value = getattr(limits, name)
        least = 0 if name == "retries_per_tool" else 1 if isinstance(value, int) else 1e-9
        if value is not None and value < least:
            raise ConfigError(f"limits.{name}: expected more than {'-1' if least == 0 else '0'}, got {value!r}.")
