"""The library: parse outputs, render prompts, write calls. Tools and messages are OpenAI's own dicts."""

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import msgspec

from callwright.calls.check import Check
from callwright.calls.history import as_readable
from callwright.calls.repair import repair_arguments
from callwright.calls.toolset import Toolset
from callwright.conversation import AssistantTurn, Call, ToolChoice
from callwright.dialects.auto import AUTO, AutoReader
from callwright.dialects.base import Dialect, dialect_names, get_dialect, read_options
from callwright.errors import RequestError, did_you_mean
from callwright.events import CallStarted, Event, FinishReason
from callwright.openai_format.errors import quote_list, wrong_type
from callwright.openai_format.messages import read_conversation
from callwright.openai_format.tool_catalog import read_tool_catalog
from callwright.openai_format.tool_choice import check_named, read_allowed_tools, read_tool_choice
from callwright.openai_format.tools import read_call, read_tools
from callwright.prompt import Prompt
from callwright.reading.collect import Turn, collect
from callwright.reading.parser import OutputParser, PassThrough, Reads
from callwright.schema import strict
from callwright.schema.typescript import declaration
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.tolerant_json.find import find_json
from callwright.tolerant_json.reader import read_json

__all__ = [
    "CheckMode",
    "NotJsonError",
    "Parser",
    "Start",
    "dialects",
    "loads",
    "parse",
    "render",
    "strict_problems",
    "typescript",
    "write",
]

Json: TypeAlias = Mapping[str, Any]
CheckMode = Literal["repair", "verbatim"]
Start = Literal["assistant", "reasoning", "message"]
_CHECKS: Final[tuple[str, ...]] = get_args(CheckMode)
_STARTS: Final[tuple[str, ...]] = get_args(Start)
_REASONS: Final[tuple[str, ...]] = get_args(FinishReason)


class Parser(OutputParser):
    """Parses one output of a model while it streams.

    `dialect` is the name of one, a `Dialect` of your own, or the `ResponseTemplate` of the model's checkpoint; `auto`
    holds the output to its end and finds the format by its markup.
    `tools` are function and custom tools in the Chat or the Responses shape, and namespaces of them; `tool_choice` is
    OpenAI's, in either shape. `start` is where the output begins, if not at the dialect's usual place: `assistant`,
    `reasoning` (the prompt left it open) or `message`. `check="verbatim"` repairs and validates nothing. With `trace`,
    `spans()` lists the part of each character.

    Raises `RequestError` for invalid arguments, and for text after the end. Model output never raises.
    """

    def __init__(
        self,
        dialect: str | Reads = AUTO,
        *,
        tools: Sequence[Json] | None = None,
        tool_choice: str | Json | None = None,
        parallel_tool_calls: bool = True,
        start: str | None = None,
        check: CheckMode = "repair",
        trace: bool = False,
    ) -> None:
        if start:
            _check_value(start, _STARTS, "start")
        _check_value(check, _CHECKS, "check")
        offer = read_tool_catalog(tools)
        ours, flat = offer.tools, offer.names.flat
        toolset = offer.toolset
        if tool_choice is not None or parallel_tool_calls is not True:
            choice: ToolChoice = "auto"
            allowed: tuple[str, ...] | None = None
            if tool_choice is not None:
                choice = read_tool_choice(tool_choice, (), flat=flat)
                check_named(choice, ours)
                allowed = read_allowed_tools(tool_choice, ours, flat=flat)
            toolset = Toolset(ours, choice, parallel=parallel_tool_calls, allowed=allowed)
        filter_ = PassThrough() if check == "verbatim" else Check(toolset)
        reads = _reader(dialect)
        super().__init__(reads, toolset, filter_, start or "assistant", trace=trace)
        self._names = offer.names
        self._renames = offer.renamed
        self._over = False

    def _read(self, text: str) -> list[Event]:
        if self._over or not isinstance(text, str):
            self._check_open("feed")
            raise wrong_type("text", "str", text)
        events = OutputParser._read(self, text)  # not super(): called for many pieces
        return self._with_client_names(events) if self._renames else events

    def finish(self, reason: FinishReason = "stop", last: str = "") -> list[Event]:
        """End the output: `stop` (the model ended it) or `length` (it was truncated). Returns the remaining events.

        `last`: the text not fed yet, which may be the whole output. Faster than `feed`: nothing waits for more input.
        """
        _check_value(reason, _REASONS, "finish_reason")
        self._check_open("finish")
        if not isinstance(last, str):
            raise wrong_type("last", "str", last)
        self._over = True
        events = OutputParser.finish(self, reason, last)
        return self._with_client_names(events) if self._renames else events

    def _with_client_names(self, events: list[Event]) -> list[Event]:
        """The events with the caller's names for its tools."""
        for number, event in enumerate(events):
            if isinstance(event, CallStarted):
                tool = self._names.client(event.name)
                if tool.name != event.name:
                    events[number] = msgspec.structs.replace(event, name=tool.name, namespace=tool.namespace)
        return events

    def _check_open(self, called: str) -> None:
        if self._over:
            raise RequestError(
                f"{called}() was called after finish(): a Parser reads one output. Create another for the next."
            )


def parse(
    output: str | Iterable[str],
    *,
    dialect: str | Reads = AUTO,
    tools: Sequence[Json] | None = None,
    tool_choice: str | Json | None = None,
    parallel_tool_calls: bool = True,
    finish_reason: FinishReason = "stop",
    start: str | None = None,
    check: CheckMode = "repair",
) -> Turn:
    """Parse a whole output, given as one string or in pieces; see `Parser` for the arguments."""
    parser = Parser(
        dialect,
        tools=tools,
        tool_choice=tool_choice,
        parallel_tool_calls=parallel_tool_calls,
        start=start,
        check=check,
    )
    if isinstance(output, str):
        return collect(parser.finish(finish_reason, output))
    if not isinstance(output, Iterable) or isinstance(output, bytes | Mapping):
        raise wrong_type("output", "str", output)
    events: list[Event] = []
    for piece in output:
        events += parser.feed(piece)
    return collect(events + parser.finish(finish_reason))


def render(
    messages: Sequence[Json],
    *,
    dialect: str | Dialect,
    tools: Sequence[Json] | None = None,
    tool_choice: str | Json | None = None,
    **options: object,
) -> Prompt:
    """The prompt for a raw completion endpoint. `options` are the dialect's own; a wrong one raises `RequestError`."""
    found = _dialect(dialect)
    return found.render(read_conversation(messages, tools, tool_choice), read_options(dialect, options))


def write(calls: Sequence[Json], *, dialect: str | Dialect, tools: Sequence[Json] | None = None) -> str:
    """These calls in the format of a model family: `{"name", "arguments"}` or OpenAI's tool calls, arguments as value
    or JSON. Broken JSON is repaired; raises `RequestError` for anything but an object.
    """
    read_tool_catalog(tools)
    if not isinstance(calls, list | tuple):
        raise wrong_type("calls", "array", calls)
    ours = [_readable(read_call(call, f"calls[{number}]"), number) for number, call in enumerate(calls)]
    return _dialect(dialect).write(AssistantTurn(calls=ours))


def _readable(call: Call, number: int) -> Call:
    read = as_readable(call)
    if isinstance(read, Call):
        return read
    where = f"calls[{number}].arguments"
    raise RequestError(
        f"Invalid value for {where!r}: expected an object, or JSON of one, got {call.arguments[:100]!r}.",
        code="invalid_value",
        param=where,
    )


def strict_problems(schema: Json) -> list[str]:
    """Why OpenAI would reject a schema with `strict: true`, in its words; empty if valid."""
    if not isinstance(schema, Mapping):
        raise wrong_type("schema", "object", schema)
    return strict.strict_problems(schema)


def loads(text: str, schema: Json | None = None) -> Any:
    """The value of a JSON text, parsed tolerantly: with a fence or prose around it, in another language's notation,
    with quotes, commas or closers missing, truncated at its end.

    Words without JSON are one string, also a sentence. Several values become a list. A JSON string with an object
    or a list in it becomes that object or list. With a `schema` the value is coerced if that is safe; the caller
    validates it. Raises `NotJsonError`, a `ValueError`, for a text without a value and for values nested too
    deeply.
    """
    try:
        value = _unquote_json(decode(text))
    except NotJsonError:
        nodes = find_json(text)
    else:
        node = read_json(text.strip()) if schema is not None else None
        if node is None:
            return value
        nodes = [node]
    if not nodes:
        raise NotJsonError("the text holds no value")
    made = [node if schema is None else repair_arguments(node, schema)[0] for node in nodes]
    return made[0].value(completed=True) if len(made) == 1 else [node.value(completed=True) for node in made]


def _unquote_json(value: Any) -> Any:
    """Decode a string that is JSON of an object or list; any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return decode(value)
        except NotJsonError:
            return value
    return value


def typescript(tool: Json) -> str:
    """One tool as Harmony's TypeScript: its comment lines and its `type … ;`."""
    (function,) = read_tools([tool])
    return declaration(function)


def dialects() -> tuple[str, ...]:
    """The names of all dialects."""
    return dialect_names()


def _reads(given: object) -> bool:
    """Whether an object parses outputs, as a `ResponseTemplate` does; classes and modules do not."""
    return hasattr(given, "parse") and not isinstance(given, type | ModuleType)


def _reader(given: object) -> Reads:
    if given == AUTO:
        return AutoReader()
    return cast(Reads, given) if not isinstance(given, str) and _reads(given) else _dialect(given)


def _dialect(name: object) -> Dialect:
    if isinstance(name, Dialect):
        return name
    if not isinstance(name, str):
        raise wrong_type("dialect", "str", name)
    return get_dialect(name)


def _check_value(given: object, known: tuple[str, ...], param: str) -> None:
    if given not in known:
        hint = did_you_mean(given, known) if isinstance(given, str) else ""
        raise RequestError(
            f"Invalid value for '{param}': {given!r}. Supported values are: {quote_list(known)}.{hint}",
            param=param,
            code="invalid_value",
        )
