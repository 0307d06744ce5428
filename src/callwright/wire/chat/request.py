"""Chat Completions: messages in both directions, and the request.

A message becomes one or more items: the reasoning, text and calls of an assistant message stand one behind the other in
the conversation, and `write_messages` joins them again. Fields of a message that mean nothing here travel along.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, assert_never

import msgspec

from callwright.calls.custom_tools import input_arguments
from callwright.calls.history import with_readable_calls
from callwright.conversation import (
    AssistantTurn,
    Call,
    CallOutput,
    Conversation,
    Item,
    MediaPart,
    Message,
    Part,
    Reasoning,
    Role,
    TextPart,
    ToolTurn,
)
from callwright.errors import RequestError
from callwright.wire.chat.mend_history import mended
from callwright.wire.errors import from_validation, listed, missing
from callwright.wire.response_format import read_response_format
from callwright.wire.tool_catalog import read_offer
from callwright.wire.tool_choice import (
    check_choice,
    check_named,
    read_allowed_tools,
    read_function_call,
    read_tool_choice,
)
from callwright.wire.tools import offered_tools

__all__ = [
    "CONSUMED",
    "ChatBody",
    "ChatRequest",
    "read_conversation",
    "read_messages",
    "read_request",
    "write_messages",
]


class _Part(msgspec.Struct):
    type: str
    text: str | None = None
    refusal: str | None = None


_Content: TypeAlias = str | list[_Part]


class _Text(msgspec.Struct, tag_field="role"):
    content: _Content
    name: str | None = None


class _System(_Text, tag="system"):
    pass


class _Developer(_Text, tag="developer"):
    pass


class _User(_Text, tag="user"):
    pass


class _CallFunction(msgspec.Struct):
    name: str
    arguments: str = ""


class _CallCustom(msgspec.Struct):
    name: str
    input: str = ""


class _ToolCall(msgspec.Struct):
    function: _CallFunction | None = None
    custom: _CallCustom | None = None
    id: str | None = None
    type: str = "function"


class _Assistant(msgspec.Struct, tag_field="role", tag="assistant"):
    content: _Content | None = None
    refusal: str | None = None
    name: str | None = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _CallFunction | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class _Tool(msgspec.Struct, tag_field="role", tag="tool"):
    content: _Content
    tool_call_id: str


class _FunctionOutput(msgspec.Struct, tag_field="role", tag="function"):
    """The output of the API before tools: it names the function and has no id."""

    name: str
    content: str | None = None


_Message: TypeAlias = _System | _Developer | _User | _Assistant | _Tool | _FunctionOutput


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _Request(msgspec.Struct):
    model: str
    messages: list[_Message]
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    response_format: dict[str, Any] | None = None
    functions: list[dict[str, Any]] | None = None
    function_call: str | dict[str, Any] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    n: int | None = None
    modalities: list[str] | None = None
    # Checked here, handed on as they are.
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    stop: str | Annotated[list[str], msgspec.Meta(max_length=4)] | None = None
    seed: int | None = None
    frequency_penalty: Annotated[float, msgspec.Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, msgspec.Meta(ge=-2, le=2)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None


# The fields of a request as they come, for the description of the API.
ChatBody: TypeAlias = _Request

_TEXT_ONLY = ("text",)
_PARTS: Mapping[str, tuple[str, ...]] = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "system": _TEXT_ONLY,
    "developer": _TEXT_ONLY,
    "tool": _TEXT_ONLY,
}
_SUPPORTED: Mapping[str, Sequence[str]] = {
    "messages[].role": ("system", "assistant", "user", "function", "tool", "developer"),
    "reasoning_effort": ("none", "minimal", "low", "medium", "high", "xhigh", "max"),
}
# What this gateway does itself; everything else in a request goes to the upstream as it came.
CONSUMED = frozenset(
    {
        *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "response_format"),
        *("functions", "function_call", "stream", "stream_options", "n", "modalities"),
    }
)
_REFUSED = ("audio", "web_search_options")
_MESSAGE_FIELDS = frozenset(
    {
        *("role", "content", "name", "refusal", "reasoning", "reasoning_content"),
        *("tool_calls", "function_call", "tool_call_id"),
    }
)


class ChatRequest(msgspec.Struct, frozen=True):
    """A checked request. `fields` are those that the upstream gets as they came; `legacy`: it used `functions`."""

    model: str
    conversation: Conversation
    stream: bool
    include_usage: bool
    legacy: bool
    fields: dict[str, Any]


def read_request(given: object, *, mend: bool = False) -> ChatRequest:
    """Check a decoded request the way OpenAI's API does. Raises `RequestError`.

    `mend`: calls and outputs that do not belong together are mended instead of refused.
    """
    if mend and isinstance(given, dict) and isinstance(given.get("messages"), list):
        given = {**given, "messages": mended(given["messages"])}
    try:
        request = msgspec.convert(given, _Request)
    except msgspec.ValidationError as error:
        if isinstance(given, dict) and "input" in given and "messages" not in given:
            raise missing("messages", " Requests with 'input' are for POST /v1/responses.") from error
        raise from_validation(error, given, _SUPPORTED) from error
    assert isinstance(given, dict)
    _refuse_unsupported(request, given)
    if not request.messages:
        raise RequestError(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            param="messages",
            code="empty_array",
        )
    legacy = request.functions is not None or request.function_call is not None
    if legacy and request.tools is not None:
        raise RequestError(
            "Invalid request: 'functions' and 'tools' cannot both be provided. 'functions' are deprecated; use the "
            "'tools' parameter instead."
        )
    conversation = _legacy_conversation(request) if legacy else _conversation(request)
    items = with_readable_calls(_read(request.messages, given["messages"]))
    _check_pairing(request.messages)
    fields = {key: value for key, value in given.items() if key not in CONSUMED and value is not None}
    return ChatRequest(
        model=request.model,
        conversation=msgspec.structs.replace(
            conversation,
            items=items,
            response_format=read_response_format(request.response_format),
        ),
        stream=bool(request.stream),
        include_usage=bool(request.stream_options and request.stream_options.include_usage),
        legacy=legacy,
        fields=fields,
    )


def _refuse_unsupported(request: _Request, given: dict[str, Any]) -> None:
    for field in _REFUSED:
        if given.get(field) is not None:
            raise RequestError(
                f"Unsupported parameter: '{field}' is not supported with this model.",
                param=field,
                code="unsupported_parameter",
            )
    if request.modalities and request.modalities != ["text"]:
        raise RequestError(
            f"Unsupported value: 'modalities' does not support {request.modalities} with this model. "
            "Supported values are: ['text'].",
            param="modalities",
            code="unsupported_value",
        )
    if request.n not in (None, 1):
        raise RequestError(
            f"Unsupported value: 'n' does not support {request.n} with this model. Only the value 1 is supported.",
            param="n",
            code="unsupported_value",
        )
    if request.stream_options is not None and not request.stream:
        raise RequestError(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
        )


def _conversation(request: _Request) -> Conversation:
    tools = offered_tools(request.tools, "tools", "chat")
    conversation = Conversation(
        tools=tools,
        tool_choice=read_tool_choice(request.tool_choice, tools),
        allowed_tools=read_allowed_tools(request.tool_choice, tools),
        parallel_tool_calls=request.parallel_tool_calls is not False,
    )
    check_choice(
        conversation,
        choice_given=request.tool_choice is not None,
        parallel_given=request.parallel_tool_calls is not None,
    )
    return conversation


def _legacy_conversation(request: _Request) -> Conversation:
    """The API before tools: `functions`, `function_call`, one call at most."""
    tools = offered_tools(request.functions, "functions", "function")
    choice = read_function_call(request.function_call, tools)
    conversation = Conversation(tools=tools, tool_choice=choice, parallel_tool_calls=False)
    given = request.function_call is not None
    check_choice(conversation, choice_given=given, parallel_given=False, param="function_call")
    return conversation


def read_messages(given: Sequence[Mapping[str, Any]]) -> tuple[Item, ...]:
    """Chat messages as items. Raises `RequestError` that names the field."""
    try:
        messages = msgspec.convert({"messages": given}, _Messages).messages
    except msgspec.ValidationError as error:
        raise from_validation(error, {"messages": given}, _SUPPORTED) from error
    return _read(messages, given)


def read_conversation(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None, tool_choice: object
) -> Conversation:
    """Messages, tools of either shape and the choice among them, with no more rules than a prompt needs."""
    offer = read_offer(tools)
    read, flat = offer.tools, offer.names.flat
    choice = read_tool_choice(tool_choice, read, flat=flat)
    check_named(choice, read)
    allowed = read_allowed_tools(tool_choice, read, flat=flat)
    return Conversation(items=read_messages(messages), tools=read, tool_choice=choice, allowed_tools=allowed)


class _Messages(msgspec.Struct):
    messages: list[_Message]


def _read(messages: Sequence[_Message], given: Sequence[Mapping[str, Any]]) -> tuple[Item, ...]:
    items: list[Item] = []
    for number, (message, raw) in enumerate(zip(messages, given, strict=True)):
        path = f"messages[{number}]"
        match message:
            case _Assistant():
                items += _read_assistant(message, raw, number)
            case _Tool():
                items.append(CallOutput(message.tool_call_id, _parts(message.content, raw, "tool", path)))
            case _FunctionOutput():
                items.append(CallOutput(_legacy_call_id(items, message.name), (TextPart(message.content or ""),)))
            case _:
                role: Role = raw["role"]
                items.append(Message(role, _parts(message.content, raw, role, path), message.name, _extra(raw)))
    return tuple(items)


def _read_assistant(message: _Assistant, raw: Mapping[str, Any], number: int) -> list[Item]:
    items: list[Item] = []
    reasoning = message.reasoning or message.reasoning_content
    if reasoning:
        items.append(Reasoning(reasoning))
    content = message.content if message.content is not None else message.refusal
    calls = message.tool_calls or []
    if content or not (calls or message.function_call):
        parts = _parts(content or "", raw, "assistant", f"messages[{number}]")
        items.append(Message("assistant", parts, message.name, _extra(raw)))
    path = f"messages[{number}].tool_calls"
    items += [_read_call(call, f"{path}[{place}]") for place, call in enumerate(calls)]
    if message.function_call and not calls:
        items.append(Call(message.function_call.name, message.function_call.arguments, id=f"call_{number}"))
    return items


def _read_call(call: _ToolCall, path: str) -> Call:
    if call.custom is not None:
        return Call(call.custom.name, input_arguments(call.custom.input), id=call.id or "")
    if call.function is None:
        raise missing(f"{path}.{'custom' if call.type == 'custom' else 'function'}")
    return Call(call.function.name, call.function.arguments, id=call.id or "")


def _parts(content: _Content, raw: Mapping[str, Any], role: str, path: str) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    parts: list[Part] = []
    for number, part in enumerate(content):
        known = _PARTS[role]
        field = f"{path}.content[{number}]"
        if part.type not in known:
            raise RequestError(
                f"Invalid value: '{part.type}'. Supported values are: {listed(known)}.",
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
    return {key: value for key, value in raw.items() if key not in _MESSAGE_FIELDS and value is not None}


def _legacy_call_id(items: Sequence[Item], name: str) -> str:
    calls = (item.id for item in reversed(items) if isinstance(item, Call) and item.name == name)
    return next(calls, "")


def _check_pairing(messages: Sequence[_Message]) -> None:
    """Each call is answered right behind its message, and each answer has its call."""
    waiting: list[str] = []
    asked: set[str] = set()
    for number, message in enumerate(messages):
        if isinstance(message, _Tool):
            if message.tool_call_id not in asked:
                raise RequestError(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'.",
                    param=f"messages.[{number}].role",
                )
            if message.tool_call_id in waiting:
                waiting.remove(message.tool_call_id)
            continue
        if waiting:
            raise _unanswered(waiting, number)
        if isinstance(message, _Assistant):
            waiting = [call.id or "" for call in message.tool_calls or ()]
            asked = set(waiting)
        else:
            asked = set()
    if waiting:
        raise _unanswered(waiting, len(messages) - 1)


def _unanswered(waiting: Sequence[str], number: int) -> RequestError:
    return RequestError(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(waiting)}",
        param=f"messages.[{number}].role",
    )


def write_messages(conversation: Conversation) -> list[dict[str, Any]]:
    """The conversation as chat messages; what an assistant did at once becomes one message."""
    messages: list[dict[str, Any]] = []
    for turn in conversation.turns():
        match turn:
            case Message():
                messages.append(_write_message(turn))
            case AssistantTurn():
                messages.append(_write_assistant(turn))
            case ToolTurn(outputs):
                messages += [
                    {"role": "tool", "tool_call_id": output.call_id, "content": _content(output.parts)}
                    for _, output in outputs
                ]
            case _:
                assert_never(turn)
    return _instructed(messages)


def _instructed(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """OpenAI's role `developer` in roles that templates know: at the start, all that instructs is one system message;
    what comes later stays where it is, as a marked block of the user.
    """
    if not any(message["role"] == "developer" for message in messages):
        return messages
    behind = (n for n, message in enumerate(messages) if message["role"] not in ("system", "developer"))
    start = next(behind, len(messages))
    told = "\n\n".join(message["content"] for message in messages[:start])
    later = [
        {**message, "role": "user", "content": f"<system>\n{message['content']}\n</system>"}
        if message["role"] == "developer"
        else message
        for message in messages[start:]
    ]
    return [{"role": "system", "content": told}, *later] if start else later


def _write_message(message: Message) -> dict[str, Any]:
    name = {"name": message.name} if message.name else {}
    return {"role": message.role, "content": _content(message.parts), **name, **message.extra}


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


def _content(parts: Sequence[Part]) -> Any:
    if all(isinstance(part, TextPart) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, TextPart))
    return [{"type": "text", "text": part.text} if isinstance(part, TextPart) else part.value for part in parts]
