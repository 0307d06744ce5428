"""The kinds of tools that run here, the same for each API; and a warning about tools that cannot be run."""

import logging
from collections.abc import Mapping
from functools import cache
from typing import Final

from callwright.gateway.request_context import note_dropped
from callwright.gateway.server_tools.calls import CallBudget, ServerCalls, ServerTools
from callwright.gateway.server_tools.mcp_calls import McpCalls
from callwright.gateway.server_tools.mcp_servers import OpenServer
from callwright.gateway.server_tools.web_searches import WebSearch, WebSearches
from callwright.openai_format.tool_catalog import ToolCatalog
from callwright.wire.parsed_request import ParsedRequest

log = logging.getLogger("callwright.gateway")

_NOT_RUN: Final = {
    "web_search": "the gateway does not search the web: set [search] in the configuration, or disable it in the client",
    "image_generation": "the gateway does not generate images: disable the tool in the client",
}


def runs_here(asked: ParsedRequest, servers: Mapping[str, OpenServer]) -> bool:
    """Whether a request offers the model something that runs here."""
    return bool(servers) or asked.offer.search == "server" or asked.offer.web is not None


def server_calls(
    asked: ParsedRequest, servers: Mapping[str, OpenServer], search: WebSearch | None, most: int | None
) -> ServerCalls:
    """The calls of a request that run here. `most`: how many, of all kinds together; None for any number."""
    budget = CallBudget(most)
    kinds: list[ServerTools] = [McpCalls(asked, servers, budget)]
    if asked.offer.web is not None and search is not None:
        kinds.append(WebSearches(asked, asked.offer.web, search, budget))
    return ServerCalls(kinds, budget)


def note_not_run(offer: ToolCatalog) -> None:
    """Report the tools that were left out: to the client each time, in the log once."""
    note_dropped(frozenset(offer.left_out))
    for kind in offer.left_out:
        _warn(next((known for known in _NOT_RUN if kind.startswith(known)), ""))


@cache
def _warn(kind: str) -> None:
    if kind:
        log.warning("a request offers a tool %s, which was left out: %s", kind, _NOT_RUN[kind])
