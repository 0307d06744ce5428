"""The tools of one request: by name, what their schemas accept, and what the request says about their use."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from callwright.calls.aliases import ParameterAliases, fold
from callwright.conversation import FunctionTool, ToolChoice
from callwright.schema.keywords import properties, required
from callwright.schema.validate import Fault, Validator, is_valid, validator_of

__all__ = ["Toolset"]


NO_HINTS = ParameterAliases()
# Where models have seen their tools live.
_NAMESPACES = ("functions.", "tools.", "function.", "default_api.")


class _Spellings:
    """Names without what models change in them: case, blanks, joints, a `server__` before them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._folded: dict[str, str | None] = {}  # None where two tools have the same fold
        self._tails: dict[str, str | None] = {}  # the same for what stands behind a `server__`
        for name in names:
            folded = fold(name)
            self._folded[folded] = None if folded in self._folded else name
            _, joint, tail = name.rpartition("__")
            if joint and tail:
                folded = fold(tail)
                self._tails[folded] = None if folded in self._tails else name

    def find(self, name: str) -> str | None:
        """The one offered name that this may be."""
        bare = fold(next((name.removeprefix(prefix) for prefix in _NAMESPACES if name.startswith(prefix)), name))
        return self._folded.get(bare) or (None if bare in self._folded else self._tails.get(bare))


class Toolset:
    """Tools by name. `allowed` are the names of those that may be called, None = all; `hints` help to read what models
    call things. `infer_bare_arguments`: a bare object may be the arguments of a call whose name was left out.

    Of two tools with one name the first counts; the wire refuses such requests before.
    """

    __slots__ = (
        "_spellings",
        "_tools",
        "_validators",
        "allowed",
        "choice",
        "hints",
        "infer_bare_arguments",
        "ordered",
        "parallel",
    )

    def __init__(
        self,
        tools: Sequence[FunctionTool] = (),
        choice: ToolChoice = "auto",
        *,
        parallel: bool = True,
        allowed: Collection[str] | None = None,
        hints: ParameterAliases = NO_HINTS,
        infer_bare_arguments: bool = True,
    ) -> None:
        self.ordered = tuple(tools)
        self.choice = choice
        self.parallel = parallel
        self.hints = hints
        self.infer_bare_arguments = infer_bare_arguments
        self.allowed = None if allowed is None else frozenset(allowed)
        self._tools = {tool.name: tool for tool in reversed(self.ordered)}
        self._spellings: _Spellings | None = None
        self._validators: dict[str, Validator] = {}

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
        return tuple([tool.name for tool in self.ordered])

    def resolve_name(self, written: str) -> str:
        """The offered name that a written one means: exact, behind a namespace that models put before it, in another
        spelling of words, or without the `server__` before it, if that hits one tool. Any other name stays as it is.
        """
        name = written.strip().removesuffix("()").strip()
        if name not in self._tools:
            for prefix in _NAMESPACES:
                if name.removeprefix(prefix) in self._tools:
                    return name.removeprefix(prefix)
            if self._spellings is None:
                self._spellings = _Spellings(self._tools)
            return self._spellings.find(name) or name
        return name

    def is_respelled(self, written: str, name: str) -> bool:
        """Whether a written name is the offered one in another spelling; a namespace before it is none."""
        return written.strip() != name and not written.strip().endswith(f".{name}")

    def requires_something(self, name: str) -> bool:
        """Whether the tool has a parameter that must be given."""
        tool = self.get(name)
        return tool is not None and bool(required(tool.parameters))

    def takes_nothing(self, name: str) -> bool:
        """Whether the tool has no parameter at all."""
        tool = self.get(name)
        return tool is not None and not properties(tool.parameters)

    def faults(self, name: str, arguments: object) -> list[Fault]:
        """Where these arguments do not fit the tool's schema; a tool without a schema takes any object."""
        if not isinstance(arguments, dict):
            return [Fault("$", f"expected an object, got {type(arguments).__name__}")]
        validator = self._validators.get(name) or self._validator(name)
        return validator.faults(arguments) if validator is not None else []

    def unusable_schema(self, name: str) -> str:
        """Why the tool's schema checks nothing, as no validator can read it; empty where it does."""
        validator = self._validators.get(name) or self._validator(name)
        return validator.unread if validator is not None else ""

    def _validator(self, name: str) -> Validator | None:
        tool = self._tools.get(name)
        if tool is None or not tool.parameters:
            return None
        found = self._validators[name] = validator_of(tool.parameters)
        return found

    def fitting(self, arguments: object) -> list[str]:
        """The names of the tools that declare every key of `arguments` and accept them as they are.

        This is how a call is found whose name was lost, so an open schema does not make an unknown key fit.
        """
        if not isinstance(arguments, dict):
            return []
        return [
            tool.name
            for tool in self.ordered
            if tool.parameters
            and arguments.keys() <= properties(tool.parameters).keys()
            and is_valid(tool.parameters, arguments)
        ]

    def declares(self, key: str) -> bool:
        """Whether any tool has a parameter of this name."""
        return any(key in properties(tool.parameters) for tool in self.ordered)
