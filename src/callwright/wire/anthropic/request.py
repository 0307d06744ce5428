"""Validate and parse requests of Anthropic's Messages API."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from callwright.conversation import Conversation, Item, Message, Reasoning, ResponseFormat
from callwright.errors import RequestError
from callwright.openai_format.errors import from_validation, missing, quote_list, wrong_type
from callwright.openai_format.mcp_tools import McpServer
from callwright.openai_format.request_rules import STRICT, RequestRules
from callwright.schema.strict import closed_problems
from callwright.wire.anthropic import searches
from callwright.wire.anthropic.blocks import MessageReader, read_messages
from callwright.wire.anthropic.context_edits import AppliedEdit, apply_edits, clears_thinking
from callwright.wire.anthropic.errors import thread_unsupported
from callwright.wire.anthropic.tools import NO_WEB_SEARCH, offered_tools, read_choice
from callwright.wire.anthropic.types import MessagesRequest, ThinkingConfig
from callwright.wire.anthropic.unread_fields import unread_fields
from callwright.wire.pairing import paired
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.pass_rules import SAMPLING_FIELDS

# How reasoning is returned: as text, only packed into its signature, or not at all.
Thinking = Literal["shown", "sealed", "none"]

_SUPPORTED: Final[Mapping[str, Sequence[str]]] = {
    "messages[].role": ("user", "assistant", "system"),
    "output_config.effort": ("low", "medium", "high", "xhigh", "max"),
    "thinking.type": ("enabled", "disabled", "adaptive", "between_tools"),
    "thinking.display": ("summarized", "omitted", "updates"),
}
# Levels that few servers know.
_EFFORTS: Final = {"xhigh": "high", "max": "high"}
_HANDED_ON: Final = ("temperature", "top_p", "top_k")
# Fields of model servers that this API lacks, without those that have another meaning in it.
_SAMPLING: Final = SAMPLING_FIELDS - {"thinking"}
# Fields without effect on the answer, which clients always send.
_TAKEN: Final = ("cache_control", "metadata")
# With this beta every tool's input streams as it is written.
_EAGER: Final = "fine-grained-tool-streaming-2025-05-14"


class ParsedMessages(Struct, frozen=True):
    """A parsed request. `asked` is sent to the model; `dropped` names the fields and blocks that are not; `edits` are
    the context edits applied; `clears_thinking`: some of them remove reasoning.
    """

    asked: ParsedRequest
    thinking: Thinking
    stop_sequences: tuple[str, ...]
    stream: bool
    dropped: frozenset[str]
    edits: tuple[AppliedEdit, ...] | None = None
    clears_thinking: bool = False


def decode_request(given: object, *, counts: bool = False) -> MessagesRequest:
    """The fields of a request, each of its type. `counts`: only count its tokens. Raises `RequestError`."""
    try:
        request = msgspec.convert(given, MessagesRequest)
    except msgspec.ValidationError as error:
        raise from_validation(error, given, _SUPPORTED) from error
    if request.max_tokens is None and not counts:
        raise missing("max_tokens", " It is the most tokens that the answer may have.")
    if not request.messages:
        raise RequestError("Invalid 'messages': expected at least one message, got an empty array.", param="messages")
    if request.thread not in (None, False):
        raise thread_unsupported()
    if request.compaction is not None:
        raise RequestError(
            "Unsupported parameter: 'compaction': this gateway does not make summaries on this API. Ask for one in a "
            "message, and leave it out.",
            param="compaction",
            code="unsupported_parameter",
        )
    return request


def read_request(
    request: MessagesRequest,
    given: Mapping[str, Any],
    servers: Mapping[str, McpServer],
    betas: str = "",
    *,
    counts: bool = False,
    searches_web: bool = False,
    rules: RequestRules = STRICT,
) -> ParsedMessages:
    """Parse a request. `given` is its decoded body, `servers` are the MCP servers that it offers, by their names,
    `betas` is its header `anthropic-beta`; `counts` is that of `decode_request`. `searches_web`: the gateway can search
    the web. Raises `RequestError`.
    """
    offered = offered_tools(given.get("tools"), servers, eager=_EAGER in betas, searches_web=searches_web, rules=rules)
    listed = offered.tools
    reader = MessageReader(offered)
    reader.read_system(request.system)
    if any(kind.startswith(searches.KIND) for kind in offered.left_out):
        reader.tell(NO_WEB_SEARCH)
    reader = read_messages(reader, request.messages, given["messages"])
    catalog = reader.catalog
    found = catalog.tools
    choice, parallel = read_choice(request.tool_choice, catalog, reader.removed)
    known = {tool.name for tool in found}
    # the one that is chosen, if nothing named it
    listed += tuple([tool for tool in catalog.tools if tool.name not in known])
    told = reader.told
    items = paired(reader.found, mend=True, behind=len(told))
    items = (*told, *items)
    if not (items or counts):
        unknown_types = f"blocks of unknown types: {quote_list(sorted(reader.dropped))}"
        raise RequestError(
            "Invalid 'messages': expected a message with something in it, got "
            f"{unknown_types if reader.dropped else 'blank ones only'}.",
            param="messages",
        )
    edits = request.context_management.edits if request.context_management else []
    items, applied, unknown = apply_edits(items, edits, catalog.names, listed)
    items, prefill = _prefill(request, items, reader.dropped)
    tools = tuple([tool for tool in catalog.tools if tool.name not in reader.removed])
    conversation = Conversation(
        items=items,
        tools=tools,
        shown_tools=None if tools == listed else listed,
        tool_choice=choice if tools else "auto",
        parallel_tool_calls=parallel,
        response_format=_format(request),
        prefill=prefill,
        keeps_reasoning=True,  # an edit of the context takes it out
    )
    fields, dropped = _fields(request, given)
    asked = ParsedRequest(conversation, catalog, fields, sources=reader.sources)
    return ParsedMessages(
        asked,
        thinking=_thinking(request.thinking),
        stop_sequences=tuple(request.stop_sequences or ()),
        stream=bool(request.stream),
        dropped=unread_fields(given).union(dropped, reader.dropped, unknown, catalog.left_out),
        edits=tuple(applied) if edits else None,
        clears_thinking=clears_thinking(edits),
    )


def _prefill(request: MessagesRequest, items: tuple[Item, ...], dropped: set[str]) -> tuple[tuple[Item, ...], str]:
    """The items before a prefill, and the prefill. Raises `RequestError` if it conflicts with another field."""
    last = items[-1] if items else None
    if not (isinstance(last, Message) and last.role == "assistant" and request.messages[-1].role == "assistant"):
        return items, ""
    forced = request.tool_choice is not None and request.tool_choice.get("type") in ("any", "tool")
    bars = "tool_choice" if forced else "output_config.format" if _format(request) is not None else None
    if bars is not None:
        raise RequestError(
            f"Invalid 'messages': a last message of the role 'assistant' is the start of the answer, and '{bars}' asks "
            "for another one. Leave out one of them.",
            param="messages",
        )
    before = items[:-1]
    while before and isinstance(before[-1], Reasoning):  # an answer that has begun thinks no more
        before = before[:-1]
        dropped.add("thinking")
    return before, last.text.rstrip()


def _thinking(given: ThinkingConfig | None) -> Thinking:
    """How reasoning is shown. A client that does not ask for it expects the text first."""
    if given is None or given.type == "disabled":
        return "none"
    return "sealed" if given.display == "omitted" else "shown"


def _format(request: MessagesRequest) -> ResponseFormat | None:
    """The schema that the text of the answer must fit. It is always a strict one."""
    config = request.output_config
    given, path = config.format if config is not None else None, "output_config.format"
    if given is None:
        given, path = request.output_format, "output_format"
    if given is None:
        return None
    schema = given.get("schema")
    if given.get("type") is None:
        raise missing(f"{path}.type")
    if given["type"] != "json_schema":
        raise RequestError(
            f"Invalid value: '{given.get('type')}'. Supported values are: 'json_schema'.",
            param=f"{path}.type",
            code="invalid_value",
        )
    if not isinstance(schema, Mapping):
        raise missing(f"{path}.schema") if schema is None else wrong_type(f"{path}.schema", "object", schema)
    if problems := closed_problems(schema):
        raise RequestError(f"Invalid schema at '{path}.schema': {problems[0]}", param=f"{path}.schema")
    return ResponseFormat("json_schema", "answer", None, schema, strict=True)


def _fields(request: MessagesRequest, given: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The upstream request's fields apart from the conversation, as its chat API names them; and the names of the
    fields that are dropped.
    """
    fields = {name: given[name] for name in (*_HANDED_ON, *sorted(_SAMPLING)) if given.get(name) is not None}
    if request.max_tokens is not None:
        fields["max_tokens"] = request.max_tokens or 1  # 0: only read the prompt into the cache
    if request.output_config is not None and (effort := request.output_config.effort) is not None:
        fields["reasoning_effort"] = _EFFORTS.get(effort, effort)
    wanted = request.thinking.type if request.thinking is not None else None
    if wanted in ("disabled", "enabled"):  # for `adaptive` the model's template decides
        template = given.get("chat_template_kwargs")
        own = template if isinstance(template, Mapping) else {}
        thinks = wanted == "enabled"
        flags = {"enable_thinking": thinks, "thinking": thinks}
        fields["chat_template_kwargs"] = {**flags, **own} if thinks else {**own, **flags}
    if wanted == "disabled":
        fields.pop("reasoning_effort", None)
    known = {*MessagesRequest.__struct_fields__, *_SAMPLING, *_TAKEN}
    return fields, {name for name in given if name not in known and given[name] is not None}
