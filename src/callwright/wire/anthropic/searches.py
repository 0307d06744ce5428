"""Searches of the web in the Messages API: the tool of a request, the blocks of an answer, and these when they come
back.

Source: the types of the `anthropic` package 2.14.0 (`WebSearchTool20260318Param` and the older ones).
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from callwright.calls.web_search import SearchResult, WebSearchTool, results_text
from callwright.errors import RequestError
from callwright.openai_format.errors import type_error
from callwright.openai_format.web_search import domains, location_words
from callwright.wire.anthropic.types import Citation, WebSearchResultBlock, WebSearchToolResultError
from callwright.wire.sealed import sealed
from callwright.wire.searches import Unsealer, sealed_result
from callwright.wire.server_events import SearchFault
from callwright.wire.server_words import WEB_SEARCH_GONE

KIND: Final = "web_search_"
_MAX_CITED: Final = 150


class _Place(msgspec.Struct):
    city: str | None = None
    region: str | None = None
    country: str | None = None
    timezone: str | None = None


class _Tool(msgspec.Struct):
    name: str = "web_search"
    max_uses: Annotated[int, msgspec.Meta(ge=1)] | None = None
    allowed_domains: list[str] | None = None
    blocked_domains: list[str] | None = None
    user_location: _Place | None = None


def read_tool(given: Mapping[str, Any], at: str) -> WebSearchTool:
    """How a request wants the web to be searched. Raises `RequestError`."""
    try:
        tool = msgspec.convert(given, _Tool)
    except msgspec.ValidationError as error:
        raise type_error(error, at, given) from error
    if tool.name != "web_search":
        raise RequestError(
            f"Invalid '{at}.name': expected 'web_search', got '{tool.name[:100]}'.",
            param=f"{at}.name",
            code="invalid_value",
        )
    if tool.allowed_domains and tool.blocked_domains:
        raise RequestError(
            f"Invalid '{at}': expected 'allowed_domains' or 'blocked_domains', got both.",
            param=at,
            code="invalid_value",
        )
    place = tool.user_location or _Place()
    return WebSearchTool(
        domains(tool.allowed_domains, f"{at}.allowed_domains"),
        domains(tool.blocked_domains, f"{at}.blocked_domains"),
        location_words(place.city, place.region, place.country, place.timezone),
        most=tool.max_uses,
    )


def result_content(
    results: Sequence[SearchResult], fault: SearchFault | None
) -> tuple[WebSearchResultBlock, ...] | WebSearchToolResultError:
    """The content of a search result."""
    if fault is not None:
        return WebSearchToolResultError(fault)
    return tuple(
        WebSearchResultBlock(result.url, result.title, sealed_result(result), result.age) for result in results
    )


def cited(result: SearchResult) -> Citation:
    """A citation of a result."""
    return Citation(result.url, result.title, sealed(str(result.number)), result.text[:_MAX_CITED])


def read_result(content: object, last: int, unsealer: Unsealer) -> tuple[str, tuple[SearchResult, ...]]:
    """Read a search result in a history: the text that the model has read, and the results that it may cite.

    Results of another server have no text, and numbers following the `last`.
    """
    if isinstance(content, Mapping):
        return f"Error: the search has failed ({str(content.get('error_code', 'unavailable'))[:64]}).", ()
    results: list[SearchResult] = []
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, Mapping):
            continue
        result = unsealer.result(block.get("encrypted_content"))
        if result is None and isinstance(block.get("url"), str):
            last += 1
            result = SearchResult(last, block["url"], str(block.get("title") or block["url"]), "")
        if result is not None:
            last = max(last, result.number)
            results.append(result)
    return (results_text(results) if results or content == [] else WEB_SEARCH_GONE), tuple(results)
