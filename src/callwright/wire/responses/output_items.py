"""The output items of a response while they are written: each emits its events and builds its final object."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, assert_never

from msgspec import UNSET

from callwright.calls.citations import Cited
from callwright.conversation import JsonObject
from callwright.openai_format.tool_names import ClientTool, ToolKind
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.wire.responses import event_types as wire
from callwright.wire.responses.output_types import (
    McpCall,
    ReasoningText,
    ResponseApplyPatchToolCall,
    ResponseCustomToolCall,
    ResponseFunctionShellToolCall,
    ResponseFunctionToolCall,
    ResponseFunctionWebSearch,
    ResponseLocalShellCall,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
    ResponseReasoningItem,
    ResponseToolSearchCall,
    SummaryText,
    WrittenItem,
)
from callwright.wire.sealed import sealed
from callwright.wire.searches import citation, sealed_search
from callwright.wire.server_events import WebSearchEnded

Emit: TypeAlias = Callable[[wire.ResponseStreamEvent], None]
Status: TypeAlias = Literal["completed", "incomplete", "failed"]
ItemT = TypeVar("ItemT", bound=WrittenItem)


class OpenItem(Generic[ItemT]):
    """An item that is being written. `item` is its current state."""

    def __init__(self, item: ItemT, index: int, emit: Emit) -> None:
        self.item = item
        self._at: dict[str, Any] = {"item_id": item.id, "output_index": index}
        self._index = index
        self._emit = emit
        self._pieces: list[str] = []

    def begin(self) -> None:
        """Emit the events that begin the item."""
        self._emit(wire.ResponseOutputItemAddedEvent(output_index=self._index, item=copy(self.item)))

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        """Append to its text."""
        raise NotImplementedError

    def end(self, status: Status) -> None:
        """Emit the events that end the item."""
        raise NotImplementedError

    def abandon(self) -> None:
        """End the item without emitting any event.

        A `done` event counts whatever its status: Codex runs such a call, and resends such a text when it asks again.
        """
        self._emit = _unsaid
        self.end("incomplete")

    def _done(self, status: Status) -> None:
        self.item.status = status
        self._emit(wire.ResponseOutputItemDoneEvent(output_index=self._index, item=copy(self.item)))


def _unsaid(_: wire.ResponseStreamEvent) -> None:
    pass


class OpenMessage(OpenItem[ResponseOutputMessage]):
    """A message to the user: consecutive parts of text and refusal.

    `phase` is set once it is known: `commentary` before a call, else `final_answer`.
    """

    def __init__(self, id_: str, index: int, emit: Emit) -> None:
        super().__init__(ResponseOutputMessage(id=id_), index, emit)
        self.phase: Literal["commentary", "final_answer"] | None = None
        self._part: ResponseOutputText | ResponseOutputRefusal | None = None  # the one that is open
        self._length = 0  # of its text

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        part = self._text_part()
        self._pieces.append(text)
        self._length += len(text)
        part.logprobs += logprobs
        self._emit(wire.ResponseTextDeltaEvent(**self._at, delta=text, logprobs=list(logprobs)))

    def refuse(self, text: str) -> None:
        """Append to a refusal."""
        if not isinstance(self._part, ResponseOutputRefusal):
            self._begin_part(ResponseOutputRefusal(""))
        self._pieces.append(text)
        self._emit(wire.ResponseRefusalDeltaEvent(**self._at, delta=text))

    def annotate(self, annotation: JsonObject) -> None:
        """Add an annotation to the text."""
        annotations = self._text_part().annotations
        self._emit(
            wire.ResponseOutputTextAnnotationAddedEvent(
                **self._at, annotation_index=len(annotations), annotation=annotation
            )
        )
        annotations.append(annotation)

    def cite(self, cited: Cited) -> None:
        """Add the citation for a mark in the latest text."""
        end = self._length - cited.behind
        self.annotate(citation(cited.result, end - cited.length, end))

    def end(self, status: Status) -> None:
        self._end_part()
        self.item.phase = self.phase or UNSET
        self._done(status)

    def _text_part(self) -> ResponseOutputText:
        """The open part, if it is text; else a new one."""
        if not isinstance(self._part, ResponseOutputText):
            self._begin_part(part := ResponseOutputText(text="", logprobs=[]))
            return part
        return self._part

    def _begin_part(self, part: ResponseOutputText | ResponseOutputRefusal) -> None:
        self._end_part()
        self._part = part
        self._length = 0
        self._at["content_index"] = len(self.item.content)
        self._emit(wire.ResponseContentPartAddedEvent(**self._at, part=deepcopy(part)))

    def _end_part(self) -> None:
        part, text = self._part, "".join(self._pieces)
        self._pieces.clear()
        match part:
            case None:
                return
            case ResponseOutputText():
                part.text = text
                self._emit(wire.ResponseTextDoneEvent(**self._at, text=text, logprobs=part.logprobs))
            case ResponseOutputRefusal():
                part.refusal = text
                self._emit(wire.ResponseRefusalDoneEvent(**self._at, refusal=text))
            case _:
                assert_never(part)
        self._emit(wire.ResponseContentPartDoneEvent(**self._at, part=part))
        self.item.content = [*self.item.content, part]
        self._part = None


class OpenReasoning(OpenItem[ResponseReasoningItem]):
    """Reasoning as its own text. `open_responses`: its events have the names of that specification; `seals`: it is also
    sent as encrypted content.
    """

    def __init__(self, id_: str, index: int, emit: Emit, *, open_responses: bool = False, seals: bool = False) -> None:
        super().__init__(ResponseReasoningItem(id=id_, content=[]), index, emit)
        self._open_responses = open_responses
        self._seals = seals

    def begin(self) -> None:
        super().begin()
        self._emit(wire.ResponseContentPartAddedEvent(**self._at, part=ReasoningText("")))

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        self._pieces.append(text)
        if self._open_responses:
            self._emit(wire.ResponseReasoningDeltaEvent(**self._at, delta=text))
        else:
            self._emit(wire.ResponseReasoningTextDeltaEvent(**self._at, delta=text))

    def end(self, status: Status) -> None:
        text = "".join(self._pieces)
        part = ReasoningText(text)
        if self._open_responses:
            self._emit(wire.ResponseReasoningDoneEvent(**self._at, text=text))
        else:
            self._emit(wire.ResponseReasoningTextDoneEvent(**self._at, text=text))
        self._emit(wire.ResponseContentPartDoneEvent(**self._at, part=part))
        self.item.content = [part]
        if self._seals:
            self.item.encrypted_content = sealed(text)
        self._done(status)


class OpenSummary(OpenItem[ResponseReasoningItem]):
    """Reasoning for a client that wants a summary: open models write no separate one, so all of it is the summary."""

    def __init__(self, id_: str, index: int, emit: Emit, *, seals: bool = False) -> None:
        super().__init__(ResponseReasoningItem(id=id_), index, emit)
        self._seals = seals

    def begin(self) -> None:
        super().begin()
        self._emit(wire.ResponseReasoningSummaryPartAddedEvent(**self._at, part=SummaryText("")))

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        self._pieces.append(text)
        self._emit(wire.ResponseReasoningSummaryTextDeltaEvent(**self._at, delta=text))

    def end(self, status: Status) -> None:
        text = "".join(self._pieces)
        part = SummaryText(text)
        self._emit(wire.ResponseReasoningSummaryTextDoneEvent(**self._at, text=text))
        self._emit(wire.ResponseReasoningSummaryPartDoneEvent(**self._at, part=part))
        self.item.summary = [part]
        if self._seals:
            self.item.encrypted_content = sealed(text)
        self._done(status)


class OpenFunctionCall(OpenItem[ResponseFunctionToolCall]):
    """A function call with streamed arguments."""

    def __init__(self, id_: str, call_id: str, tool: ClientTool, index: int, emit: Emit) -> None:
        item = ResponseFunctionToolCall(
            id=id_,
            call_id=call_id,
            name=tool.name,
            namespace=tool.namespace or UNSET,
            is_async=tool.is_async or UNSET,
        )
        super().__init__(item, index, emit)

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        self._pieces.append(text)
        self._emit(wire.ResponseFunctionCallArgumentsDeltaEvent(**self._at, delta=text))

    def end(self, status: Status) -> None:
        self.item.arguments = text = "".join(self._pieces)
        self._emit(wire.ResponseFunctionCallArgumentsDoneEvent(**self._at, name=self.item.name, arguments=text))
        self._done(status)


class OpenCustomCall(OpenItem[ResponseCustomToolCall]):
    """A custom tool call with streamed input."""

    def __init__(self, id_: str, call_id: str, tool: ClientTool, index: int, emit: Emit) -> None:
        item = ResponseCustomToolCall(
            id=id_,
            call_id=call_id,
            name=tool.name,
            namespace=tool.namespace or UNSET,
            is_async=tool.is_async or UNSET,
        )
        super().__init__(item, index, emit)

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        self._pieces.append(text)
        self._emit(wire.ResponseCustomToolCallInputDeltaEvent(**self._at, delta=text))

    def end(self, status: Status) -> None:
        self.item.input = text = "".join(self._pieces)
        self._emit(wire.ResponseCustomToolCallInputDoneEvent(**self._at, input=text))
        self._done(status)


class OpenMcpCall(OpenItem[McpCall]):
    """A call of an MCP tool that the gateway runs. Its arguments are streamed; it stays open until its result."""

    def __init__(self, id_: str, tool: ClientTool, index: int, emit: Emit, approval_request_id: str | None) -> None:
        item = McpCall(id=id_, server_label=tool.namespace, name=tool.name, approval_request_id=approval_request_id)
        super().__init__(item, index, emit)

    def begin(self) -> None:
        super().begin()
        self._emit(wire.ResponseMcpCallInProgressEvent(**self._at))

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        self._pieces.append(text)
        self._emit(wire.ResponseMcpCallArgumentsDeltaEvent(**self._at, delta=text))

    def end_arguments(self) -> None:
        """Emit the event for complete arguments."""
        self.item.arguments = text = "".join(self._pieces)
        self._emit(wire.ResponseMcpCallArgumentsDoneEvent(**self._at, arguments=text))

    def answer(self, output: str | None, error: Mapping[str, Any] | None) -> None:
        """End the item with the call's result."""
        self.item.output, self.item.error = output, error
        if error is None:
            self._emit(wire.ResponseMcpCallCompletedEvent(**self._at))
            self._done("completed")
        else:
            self._emit(wire.ResponseMcpCallFailedEvent(**self._at))
            self._done("failed")

    def end(self, status: Status) -> None:
        """See `OpenItem`: the call has no result."""
        self.item.arguments = "".join(self._pieces)
        self._done(status)


class OpenWebSearch(OpenItem[ResponseFunctionWebSearch]):
    """A web search, which stays open until its result. `shows_sources`: its item lists all pages."""

    def __init__(self, id_: str, query: str, index: int, emit: Emit, *, shows_sources: bool) -> None:
        super().__init__(
            ResponseFunctionWebSearch(id=id_, action={"type": "search", "query": query, "queries": [query]}),
            index,
            emit,
        )
        self._shows_sources = shows_sources

    def begin(self) -> None:
        super().begin()
        self._emit(wire.ResponseWebSearchCallInProgressEvent(**self._at))
        self._emit(wire.ResponseWebSearchCallSearchingEvent(**self._at))

    def answer(self, ended: WebSearchEnded) -> None:
        """End the item with the search's result."""
        if self._shows_sources:
            sources = [{"type": "url", "url": result.url} for result in ended.results]
            self.item.action = {**self.item.action, "sources": sources}
        self.item.encrypted_content = sealed_search(ended.words, ended.results)
        if ended.fault is None:
            self._emit(wire.ResponseWebSearchCallCompletedEvent(**self._at))
        self._done("completed" if ended.fault is None else "failed")

    def end(self, status: Status) -> None:
        """See `OpenItem`: the search has no result."""
        self._done(status)


class WholeCall(OpenItem[WrittenItem]):
    """A call of a built-in kind, with its arguments as an object in its item: sent once complete."""

    def __init__(self, new_id: Callable[[str], str], call_id: str, tool: ClientTool, index: int, emit: Emit) -> None:
        self._tool = tool
        self._new_id = new_id
        self._call_id = call_id
        super().__init__(_built_in(tool.kind, new_id(_PREFIXES[tool.kind]), call_id, {}), index, emit)

    def begin(self) -> None:
        """Emit nothing: the item is sent once complete."""

    def add(self, text: str, logprobs: Sequence[Any] = ()) -> None:
        self._pieces.append(text)

    def end(self, status: Status) -> None:
        """See `OpenItem`. Sent as a function call, as which it was offered, if the arguments are not an object."""
        text = "".join(self._pieces)
        try:
            value = decode(text)
        except NotJsonError:
            value = None
        if not isinstance(value, dict):
            call = OpenFunctionCall(self._new_id("fc"), self._call_id, self._tool, self._index, self._emit)
            call.begin()
            call.add(text)
            call.end(status)
            self.item = call.item
            return
        given = {key: it for key, it in value.items() if it is not None}
        if self._tool.kind == "tool_search":
            super().begin()  # OpenAI's begins without arguments
        self.item = _built_in(
            self._tool.kind, self.item.id, self._call_id, {**_WANTED.get(self._tool.kind, {}), **given}
        )
        if self._tool.kind != "tool_search":
            super().begin()  # complete: the documentation requires its fields here, too
        self._done(status)


# Defaults for the object of a call.
_WANTED: Final[Mapping[ToolKind, JsonObject]] = {
    "shell": {"commands": [], "timeout_ms": None, "max_output_length": None},
    "local_shell": {"type": "exec", "command": [], "env": {}},
}
_PREFIXES: Final[Mapping[ToolKind, str]] = {
    "tool_search": "tsc",
    "shell": "sh",
    "local_shell": "lsh",
    "apply_patch": "apc",
}


def _built_in(kind: ToolKind, id_: str, call_id: str, given: JsonObject) -> WrittenItem:
    """A call of a built-in kind with the model's arguments."""
    match kind:
        case "tool_search":
            return ResponseToolSearchCall(id=id_, call_id=call_id, arguments=given)
        case "shell":
            return ResponseFunctionShellToolCall(id=id_, call_id=call_id, action=given)
        case "local_shell":
            return ResponseLocalShellCall(id=id_, call_id=call_id, action=given)
        case "apply_patch":
            return ResponseApplyPatchToolCall(id=id_, call_id=call_id, operation=given)
        case _:
            raise AssertionError(kind)
