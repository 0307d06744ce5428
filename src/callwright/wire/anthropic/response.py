"""Answers of Anthropic's Messages API: one message, or the events of a stream that make the same one.

Blocks come one after the other, each with a begin, deltas and an end: clients lose a block without its end, and take no
input from its begin. Source: platform.claude.com/docs (streaming), and which event each client cannot do without.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, assert_never

import msgspec
from msgspec import UNSET

from callwright.calls.citations import Cited
from callwright.calls.web_search import NAME as WEB_SEARCH
from callwright.errors import RequestError, UpstreamError
from callwright.events import (
    AnnotationsDelta,
    AnswerMetadata,
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    FinishReason,
    Markup,
    Problem,
    ReasoningDelta,
    RefusalDelta,
    Usage,
)
from callwright.openai_format.tool_names import ToolNames
from callwright.tolerant_json.codec import encode
from callwright.wire.anthropic.block_writer import BlockWriter, written_event
from callwright.wire.anthropic.context_edits import AppliedEdit
from callwright.wire.anthropic.errors import anthropic_error
from callwright.wire.anthropic.event_types import (
    MessageDelta,
    MessageDeltaEvent,
    MessageStartEvent,
    MessageStopEvent,
    PingEvent,
)
from callwright.wire.anthropic.inputs import written_input
from callwright.wire.anthropic.request import Thinking
from callwright.wire.anthropic.searches import cited, result_content
from callwright.wire.anthropic.stop_sequences import StopSequences
from callwright.wire.anthropic.types import (
    AnyBlock,
    McpToolResultBlock,
    McpToolUseBlock,
    MessagesResponse,
    MessagesUsage,
    OutputTokensDetails,
    RefusalStopDetails,
    ServerToolUsage,
    ServerToolUseBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolSearchResultBlock,
    ToolUseBlock,
    WebSearchToolResultBlock,
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
from callwright.wire.server_words import call_words

_STOP_REASONS: Final[dict[FinishReason, StopReason]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
_CHARACTERS_PER_TOKEN: Final = 4
_OpenCall: TypeAlias = ToolUseBlock | McpToolUseBlock
_SAID: Final = frozenset((ContentDelta, ReasoningDelta, RefusalDelta, Cited))


class MessageWriter:
    """Writes the events of one turn as server-sent events of the API; `message` is the whole answer at the end.

    `new_id` creates an id from its prefix, for calls without one. `input_tokens` is an estimate, used until the server
    has counted. `hit`: a stop sequence was found, and no further output is needed. `prefill` is the start of the
    answer from the request, which is not repeated. `is_silent`: only the counts are sent.
    """

    def __init__(
        self,
        *,
        id_: str,
        model: str,
        names: ToolNames,
        new_id: Callable[[str], str],
        input_tokens: int,
        thinking: Thinking = "shown",
        stop_sequences: Sequence[str] = (),
        edits: Sequence[AppliedEdit] | None = None,
        prefill: str = "",
        is_silent: bool = False,
    ) -> None:
        usage = MessagesUsage(input_tokens=input_tokens, output_tokens=1)
        self.message = MessagesResponse(id=id_, model=model, content=[], usage=usage)
        if edits is not None:
            self.message.context_management = {"applied_edits": list(edits)}
        self._names = names
        self._new_id = new_id
        self._thinking = thinking
        self._stops = StopSequences(stop_sequences)
        self._begun = _WithoutPrefill(prefill)
        self._is_silent = is_silent
        self._blocks = BlockWriter(self.message, shows_thinking=thinking == "shown")
        self.take = self._blocks.take
        self._blanks = ""  # leading whitespace of a possible text
        self._later: list[Event | ServerEvent] = []  # events received while a call was open
        self._call: int | None = None  # the index of the open call
        self._calls: dict[int, str] = {}  # ids of calls that run here, by index
        self._search_id = ""  # of the latest web search
        self._searched = 0  # how often the web was
        self._cited: list[Cited] = []  # by a text that is held
        self._is_offered = False  # the tool of the open call
        self._input: str | None = None  # of the open call, as far as it is held
        self._reason: FinishReason = "stop"

    @property
    def hit(self) -> str | None:
        """The stop sequence that was found."""
        return self._stops.hit

    def begin(self) -> bytes:
        """The event that starts the stream."""
        start = msgspec.structs.replace(self.message, content=[], context_management=UNSET)
        return written_event(MessageStartEvent(start))

    def finish(self, usage: Usage | None, cost: int | None = None) -> list[bytes]:
        """The turn is over: what ends the open block, and the message. Without counts of the server they are
        estimated. `cost` is in millionths of the currency.
        """
        self._flush()
        self._blocks.end()
        message = self.message
        runs = not self._blocks.left_out and any(isinstance(block, ToolUseBlock) for block in message.content)
        if self.hit is not None and not runs:
            message.stop_reason, message.stop_sequence = "stop_sequence", self.hit
        elif self.hit is not None:  # clients run calls for no other reason, and one that was cut off for none
            message.stop_reason = "tool_use"
        else:
            message.stop_reason = "max_tokens" if self._is_silent else _STOP_REASONS[self._reason]
        if usage is not None:
            message.usage = _usage(usage)
        else:
            message.usage.output_tokens = max(1, self._blocks.written // _CHARACTERS_PER_TOKEN)
        if cost is not None:
            message.usage.cost = cost / 1_000_000
        if self._searched:
            message.usage.server_tool_use = ServerToolUsage(self._searched)
        if message.stop_reason == "refusal":
            message.stop_details = RefusalStopDetails()
        delta = MessageDelta(message.stop_reason, message.stop_sequence, message.stop_details)
        self._blocks.emit(MessageDeltaEvent(delta, message.usage, message.context_management))
        self._blocks.emit(MessageStopEvent())
        return self.take()

    @staticmethod
    def fail(error: RequestError | UpstreamError, request_id: str | None = None) -> bytes:
        """The event with which a stream ends that has failed."""
        return written_event(anthropic_error(error, request_id))

    @staticmethod
    def heartbeat() -> bytes:
        """An event without news."""
        return _PING

    # --- events of the turn ---

    def write(self, event: Event | ServerEvent) -> None:
        """Write an event of the turn; `take` returns the events for it."""
        if self._is_silent or self._stops.hit is not None:
            return
        if self._call is not None and type(event) in _SAID:
            self._later.append(event)  # blocks do not interleave
            return
        match event:  # the most frequent first: a case that does not match costs more than one that does
            case ArgumentsDelta(index, text):
                if index == self._call and text:
                    self._add_input(text)
            case ContentDelta(text) | RefusalDelta(text):
                self._say(self._stops.push(self._begun.push(text)))
            case ReasoningDelta(text):
                self._think(text)
            case CallStarted(index, name, id=id_):
                self._is_offered = self._names.knows(name)
                tool_name = self._names.client(name).name
                self._begin_call(index, ToolUseBlock(id=id_ or self._new_id("toolu"), name=tool_name))
            case CallEnded(index, complete):
                if index == self._call:
                    self._end_call(complete=complete)
            case McpStarted() | McpEnded() | ToolsSearched() | WebSearchStarted() | WebSearchEnded():
                self._server_call(event)
            case Cited():
                self._cited.append(event)
                self._cite()
            case Finished(reason):
                self._reason = reason
            case AnnotationsDelta() | AnswerMetadata() | Markup() | Problem():
                pass  # not in this API; problems are sent in a header or a comment
            case McpListed() | McpApprovalAsked() | Compacted():
                pass  # only in the Responses API: this one has no approvals and no requests for a summary
            case _:
                assert_never(event)

    def _server_call(self, event: McpStarted | McpEnded | ToolsSearched | WebSearchStarted | WebSearchEnded) -> None:
        """A call that runs here: its output is a block."""
        match event:
            case McpStarted(index, id_, name):
                tool, self._is_offered = self._names.client(name), True
                self._calls[index] = id_
                self._begin_call(index, McpToolUseBlock(id=id_, name=tool.name, server_name=tool.namespace or ""))
            case McpEnded(output, error):
                self._answer(call_words(output, error), is_error=error is not None)
            case ToolsSearched(query, names):
                self._searched_tools(query, names)
            case WebSearchStarted(_, query):
                self._search_id = self._use_here(WEB_SEARCH, query)
            case WebSearchEnded(results, _, fault):
                self._searched += fault is None
                self._put(WebSearchToolResultBlock(self._search_id, result_content(results, fault)))

    def _flush(self) -> None:
        """Write the text held back: no more of it follows."""
        self._say(self._stops.push(self._begun.flush()))
        self._say(self._stops.flush())

    def _say(self, text: str) -> None:
        if not isinstance(self._blocks.open, TextBlock):
            text, self._blanks = self._blanks + text, ""
            if not text.strip():
                self._blanks = text  # blanks alone are no text
                return
            self._start(TextBlock())
        if text:
            self._blocks.add(text)
        self._cite()

    def _think(self, text: str) -> None:
        if self._thinking == "none":
            return
        if not isinstance(self._blocks.open, ThinkingBlock):
            if not text.strip():
                return
            self._flush()
            self._start(ThinkingBlock())
        self._blocks.add(text)

    def _begin_call(self, index: int, block: _OpenCall) -> None:
        self._flush()
        self._start(block)
        self._call, self._input = index, ""

    def _add_input(self, text: str) -> None:
        """Append to the input of the open call. It is held back until it is known to be an object, and if the tool is
        not offered, until its end, as it was not validated.
        """
        if self._input is not None:
            text = self._input + text
            self._input = text
            if not (self._is_offered and text.lstrip().startswith("{")):
                return
            self._input = None
        self._blocks.add(text)

    def _end_call(self, *, complete: bool) -> None:
        held, self._input = self._input, None
        if held is not None and complete:
            self._blocks.add(written_input(held))
        elif held and held.lstrip().startswith("{"):
            self._blocks.add(held)
        self._blocks.end(is_whole=complete)
        self._call = None
        self._catch_up()

    def _answer(self, words: str, *, is_error: bool) -> None:
        """What became of the call that was run here last."""
        id_ = self._calls.popitem()[1] if self._calls else ""
        self._put(McpToolResultBlock(tool_use_id=id_, is_error=is_error, content=[TextBlock(text=words)]))

    def _use_here(self, name: str, query: str) -> str:
        """The call of a search that runs here; answers its id."""
        id_ = self._new_id("srvtoolu")
        self._flush()
        self._start(ServerToolUseBlock(id=id_, name=name))
        self._blocks.add(encode({"query": query}).decode())
        self._blocks.end()
        return id_

    def _cite(self) -> None:
        """Write the citations of the open text."""
        if isinstance(self._blocks.open, TextBlock) and self._cited:
            for each in self._cited:
                self._blocks.cite(cited(each.result))
            self._cited = []

    def _searched_tools(self, query: str, names: Sequence[str]) -> None:
        """Write a tool search that ran here, with its result."""
        id_ = self._use_here("tool_search_tool_bm25", query)
        references = [{"type": "tool_reference", "tool_name": self._names.client(name).name} for name in names]
        found = {"type": "tool_search_tool_search_result", "tool_references": references}
        self._put(ToolSearchResultBlock(tool_use_id=id_, content=found))

    def _start(self, block: AnyBlock) -> None:
        """Begin a block. This ends an open call and discards whitespace before a text."""
        self._call, self._blanks = None, ""
        self._blocks.begin(block)

    def _put(self, block: AnyBlock) -> None:
        self._start(block)
        self._blocks.end()

    def _catch_up(self) -> None:
        """Write the events received while a call was open."""
        later, self._later = self._later, []
        for event in later:
            self.write(event)


_PING: Final = written_event(PingEvent())


def _usage(usage: Usage) -> MessagesUsage:
    """The counts of a server, with cached tokens counted separately."""
    return MessagesUsage(
        input_tokens=max(0, usage.prompt_tokens - usage.cached_tokens),
        output_tokens=usage.completion_tokens,
        cache_read_input_tokens=usage.cached_tokens,
        output_tokens_details=OutputTokensDetails(usage.reasoning_tokens),
    )


class _WithoutPrefill:
    """Strips the client's prefill from the text of an answer: some servers repeat it, and so do readers of the whole
    answer.
    """

    def __init__(self, begun: str) -> None:
        self._left = begun
        self._held = ""

    def push(self, text: str) -> str:
        """Append text; return it without the prefill."""
        if not self._left:
            return text
        self._held += text
        if len(self._held) < len(self._left) and self._left.startswith(self._held):
            return ""
        held, left, self._held, self._left = self._held, self._left, "", ""
        return held.removeprefix(left)

    def flush(self) -> str:
        """Return the text held back, before other events. The prefill may still follow if there was no text yet."""
        held, self._held = self._held, ""
        if held:
            self._left = ""
        return held
