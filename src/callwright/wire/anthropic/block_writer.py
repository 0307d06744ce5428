"""Writes the content blocks of a message of Anthropic's Messages API, as events and into the message.

Source: platform.claude.com/docs (streaming). A block has a start event, deltas and a stop event. Blocks do not
interleave.
"""

from callwright.tolerant_json.codec import encode
from callwright.wire.anthropic.event_types import (
    BlockDelta,
    CitationsDelta,
    ContentBlockDeltaEvent,
    ContentBlockStartEvent,
    ContentBlockStopEvent,
    InputJsonDelta,
    MessageStreamEvent,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
)
from callwright.wire.anthropic.inputs import input_of
from callwright.wire.anthropic.types import (
    AnyBlock,
    Citation,
    McpToolUseBlock,
    MessagesResponse,
    ServerToolUseBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from callwright.wire.sealed import sealed
from callwright.wire.sse import typed_event


class BlockWriter:
    """Writes blocks into `message` and the matching events, which `take` returns.

    `open` is the block that deltas belong to. `left_out` counts the blocks that are in the stream but not in the
    message. `written` counts the characters of all blocks.
    """

    def __init__(self, message: MessagesResponse, *, shows_thinking: bool) -> None:
        self.open: AnyBlock | None = None
        self.left_out = 0
        self.written = 0
        self._message = message
        self._shows_thinking = shows_thinking
        self._pieces: list[str] = []
        self._out: list[bytes] = []

    @property
    def index(self) -> int:
        """The index of the open block, or of the next one."""
        return len(self._message.content) + self.left_out

    def begin(self, block: AnyBlock) -> None:
        """End the open block and begin another."""
        self.end()
        self.open = block
        self.emit(ContentBlockStartEvent(self.index, block))

    def add(self, text: str) -> None:
        """Add text to the open block: its text, its thinking or the JSON of its input."""
        self._pieces.append(text)
        self.written += len(text)
        delta: BlockDelta
        match self.open:
            case TextBlock():
                delta = TextDelta(text)
            case ThinkingBlock():
                if not self._shows_thinking:
                    return
                delta = ThinkingDelta(text)
            case _:
                delta = InputJsonDelta(text)
        self.emit(ContentBlockDeltaEvent(self.index, delta))

    def cite(self, citation: Citation) -> None:
        """Add a citation to the open block of text."""
        assert isinstance(self.open, TextBlock)
        self.open.citations = (*self.open.citations, citation)
        self.emit(ContentBlockDeltaEvent(self.index, CitationsDelta(citation)))

    def end(self, *, is_whole: bool = True) -> None:
        """End the open block, if there is one. A truncated call is left out of the message: no client may run it."""
        block, text = self.open, "".join(self._pieces)
        self.open, self._pieces = None, []
        if block is None:
            return
        index = self.index
        match block:
            case TextBlock():
                block.text = text
            case ThinkingBlock():
                block.thinking = text if self._shows_thinking else ""
                block.signature = sealed(text)
                self.emit(ContentBlockDeltaEvent(index, SignatureDelta(block.signature)))
            case ToolUseBlock() | McpToolUseBlock() | ServerToolUseBlock():
                block.input = input_of(text) if is_whole else {}
            case _:
                pass
        self.emit(ContentBlockStopEvent(index))
        if is_whole:
            self._message.content.append(block)
        else:
            self.left_out += 1

    def emit(self, event: MessageStreamEvent) -> None:
        """Write an event."""
        self._out.append(typed_event(str(event.__struct_config__.tag), encode(event)))

    def take(self) -> list[bytes]:
        """Return the events written since the last `take`."""
        out, self._out = self._out, []
        return out


def written_event(event: MessageStreamEvent) -> bytes:
    """An event in the form of server-sent events."""
    return typed_event(str(event.__struct_config__.tag), encode(event))
