"""Messages in OpenAI's format, read as the items of a conversation and written from them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from callwright.calls.custom_tools import input_arguments
from callwright.conversation import (
    AssistantTurn,
    Call,
    CallOutput,
    Conversation,
    ConversationTurn,
    Item,
    MediaPart,
    Message,
    Part,
    Reasoning,
    Role,
    TextPart,
    ToolTurn,
    TurnsAlong,
    shared_item,
)
from callwright.errors import RequestError
from callwright.memo.prefixes import SharedList, fold
from callwright.openai_format.errors import from_validation, missing, quote_list
from callwright.openai_format.message_types import (
    AssistantMessage,
    ChatMessage,
    Content,
    FunctionMessage,
    ToolCall,
    ToolMessage,
)
from callwright.openai_format.request_rules import STRICT, RequestRules
from callwright.openai_format.tool_catalog import read_tool_catalog
from callwright.openai_format.tool_choice import (
    check_named,
    read_allowed_tools,
    read_tool_choice,
)

ROLES: Final = ("system", "assistant", "user", "function", "tool", "developer")
_TEXT_ONLY = ("text",)
_NO_TURNS: Final = TurnsAlong()

_Known: TypeAlias = Mapping[str, tuple[str, ...]]
_PARTS: _Known = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "system": _TEXT_ONLY,
    "developer": _TEXT_ONLY,
    "tool": _TEXT_ONLY,
}
_LENIENT_PARTS: Final = {**_PARTS, "tool": _PARTS["user"]}

_MESSAGE_FIELDS = frozenset(
    {
        *("role", "content", "name", "refusal", "reasoning", "reasoning_content"),
        *("tool_calls", "function_call", "tool_call_id"),
        "audio",  # an answer stored at OpenAI: its id means nothing to others
    }
)


def read_messages(given: Sequence[Mapping[str, Any]]) -> tuple[Item, ...]:
    """Chat messages as items. Raises `RequestError` that names the field."""
    try:
        messages = msgspec.convert({"messages": given}, _Messages).messages
    except msgspec.ValidationError as error:
        raise from_validation(error, {"messages": given}, {"messages[].role": ROLES}) from error
    return items_of([*read_typed_messages(messages, given)])


def read_conversation(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None, tool_choice: object
) -> Conversation:
    """Messages, tools of either shape and the choice among them, with no more rules than a prompt needs."""
    offer = read_tool_catalog(tools)
    read, flat = offer.tools, offer.names.flat
    choice = read_tool_choice(tool_choice, read, flat=flat)
    check_named(choice, read)
    allowed = read_allowed_tools(tool_choice, read, flat=flat)
    return Conversation(items=read_messages(messages), tools=read, tool_choice=choice, allowed_tools=allowed)


class _Messages(msgspec.Struct):
    messages: list[ChatMessage]


class ReadMessage(msgspec.Struct, frozen=True):
    """A parsed message as items. `number` is its index, which is part of paths and some ids.

    `asks`: the number of its calls with each id; `answers`: the id of the call whose output it is.
    `output_of`: it is the output of the latest call of this function, and has no call id.
    """

    number: int
    items: tuple[Item, ...]
    asks: Mapping[str, int] = {}
    answers: str | None = None
    output_of: str | None = None


def type_messages(given: Sequence[Any], start: int = 0) -> list[ChatMessage]:
    """The messages from number `start` on, each of the type of its role. Raises `msgspec.ValidationError`, without the
    path to the message.
    """
    return [msgspec.convert(raw, ChatMessage) for raw in given[start:]]


def read_typed_messages(
    messages: Sequence[ChatMessage],
    given: Sequence[Mapping[str, Any]],
    start: int = 0,
    rules: RequestRules = STRICT,
) -> Iterator[ReadMessage]:
    """The messages from number `start` on, each read when it is asked for; `given` has all of them as JSON. Raises
    `RequestError` that names the field.
    """
    known = _LENIENT_PARTS if rules.is_lenient else _PARTS
    for number in range(start, len(given)):
        yield _read(messages[number], given[number], number, known)


def items_of(messages: Sequence[ReadMessage], before: Sequence[Item] = ()) -> tuple[Item, ...]:
    """All items of the messages, after these items."""
    items: list[Item] = [*before]
    for message in messages:
        if message.output_of is None:
            items += map(shared_item, message.items)
        else:
            id_ = _legacy_call_id(items, message.output_of)
            items += [shared_item(msgspec.structs.replace(item, call_id=id_)) for item in message.items]
    return tuple(items)


def _read(message: ChatMessage, raw: Mapping[str, Any], number: int, known: _Known) -> ReadMessage:
    """`known` are the types of parts that each role may have."""
    path = f"messages[{number}]"
    match message:
        case AssistantMessage():
            asks = dict(Counter([call.id or "" for call in message.tool_calls or ()]))
            return ReadMessage(number, tuple(_read_assistant(message, raw, number)), asks)
        case ToolMessage(tool_call_id=id_):
            return ReadMessage(
                number, (CallOutput(id_, _parts(message.content, raw, known["tool"], path)),), answers=id_
            )
        case FunctionMessage(name=name):
            return ReadMessage(number, (CallOutput("", (TextPart(message.content or ""),)),), output_of=name)
    role: Role = raw["role"]
    return ReadMessage(
        number, (Message(role, _parts(message.content, raw, known[role], path), message.name, _extra(raw)),)
    )


def _read_assistant(message: AssistantMessage, raw: Mapping[str, Any], number: int) -> list[Item]:
    items: list[Item] = []
    reasoning = message.reasoning or message.reasoning_content
    if reasoning:
        items.append(Reasoning(reasoning))
    content = message.content if message.content is not None else message.refusal
    calls = message.tool_calls or []
    if content or not (calls or message.function_call):
        parts = _parts(content or "", raw, _PARTS["assistant"], f"messages[{number}]")
        items.append(Message("assistant", parts, message.name, _extra(raw)))
    path = f"messages[{number}].tool_calls"
    items += [_read_call(call, f"{path}[{place}]") for place, call in enumerate(calls)]
    if message.function_call and not calls:
        function = message.function_call
        items.append(Call(function.name or "", function.arguments, id=f"call_{number}"))
    return items


def _read_call(call: ToolCall, path: str) -> Call:
    if call.custom is not None:
        return Call(call.custom.name, input_arguments(call.custom.input), id=call.id or "")
    if call.function is None:
        raise missing(f"{path}.{'custom' if call.type == 'custom' else 'function'}")
    return Call(call.function.name or "", call.function.arguments, id=call.id or "")


def _parts(content: Content, raw: Mapping[str, Any], known: Sequence[str], path: str) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    parts: list[Part] = []
    for number, part in enumerate(content):
        field = f"{path}.content[{number}]"
        if part.type not in known:
            raise RequestError(
                f"Invalid value: '{part.type}'. Supported values are: {quote_list(known)}.",
                param=f"{field}.type",
                code="invalid_value",
            )
        if part.type in ("text", "refusal"):
            text = part.text if part.type == "text" else part.refusal
            if text is None:
                raise missing(f"{field}.{part.type}")
            parts.append(TextPart(text))
        else:
            parts.append(MediaPart(raw["content"][number], field))
    return tuple(parts)


def _extra(raw: Mapping[str, Any]) -> dict[str, Any]:
    if raw.keys() <= _MESSAGE_FIELDS:
        return {}
    return {key: value for key, value in raw.items() if key not in _MESSAGE_FIELDS and value is not None}


def _legacy_call_id(items: Sequence[Item], name: str) -> str:
    calls = (item.id for item in reversed(items) if isinstance(item, Call) and item.name == name)
    return next(calls, "")


def write_messages(conversation: Conversation) -> list[dict[str, Any]]:
    """The conversation as chat messages; the items of a turn of the assistant become one message."""
    return _instructed([message for turn in conversation.turns() for message in _of_turn(turn, 0)])


def shared_messages(items: Sequence[Item]) -> SharedList:
    """The same for items, for a server, as cached messages that callers must not change. Reasoning has both names:
    vLLM reads `reasoning` only (vllm#38488), as Ollama does, SGLang and llama.cpp `reasoning_content`.
    """
    messages: list[dict[str, Any]] = fold(items, _NO_TURNS, _shared).made
    return SharedList(_instructed(messages) if fold(items, False, _has_developer) else messages)


def _has_developer(before: bool, items: Sequence[Item], start: int) -> bool:  # `before`: the result so far
    return before or any(isinstance(item, Message) and item.role == "developer" for item in items[start:])


def _shared(before: TurnsAlong, items: Sequence[Item], _: int) -> TurnsAlong:
    return before.more(items, _shared_of_turn)


def _shared_of_turn(turn: ConversationTurn, number: int) -> list[dict[str, Any]]:
    return [_with_both_names(message) for message in _of_turn(turn, number)]


def _with_both_names(message: dict[str, Any]) -> dict[str, Any]:
    reasoning = message.get("reasoning_content")
    return message if reasoning is None else {**message, "reasoning": reasoning}


def _of_turn(turn: ConversationTurn, _: int) -> list[dict[str, Any]]:
    if type(turn) is AssistantTurn:
        return [_write_assistant(turn)]
    if type(turn) is ToolTurn:
        return [
            {"role": "tool", "tool_call_id": output.call_id, "content": _content(output)} for _, output in turn.outputs
        ]
    assert isinstance(turn, Message)
    return [_write_message(turn)]


def _instructed(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replace OpenAI's role `developer` by roles that templates know: all instructions at the start become one system
    message; later ones become marked user messages in place.
    """
    if "developer" not in [message["role"] for message in messages]:
        return [*messages]
    behind = (n for n, message in enumerate(messages) if message["role"] not in ("system", "developer"))
    start = next(behind, len(messages))
    told = _join_contents([message["content"] for message in messages[:start]], "\n\n")
    later = [
        {**message, "role": "user", "content": _join_contents(["<system>", message["content"], "</system>"], "\n")}
        if message["role"] == "developer"
        else message
        for message in messages[start:]
    ]
    own = messages[0] if start == 1 else {}  # several names do not fit one message: reported to the client
    return [{**own, "role": "system", "content": told}, *later] if start else later


def _join_contents(contents: Sequence[Any], between: str) -> Any:
    """Contents of messages as one; those that are no text as parts of it."""
    if all(isinstance(content, str) for content in contents):
        return between.join(contents)
    parts: list[Any] = []
    for content in contents:
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return parts


def _write_message(message: Message) -> dict[str, Any]:
    written = {"role": message.role, "content": _content(message)}
    if message.name:
        written["name"] = message.name
    return {**written, **message.extra} if message.extra else written


def _write_assistant(turn: AssistantTurn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if turn.message:
        message = _write_message(turn.message)
    if turn.reasoning is not None:
        message["reasoning_content"] = turn.reasoning
    if turn.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in turn.calls
        ]
    return message


def _content(item: Message | CallOutput) -> Any:
    if not item.has_media:
        return item.text
    return [{"type": "text", "text": part.text} if isinstance(part, TextPart) else part.value for part in item.parts]
