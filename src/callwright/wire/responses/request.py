"""The Responses API: the request, checked the way OpenAI's API does."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from callwright.conversation import Conversation, NamedTool, ToolChoice
from callwright.errors import RequestError, did_you_mean
from callwright.memo.prefixes import once
from callwright.openai_format.errors import from_validation, missing, quote_list
from callwright.openai_format.mcp_tools import McpServer
from callwright.openai_format.request_rules import STRICT, RequestRules
from callwright.openai_format.response_format import read_response_format
from callwright.openai_format.tool_catalog import ToolCatalog
from callwright.openai_format.tool_choice import BUILT_IN, check_named, read_allowed_tools, read_tool_choice
from callwright.wire.instructions import instructions
from callwright.wire.pairing import copied, paired
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.pass_rules import SAMPLING_FIELDS
from callwright.wire.responses.compaction import ContextManagement, compact_threshold
from callwright.wire.responses.input_items import InputItemReader, read_along
from callwright.wire.responses.item_types import Effort
from callwright.wire.responses.metadata import check_metadata

_Summary: TypeAlias = Literal["auto", "concise", "detailed", "none"]


class _Reasoning(msgspec.Struct):
    effort: Effort | None = None
    summary: _Summary | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None  # the former name of `summary`
    context: Literal["auto", "current_turn", "all_turns"] | None = None


class _Text(msgspec.Struct):
    format: dict[str, Any] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class _PromptCacheOptions(msgspec.Struct):
    mode: Literal["implicit", "explicit"] | None = None
    ttl: Literal["30m", "12h"] | None = None
    prewarm: bool | None = None


class _StreamOptions(msgspec.Struct):
    include_obfuscation: bool | None = None


class _ConversationId(msgspec.Struct):
    id: str


class ResponsesRequest(msgspec.Struct):
    """A request as received, with validated field types. Fields not listed here are ignored, or refused by name."""

    model: str
    input: str | list[dict[str, Any]] | None = None
    instructions: str | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    text: _Text | None = None
    reasoning: _Reasoning | None = None
    max_output_tokens: Annotated[int, msgspec.Meta(ge=16)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    presence_penalty: Annotated[float, msgspec.Meta(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, msgspec.Meta(ge=-2, le=2)] | None = None
    store: bool | None = None
    previous_response_id: str | None = None
    conversation: str | _ConversationId | None = None
    include: list[str] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    max_tool_calls: Annotated[int, msgspec.Meta(ge=1)] | None = None
    metadata: dict[str, Any] | None = None
    background: bool | None = None
    prompt: dict[str, Any] | None = None
    service_tier: str | None = None
    user: str | None = None
    safety_identifier: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    prompt_cache_key: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    prompt_cache_options: _PromptCacheOptions | None = None
    context_management: list[ContextManagement] | None = None
    background_options: dict[str, Any] | None = None

    @property
    def conversation_id(self) -> str | None:
        """The conversation that it belongs to."""
        given = self.conversation
        return given.id if isinstance(given, _ConversationId) else given

    @property
    def compact_threshold(self) -> int | None:
        """The number of tokens from which the conversation is compacted before the next answer. None: never."""
        return compact_threshold(self.context_management)

    @property
    def summary(self) -> _Summary | None:
        """The requested kind of reasoning summary, or None."""
        reasoning = self.reasoning
        return (reasoning.summary or reasoning.generate_summary) if reasoning else None

    def includes(self, what: str) -> bool:
        """Whether the answer must include something that it omits by default."""
        return what in (self.include or ())


_INCLUDES: Final = (
    *("file_search_call.results", "web_search_call.results", "web_search_call.action.sources"),
    *("message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs"),
    *("reasoning.encrypted_content", "message.output_text.logprobs"),
)
_SUPPORTED: Final[Mapping[str, Sequence[str]]] = {
    "reasoning.effort": ("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "reasoning.summary": ("auto", "concise", "detailed"),
    "reasoning.generate_summary": ("auto", "concise", "detailed"),
    "reasoning.context": ("auto", "current_turn", "all_turns"),
    "text.verbosity": ("low", "medium", "high"),
    "truncation": ("auto", "disabled"),
    "service_tier": ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"),
}
# Fields of Chat Completions, and their names here.
_MOVED: Final = {"messages": "input", "response_format": "text.format", "reasoning_effort": "reasoning.effort"}
# Fields forwarded unchanged: those of the chat API that this API has, too, or that model servers know.
_HANDED_ON: Final = (
    *("temperature", "top_p", "presence_penalty", "frequency_penalty", "seed", "stop", "logit_bias"),
    *("prompt_cache_key", "prompt_cache_retention", "moderation", "safety_identifier", "service_tier", "user"),
    *sorted(SAMPLING_FIELDS - {"reasoning"}),  # which is OpenAI's own here
)
# Further fields of a message over WebSocket.
_OF_MESSAGES: Final = ("type", "stream_id", "generate")


def decode_request(given: object) -> ResponsesRequest:
    """The fields of a request, each of its type and within its bounds. Raises `RequestError`."""
    if isinstance(given, Mapping):
        _refuse_moved(given)
    try:
        request = msgspec.convert(given, ResponsesRequest)
    except msgspec.ValidationError as error:
        raise from_validation(error, given, _SUPPORTED) from error
    _refuse_unsupported(request)
    for number, wanted in enumerate(request.include or ()):
        _check_among(_INCLUDES, wanted, f"include[{number}]")
    _check_among(_SUPPORTED["service_tier"], request.service_tier, "service_tier")
    check_metadata(request.metadata)
    compact_threshold(request.context_management)
    return request


def unknown_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request that are neither read nor forwarded."""
    known = (*ResponsesRequest.__struct_fields__, *_HANDED_ON, *_OF_MESSAGES)
    return {name: value for name, value in given.items() if name not in known}


def _refuse_moved(given: Mapping[str, Any]) -> None:
    """Refuse a request in the shape of Chat Completions, in OpenAI's words."""
    for name, now in _MOVED.items():
        if given.get(name) is not None:
            raise RequestError(
                f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to '{now}'. Try "
                "again with the new parameter.",
                param=name,
                code="unsupported_parameter",
            )


def _check_among(known: Sequence[str], value: str | None, param: str) -> None:
    if value is not None and value not in known:
        raise RequestError(
            f"Invalid value: '{value}'. Supported values are: {quote_list(known)}.", param=param, code="invalid_value"
        )


def _refuse_unsupported(request: ResponsesRequest) -> None:
    if request.prompt is not None:
        raise RequestError(
            "Unsupported parameter: 'prompt' is not supported: stored prompts live at OpenAI. Send 'instructions' and "
            "'input'.",
            param="prompt",
            code="unsupported_parameter",
        )
    if request.prompt_cache_options is not None and request.prompt_cache_options.prewarm:
        raise RequestError(
            "Unsupported parameter: 'prompt_cache_options.prewarm' is not supported: servers fill their caches by "
            "requests. Over WebSocket, 'generate: false' prepares a response.",
            param="prompt_cache_options.prewarm",
            code="unsupported_parameter",
        )
    if request.background and request.store is False:
        raise RequestError(
            "Background mode requires 'store' to be true: a background response is read by its id.",
            param="background",
            code="invalid_value",
        )
    if request.previous_response_id is not None and request.conversation is not None:
        raise RequestError(
            "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Only one of them can say what "
            "came before.",
            param="previous_response_id",
            code="mutually_exclusive_parameters",
        )
    if request.stream_options is not None and not request.stream:
        raise RequestError(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
        )


def read_request(
    request: ResponsesRequest,
    given: Mapping[str, Any],
    history: Sequence[Mapping[str, Any]],
    *,
    servers: Mapping[str, McpServer] | None = None,
    mend: bool = False,
    searches_web: bool = False,
    rules: RequestRules = STRICT,
) -> ParsedRequest:
    """Parse a request that continues the items of its history, which were checked when received.

    `given` is the decoded body, for the fields forwarded unchanged; `servers` are the MCP servers that it offers, and
    those that its model always has, by their labels. `searches_web`: the gateway can search the web. Raises
    `RequestError`.
    """
    if request.input is None and not history:
        raise missing("input")
    reader = InputItemReader(_offer(given.get("tools"), servers or {}, rules, searches_web=searches_web))
    begun = reader.offer.tools
    given_items = () if request.input is None else request.input
    reader = _read_items(reader, given_items, given.get("input") or (), history)
    offer = reader.offer
    offer.check_run()
    found = [tool for tool in offer.tools if tool not in begun]  # their schemas are among the items
    items = paired(reader.found, mend=mend or rules.is_lenient)
    if request.instructions:
        items = (instructions(request.instructions), *items)
    wanted = _with_functions_named(request.tool_choice, offer, servers or {})
    choice = _choice(wanted, offer)
    format_ = reader.format or (request.text and request.text.format)
    conversation = Conversation(
        items=items,
        tools=offer.tools,
        shown_tools=tuple(tool for tool in offer.tools if tool not in found) if found else None,
        tool_choice=choice,
        allowed_tools=_allowed(wanted, offer),
        parallel_tool_calls=request.parallel_tool_calls is not False,
        response_format=read_response_format(format_, "text.format", is_flat=True),
        keeps_reasoning=request.reasoning is not None and request.reasoning.context == "all_turns",
    )
    return ParsedRequest(
        conversation,
        offer,
        _fields(request, given, reader),
        compacts=reader.compacts,
        approved=reader.approved,
        listed=frozenset(reader.listed),
        sources=reader.sources,
        frees=isinstance(request.tool_choice, Mapping) and request.tool_choice.get("type") == "mcp",
    )


def _read_items(
    reader: InputItemReader, items: str | Sequence[Any], given: Any, history: Sequence[Mapping[str, Any]]
) -> InputItemReader:
    """A copy of the reader after the history and the items of a request; `given` has these as JSON."""
    if not (history or isinstance(items, str)):
        reader = read_along(reader, items, given)
    else:
        reader = copied(reader)
        reader.read(history, "previous_response_id", again=True)
        reader.read([{"role": "user", "content": items}] if isinstance(items, str) else items, "input")
    reader.finish()
    return reader


def _offer(
    given: Sequence[Mapping[str, Any]] | None,
    servers: Mapping[str, McpServer],
    rules: RequestRules,
    *,
    searches_web: bool,
) -> ToolCatalog:
    """The tools of a request, and those of MCP servers that its model always has.

    Cached by the list of tools, as a client sends the same ones with each request: to be copied before it is changed.
    """

    def make_catalog() -> ToolCatalog:
        offer = ToolCatalog(servers, searches_web=searches_web, rules=rules)
        offer.add(given or ())
        return offer

    if not servers:
        return once(given or (), f"offer of responses, {searches_web=} {rules.is_lenient}", make_catalog)
    offer = make_catalog()
    asked = {tool.get("server_label") for tool in given or () if tool.get("type") == "mcp"}
    offer.add([{"type": "mcp", "server_label": label} for label in servers if label not in asked])
    return offer


def _with_functions_named(given: Any, offer: ToolCatalog, servers: Mapping[str, McpServer]) -> Any:
    """A tool choice with the tools that run here as functions: those of MCP servers as those of a namespace, all of
    them if the choice names no tool. Raises `RequestError` for an unknown server or tool.
    """
    if not isinstance(given, Mapping):
        return given
    if given.get("type") == "mcp":
        own = _tools_of(given, servers, "tool_choice")
        return own[0] if len(own) == 1 else {"type": "allowed_tools", "mode": "required", "tools": own}
    if (searching := _search_of(given, offer, "tool_choice.type")) is not None:
        return searching
    tools = given.get("tools")
    if given.get("type") != "allowed_tools" or not isinstance(tools, list):
        return given
    named: list[Any] = []
    for number, tool in enumerate(tools):
        if isinstance(tool, Mapping) and tool.get("type") == "mcp":
            named += _tools_of(tool, servers, f"tool_choice.tools[{number}]")
        else:
            named.append(_search_of(tool, offer, f"tool_choice.tools[{number}].type") or tool)
    return {**given, "tools": named}


def _search_of(given: Any, offer: ToolCatalog, param: str) -> dict[str, Any] | None:
    """The function for a choice of web search, or None. Raises `RequestError` if it is not offered."""
    kind = given.get("type") if isinstance(given, Mapping) else None
    if not isinstance(kind, str):
        return None
    offer.check_demanded(kind, param)
    if kind.startswith("web_search") and offer.web is not None:
        return {"type": "function", "name": "web_search"}
    return None


def _tools_of(given: Mapping[str, Any], servers: Mapping[str, McpServer], param: str) -> list[dict[str, Any]]:
    label, name = given.get("server_label"), given.get("name")
    if label is None:
        raise missing(f"{param}.server_label")
    server = servers.get(str(label))
    if server is None:
        raise RequestError(
            f"Invalid '{param}.server_label': no MCP server of 'tools' has the label '{label}'."
            f"{did_you_mean(str(label), servers)}",
            param=f"{param}.server_label",
            code="invalid_value",
        )
    names = [tool.name for tool in server.tools]
    if name is not None and name not in names:
        raise RequestError(
            f"Invalid '{param}.name': the MCP server '{label}' has no tool '{name}'.{did_you_mean(str(name), names)}",
            param=f"{param}.name",
            code="invalid_value",
        )
    return [{"type": "function", "namespace": label, "name": one} for one in names if name in (None, one)]


def _choice(given: Any, offer: ToolCatalog) -> ToolChoice:
    kind = given.get("type") if isinstance(given, Mapping) else None
    if kind in BUILT_IN:
        given = {"type": "function", "name": kind}
    choice = read_tool_choice(given, offer.tools, flat=offer.names.flat)
    if isinstance(choice, NamedTool):
        offer.show_deferred(choice.name)  # no search is needed for a tool that the request names
    if choice == "required" and not offer.tools:
        raise RequestError("Tool choice 'required' must be specified with 'tools' parameter.", param="tool_choice")
    if isinstance(choice, NamedTool) and not any(tool.name == choice.name for tool in offer.tools):
        if kind != "allowed_tools":
            raise RequestError(f"Tool choice '{kind}' not found in 'tools' parameter.", param="tool_choice")
        check_named(choice, offer.tools)
    return choice


def _allowed(given: Any, offer: ToolCatalog) -> tuple[str, ...] | None:
    """The tools that may be called, including those that a search must find first, and the search itself."""
    if not isinstance(given, Mapping):
        return None
    allowed = read_allowed_tools(given, (*offer.tools, *offer.deferred), flat=offer.names.flat)
    return (*allowed, "tool_search") if allowed is not None and offer.search == "server" else allowed


def _fields(request: ResponsesRequest, given: Mapping[str, Any], reader: InputItemReader) -> dict[str, Any]:
    """The upstream request's fields apart from the conversation, as its chat API names them."""
    fields = {name: given[name] for name in _HANDED_ON if given.get(name) is not None}
    if request.max_output_tokens is not None:
        fields["max_tokens"] = request.max_output_tokens
    if request.prompt_cache_options is not None:
        read = msgspec.to_builtins(request.prompt_cache_options)
        fields["prompt_cache_options"] = {key: it for key, it in read.items() if it is not None}
    effort = reader.effort or (request.reasoning and request.reasoning.effort)
    if effort:
        fields["reasoning_effort"] = effort
    if request.text is not None and request.text.verbosity is not None:
        fields["verbosity"] = request.text.verbosity
    if request.includes("message.output_text.logprobs"):
        fields["logprobs"] = True
        if request.top_logprobs is not None:
            fields["top_logprobs"] = request.top_logprobs
    return fields
