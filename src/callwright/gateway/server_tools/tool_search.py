"""Tool search that the server runs itself: the model's query, the tools found, and how both are shown."""

from collections.abc import Sequence

from callwright.calls.tool_search import SEARCH_TOOL, found_words, search_tools
from callwright.conversation import Call, CallOutput, Item, TextPart
from callwright.gateway.server_tools.server_items import ServerItem
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.wire.responses.input_items import search_id
from callwright.wire.responses.output_types import ResponseToolSearchCall, ResponseToolSearchOutputItem
from callwright.wire.responses.request import ParsedRequest

__all__ = ["Search"]


class Search:
    """A search with the model's arguments. The tools that it finds can be called from then on."""

    def __init__(self, asked: ParsedRequest, arguments: str) -> None:
        self._query = _query(arguments)
        self._names = [tool.name for tool in search_tools(asked.offer.searchable, self._query)]
        for name in self._names:
            asked.offer.show(name)
        self._tools = [asked.offer.given(name) for name in self._names]

    def output(self) -> tuple[ServerItem, ServerItem]:
        """The output items: the call, and the tools found."""
        arguments = {"query": self._query}
        call = ResponseToolSearchCall(call_id=None, status="completed", arguments=arguments, execution="server")
        return ServerItem("tsc", call), ServerItem("tso", ResponseToolSearchOutputItem(tools=self._tools))

    def told(self, before: Sequence[Item]) -> tuple[Item, Item]:
        """The call and its output, as the model is shown them now and, read from these items, in every later turn."""
        made = sum(isinstance(item, Call) and item.name == SEARCH_TOOL.name for item in before)
        call = Call(SEARCH_TOOL.name, encode({"query": self._query}).decode(), id=search_id(made))
        return call, CallOutput(call.id, (TextPart(found_words(self._names)),))


def _query(arguments: str) -> str:
    try:
        value = decode(arguments)
    except NotJsonError:
        return arguments
    return str(value.get("query", "")) if isinstance(value, dict) else arguments
