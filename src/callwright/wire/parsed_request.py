"""A request as the gateway answers it where it may run tools itself, whichever API it came by."""

from collections.abc import Mapping
from typing import Any

import msgspec

from callwright.calls.web_search import SearchResult
from callwright.conversation import Call, Conversation
from callwright.openai_format.tool_catalog import ToolCatalog


class ParsedRequest(msgspec.Struct, frozen=True):
    """What a model is asked by a request: the conversation, the offer its tools come from, fields for the upstream.

    `compacts`: it is asked to compact the conversation instead of going on with it. `approved` are calls of MCP tools
    that are to be run first, by the id of their request; `listed` the labels of the servers whose tools were told.
    `frees`: which tools are allowed counts for the first turn only. `sources` are the results of earlier searches of
    the web, by their number.
    """

    conversation: Conversation
    offer: ToolCatalog
    fields: dict[str, Any]
    compacts: bool = False
    approved: Mapping[str, Call] = {}
    listed: frozenset[str] = frozenset()
    frees: bool = False
    sources: Mapping[int, SearchResult] = {}
