"""Tool search by keywords: BM25 over names, descriptions and parameters of the tools.

The index is SQLite's full-text search (FTS5) in memory, which ranks by BM25 itself.
"""

import json
import re
import sqlite3
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, Self
from unicodedata import normalize

from callwright.conversation import FunctionTool
from callwright.schema.keywords import properties
from callwright.tolerant_json.codec import NotJsonError, decode

# The tool that a model is offered for searching.
SEARCH_TOOL: Final = FunctionTool(
    "tool_search",
    "Searches for tools that can be called but are not listed here. Call it before you say that you cannot do "
    "something; the tools that it finds can be called afterwards.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What the tool should do, in a few words."}},
        "required": ["query"],
        "additionalProperties": False,
    },
    strict=True,
)

_WORD: Final = re.compile(r"[^\W_]+")
_NAME_PARTS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
# Weights: a word in a tool's name counts most, in its parameters least.
_RANK: Final = "bm25(tools, 4.0, 2.0, 1.0)"
# FTS5 ranks the better the lower. A word of more than half of the tools counts 1e-6.
_RARE: Final = -1e-4
_MAX_WORDS: Final = 64


class ToolIndex:
    """An index of tools, for several searches; a context manager."""

    def __init__(self, tools: Sequence[FunctionTool]) -> None:
        self._tools = tools
        self._index = sqlite3.connect(":memory:")
        self._index.execute("CREATE VIRTUAL TABLE tools USING fts5(name, description, parameters, tokenize='porter')")
        rows = _rows(tools)
        self._index.executemany("INSERT INTO tools(rowid, name, description, parameters) VALUES (?, ?, ?, ?)", rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._index.close()

    def search(self, query: str, limit: int = 8, *, rare: bool = False) -> list[FunctionTool]:
        """The tools that match a query best, best first, at most `limit`; of a long query, the last words count. A tool
        with none of the words is left out; if only `rare` words count, also one that has only words of most tools.
        """
        words = dict.fromkeys(word.lower() for word in reversed(_WORD.findall(normalize("NFC", query))))
        if not words or not self._tools:
            return []
        asked = " OR ".join(f'"{word}"' for word in sorted(islice(words, _MAX_WORDS)))
        found = self._index.execute(
            f"SELECT rowid, {_RANK} FROM tools WHERE tools MATCH ? ORDER BY {_RANK}, rowid LIMIT ?", (asked, limit)
        )
        return [self._tools[number] for number, rank in found if not rare or rank < _RARE]


def search_tools(tools: Sequence[FunctionTool], query: str, limit: int = 8) -> list[FunctionTool]:
    """The result of one search, see `ToolIndex.search`."""
    with ToolIndex(tools) as index:
        return index.search(query, limit)


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


def _rows(tools: Sequence[FunctionTool]) -> list[tuple[int, str, str, str]]:
    return [
        (
            number,
            f"{tool.name} {' '.join(_NAME_PARTS.findall(tool.name))}",
            tool.description or "",
            " ".join(f"{key} {_described(schema)}" for key, schema in properties(tool.parameters).items()),
        )
        for number, tool in enumerate(tools)
    ]


def _described(schema: Any) -> str:
    told = schema.get("description") if isinstance(schema, dict) else None
    return told if isinstance(told, str) else ""
