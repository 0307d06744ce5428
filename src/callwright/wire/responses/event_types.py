"""The events of a streamed response, by OpenAI's names. Sequence numbers are set when sending."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from callwright.conversation import JsonObject
from callwright.tolerant_json.codec import encode
from callwright.wire.responses.output_types import (
    OutputItem,
    ReasoningText,
    ResponseOutputRefusal,
    ResponseOutputText,
    SummaryText,
)
from callwright.wire.responses.types import Response
from callwright.wire.sse import typed_event


class ResponseStreamEvent(Struct, tag_field="type", kw_only=True):
    """An event of a stream."""

    sequence_number: int = 0


def numbered(events: Sequence[ResponseStreamEvent], first: int) -> list[bytes]:
    """The events as bytes, numbered from `first` on."""
    written: list[bytes] = []
    for number, event in enumerate(events, first):
        event.sequence_number = number
        written.append(typed_event(str(event.__struct_config__.tag), encode(event)))
    return written


# --- the response ---


class ResponseStateEvent(ResponseStreamEvent, kw_only=True):
    """An event with the state of the response."""

    response: Response


class ResponseCreatedEvent(ResponseStateEvent, tag="response.created"):
    pass


class ResponseInProgressEvent(ResponseStateEvent, tag="response.in_progress"):
    pass


class ResponseCompletedEvent(ResponseStateEvent, tag="response.completed"):
    pass


class ResponseIncompleteEvent(ResponseStateEvent, tag="response.incomplete"):
    pass


class ResponseFailedEvent(ResponseStateEvent, tag="response.failed"):
    pass


# --- any item ---


class ResponseOutputItemAddedEvent(ResponseStreamEvent, tag="response.output_item.added", kw_only=True):
    output_index: int
    item: OutputItem


class ResponseOutputItemDoneEvent(ResponseStreamEvent, tag="response.output_item.done", kw_only=True):
    output_index: int
    item: OutputItem


class ItemEvent(ResponseStreamEvent, kw_only=True):
    """An event of one item."""

    item_id: str
    output_index: int


# --- messages and reasoning ---


class ContentEvent(ItemEvent, kw_only=True):
    """An event of a part of an item's content."""

    content_index: int = 0


class ResponseContentPartAddedEvent(ContentEvent, tag="response.content_part.added", kw_only=True):
    part: ResponseOutputText | ResponseOutputRefusal | ReasoningText


class ResponseContentPartDoneEvent(ContentEvent, tag="response.content_part.done", kw_only=True):
    part: ResponseOutputText | ResponseOutputRefusal | ReasoningText


class ResponseTextDeltaEvent(ContentEvent, tag="response.output_text.delta", kw_only=True):
    delta: str
    logprobs: list[Any]


class ResponseTextDoneEvent(ContentEvent, tag="response.output_text.done", kw_only=True):
    text: str
    logprobs: list[Any]


class ResponseOutputTextAnnotationAddedEvent(ContentEvent, tag="response.output_text.annotation.added", kw_only=True):
    annotation_index: int
    annotation: JsonObject


class ResponseRefusalDeltaEvent(ContentEvent, tag="response.refusal.delta", kw_only=True):
    delta: str


class ResponseRefusalDoneEvent(ContentEvent, tag="response.refusal.done", kw_only=True):
    refusal: str


class ResponseReasoningTextDeltaEvent(ContentEvent, tag="response.reasoning_text.delta", kw_only=True):
    delta: str


class ResponseReasoningTextDoneEvent(ContentEvent, tag="response.reasoning_text.done", kw_only=True):
    text: str


class ResponseReasoningDeltaEvent(ContentEvent, tag="response.reasoning.delta", kw_only=True):
    """`response.reasoning_text.delta`, as the Open Responses specification calls it."""

    delta: str


class ResponseReasoningDoneEvent(ContentEvent, tag="response.reasoning.done", kw_only=True):
    """`response.reasoning_text.done`, as the Open Responses specification calls it."""

    text: str


class SummaryEvent(ItemEvent, kw_only=True):
    """An event of the only part of a summary."""

    summary_index: int = 0


class ResponseReasoningSummaryPartAddedEvent(SummaryEvent, tag="response.reasoning_summary_part.added", kw_only=True):
    part: SummaryText


class ResponseReasoningSummaryPartDoneEvent(SummaryEvent, tag="response.reasoning_summary_part.done", kw_only=True):
    part: SummaryText


class ResponseReasoningSummaryTextDeltaEvent(SummaryEvent, tag="response.reasoning_summary_text.delta", kw_only=True):
    delta: str


class ResponseReasoningSummaryTextDoneEvent(SummaryEvent, tag="response.reasoning_summary_text.done", kw_only=True):
    text: str


# --- calls ---


class ResponseFunctionCallArgumentsDeltaEvent(ItemEvent, tag="response.function_call_arguments.delta", kw_only=True):
    delta: str


class ResponseFunctionCallArgumentsDoneEvent(ItemEvent, tag="response.function_call_arguments.done", kw_only=True):
    name: str
    arguments: str


class ResponseCustomToolCallInputDeltaEvent(ItemEvent, tag="response.custom_tool_call_input.delta", kw_only=True):
    delta: str


class ResponseCustomToolCallInputDoneEvent(ItemEvent, tag="response.custom_tool_call_input.done", kw_only=True):
    input: str


class ResponseMcpCallInProgressEvent(ItemEvent, tag="response.mcp_call.in_progress"):
    pass


class ResponseMcpCallCompletedEvent(ItemEvent, tag="response.mcp_call.completed"):
    pass


class ResponseMcpCallFailedEvent(ItemEvent, tag="response.mcp_call.failed"):
    pass


class ResponseMcpCallArgumentsDeltaEvent(ItemEvent, tag="response.mcp_call_arguments.delta", kw_only=True):
    delta: str


class ResponseMcpCallArgumentsDoneEvent(ItemEvent, tag="response.mcp_call_arguments.done", kw_only=True):
    arguments: str


class ResponseWebSearchCallInProgressEvent(ItemEvent, tag="response.web_search_call.in_progress"):
    pass


class ResponseWebSearchCallSearchingEvent(ItemEvent, tag="response.web_search_call.searching"):
    pass


class ResponseWebSearchCallCompletedEvent(ItemEvent, tag="response.web_search_call.completed"):
    pass


class ResponseMcpListToolsInProgressEvent(ItemEvent, tag="response.mcp_list_tools.in_progress"):
    pass


class ResponseMcpListToolsCompletedEvent(ItemEvent, tag="response.mcp_list_tools.completed"):
    pass
