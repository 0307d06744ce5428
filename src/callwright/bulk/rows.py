"""Processes one row, or a batch of them. A row is a JSON object; results are added as further fields.

| operation | reads | adds |
|---|---|---|
| `parse` | `output`, the text of a model | `message` (Chat Completions), `finish_reason`, `problems` |
| `parse` | the answers in a conversation or a log, see `shapes` | `answers` (of such), `problems` |
| `render` | a conversation | `prompt` |
| `validate` | a conversation, or the answers in a log | `valid`, `problems` |
| `convert` | a conversation, or `input` of the Responses API | the same in another form |

`tools`, `tool_choice`, `parallel_tool_calls`, `dialect`, `finish_reason` and `start` are read if a row has them; tools
and dialect are otherwise those of the batch. Any of them may have another name in the rows. A row that cannot be read
gets an `error`; nothing is raised.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from callwright.api import parse
from callwright.bulk.convert import CHAT, RESPONSES, converted, read_turns
from callwright.bulk.shapes import CONTAINERS, LISTS, Found, answers, conversation, nothing_fits, tools_of, value_at
from callwright.calls.check import arguments_problem, unchecked_problem
from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool
from callwright.dialects.auto import AUTO
from callwright.dialects.base import RenderOptions, get_dialect, read_options
from callwright.errors import ConfigError, RequestError, did_you_mean
from callwright.events import Problem
from callwright.openai_format.messages import ROLES, read_conversation
from callwright.openai_format.tool_catalog import read_tool_catalog
from callwright.tolerant_json.codec import encode
from callwright.wire.chat.request import read_request

Row: TypeAlias = dict[str, Any]
Operation: TypeAlias = Literal["parse", "render", "validate", "convert"]
OPERATIONS: Final[tuple[Operation, ...]] = get_args(Operation)
# Fields of a row that the library takes by the same name.
_ASKED: Final = ("tools", "tool_choice", "parallel_tool_calls", "finish_reason", "start")
_FORMS: Final = ("messages", "input", "instructions", "tools")
# The fields that may have another name in the rows.
FIELDS: Final = ("output", "messages", "input", "instructions", "dialect", *_ASKED)
_CONVERSATION: Final = "a list of messages (`messages`, or `conversations` as in ShareGPT)"
_ANSWERS: Final = "a text in `output`, messages (`messages`, `conversations`) or `choices`"
_ADDS: Final[Mapping[str, Mapping[str, str]]] = {
    "render": {"prompt": "string"},
    "validate": {"valid": "bool_", "problems": "string"},
}


class Work(Struct, frozen=True):
    """The operation on each row, the same for all. `source` and `target` are forms to convert between: `chat`,
    `responses` or a dialect. `options` are the dialect's, for prompts. `fields`: names of the fields that rows have in
    place of ours, or paths with dots. `check` raises `ConfigError` for invalid combinations.
    """

    operation: Operation
    dialect: str | None = None
    tools: Sequence[Mapping[str, Any]] | None = None
    options: Mapping[str, Any] = {}
    source: str = CHAT
    target: str = CHAT
    fields: Mapping[str, str] = {}

    def adds(self, columns: Collection[str]) -> dict[str, str]:
        """The fields that rows of a table with these columns get, with their types; `""` for those that they lose."""
        if self.operation == "parse":
            has_output = "output" in columns or "output" in self.fields
            one = {"message": "string", "finish_reason": "string"} if has_output else {}
            several = {} if has_output and not CONTAINERS.intersection(columns) else {"answers": "string"}
            return {**one, **several, "problems": "string", "error": "string"}
        if self.operation != "convert":
            return {**_ADDS[self.operation], "error": "string"}
        field = {CHAT: "messages", RESPONSES: "input"}.get(self.target, "text")
        tools = {"tools": "string" if field != "text" else ""}
        lost = dict.fromkeys((*_FORMS, *LISTS, *self.fields.values()), "")
        return {**lost, **tools, field: "string", "error": "string"}

    def standard_row(self, row: Row) -> Row:
        """A row with the standard field names, and its own tools or those of the batch."""
        known = {name: value for name, path in self.fields.items() if (value := value_at(row, path)) is not None}
        row = {**row, **known}
        tools = tools_of(row)
        return {**row, "tools": self.tools if tools is None else tools}

    def check(self) -> None:
        """Raise `ConfigError` for settings that are invalid for every row."""
        try:
            self._check()
        except RequestError as error:
            raise ConfigError(str(error)) from error

    def _check(self) -> None:
        for name in self.fields:
            if name not in FIELDS:
                raise ConfigError(f"--field {name}=…: expected one of {', '.join(FIELDS)}.{did_you_mean(name, FIELDS)}")
        if self.dialect is not None and (self.dialect, self.operation) != (AUTO, "parse"):
            get_dialect(self.dialect)
        if self.operation == "convert":
            if self.source == self.target:
                raise ConfigError(
                    f"convert: from {self.source!r} to the same. Give another form by --to, or --from auto, which "
                    "detects the form of the input."
                )
            for form in (self.source, self.target):
                if form not in (CHAT, RESPONSES) and (form, self.source) != (AUTO, AUTO):
                    get_dialect(form)
        prompted = self.target if self.operation == "convert" else self.dialect
        if self.options:
            if prompted is None or prompted in (CHAT, RESPONSES):
                raise ConfigError("options are a dialect's: they need --dialect, or a dialect to convert to.")
            read_options(prompted, self.options)
        read_tool_catalog(self.tools)


class Batch:
    """Applies an operation to rows. Can be pickled, preserves the order and number of rows, and raises nothing."""

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
        """The rows, each with its results."""
        return [self._one(row) for row in rows]

    def __reduce__(self) -> tuple[type["Batch"], tuple[Work]]:
        return Batch, (self._work,)

    def _one(self, row: Row) -> Row:
        # An error that is a text is of an earlier run; else it is a server's.
        row = {name: value for name, value in row.items() if name != "error" or not isinstance(value, str)}
        try:
            return self._do(row)
        except RequestError as error:
            where = f" ({error.param})" if error.param else ""
            return {**row, "error": f"{error}{where}"}

    def _parse(self, row: Row) -> Row:
        given = self._work.standard_row(row)
        asked = {name: given[name] for name in _ASKED if given.get(name) is not None}
        dialect = _dialect(self._work, given)
        if isinstance(given.get("output"), str):
            turn = parse(given["output"], dialect=dialect, **asked)
            return row | {
                "message": turn.to_chat_message(),
                "finish_reason": turn.finish_reason,
                "problems": msgspec.to_builtins(turn.problems),
            }
        found = None if "output" in self._work.fields else answers(given)
        if found is None:
            raise nothing_fits(row, "output", _ANSWERS, self._work.fields)
        return row | _answers(found, dialect, asked)

    def _conversation(self, row: Row, given: Row, *, or_answers: bool = False) -> Found:
        found = conversation(given) or (answers(given) if or_answers else None)
        if found is None:
            raise nothing_fits(row, "messages", _CONVERSATION, self._work.fields)
        return found

    def _render(self, row: Row) -> Row:
        given = self._work.standard_row(row)
        found, name = self._conversation(row, given), _dialect(self._work, given)
        dialect = get_dialect(name)
        messages = [message for message, _ in read_turns(found.messages, None)]
        read = read_conversation(messages, given["tools"], given.get("tool_choice"))
        options = self._options.get(name)
        if options is None:
            options = self._options[name] = read_options(name, self._work.options)
        return row | {"prompt": dialect.render(read, options).text}

    def _validate(self, row: Row) -> Row:
        given = self._work.standard_row(row)
        messages = self._conversation(row, given, or_answers=True).messages
        tools = read_tool_catalog(given["tools"]).tools
        problems = [*_history_problems(messages), *_call_problems(messages, tools)]
        return row | {"valid": not problems, "problems": problems}

    def _convert(self, row: Row) -> Row:
        given, lost = self._work.standard_row(row), {*_FORMS, *self._work.fields.values()}
        if self._work.source != RESPONSES:
            found = self._conversation(row, given)
            given = {**given, "messages": found.messages}
            lost |= {found.field, *(("system",) if found.takes_system else ())}
        others = {name: value for name, value in row.items() if name not in lost}
        return others | converted(given, self._work.source, self._work.target, self._work.options)


def _answers(found: Found, dialect: str, asked: Mapping[str, Any]) -> Row:
    """The answers of a row as read: their messages, and their problems with the number of the answer."""
    tools = read_tool_catalog(asked.get("tools")).tools
    made: list[Row] = []
    problems: list[Row] = []
    turns = read_turns(found.messages, dialect, found.ends, **asked)
    for number, (message, turn) in enumerate(turns):
        role = message.get("role")
        if role not in ROLES:
            raise RequestError(
                f"Expected a role ({', '.join(ROLES)}), got {role!r:.100}.", param=f"{found.field}[{number}].role"
            )
        if role != "assistant":
            continue
        read = msgspec.to_builtins(turn.problems) if turn else ()
        told = [*_call_problems([found.messages[number]], tools), *read]
        problems += [{**problem, "answer": len(made)} for problem in told]
        reason = turn.finish_reason if turn else found.ends.get(number, "stop")
        if message.get("tool_calls") and reason == "stop":
            reason = "tool_calls"
        made.append({"message": message, "finish_reason": reason})
    return {"answers": made, "problems": problems}


def _history_problems(messages: Sequence[Any]) -> list[Row]:
    """The problems for which the API would reject a history. A transcript may end with calls without results."""
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
    """The problem with one call, or None; arguments may be JSON text or a value."""
    if name not in tools:
        return Problem("unknown_tool", f"no tool is called {name!r}")
    text = arguments if isinstance(arguments, str) else encode(arguments).decode()
    if (wrong := arguments_problem(name, text, tools)) is not None:
        return wrong
    unread = tools.unusable_schema(name)
    return unchecked_problem(name, unread) if unread else None


def _dialect(work: Work, row: Row) -> str:
    dialect = row.get("dialect") or work.dialect or (AUTO if work.operation == "parse" else None)
    if not isinstance(dialect, str):
        raise RequestError("No dialect: name it for all rows, or in each.", param="dialect")
    return dialect
