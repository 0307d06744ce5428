"""Answers of the Responses API: the response object, and the events of its stream.

One writer builds both: an answer that is not streamed is the object of the last event. Items do not interleave, each
has its own begin, deltas and end; their ids are the same in every event and in the object.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, assert_never

from msgspec import UNSET, structs

from callwright.calls.citations import Cited
from callwright.conversation import JsonObject
from callwright.events import (
    AnnotationsDelta,
    AnswerMetadata,
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    Markup,
    Problem,
    ReasoningDelta,
    RefusalDelta,
    Usage,
)
from callwright.openai_format.tool_names import ToolNames
from callwright.wire.responses.event_types import (
    ResponseCompletedEvent,
    ResponseCreatedEvent,
    ResponseFailedEvent,
    ResponseIncompleteEvent,
    ResponseInProgressEvent,
    ResponseMcpListToolsCompletedEvent,
    ResponseMcpListToolsInProgressEvent,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseStreamEvent,
)
from callwright.wire.responses.output_items import (
    OpenCustomCall,
    OpenFunctionCall,
    OpenItem,
    OpenMcpCall,
    OpenMessage,
    OpenReasoning,
    OpenSummary,
    OpenWebSearch,
    Status,
    WholeCall,
)
from callwright.wire.responses.output_types import McpListTools, OutputItem
from callwright.wire.responses.request import ResponsesRequest
from callwright.wire.responses.server_items import server_items
from callwright.wire.responses.types import (
    InputTokensDetails,
    OutputTokensDetails,
    Response,
    ResponseConversation,
    ResponseError,
    ResponseIncompleteDetails,
    ResponseReasoning,
    ResponseTextConfig,
    ResponseUsage,
)
from callwright.wire.server_events import (
    Compacted,
    McpApprovalAsked,
    McpEnded,
    McpListed,
    McpStarted,
    ServerEvent,
    ToolsSearched,
    WebSearchEnded,
    WebSearchStarted,
)

ApiDialect: TypeAlias = Literal["openai", "open_responses"]
_INCOMPLETE: Final[Mapping[str, Literal["max_output_tokens", "content_filter"]]] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
}
_AnyOpen: TypeAlias = OpenItem[Any]


def response_usage(usage: Usage, cost: int | None = None) -> ResponseUsage:
    """Token counts as the API writes them. `cost` is in millionths of the currency."""
    return ResponseUsage(
        input_tokens=usage.prompt_tokens,
        input_tokens_details=InputTokensDetails(cached_tokens=usage.cached_tokens),
        output_tokens=usage.completion_tokens,
        output_tokens_details=OutputTokensDetails(usage.reasoning_tokens),
        total_tokens=usage.total_tokens,
        cost=UNSET if cost is None else cost / 1_000_000,
    )


def response_object(request: ResponsesRequest, *, id_: str, created_at: int, tools: Sequence[JsonObject]) -> Response:
    """The initial response: the fields of the request, with defaults for those not set."""
    text, reasoning = request.text, request.reasoning
    conversation = request.conversation_id
    return Response(
        id=id_,
        created_at=created_at,
        model=request.model,
        previous_response_id=request.previous_response_id,
        instructions=request.instructions,
        tools=tools,
        tool_choice=request.tool_choice or "auto",
        parallel_tool_calls=request.parallel_tool_calls is not False,
        text=ResponseTextConfig(
            format=_format((text and text.format) or {"type": "text"}),
            verbosity=(text and text.verbosity) or UNSET,
        ),
        reasoning=ResponseReasoning(
            effort=reasoning.effort if reasoning else None,
            summary=request.summary,
        ),
        temperature=_or(request.temperature, 1.0),
        top_p=_or(request.top_p, 1.0),
        top_logprobs=request.top_logprobs or 0,
        presence_penalty=request.presence_penalty or 0,
        frequency_penalty=request.frequency_penalty or 0,
        max_output_tokens=request.max_output_tokens,
        max_tool_calls=request.max_tool_calls,
        truncation=request.truncation or "disabled",
        store=request.store is not False,
        background=bool(request.background),
        metadata=request.metadata or {},
        safety_identifier=request.safety_identifier,
        prompt_cache_key=request.prompt_cache_key,
        user=request.user,
        conversation=UNSET if conversation is None else ResponseConversation(conversation),
    )


def _format(given: JsonObject) -> JsonObject:
    """The format of the text with all its fields."""
    if given.get("type") != "json_schema":
        return given
    said = {key: value for key, value in given.items() if value is not None}
    return {"description": None, "strict": False, **said}


def _flat(annotation: JsonObject) -> JsonObject:
    """An annotation of Chat Completions in the form of this API: without the nested object."""
    kind = annotation.get("type")
    said = annotation.get(kind) if isinstance(kind, str) else None
    return {"type": kind, **said} if isinstance(said, Mapping) else annotation


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


_CALLS: Final = (OpenFunctionCall, OpenCustomCall, WholeCall, OpenMcpCall, OpenWebSearch)
_SAID: Final = frozenset((ContentDelta, ReasoningDelta, RefusalDelta, AnnotationsDelta, Cited))


class ResponseWriter:
    """Writes the events of one turn as events of the API.

    `response` is the initial object (`response_object`); it holds the answer at the end. `new_id` creates an id from
    its prefix. Calls have the ids that the client gets.
    """

    def __init__(
        self,
        response: Response,
        names: ToolNames,
        request: ResponsesRequest,
        *,
        new_id: Callable[[str], str],
        flavour: ApiDialect = "openai",
    ) -> None:
        self.response = response
        self._names = names
        self._new_id = new_id
        self._flavour = flavour
        self._summarises = request.summary not in (None, "none")
        self._seals = request.includes("reasoning.encrypted_content")
        self._shows_sources = request.includes("web_search_call.action.sources")
        self._events: list[ResponseStreamEvent] = []
        self._emit = self._events.append  # no reference to this writer, which would be a cycle with its items
        self._open: _AnyOpen | None = None
        self._calls: dict[int, _AnyOpen] = {}
        self._later: list[Event | ServerEvent] = []  # events received while a call was open
        self._blanks = ""  # leading whitespace of a possible message
        self._annotations: list[JsonObject] = []  # of a text that has not started
        self._reason = "stop"

    def begin(self) -> list[ResponseStreamEvent]:
        """The events that start the stream."""
        self._emit(ResponseCreatedEvent(response=self._snapshot()))
        self._emit(ResponseInProgressEvent(response=self._snapshot()))
        return self.take()

    def heartbeat(self) -> ResponseStreamEvent:
        """A keep-alive event. It shows no end: a finished response is stored before its last events are sent."""
        response = structs.replace(
            self.response,
            output=[],
            status="in_progress",
            completed_at=None,
            usage=None,
            error=None,
            incomplete_details=None,
        )
        return ResponseInProgressEvent(response=response)

    def write(self, event: Event | ServerEvent) -> None:
        """Write an event of the turn; `take` returns the events for it."""
        if type(event) in _SAID and isinstance(self._open, _CALLS):
            self._later.append(event)  # items do not interleave
            return
        match event:  # the most frequent first: a case that does not match costs more than one that does
            case ArgumentsDelta(index, text):
                if text:
                    self._calls[index].add(text)
            case ContentDelta(text, logprobs):
                self._text(text, (logprobs or {}).get("content") or ())
            case ReasoningDelta(text):
                self._reasoning(text)
            case RefusalDelta(text):  # dropped on purpose: its logprobs, which have no place here
                self._message().refuse(text)
            case AnnotationsDelta() | Cited():
                self._cite(event)
            case AnswerMetadata(_, tier):  # dropped on purpose: the fingerprint, which has no place here
                self.response.service_tier = tier or self.response.service_tier
            case CallStarted():
                self._call(event)
            case CallEnded(_, complete):
                self._end_call(complete=complete)
            case McpStarted() | McpEnded() | WebSearchStarted() | WebSearchEnded():
                self._server_call(event)
            case McpListed() | McpApprovalAsked() | ToolsSearched() | Compacted():
                self._add_items(server_items(event, self._names, self._new_id))
            case Finished(reason):
                self._reason = reason
            case Markup() | Problem():
                pass
            case _:
                assert_never(event)

    def _cite(self, event: AnnotationsDelta | Cited) -> None:
        if isinstance(event, AnnotationsDelta):
            self._annotations += map(_flat, event.annotations)
            if isinstance(self._open, OpenMessage):
                self._annotate(self._open)
        elif isinstance(self._open, OpenMessage):  # a text that has become reasoning is no message
            self._open.cite(event)

    def _end_call(self, *, complete: bool) -> None:
        if complete and isinstance(self._open, OpenMcpCall):
            self._open.end_arguments()
            return
        self._close("completed" if complete else "abandoned")
        self._catch_up()

    def _server_call(self, event: McpStarted | McpEnded | WebSearchStarted | WebSearchEnded) -> None:
        """Write a call that runs here: its output is part of its item."""
        match event:
            case McpStarted(index, id_, name, request):
                self._calls[index] = call = OpenMcpCall(
                    id_, self._names.client(name), self._next(), self._emit, request
                )
                self._begin(call)
                return
            case WebSearchStarted(id_, query):
                index = self._next()
                self._begin(OpenWebSearch(id_, query, index, self._emit, shows_sources=self._shows_sources))
                return
            case McpEnded(output, error):
                assert isinstance(self._open, OpenMcpCall)
                self._open.answer(output, error)
            case WebSearchEnded():
                assert isinstance(self._open, OpenWebSearch)
                self._open.answer(event)
        self.response.output.append(self._open.item)
        self._open = None
        self._catch_up()

    def finish(self, usage: Usage | None, completed_at: int, cost: int | None = None) -> list[ResponseStreamEvent]:
        """The events that end the open item and the response. `cost` is in millionths of the currency."""
        incomplete = _INCOMPLETE.get(self._reason)
        if self._annotations:  # without any text
            self._annotate(self._message())
        if isinstance(self._open, OpenMessage):
            self._open.phase = "final_answer"
        self._close("incomplete" if incomplete else "completed")
        self.response.usage = response_usage(usage, cost) if usage else None
        if incomplete:
            self.response.status = "incomplete"
            self.response.incomplete_details = ResponseIncompleteDetails(incomplete)
            self._emit(ResponseIncompleteEvent(response=self._snapshot()))
        else:
            self.response.status = "completed"
            self.response.completed_at = completed_at
            self._emit(ResponseCompletedEvent(response=self._snapshot()))
        return self.take()

    def fail(self, code: str, message: str) -> list[ResponseStreamEvent]:
        """The events for a failed turn: open items are abandoned, and the response fails."""
        self._close("abandoned")
        self._catch_up()
        self._close("abandoned")
        self.response.status, self.response.completed_at = "failed", None
        self.response.error = ResponseError(code, message)
        self._emit(ResponseFailedEvent(response=self._snapshot()))
        return self.take()

    # --- items ---

    def _text(self, text: str, logprobs: Sequence[Any]) -> None:
        if not isinstance(self._open, OpenMessage):
            text, self._blanks = self._blanks + text, ""
            if not text.strip() and not logprobs:
                self._blanks = text  # whitespace alone is not a message
                return
        message = self._message()
        message.add(text, logprobs)
        if self._annotations:
            self._annotate(message)

    def _message(self) -> OpenMessage:
        """The open message, or a new one."""
        if isinstance(self._open, OpenMessage):
            return self._open
        message = OpenMessage(self._new_id("msg"), self._next(), self._emit)
        self._begin(message)
        return message

    def _annotate(self, message: OpenMessage) -> None:
        """Write the pending annotations."""
        for annotation in self._annotations:
            message.annotate(annotation)
        self._annotations = []

    def _reasoning(self, text: str) -> None:
        if not isinstance(self._open, OpenReasoning | OpenSummary):
            if not text.strip():
                return
            id_, index = self._new_id("rs"), self._next()
            if self._summarises:
                self._begin(OpenSummary(id_, index, self._emit, seals=self._seals))
            else:
                is_open = self._flavour == "open_responses"
                self._begin(OpenReasoning(id_, index, self._emit, open_responses=is_open, seals=self._seals))
        assert self._open is not None
        self._open.add(text)

    def _call(self, started: CallStarted) -> None:
        tool = self._names.client(started.name)
        id_ = started.id
        assert id_ is not None, "the followed turn gives each call an id"
        index = self._next()
        if tool.kind == "function":
            self._begin(OpenFunctionCall(self._new_id("fc"), id_, tool, index, self._emit))
        elif tool.kind == "custom":
            self._begin(OpenCustomCall(self._new_id("ctc"), id_, tool, index, self._emit))
        else:
            self._begin(WholeCall(self._new_id, id_, tool, index, self._emit))
        assert self._open is not None
        self._calls[started.index] = self._open

    def _add_items(self, items: Iterable[OutputItem]) -> None:
        """Add complete items that no model wrote. A list of tools begins empty, with an event when it is complete."""
        for item in items:
            index = self._next()
            lists = isinstance(item, McpListTools)
            begun = structs.replace(item, tools=[]) if lists else item
            self._emit(ResponseOutputItemAddedEvent(output_index=index, item=begun))
            if lists:
                self._emit(ResponseMcpListToolsInProgressEvent(item_id=item.id, output_index=index))
                self._emit(ResponseMcpListToolsCompletedEvent(item_id=item.id, output_index=index))
            self._emit(ResponseOutputItemDoneEvent(output_index=index, item=item))
            self.response.output.append(item)

    def _catch_up(self) -> None:
        """Write the events received while a call was open."""
        later, self._later = self._later, []
        for event in later:
            self.write(event)

    def _next(self) -> int:
        """Close the open item, and return the index of the next. A message that another item follows is commentary."""
        if isinstance(self._open, OpenMessage):
            self._open.phase = "commentary"
        self._close("completed")
        return len(self.response.output)

    def _begin(self, item: _AnyOpen) -> None:
        self._blanks = ""
        self._open = item
        item.begin()

    def _close(self, status: Status | Literal["abandoned"]) -> None:
        if self._open is not None:
            if status == "abandoned":
                self._open.abandon()
            else:
                self._open.end(status)
            self.response.output.append(self._open.item)
            self._open = None

    # --- events ---

    def take(self) -> list[ResponseStreamEvent]:
        """The events written since the last `take`."""
        events = self._events[:]
        self._events.clear()
        return events

    def _snapshot(self) -> Response:
        """A snapshot of the response; later events do not change it."""
        return structs.replace(self.response, output=list(self.response.output))
