"""Tool search that the server runs itself: the model's query, the tools found, and how the model is shown both."""

from collections.abc import Sequence

from callwright.calls.tool_search import SEARCH_TOOL, found_text, search_id, search_query, search_tools
from callwright.conversation import Call, CallOutput, Item, TextPart
from callwright.tolerant_json.codec import encode
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.server_events import ToolsSearched


class Search:
    """A search with the model's arguments; `event` has its result. The tools found can be called from then on."""

    def __init__(self, asked: ParsedRequest, arguments: str) -> None:
        self._query = search_query(arguments)
        self._found = search_tools(asked.offer.searchable, self._query)
        names = tuple(tool.name for tool in self._found)
        for name in names:
            asked.offer.show(name)
        self.event = ToolsSearched(self._query, names, tuple(map(asked.offer.client_tool, names)))

    def items(self, before: Sequence[Item]) -> tuple[Item, Item]:
        """The call and its output, as the model is shown them now and, read from the answer, in every later turn."""
        made = sum(isinstance(item, Call) and item.name == SEARCH_TOOL.name for item in before)
        call = Call(SEARCH_TOOL.name, encode({"query": self._query}).decode(), id=search_id(made))
        return call, CallOutput(call.id, (TextPart(found_text(self._found)),))
