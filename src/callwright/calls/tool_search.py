"""Tool search: the function that a model calls, its query, and the text of its result."""

import json
from collections.abc import Sequence
from typing import Final

from callwright.calls.tool_index import index_tools
from callwright.conversation import FunctionTool
from callwright.tolerant_json.codec import NotJsonError, decode

# The tool that a model is offered for searching.
SEARCH_TOOL: Final = FunctionTool(
    "tool_search",
    "Searches for tools that can be called but are not listed here, by the words of their names and descriptions. Call "
    "it before you say that you cannot do something; the tools that it finds can be called afterwards. If it finds "
    "nothing, try other words, or English ones.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What the tool should do, in a few words."}},
        "required": ["query"],
        "additionalProperties": False,
    },
    strict=True,
)


def search_tools(tools: Sequence[FunctionTool], query: str, limit: int = 8) -> list[FunctionTool]:
    """The tools that match a query best, see `ToolIndex.search`."""
    return index_tools(tools).search(query, limit)


def search_query(arguments: str) -> str:
    """The query in the arguments of a search; arguments without one are the query themselves."""
    try:
        value = decode(arguments)
    except NotJsonError:
        return arguments
    return str(value.get("query", "")) if isinstance(value, dict) else arguments


def found_words(names: Sequence[str]) -> str:
    """The output of a search for the model: the names of the tools found."""
    return f"These tools can be called now: {', '.join(names)}." if names else "No tool was found."


def search_id(number: int) -> str:
    """The id of a search without one: the same in every turn, so that the prompt's prefix is stable."""
    return f"search_{number}"


def found_schemas(tools: Sequence[FunctionTool]) -> str:
    """Tools with their schemas, for the position in a conversation of the search: a line of JSON for each, in the form
    that Claude Code's own search tool describes to the model.
    """
    lines = [
        json.dumps(
            {"description": tool.about or "", "name": tool.name, "parameters": tool.parameters or {}},
            ensure_ascii=False,
        )
        for tool in tools
    ]
    return "\n".join(["<functions>", *(f"<function>{line}</function>" for line in lines), "</functions>"])


def found_text(tools: Sequence[FunctionTool]) -> str:
    """The output of a search for tools that are not in the prompt: names and schemas."""
    words = found_words([tool.name for tool in tools])
    return f"{words}\n{found_schemas(tools)}" if tools else words
