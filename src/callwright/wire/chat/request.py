"""Chat Completions: messages in both directions, and the request.

A message becomes one or more items: the reasoning, text and calls of an assistant message stand one behind the other in
the conversation, and `write_messages` joins them again. Fields of a message that mean nothing here travel along.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from callwright.calls.history import drop_unreadable_calls
from callwright.conversation import (
    Conversation,
)
from callwright.errors import RequestError
from callwright.openai_format.errors import from_validation, missing
from callwright.openai_format.message_types import (
    AssistantMessage,
    ChatMessage,
    ToolMessage,
)
from callwright.openai_format.messages import ROLES, read_checked_messages
from callwright.openai_format.response_format import read_response_format
from callwright.openai_format.tool_choice import (
    check_choice,
    read_allowed_tools,
    read_function_call,
    read_tool_choice,
)
from callwright.openai_format.tools import offered_tools
from callwright.wire.chat.mend_history import mended
from callwright.wire.chat.types import ChatRequestBody

__all__ = ["CONSUMED", "ChatRequest", "read_request"]


_SUPPORTED: Mapping[str, Sequence[str]] = {
    "messages[].role": ROLES,
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
        request = msgspec.convert(given, ChatRequestBody)
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
    items = drop_unreadable_calls(read_checked_messages(request.messages, given["messages"]))
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


def _refuse_unsupported(request: ChatRequestBody, given: dict[str, Any]) -> None:
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


def _conversation(request: ChatRequestBody) -> Conversation:
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


def _legacy_conversation(request: ChatRequestBody) -> Conversation:
    """The API before tools: `functions`, `function_call`, one call at most."""
    tools = offered_tools(request.functions, "functions", "function")
    choice = read_function_call(request.function_call, tools)
    conversation = Conversation(tools=tools, tool_choice=choice, parallel_tool_calls=False)
    given = request.function_call is not None
    check_choice(conversation, choice_given=given, parallel_given=False, param="function_call")
    return conversation


def _check_pairing(messages: Sequence[ChatMessage]) -> None:
    """Each call is answered right behind its message, and each answer has its call."""
    waiting: Counter[str] = Counter()  # how often each id waits, in order
    asked: set[str] = set()
    for number, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in asked:
                raise RequestError(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'.",
                    param=f"messages.[{number}].role",
                )
            waiting[message.tool_call_id] -= 1
            if waiting[message.tool_call_id] <= 0:
                del waiting[message.tool_call_id]
            continue
        if waiting:
            raise _unanswered(waiting.elements(), number)
        if isinstance(message, AssistantMessage):
            waiting = Counter(call.id or "" for call in message.tool_calls or ())
            asked = set(waiting)
        else:
            asked = set()
    if waiting:
        raise _unanswered(waiting.elements(), len(messages) - 1)


def _unanswered(waiting: Iterable[str], number: int) -> RequestError:
    return RequestError(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(waiting)}",
        param=f"messages.[{number}].role",
    )
