"""Chat Completions: messages in both directions, and the request.

A message becomes one or more items: the reasoning, text and calls of an assistant message are consecutive items of
the conversation, and `write_messages` joins them again. Unknown fields of a message are preserved.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from callwright.conversation import Call, Conversation, Item, NamedTool
from callwright.errors import RequestError
from callwright.memo.prefixes import fold
from callwright.openai_format.errors import from_validation, missing
from callwright.openai_format.mcp_tools import McpServer
from callwright.openai_format.message_types import ChatMessage
from callwright.openai_format.messages import ROLES, ReadMessage, items_of, read_typed_messages, type_messages
from callwright.openai_format.request_rules import STRICT, RequestRules
from callwright.openai_format.response_format import read_response_format
from callwright.openai_format.tool_catalog import ToolCatalog
from callwright.openai_format.tool_choice import (
    as_named,
    check_choice,
    read_allowed_tools,
    read_function_call,
    read_tool_choice,
)
from callwright.openai_format.tool_names import ToolNames
from callwright.openai_format.tools import offered_tools
from callwright.openai_format.web_search import needs_search, read_search_options
from callwright.wire.chat.mend_history import mend_messages
from callwright.wire.chat.types import ChatRequestBody
from callwright.wire.chat.unread_fields import unread_fields

_SUPPORTED: Mapping[str, Sequence[str]] = {
    "messages[].role": ROLES,
    "reasoning_effort": ("none", "minimal", "low", "medium", "high", "xhigh", "max"),
}
# Fields that the gateway handles itself; all others are forwarded unchanged.
CONSUMED = frozenset(
    {
        *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "response_format"),
        *("functions", "function_call", "stream", "stream_options", "n", "modalities"),
        "web_search_options",
    }
)
_REFUSED = ("audio",)


_NO_MESSAGES: tuple[ChatMessage, ...] = ()


class _Fields(ChatRequestBody, kw_only=True):
    """A request whose messages are typed one by one."""

    messages: list[Any]


class _History(msgspec.Struct, frozen=True):
    """State of the reader after some messages. `asked` counts the ids of the calls in the last message that is not an
    output, and `waiting` those of them that have no output yet.
    """

    number: int = 0
    items: tuple[Item, ...] = ()
    asked: Mapping[str, int] = {}
    waiting: Mapping[str, int] = {}


class DecodedChat(msgspec.Struct, frozen=True):
    """A request whose fields and messages have the right types, and all fields as JSON."""

    body: ChatRequestBody
    messages: Sequence[ChatMessage]
    given: dict[str, Any]
    rules: RequestRules = STRICT

    @property
    def forbids_calls(self) -> bool:
        """Whether no tool may be called."""
        return "none" in (self.body.tool_choice, self.body.function_call)


class ChatRequest(msgspec.Struct, frozen=True):
    """A validated request. `fields` are forwarded unchanged; `legacy`: it used `functions`; `choices`: the number of
    answers requested. `unread` are the names of fields neither read nor forwarded.

    `offer` is the catalog of its tools if some of them run here; None if all are the client's. `names` maps the model's
    tool names to the client's; None if they are the same.
    """

    model: str
    conversation: Conversation
    stream: bool
    include_usage: bool
    legacy: bool
    fields: dict[str, Any]
    offer: ToolCatalog | None = None
    names: ToolNames | None = None
    choices: int = 1
    unread: frozenset[str] = frozenset()


def read_request(given: object, *, mend: bool = False) -> ChatRequest:
    """Check a decoded request without tools that run here the way OpenAI's API does. `mend` is that of
    `decode_request`. Raises `RequestError`.
    """
    return read_decoded(decode_request(given, mend=mend), {})


def decode_request(given: object, *, mend: bool = False, rules: RequestRules = STRICT) -> DecodedChat:
    """The fields of a request, each of its type and within its bounds. Raises `RequestError`.

    `mend`: unpaired calls and outputs are repaired instead of refused; lenient rules imply this.
    """
    if (mend or rules.is_lenient) and isinstance(given, dict) and isinstance(given.get("messages"), list):
        given = {**given, "messages": mend_messages(given["messages"])}
    try:
        request = msgspec.convert(given, _Fields)
        assert isinstance(given, dict)
        messages = fold(given["messages"], _NO_MESSAGES, _extend_typed)
    except msgspec.ValidationError as error:
        raise _fault(given) from error
    _refuse_unsupported(request, given)
    if not request.messages:
        raise RequestError(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            param="messages",
            code="empty_array",
        )
    if _is_legacy(request) and request.tools is not None:
        raise RequestError(
            "Invalid request: 'functions' and 'tools' cannot both be provided. 'functions' are deprecated; use the "
            "'tools' parameter instead."
        )
    return DecodedChat(request, messages, given, rules)


def _fault(given: object) -> RequestError:
    """The error for a malformed request."""
    try:
        msgspec.convert(given, ChatRequestBody)
    except msgspec.ValidationError as error:
        if isinstance(given, dict) and "input" in given and "messages" not in given:
            return missing("messages", " Requests with 'input' are for POST /v1/responses.")
        return from_validation(error, given, _SUPPORTED)
    raise AssertionError("all of it has the right types")


def read_decoded(decoded: DecodedChat, servers: Mapping[str, McpServer], *, searches_web: bool = False) -> ChatRequest:
    """Parse a request. `servers` are the MCP servers whose tools it has, by labels; `searches_web`: the gateway can
    search the web. Raises `RequestError`.
    """
    request, given, rules = decoded.body, decoded.given, decoded.rules
    legacy = _is_legacy(request)
    if request.web_search_options is not None and not searches_web:
        raise needs_search("Unsupported parameter: 'web_search_options'", "web_search_options", "unsupported_parameter")
    runs_here = bool(servers) or request.web_search_options is not None
    offer = _offer(request, servers, rules) if runs_here or rules.is_lenient else None
    conversation = (_legacy_conversation if legacy else _conversation)(request, given, offer)
    history = fold(given["messages"], _History(), partial(_read_on, decoded), rules.is_lenient, "chat history")
    if history.waiting:
        raise _unanswered(history.waiting, history.number - 1)
    fields = {key: value for key, value in given.items() if key not in CONSUMED and value is not None}
    return ChatRequest(
        model=request.model,
        conversation=msgspec.structs.replace(
            conversation,
            items=_flat(history.items, offer.names) if offer is not None and rules.is_lenient else history.items,
            response_format=read_response_format(request.response_format),
        ),
        stream=bool(request.stream),
        include_usage=bool(request.stream_options and request.stream_options.include_usage),
        legacy=legacy,
        fields=fields,
        offer=offer if runs_here else None,
        names=offer.names if offer is not None and rules.is_lenient else None,
        choices=request.n or 1,
        unread=unread_fields(given).union(() if offer is None else offer.left_out),
    )


def _is_legacy(request: ChatRequestBody) -> bool:
    return request.functions is not None or request.function_call is not None


def _flat(items: Sequence[Item], names: ToolNames) -> tuple[Item, ...]:
    """The items with calls as the model knows their tools."""
    return tuple(
        msgspec.structs.replace(item, name=names.flat(item.name)) if type(item) is Call else item for item in items
    )


def _offer(request: ChatRequestBody, servers: Mapping[str, McpServer], rules: RequestRules) -> ToolCatalog:
    """The client's tools, which come first and so have their own names, and those of the servers."""
    offer = ToolCatalog(servers, searches_web=True, rules=rules)
    for number, function in enumerate(request.functions or ()):
        offer.offer_as_named(function, f"functions[{number}]", "function")
    for number, tool in enumerate(request.tools or ()):
        kind, at = tool.get("type"), f"tools[{number}]"
        is_unknown = isinstance(kind, str) and kind not in ("function", "custom", "mcp")
        if kind != "mcp" and not (is_unknown and offer.leave_out(str(kind), at)):
            offer.offer_as_named(tool, at, "any" if rules.is_lenient else "chat")
    offer.add([{"type": "mcp", "server_label": label} for label in servers])
    if request.web_search_options is not None:
        at = "web_search_options"
        offer.offer_web_search(read_search_options(request.web_search_options, at), at, at)
    return offer


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
    if request.stream_options is not None and not request.stream:
        raise RequestError(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
        )


def _conversation(request: ChatRequestBody, given: Mapping[str, Any], offer: ToolCatalog | None) -> Conversation:
    tools = offered_tools(given.get("tools"), "tools", "chat") if offer is None else offer.tools
    lenient = offer is not None and offer.rules.is_lenient
    flat = offer.names.flat if offer is not None and lenient else as_named
    conversation = Conversation(
        tools=tools,
        tool_choice=read_tool_choice(request.tool_choice, tools, flat=flat),
        allowed_tools=read_allowed_tools(request.tool_choice, tools, flat=flat),
        parallel_tool_calls=request.parallel_tool_calls is not False,
    )
    check_choice(
        conversation,
        choice_given=request.tool_choice is not None and not (lenient and conversation.tool_choice == "auto"),
        parallel_given=request.parallel_tool_calls is not None and not lenient,
    )
    return conversation


def _legacy_conversation(request: ChatRequestBody, given: Mapping[str, Any], offer: ToolCatalog | None) -> Conversation:
    """The API before tools: `functions`, `function_call`, one call at most."""
    tools = offered_tools(given.get("functions"), "functions", "function") if offer is None else offer.tools
    choice = read_function_call(request.function_call, tools)
    if offer is not None and isinstance(choice, NamedTool):
        choice = NamedTool(offer.names.flat(choice.name))
    conversation = Conversation(tools=tools, tool_choice=choice, parallel_tool_calls=False)
    lenient = offer is not None and offer.rules.is_lenient
    choice_given = request.function_call is not None and not (lenient and choice == "auto")
    check_choice(conversation, choice_given=choice_given, parallel_given=False, param="function_call")
    return conversation


def _extend_typed(before: tuple[ChatMessage, ...], messages: Sequence[Any], start: int) -> tuple[ChatMessage, ...]:
    return (*before, *type_messages(messages, start))


def _read_on(decoded: DecodedChat, history: _History, given: Sequence[Any], start: int) -> _History:
    """The history with the messages from number `start` on. Raises `RequestError`."""
    # One message after the other: the first fault counts, whatever was read before.
    read: list[ReadMessage] = []
    asked, waiting = history.asked, history.waiting
    for message in read_typed_messages(decoded.messages, given, start, decoded.rules):
        asked, waiting = _paired(asked, waiting, message)
        read.append(message)
    return _History(len(given), items_of(read, history.items), asked, waiting)


def _paired(
    asked: Mapping[str, int], waiting: Mapping[str, int], message: ReadMessage
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """How often each id was asked last, and how often each waits, after this message: each call is answered directly
    after its message, and each answer has its call. Raises `RequestError`.
    """
    id_ = message.answers
    if id_ is None:
        if waiting:
            raise _unanswered(waiting, message.number)
        return message.asks, message.asks
    if id_ not in asked:
        raise RequestError(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
            "'tool_calls'.",
            param=f"messages.[{message.number}].role",
        )
    left = dict(waiting)
    if left.get(id_, 0) > 1:
        left[id_] -= 1
    else:
        left.pop(id_, None)
    return asked, left


def _unanswered(waiting: Mapping[str, int], number: int) -> RequestError:
    ids = Counter(waiting).elements()
    return RequestError(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(ids)}",
        param=f"messages.[{number}].role",
    )
