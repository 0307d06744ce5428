"""The events of a stream of the Messages API."""

from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from callwright.wire.anthropic.errors import AnthropicErrorResponse
from callwright.wire.anthropic.types import (
    AnyBlock,
    Citation,
    MessagesResponse,
    MessagesUsage,
    RefusalStopDetails,
    StopReason,
)


class MessageStartEvent(Struct, tag_field="type", tag="message_start"):
    """The start of a message, without content."""

    message: MessagesResponse


class ContentBlockStartEvent(Struct, tag_field="type", tag="content_block_start"):
    """The start of a block; empty, unless the block is sent complete."""

    index: int
    content_block: AnyBlock


class TextDelta(Struct, tag_field="type", tag="text_delta"):
    """More text."""

    text: str


class ThinkingDelta(Struct, tag_field="type", tag="thinking_delta"):
    """More reasoning."""

    thinking: str


class SignatureDelta(Struct, tag_field="type", tag="signature_delta"):
    """The signature of reasoning, just before its end."""

    signature: str


class InputJsonDelta(Struct, tag_field="type", tag="input_json_delta"):
    """More of the JSON of a call's input."""

    partial_json: str


class CitationsDelta(Struct, tag_field="type", tag="citations_delta"):
    """One more citation of the text."""

    citation: Citation


BlockDelta: TypeAlias = TextDelta | CitationsDelta | ThinkingDelta | SignatureDelta | InputJsonDelta


class ContentBlockDeltaEvent(Struct, tag_field="type", tag="content_block_delta"):
    """More of a block."""

    index: int
    delta: BlockDelta


class ContentBlockStopEvent(Struct, tag_field="type", tag="content_block_stop"):
    """A block is over."""

    index: int


class MessageDelta(Struct):
    """Why the message ended."""

    stop_reason: StopReason | None
    stop_sequence: str | None
    stop_details: RefusalStopDetails | None = None
    container: None = None


class MessageDeltaEvent(Struct, tag_field="type", tag="message_delta"):
    """How the message ended, and all token counts."""

    delta: MessageDelta
    usage: MessagesUsage
    context_management: Any | UnsetType = UNSET


class MessageStopEvent(Struct, tag_field="type", tag="message_stop"):
    """Nothing more follows."""


class PingEvent(Struct, tag_field="type", tag="ping"):
    """No news."""


MessageStreamEvent: TypeAlias = (
    MessageStartEvent
    | ContentBlockStartEvent
    | ContentBlockDeltaEvent
    | ContentBlockStopEvent
    | MessageDeltaEvent
    | MessageStopEvent
    | PingEvent
    | AnthropicErrorResponse
)
