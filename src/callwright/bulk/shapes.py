"""The shapes of data sets: a row's conversation, or the answers of a model in it, as Chat messages.

A shape is found by the fields of a row, so that one file may have several. ShareGPT's turns, messages of Chat
Completions and of Anthropic's API, and what both companies' batches and logs hold are known.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from callwright.api import NotJsonError, loads
from callwright.conversation import Conversation, Item
from callwright.errors import RequestError, did_you_mean
from callwright.openai_format.messages import ROLES, write_messages
from callwright.openai_format.tool_catalog import ToolCatalog
from callwright.tolerant_json.codec import decode, encode
from callwright.wire.anthropic.blocks import MessageReader, read_messages
from callwright.wire.anthropic.types import MessageParam
from callwright.wire.responses.input_items import InputItemReader

Json: TypeAlias = dict[str, Any]

# The roles of data sets, with those of Chat Completions.
_ROLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "model", "bot", "ai"), "assistant"),
    **dict.fromkeys(("function_call", "tool_call"), "assistant"),
    **dict.fromkeys(("tool", "observation", "tool_response", "function_response", "ipython"), "tool"),
    **{role: role for role in ROLES if role not in ("user", "assistant", "tool")},
}
# Roles of turns that are calls and nothing else.
_CALLING: Final = ("function_call", "tool_call")
_CHAT_FIELDS: Final = ("name", "tool_calls", "tool_call_id", "reasoning_content", "function_call")
_BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
# Names that data sets have for the output of a model, the likeliest first.
_OUTPUT_FIELDS: Final = ("completion", "response", "generation", "answer", "reply")
_SHOWN_FIELDS: Final = 8
# The fields of rows that may be a conversation, and all that may hold answers and are no text.
LISTS: Final = ("messages", "conversations", "conversation")
CONTAINERS: Final = frozenset({*LISTS, "choices", "response", "result", "body"})


class Found(Struct, frozen=True):
    """The content of a row: `messages` in the shape of Chat Completions, from the row's `field` (a path). `ends` are
    the reasons why answers ended, by the place of their messages. `takes_system`: a field `system` is among them.
    """

    shape: str
    field: str
    messages: Sequence[Any]
    ends: Mapping[int, str] = {}
    takes_system: bool = False


def value_at(row: Mapping[str, Any], path: str) -> Any:
    """The value at a path: names of fields and numbers of items with dots between them. None if it leads nowhere."""
    if path in row:
        return row[path]
    value: Any = row
    for name in path.split("."):
        value = _decoded(value)
        match value:
            case Mapping():
                value = value.get(name)
            case list() if name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            case _:
                return None
    return value


def conversation(row: Mapping[str, Any]) -> Found | None:
    """The conversation in a row; None if it has none of a known shape. Raises `RequestError` for a broken one."""
    for path in (*LISTS, "body.messages"):
        given = _decoded(value_at(row, path))
        if isinstance(given, list):
            return _read(row, path, given)
    return None


def answers(row: Mapping[str, Any]) -> Found | None:
    """The answers in a row: those of a conversation, or of a server."""
    for shape, path, read in _ANSWERS:
        given = _decoded(value_at(row, path))
        if isinstance(given, list):
            return read(shape, path, given)
    for path, given in (("result.message", value_at(row, "result.message")), ("content", row)):
        if isinstance(given, Mapping) and given.get("type") == "message" and isinstance(given.get("content"), list):
            messages = _anthropic([{"role": "assistant", "content": given["content"]}], None)
            return Found("an answer of Anthropic's API", path, messages)
    if fault := _fault(row):
        raise RequestError(f"The request has no answer: {fault}")
    return conversation(row)


def tools_of(row: Mapping[str, Any]) -> Any:
    """The tools of a row in OpenAI's shape, if it has any: of its own, or of the request in it."""
    for path in ("tools", "functions", "body.tools", "response.body.tools"):
        given = _decoded(value_at(row, path))
        if given is not None and given != "":
            return [_tool(tool) for tool in given] if isinstance(given, list) else given
    return None


def nothing_fits(row: Mapping[str, Any], ours: str, expected: str, fields: Mapping[str, str]) -> RequestError:
    """Why a row cannot be read, and the option that names the field `ours` (a path) in which it has its text."""
    names = list(map(str, row))
    got = (
        f"the fields {', '.join(names[:_SHOWN_FIELDS])}{', …' if len(names) > _SHOWN_FIELDS else ''}"
        if names
        else "none"
    )
    path, hint = fields.get(ours, ours), ""
    if (given := value_at(row, path)) is not None:
        got = f"{type(given).__name__} in `{path}`"
    elif ours in fields:
        got, hint = f"{got}, none of them at `{path}`", did_you_mean(path, names)
    may_be = [name for name in names if name != path and isinstance(row[name], str | list)]
    like = next((name for name in (*_OUTPUT_FIELDS, *may_be) if name in may_be), "NAME")
    return RequestError(f"Expected {expected}, got {got}. Name another: --field {ours}={like}.{hint}")


# --- one shape each ---


def _read(row: Mapping[str, Any], path: str, given: Sequence[Any]) -> Found:
    system = row.get("system")
    turns = [turn for turn in given if isinstance(turn, Mapping)]
    if any(map(_has_blocks, turns)):
        return Found("messages of Anthropic's API", path, _anthropic(given, system), takes_system=True)
    if not any("from" in turn for turn in turns):
        return Found("chat messages", path, list(map(_chat, given)))
    messages = [_share_gpt(_object(turn), f"{path}[{number}]") for number, turn in enumerate(given)]
    if isinstance(system, str) and system and not (messages and messages[0]["role"] == "system"):
        messages.insert(0, {"role": "system", "content": system})
    return Found("ShareGPT", path, messages, takes_system=True)


def _has_blocks(turn: Mapping[str, Any]) -> bool:
    content = turn.get("content")
    return isinstance(content, list) and any(
        isinstance(block, Mapping) and block.get("type") in _BLOCKS for block in content
    )


def _role(given: object, path: str) -> str:
    found = _ROLES.get(given) if isinstance(given, str) else None
    if found is None:
        hint = did_you_mean(given, _ROLES) if isinstance(given, str) else ""
        raise RequestError(f"Expected a role ({', '.join(_ROLES)}), got {given!r:.100}.{hint}", param=path)
    return found


def _chat(turn: Any) -> Any:
    """A message with its role in the words of Chat Completions. Faults stay in it."""
    if not isinstance(turn, Mapping) or not isinstance(turn.get("role"), str) or turn["role"] in ROLES:
        return turn
    called = _calls_in(turn.get("content")) if turn["role"] in _CALLING else []
    role = _ROLES.get(turn["role"], turn["role"])
    return {**turn, "role": role, **({"content": None, "tool_calls": called} if called else {})}


def _share_gpt(turn: Mapping[str, Any], path: str) -> Json:
    name = "from" if "from" in turn else "role"
    role = _role(turn.get(name), f"{path}.{name}")
    value = next((turn[key] for key in ("value", "content", "text") if turn.get(key) is not None), None)
    made: Json = {key: turn[key] for key in _CHAT_FIELDS if turn.get(key) is not None}
    if turn[name] in _CALLING and (called := _calls_in(value)):
        return {"role": role, "content": None, **made, "tool_calls": called}
    if value is None:
        text = None if role == "assistant" else ""
    else:
        text = value if isinstance(value, str) else encode(value).decode()
    return {"role": role, "content": text, **made}


def _calls_in(value: object) -> list[Json]:
    """The calls in a turn that is JSON; none if it is not one of a call, or of several."""
    try:
        read = loads(value) if isinstance(value, str) else value
    except NotJsonError:
        return []
    calls: list[Any] = read if isinstance(read, list) else [read]
    if not all(isinstance(call, Mapping) and isinstance(call.get("name"), str) for call in calls):
        return []
    made = [(call["name"], call.get("arguments", call.get("parameters", {}))) for call in calls]
    return [{"type": "function", "function": {"name": name, "arguments": arguments}} for name, arguments in made]


def _anthropic(given: Sequence[Any], system: object) -> list[Json]:
    reader = MessageReader(ToolCatalog(checks=False))
    if isinstance(system, str | list):
        reader.read_system(system)
    known = [
        {key: turn.get(key) for key in ("role", "content")} if isinstance(turn, Mapping) else turn for turn in given
    ]
    try:
        reader = read_messages(reader, msgspec.convert(known, list[MessageParam]), known)
    except msgspec.ValidationError as error:
        raise RequestError(f"{error}", param="messages") from error
    return _write_items([*reader.told, *[found.item for found in reader.found]])


def _responses(shape: str, path: str, given: Sequence[Any]) -> Found:
    reader = InputItemReader(ToolCatalog(checks=False))
    reader.read(given, path)
    return Found(shape, path, _write_items([found.item for found in reader.found]))


def _write_items(items: Sequence[Item]) -> list[Json]:
    return write_messages(Conversation(tuple(items)))


def _choices(shape: str, path: str, given: Sequence[Any]) -> Found:
    messages: list[Any] = []
    ends: dict[int, str] = {}
    for number, choice in enumerate(given):
        message = choice.get("message", choice.get("text")) if isinstance(choice, Mapping) else None
        if isinstance(message, str):
            message = {"role": "assistant", "content": message}
        if not isinstance(message, Mapping):
            raise RequestError("Expected a `message`, or a `text`.", param=f"{path}[{number}]")
        messages.append({**message, "role": "assistant"})
        ends[number] = str(choice.get("finish_reason") or "stop")
    return Found(shape, path, messages, ends)


_ANSWERS: Final[Sequence[tuple[str, str, Callable[[str, str, Sequence[Any]], Found]]]] = (
    ("output of OpenAI's batches", "response.body.choices", _choices),
    ("output of OpenAI's batches", "response.body.output", _responses),
    ("answers of Chat Completions", "choices", _choices),
    ("answers of the Responses API", "output", _responses),
)


def _fault(row: Mapping[str, Any]) -> str:
    """Why a request of a batch has no answer, if the row is one."""
    for path in ("error", "response.body.error", "result.error.error", "result.error"):
        given = value_at(row, path)
        if isinstance(given, Mapping) and given.get("message"):
            return str(given["message"])
    kind = value_at(row, "result.type")
    return str(kind) if kind in ("errored", "canceled", "expired") else ""


# --- values ---


def _object(turn: Any) -> Mapping[str, Any]:
    if not isinstance(turn, Mapping):
        raise RequestError(f"Expected an object, got {type(turn).__name__}.", param="messages")
    return turn


def _decoded(value: Any) -> Any:
    """A list or an object that is JSON text in a data set, as a value."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return decode(value)
        except NotJsonError:
            return value
    return value


def _tool(given: Any) -> Any:
    """A tool as OpenAI writes it: data sets have the bare function, Anthropic's an `input_schema`."""
    given = _decoded(given)
    if not isinstance(given, Mapping) or "function" in given or not isinstance(given.get("name"), str):
        return given
    if given.get("type") is not None and "input_schema" not in given:
        return given
    kept = {key: given[key] for key in ("name", "description", "parameters", "strict") if given.get(key) is not None}
    if isinstance(given.get("input_schema"), Mapping):
        kept["parameters"] = given["input_schema"]
    return {"type": "function", "function": kept}


def describe(rows: Iterator[Mapping[str, Any]]) -> str:
    """What these rows hold, in a few words, for people."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        try:
            found = answers(row) if not isinstance(row.get("output"), str) else None
        except RequestError:
            continue
        if isinstance(row.get("output"), str):
            counts.setdefault("reads `output`", []).append(1)
        elif found is not None:
            said = sum(message.get("role") == "assistant" for message in found.messages)
            counts.setdefault(f"{found.shape}: reads `{found.field}`", []).append(said)
    told = []
    for words, numbers in sorted(counts.items(), key=lambda one: -len(one[1])):
        least, most = min(numbers), max(numbers)
        many = f"{most}" if least == most else f"{least} to {most}"
        told.append(f"{words}, {many} answer{'' if most == 1 else 's'} a row")
    return "; ".join(told) or "no row of a known shape"
