"""What is done to one row, and to a batch of them. A row is a JSON object; what was found goes into further fields.

| operation | reads | adds |
|---|---|---|
| `parse` | `output`, the text of a model | `message` (Chat Completions), `finish_reason`, `problems` |
| `render` | `messages` | `prompt` |
| `validate` | `messages` | `valid`, `problems` |
| `convert` | `messages`, or `input` of the Responses API | the same in another form |

`tools`, `tool_choice`, `parallel_tool_calls`, `dialect`, `finish_reason` and `start` are read where a row has them;
tools and dialect are otherwise those of the batch. A row that cannot be read gets an `error`; nothing is raised.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Struct

from callwright.api import parse
from callwright.bulk.convert import CHAT, RESPONSES, converted
from callwright.calls.check import arguments_problem, unchecked_problem
from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool
from callwright.dialects.base import RenderOptions, get_dialect, read_options
from callwright.errors import ConfigError, RequestError
from callwright.events import Problem
from callwright.openai_format.messages import read_conversation
from callwright.openai_format.tool_catalog import read_tool_catalog
from callwright.tolerant_json.codec import encode
from callwright.wire.chat.request import read_request

T = TypeVar("T")
Row: TypeAlias = dict[str, Any]
Operation: TypeAlias = Literal["parse", "render", "validate", "convert"]
OPERATIONS: Final[tuple[Operation, ...]] = get_args(Operation)
# What a row may say beside its text, and the library takes by the same name.
_ASKED: Final = ("tools", "tool_choice", "parallel_tool_calls", "finish_reason", "start")
_ADDS: Final[Mapping[str, Mapping[str, str]]] = {
    "parse": {"message": "string", "finish_reason": "string", "problems": "string"},
    "render": {"prompt": "string"},
    "validate": {"valid": "bool_", "problems": "string"},
}


class Work(Struct, frozen=True):
    """What is to be done to each row, alike for all. `source` and `target` are forms to convert between: `chat`,
    `responses` or a dialect. `options` are the dialect's, for prompts. Raises `ConfigError` for what cannot be.
    """

    operation: Operation
    dialect: str | None = None
    tools: Sequence[Mapping[str, Any]] | None = None
    options: Mapping[str, Any] = {}
    source: str = CHAT
    target: str = CHAT

    @property
    def adds(self) -> dict[str, str]:
        """The fields that rows get, with their types in a table; `""` for those that they lose."""
        if self.operation != "convert":
            return {**_ADDS[self.operation], "error": "string"}
        field = {CHAT: "messages", RESPONSES: "input"}.get(self.target, "text")
        tools = {"tools": "string" if field != "text" else ""}
        return {"messages": "", "input": "", "instructions": "", **tools, field: "string", "error": "string"}

    def check(self) -> None:
        """Raise `ConfigError` for work that no row could be given."""
        try:
            self._check()
        except RequestError as error:
            raise ConfigError(str(error)) from error

    def _check(self) -> None:
        if self.dialect is not None and (self.dialect, self.operation) != ("auto", "parse"):
            get_dialect(self.dialect)
        if self.operation == "convert":
            if self.source == self.target:
                raise ConfigError(f"convert: from {self.source!r} to the same. Give --from and --to.")
            for form in (self.source, self.target):
                if form not in (CHAT, RESPONSES):
                    get_dialect(form)
        prompted = self.target if self.operation == "convert" else self.dialect
        if self.options:
            if prompted is None or prompted in (CHAT, RESPONSES):
                raise ConfigError("options are a dialect's: they need --dialect, or a dialect to convert to.")
            read_options(prompted, self.options)
        read_tool_catalog(self.tools)


class Batch:
    """Does some work to rows. It can be pickled, keeps order and number of the rows, and raises nothing."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._do: Callable[[Row], Row] = {
            "parse": self._parse,
            "render": self._render,
            "validate": self._validate,
            "convert": self._convert,
        }[work.operation]
        self._options: dict[str, RenderOptions] = {}  # of each dialect that was rendered, read once

    def __call__(self, rows: Sequence[Row]) -> list[Row]:
        """The rows, each with what was found."""
        return [self._one(row) for row in rows]

    def __reduce__(self) -> tuple[type["Batch"], tuple[Work]]:
        return Batch, (self._work,)

    def _one(self, row: Row) -> Row:
        row = {name: value for name, value in row.items() if name != "error"}  # of an earlier run
        try:
            return self._do(row)
        except RequestError as error:
            where = f" ({error.param})" if error.param else ""
            return {**row, "error": f"{error}{where}"}

    def _parse(self, row: Row) -> Row:
        asked = {"tools": self._work.tools, **{name: row[name] for name in _ASKED if row.get(name) is not None}}
        turn = parse(_field(row, "output", str), dialect=_dialect(self._work, row), **asked)
        return row | {
            "message": turn.to_chat_message(),
            "finish_reason": turn.finish_reason,
            "problems": msgspec.to_builtins(turn.problems),
        }

    def _render(self, row: Row) -> Row:
        tools = row["tools"] if row.get("tools") is not None else self._work.tools
        messages, name = _field(row, "messages", list), _dialect(self._work, row)
        dialect = get_dialect(name)
        conversation = read_conversation(messages, tools, row.get("tool_choice"))
        options = self._options.get(name)
        if options is None:
            options = self._options[name] = read_options(name, self._work.options)
        return row | {"prompt": dialect.render(conversation, options).text}

    def _validate(self, row: Row) -> Row:
        messages = _field(row, "messages", list)
        given = row["tools"] if row.get("tools") is not None else self._work.tools
        tools = read_tool_catalog(given).tools
        problems = [*_history_problems(messages), *_call_problems(messages, tools)]
        return row | {"valid": not problems, "problems": problems}

    def _convert(self, row: Row) -> Row:
        given = row if row.get("tools") is not None else {**row, "tools": self._work.tools}
        return converted(given, self._work.source, self._work.target, self._work.options)


def _history_problems(messages: Sequence[Any]) -> list[Row]:
    """What the API would refuse. A transcript may end with calls, whose results nobody has yet."""
    last = messages[-1] if messages else None
    calls = last.get("tool_calls") if isinstance(last, Mapping) else None
    ids = [call.get("id") for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    results = [{"role": "tool", "tool_call_id": id_, "content": ""} for id_ in ids if isinstance(id_, str)]
    try:
        read_request({"model": "any", "messages": [*messages, *results]})
    except RequestError as error:
        return [{"kind": "invalid_history", "detail": str(error), "param": error.param}]
    return []


def _call_problems(messages: Sequence[Any], tools: Sequence[FunctionTool]) -> list[Row]:
    toolset = Toolset(tools)
    found: list[Row] = []
    for number, message in enumerate(messages):
        calls = message.get("tool_calls") if isinstance(message, Mapping) else None
        for place, call in enumerate(calls if isinstance(calls, list) else ()):
            function = call.get("function") if isinstance(call, Mapping) else None
            if not isinstance(function, Mapping):
                continue
            if wrong := _problem(str(function.get("name")), function.get("arguments"), toolset):
                found.append({"kind": wrong.kind, "detail": wrong.detail, "message": number, "call": place})
    return found


def _problem(name: str, arguments: object, tools: Toolset) -> Problem | None:
    """What is wrong with one call; arguments may be JSON text or a value."""
    if name not in tools:
        return Problem("unknown_tool", f"no tool is called {name!r}")
    text = arguments if isinstance(arguments, str) else encode(arguments).decode()
    if (wrong := arguments_problem(name, text, tools)) is not None:
        return wrong
    unread = tools.unusable_schema(name)
    return unchecked_problem(name, unread) if unread else None


def _dialect(work: Work, row: Row) -> str:
    dialect = row.get("dialect") or work.dialect
    if not isinstance(dialect, str):
        raise RequestError("No dialect: name it for all rows, or in each.", param="dialect")
    return dialect


def _field(row: Row, name: str, kind: type[T]) -> T:
    value = row.get(name)
    if not isinstance(value, kind):
        got = type(value).__name__ if name in row else "nothing"
        raise RequestError(f"Expected {'a text' if kind is str else 'a list'}, got {got}.", param=name)
    return value
