"""The tools of one request: by name, what their schemas accept, and what the request says about their use."""

from collections.abc import Iterator, Sequence

from toolwright.conversation import FunctionTool, ToolChoice
from toolwright.schema import validate
from toolwright.schema.keywords import properties, required

__all__ = ["Toolset"]


# Where models have seen their tools live.
_NAMESPACES = ("functions.", "tools.", "function.", "default_api.")


class Toolset:
    """Tools by name. Of two tools with one name the first counts; the wire refuses such requests before."""

    __slots__ = ("_tools", "choice", "ordered", "parallel")

    def __init__(
        self, tools: Sequence[FunctionTool] = (), choice: ToolChoice = "auto", *, parallel: bool = True
    ) -> None:
        self.ordered = tuple(tools)
        self.choice = choice
        self.parallel = parallel
        self._tools = {tool.name: tool for tool in reversed(self.ordered)}

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[FunctionTool]:
        return iter(self.ordered)

    def __len__(self) -> int:
        return len(self.ordered)

    def get(self, name: str) -> FunctionTool | None:
        """The tool of exactly this name."""
        return self._tools.get(name)

    def names(self) -> tuple[str, ...]:
        """The names, in the order of the request."""
        return tuple(tool.name for tool in self.ordered)

    def resolve(self, written: str) -> str:
        """The offered name that a written one means: exact, or behind a namespace that models put before it."""
        name = written.strip()
        if name not in self._tools:
            for prefix in _NAMESPACES:
                if name.removeprefix(prefix) in self._tools:
                    return name.removeprefix(prefix)
        return name

    def requires_something(self, name: str) -> bool:
        """Whether the tool has a parameter that must be given."""
        tool = self.get(name)
        return tool is not None and bool(required(tool.parameters))

    def takes_nothing(self, name: str) -> bool:
        """Whether the tool has no parameter at all."""
        tool = self.get(name)
        return tool is not None and not properties(tool.parameters)

    def faults(self, name: str, arguments: object) -> list[validate.Fault]:
        """Where these arguments do not fit the tool's schema; a tool without a schema takes any object."""
        tool = self.get(name)
        if not isinstance(arguments, dict):
            return [validate.Fault("$", f"expected an object, got {type(arguments).__name__}")]
        if tool is None or not tool.parameters:
            return []
        return validate.faults(tool.parameters, arguments)

    def fitting(self, arguments: object) -> list[str]:
        """The names of the tools that declare every key of `arguments` and accept them.

        This is how a call is found whose name was lost, so an open schema does not make an unknown key fit.
        """
        if not isinstance(arguments, dict):
            return []
        return [
            tool.name
            for tool in self.ordered
            if tool.parameters
            and arguments.keys() <= properties(tool.parameters).keys()
            and validate.is_valid(tool.parameters, arguments)
        ]

    def declares(self, key: str) -> bool:
        """Whether any tool has a parameter of this name."""
        return any(key in properties(tool.parameters) for tool in self.ordered)
