"""Tools that the gateway runs itself, for Chat Completions: read the MCP servers of a request, and leave the steps that
ran here out of a turn.

The API has no field for calls that are answered elsewhere, and no way to ask for an approval.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

from msgspec.structs import replace

from callwright.calls.citations import Cited
from callwright.calls.web_search import NAME as WEB_SEARCH
from callwright.conversation import Call, CallOutput, Item, TextPart
from callwright.errors import RequestError
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
from callwright.openai_format.errors import missing
from callwright.openai_format.mcp_tools import AskedServer
from callwright.tolerant_json.codec import encode
from callwright.wire.mcp_tools import read_mcp_tools
from callwright.wire.searches import citation
from callwright.wire.server_events import (
    Compacted,
    McpApprovalAsked,
    McpEnded,
    McpListed,
    McpStarted,
    ToolsSearched,
    TurnEvent,
    WebSearchEnded,
    WebSearchStarted,
)
from callwright.wire.server_words import call_words

# Separates the texts of a message before and after a step that ran here.
_BETWEEN: Final = "\n\n"
_WAY_OUT: Final = "Nobody can be asked for an approval in Chat Completions: write 'never', or use /v1/responses."


def read_servers(tools: Sequence[Mapping[str, Any]]) -> list[AskedServer]:
    """The MCP servers among the tools of a request, none of whose calls needs an approval. Raises `RequestError`."""
    asked = read_mcp_tools(tools)
    for one in asked:
        param = f"{one.param}.require_approval"
        if one.require_approval is None:
            raise missing(param, f" Without it each call needs one. {_WAY_OUT}")
        if one.require_approval != "never":
            said = one.require_approval if isinstance(one.require_approval, str) else "filters"
            raise RequestError(
                f"Unsupported value: '{param}' does not support '{said}' here. {_WAY_OUT}",
                param=param,
                code="unsupported_value",
            )
    return asked


class OneMessage:
    """A turn as the client sees it: the model's output of all rounds as one message, and the calls for the client.

    Calls that run here are left out, and the others numbered without them. `unsent` are the omitted ones with their
    outputs: the client does not know them, so it does not send them back with its history.
    """

    def __init__(self) -> None:
        self.unsent: list[Item] = []
        self._call: McpStarted | None = None  # the latest one that runs here
        self._arguments: list[str] = []
        self._numbers: dict[int, int | None] = {}  # of the calls of a round; None for one that runs here
        self._shown = 0
        self._length = 0  # of the content
        self._said: set[type[ContentDelta] | type[ReasoningDelta]] = set()  # kinds of text so far
        self._parted: set[type[ContentDelta] | type[ReasoningDelta]] = set()  # kinds interrupted by a step here

    def events(self, event: TurnEvent) -> Sequence[Event | Usage]:
        """The client's events for an event."""
        match event:
            case ContentDelta() | ReasoningDelta():
                return self._text(event)
            case CallStarted(index):
                self._numbers[index] = number = self._shown
                self._shown += 1
                return [replace(event, index=number)]
            case ArgumentsDelta(index) | CallEnded(index):
                shown = self._numbers.get(index)
                if shown is not None:
                    return [replace(event, index=shown)]
                if isinstance(event, ArgumentsDelta):
                    self._arguments.append(event.text)
                return []
            case Problem(call=int(index)):
                return [replace(event, call=self._numbers.get(index))]
            case McpStarted(index):
                self._numbers[index] = None
                self._parted |= self._said
                self._call, self._arguments = event, []
                return []
            case McpEnded(output, error):
                assert self._call is not None
                call = Call(self._call.name, "".join(self._arguments), id=self._call.id)
                self.unsent += call, CallOutput(call.id, (TextPart(call_words(output, error)),))
                return []
            case WebSearchStarted(id_, query):
                self._parted |= self._said
                self.unsent.append(Call(WEB_SEARCH, encode({"query": query}).decode(), id=id_))
                return []
            case WebSearchEnded(_, words, fault):
                searched = self.unsent[-1]
                assert isinstance(searched, Call)
                self.unsent.append(CallOutput(searched.id, (TextPart(words),)))
                return [] if fault is None else [Problem("search_failed", fault)]
            case Cited(result, length, behind):
                end = self._length - behind
                cited = {**citation(result, end - length, end)}
                return [AnnotationsDelta(({"type": cited.pop("type"), "url_citation": cited},))]
            case McpListed() | ToolsSearched():
                self._parted |= self._said
                return []
            case RefusalDelta() | AnnotationsDelta() | Markup() | Problem() | AnswerMetadata() | Finished() | Usage():
                return [event]
            case McpApprovalAsked() | Compacted():
                raise AssertionError("no request of this API leads to it")
            case _:
                assert_never(event)

    def _text(self, event: ContentDelta | ReasoningDelta) -> Sequence[Event]:
        kind = type(event)
        self._said.add(kind)
        texts: list[ContentDelta | ReasoningDelta] = [event]
        if kind in self._parted:
            self._parted.remove(kind)
            texts.insert(0, kind(_BETWEEN))
        if kind is ContentDelta:
            self._length += sum(len(text.text) for text in texts)
        return texts
