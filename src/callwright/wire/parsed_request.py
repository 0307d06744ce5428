"""A request of any API for which the gateway may run tools itself."""

from collections.abc import Mapping
from typing import Any

import msgspec

from callwright.calls.web_search import SearchResult
from callwright.conversation import Call, Conversation
from callwright.openai_format.tool_catalog import ToolCatalog


class ParsedRequest(msgspec.Struct, frozen=True):
    """A parsed request: the conversation, the catalog of its tools, and fields for the upstream.

    `compacts`: compact the conversation instead of continuing it. `approved` are calls of MCP tools to run first, by
    the id of their approval request; `listed` the labels of the servers whose tools were already listed. `frees`: the
    restriction of allowed tools applies to the first turn only. `sources` are the results of earlier web searches, by
    their number.
    """

    conversation: Conversation
    offer: ToolCatalog
    fields: dict[str, Any]
    compacts: bool = False
    approved: Mapping[str, Call] = {}
    listed: frozenset[str] = frozenset()
    frees: bool = False
    sources: Mapping[int, SearchResult] = {}
