"""A conversation with too many tools: the prompt lists a search in their place, its history the tools found.

The client knows nothing of the searches. The history shows them from its items alone: one with the user's words after
each question, and one before the calls of an answer for each tool that none of those found. So the prompt of a grown
conversation begins as it did before, and no search has to be stored. A search of the model's is shown in the same form,
as far as its result is known beforehand: for its best tool.
"""

from collections.abc import Sequence
from typing import Final

from callwright.calls.tool_index import index_tools
from callwright.calls.tool_search import SEARCH_TOOL, found_text, found_words, search_id
from callwright.conversation import (
    Call,
    CallOutput,
    Conversation,
    FunctionTool,
    Item,
    Message,
    NamedTool,
    TextPart,
    shared_item,
)
from callwright.tolerant_json.codec import encode

_MAX_SHOWN: Final = 200  # characters of a question in the search for it


class DeferredTools:
    """The tools of a conversation that may be called. `found` are those that it shows by now, by their names; `items`
    are its items with all searches.
    """

    def __init__(self, conversation: Conversation) -> None:
        allowed = conversation.allowed_tools
        tools = conversation.tools
        if allowed is not None:
            tools = tuple(tool for tool in tools if tool.name in allowed)
        self._tools = {tool.name: tool for tool in tools}
        self._index = index_tools(tools)
        self.found: dict[str, FunctionTool] = {}
        self.items: list[Item] = []
        self._number = 0
        self._read(conversation.items)
        choice = conversation.tool_choice
        if isinstance(choice, NamedTool) and choice.name in self._tools and choice.name not in self.found:
            self._show_called(self._tools[choice.name], len(self.items))

    def search(self, query: str) -> bool:
        """Run a search of the model's, and add it to the items. Returns whether it found a tool that none had found.

        The best tool is shown as if its call were in the history, so that the next prompt begins like this one if the
        model calls that tool. The search itself is added for what that does not show.
        """
        tools = self._index.search(query)
        new = [tool for tool in tools if tool.name not in self.found]
        if new:
            self._show_called(new[0], len(self.items))
        rest = [tool for tool in new if tool.name not in self.found]
        if rest or not new:
            self._add(query, rest or tools, len(self.items))
        return bool(new)

    def _read(self, items: Sequence[Item]) -> None:
        question = ""
        answered, first_call = False, None  # whether the answer has begun, and the place of its first call
        for item in items:
            if type(item) is CallOutput or (type(item) is Message and item.role != "assistant"):
                answered, first_call = False, None
                if type(item) is Message and item.role == "user":
                    question = item.text
            elif not answered:
                self._show_asked(question)
                question, answered = "", True
            if type(item) is Call:
                first_call = len(self.items) if first_call is None else first_call
                if item.name in self._tools and item.name not in self.found:
                    first_call = self._show_called(self._tools[item.name], first_call)
            self.items.append(item)
        self._show_asked(question)

    def _show_asked(self, question: str) -> None:
        """Add the search for a user's question, if it finds a tool that none has found."""
        found = self._index.search(question, fillers=not self.found)
        new = [tool for tool in found if tool.name not in self.found]
        if new:
            self._add(question[:_MAX_SHOWN], new, len(self.items))

    def _show_called(self, tool: FunctionTool, at: int) -> int:
        """Add the search for a tool at this place; answers the next place."""
        query = tool.name.replace("_", " ")
        others = [other for other in self._index.search(query) if other is not tool and other.name not in self.found]
        return self._add(query, [tool, *others], at)

    def _add(self, query: str, tools: Sequence[FunctionTool], at: int) -> int:
        call = Call(SEARCH_TOOL.name, encode({"query": query}).decode(), id=search_id(self._number))
        new = [tool for tool in tools if tool.name not in self.found]
        words = found_text(tools) if new else found_words([tool.name for tool in tools])
        output = CallOutput(call.id, (TextPart(words),))
        self.items[at:at] = shared_item(call), shared_item(output)
        self._number += 1
        self.found |= {tool.name: tool for tool in new}
        return at + 2
