"""The tools of one request: looked up by name, validated against, with the request's options for their use."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final

from callwright.calls.aliases import ParameterAliases, fold
from callwright.conversation import FunctionTool, ToolChoice
from callwright.schema.compiled import compiled_schema
from callwright.schema.keywords import properties, required
from callwright.schema.plain import tool_schema
from callwright.schema.validate import Fault, validator_of
from callwright.settings import bounds

NO_HINTS = ParameterAliases()
_NAME_OF = attrgetter("name")
# The most parameters that the message of a fault names, and JSON values in words.
_MAX_SHOWN: Final = 8
_JSON_NAMES: Final = {str: "a text", int: "a number", float: "a number", bool: "a boolean", list: "a list"}
# Namespaces that models put before a name, as they saw tools declared in them.
_NAMESPACES = ("functions.", "tools.", "function.", "default_api.")
# Tags and control tokens, also the begin of one; no name has any in it. Kimi's ids end in the number of the call.
_TOKENS: Final = re.compile(r"<[^<>]*>|\[/?[A-Z][A-Z_]*\]|<[^<>]*\Z")
_CALL_NUMBER: Final = re.compile(r":\d{1,6}\Z")
# The same id as clients return it to whom only letters, digits and joints are allowed; models copy it.
_SAFE_ID: Final = re.compile(r"functions[_-](.+)[_-]\d{1,6}").fullmatch
# Words after the name in a Harmony header.
_HEADER_WORDS: Final = frozenset(("analysis", "assistant", "code", "commentary", "final", "json"))


class _Spellings:
    """Tool names for a tolerant look-up: without case, white space and joints, and without the first of the parts that
    `__` joins, as in the name of an MCP tool (`mcp__server__tool`).
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._folded: dict[str, str | None] = {}  # None if two tools have the same folded name
        self._tails: dict[str, str | None] = {}  # the same for names without their first parts
        for name in names:
            folded = fold(name)
            self._folded[folded] = None if folded in self._folded else name
            tail = name
            while tail := tail.partition("__")[2]:
                if folded := fold(tail):
                    self._tails[folded] = None if folded in self._tails else name

    def find(self, name: str) -> str | None:
        """The only tool that this name may mean; None if no tool or several match."""
        bare = fold(next((name.removeprefix(prefix) for prefix in _NAMESPACES if name.startswith(prefix)), name))
        return self._folded.get(bare) or (None if bare in self._folded else self._tails.get(bare))


class Toolset:
    """The tools of one request, by name: `ordered` as in the request, `names` likewise.

    `choice` and `parallel` are its `tool_choice` and `parallel_tool_calls`; `allowed` are the names that may be called,
    None for all. `hints` are aliases that models use. `infer_bare_arguments`: an object without a name may be a call,
    if it fits one tool. `is_text` returns whether a possible call is only text, such as one that a message shows.

    Of two tools with one name the first counts; the gateway refuses such requests before.
    """

    __slots__ = (
        "_spellings",
        "_tools",
        "allowed",
        "choice",
        "hints",
        "infer_bare_arguments",
        "is_text",
        "max_parameters",
        "names",
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
        is_text: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.ordered = tuple(tools)
        self.choice = choice
        self.parallel = parallel
        self.hints = hints
        self.infer_bare_arguments = infer_bare_arguments
        self.is_text = is_text
        self.max_parameters = bounds.MAX_PARAMETERS
        self.allowed = None if allowed is None else frozenset(allowed)
        self.names: tuple[str, ...] = tuple(map(_NAME_OF, self.ordered))
        self._tools = dict(zip(reversed(self.names), reversed(self.ordered), strict=True))
        self._spellings: _Spellings | None = None

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[FunctionTool]:
        return iter(self.ordered)

    def __len__(self) -> int:
        return len(self.ordered)

    def get(self, name: str) -> FunctionTool | None:
        """The tool of exactly this name."""
        return self._tools.get(name)

    def resolve_name(self, written: str) -> str:
        """The tool name that the model means: as written, without a namespace before it (`functions.get_time`) or
        tokens of a format around it (`get_time<|channel|>commentary`, `get_time:0`, `clock:mcp:get_time`), in another
        spelling (`getTime`), or without the `mcp__server__` of an MCP tool, or a part of it. Any other name is answered
        as it is.
        """
        name = written.strip().removesuffix("()").strip()
        if name not in self._tools:
            if bare := self._without_tokens(name)[0]:
                return bare
            if self._spellings is None:
                self._spellings = _Spellings(self._tools)
            return self._spellings.find(name) or name
        return name

    def words_behind(self, written: str) -> str:
        """The words after a name that was written with tokens of a format; they may be arguments."""
        return "" if written in self._tools else self._without_tokens(written.strip())[1]

    def _without_tokens(self, written: str) -> tuple[str, str]:
        """The tool of exactly this name, without a namespace and tokens of a format around it, and the words after
        it; empty texts if no tool matches.
        """
        parts = _TOKENS.split(written) if "<" in written or "[" in written else [written]
        first, *others = list(filter(None, map(str.strip, parts))) or [""]
        numberless = _CALL_NUMBER.sub("", first)
        is_id = _SAFE_ID(first)
        for name in (
            *(first, numberless, numberless.rpartition(":")[2], is_id.group(1) if is_id else first),
            first.removesuffix(".call"),  # as Llama 3.1 calls its built-in tools
        ):
            for prefix in ("", *_NAMESPACES):
                if (bare := name.removeprefix(prefix)) in self._tools:
                    words = [word for part in others for word in part.split() if word not in _HEADER_WORDS]
                    return bare, " ".join(words)
        return "", ""

    def is_respelled(self, written: str, name: str) -> bool:
        """Whether `written` is another spelling of `name`. A namespace before the name does not count as one."""
        return written.strip() != name and not written.strip().endswith(f".{name}")

    def requires_something(self, name: str) -> bool:
        """Whether the tool cannot be called without arguments: its schema refuses the empty object. If the schema does
        not compile, a required parameter at its top level decides.
        """
        tool = self.get(name)
        return tool is not None and bool(required(tool_schema(tool)) or self.faults(name, {}))

    def accepts_nothing(self, name: str) -> bool:
        """Whether the tool may be called without any argument: its schema accepts the empty object."""
        return name in self._tools and not self.requires_something(name)

    def takes_nothing(self, name: str) -> bool:
        """Whether the tool declares no parameter."""
        tool = self.get(name)
        return tool is not None and not properties(tool_schema(tool))

    def faults(self, name: str, arguments: object) -> list[Fault]:
        """The violations of the tool's schema in the arguments; a tool without a schema accepts any object."""
        if not isinstance(arguments, dict):
            return [
                Fault("$", f"expected an object{self._shape(name)}, got {_JSON_NAMES.get(type(arguments), 'null')}")
            ]
        validator = compiled_schema(self._tools.get(name)).validator
        return validator.faults(arguments) if validator is not None else []

    def _shape(self, name: str) -> str:
        """The form of a tool's arguments in words, for a model that has written something else: the parameters that it
        requires, or the first ones.
        """
        tool = self.get(name)
        schema = tool_schema(tool) if tool else None
        keys = required(schema or {}) or list(properties(schema or {}))
        return f" with {', '.join(map(repr, keys[:_MAX_SHOWN]))}" if keys else ""

    def names_in(self, name: str) -> frozenset[str]:
        """The names of all members that the schema of a tool declares, at whatever depth."""
        return compiled_schema(self._tools.get(name)).names

    def unusable_schema(self, name: str) -> str:
        """Why no validator can read the tool's schema, so that nothing is checked; empty if one can."""
        validator = compiled_schema(self._tools.get(name)).validator
        return validator.unread if validator is not None else ""

    def fitting(self, arguments: object) -> list[str]:
        """The names of the tools that declare every key of `arguments` and accept them unchanged.

        This finds a call whose name was lost, so a schema that is open to any key does not make an unknown one fit.
        """
        if not isinstance(arguments, dict):
            return []
        return [
            tool.name
            for tool in self.ordered
            if (schema := tool_schema(tool))
            and arguments.keys() <= properties(schema).keys()
            and validator_of(schema).is_valid(arguments)
        ]

    def declares(self, key: str) -> bool:
        """Whether any tool has a parameter of this name."""
        return any(key in properties(tool_schema(tool)) for tool in self.ordered)
