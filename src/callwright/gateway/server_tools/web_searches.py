"""Searches of the web within one turn: a kind of `ServerTools`. Counted, run, numbered and cut to size here."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from callwright.calls.web_search import (
    MAX_QUERY_CHARS,
    NAME,
    SearchResult,
    WebSearchTool,
    one_line,
    results_text,
)
from callwright.events import Event
from callwright.gateway.config.config import SearchConfig
from callwright.gateway.http import cancel_quietly
from callwright.gateway.request_context import current
from callwright.gateway.server_tools.calls import NOT_ALLOWED, TOO_MANY, CallBudget, Outcomes, PendingCall, is_allowed
from callwright.gateway.server_tools.search_engine import Found, Page, SearchEngine, SearchError
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.server_events import ServerEvent, WebSearchEnded, WebSearchStarted

log = logging.getLogger("callwright.gateway")

_PARALLEL: Final = 4
# Searches in one answer; a request may allow fewer. A model that needs more is looping.
_MAX_SEARCHES: Final = 10
# The characters of each page that the model reads, scaled by the request's context size: eight pages are a few thousand
# tokens, which fit into the smallest windows.
_PAGE_CHARS: Final = 2_000
_SHARES: Final = {"low": 1 / 3, "medium": 1.0, "high": 2.0}
_FAILED: Final = "Error: the search has failed, so nothing is known of what it would have found. {words}"


class WebSearch:
    """The search of a gateway: its engine, and the limits on its results."""

    def __init__(self, config: SearchConfig, engine: SearchEngine) -> None:
        self.config = config
        self._engine = engine

    async def search(self, query: str, wanted: WebSearchTool) -> Found:
        """The pages that a request may see, cut to size. Raises `SearchError`."""
        try:
            found = await self._engine.search(query, wanted)
        except SearchError as error:
            log.warning("a search of the web has failed: %s", error)
            raise
        most = int(_PAGE_CHARS * _SHARES[wanted.context])
        if found.text is not None:
            # a text cannot be filtered by domain
            if wanted.allowed_domains or wanted.blocked_domains:
                raise SearchError("unavailable", "The results cannot be filtered by domain.")
            return Found(text=found.text[: most * self.config.max_results])
        pages = {page.url: page for page in reversed(found.pages) if _is_wanted(page.url, wanted)}
        kept = list(reversed(pages.values()))[: self.config.max_results]
        return Found([Page(page.url, page.title, _cut(page.text, most), page.age) for page in kept])

    async def close(self) -> None:
        """Release its resources."""
        await self._engine.close()


class WebSearches:
    """The searches of one turn."""

    prefix = "ws"
    names: Collection[str]

    def __init__(self, asked: ParsedRequest, wanted: WebSearchTool, search: WebSearch, budget: CallBudget) -> None:
        self._asked = asked
        self._wanted = wanted
        self._search = search
        self._budget = budget
        self._own = CallBudget(_MAX_SEARCHES if wanted.most is None else min(_MAX_SEARCHES, wanted.most))
        self._last = max(asked.sources, default=0)
        self.names = frozenset({asked.offer.names.flat(NAME)})

    @property
    def is_spent(self) -> bool:
        return self._own.is_spent

    def lists(self) -> Sequence[ServerEvent]:
        return ()

    def begins(self, call: PendingCall) -> ServerEvent | None:
        """See `ServerTools`. A search is sent when its query is complete."""
        return None

    def whole(self, call: PendingCall) -> Sequence[Event | ServerEvent]:
        return [WebSearchStarted(call.id, _query(call.arguments) or "")]

    def asks(self, call: PendingCall) -> ServerEvent | None:
        """See `ServerTools`. A search changes nothing, so it needs no approval."""
        return None

    @asynccontextmanager
    async def running(self, calls: Sequence[PendingCall]) -> AsyncGenerator[Outcomes, None]:
        begun_s = time.monotonic()
        places = asyncio.Semaphore(_PARALLEL)
        tasks = {call.id: asyncio.create_task(self._run(call, places)) for call in calls}

        async def outcome(call: PendingCall) -> ServerEvent:
            return self._end(call, await asyncio.shield(tasks[call.id]))

        try:
            yield outcome
        finally:
            if (context := current()) is not None:
                context.elsewhere_s += time.monotonic() - begun_s
            for task in tasks.values():
                await cancel_quietly(task)

    async def _run(self, call: PendingCall, places: asyncio.Semaphore) -> Found | SearchError:
        query = _query(call.arguments)
        if not is_allowed(self._asked, call.name):
            return SearchError("unavailable", NOT_ALLOWED)
        if query is None:
            return SearchError("invalid_tool_input", "Expected a 'query' with words in it.")
        if len(query) > MAX_QUERY_CHARS:
            return SearchError("query_too_long", f"Expected a query of at most {MAX_QUERY_CHARS} characters.")
        if self._own.is_spent or not self._budget.take():
            return SearchError("max_uses_exceeded", TOO_MANY)
        self._own.take()
        async with places:
            try:
                return await self._search.search(query, self._wanted)
            except SearchError as error:
                return error

    def _end(self, call: PendingCall, found: Found | SearchError) -> ServerEvent:
        """The outcome. Results are numbered in the order of the calls, whichever search was done first."""
        if isinstance(found, SearchError):
            words = _FAILED.format(words=found.words)
            return call.end(WebSearchEnded((), words, found.fault), words)
        first = self._last + 1
        results = tuple(
            SearchResult(number, page.url, page.title, page.text, page.age)
            for number, page in enumerate(found.pages, first)
        )
        self._last += len(results)
        words = results_text(results) if found.text is None else found.text
        return call.end(WebSearchEnded(results, words), words)


def _query(arguments: str) -> str | None:
    """The query of a call; None if it has none."""
    try:
        value = decode(arguments)
    except NotJsonError:
        return None
    query = value.get("query") if isinstance(value, dict) else None
    return one_line(query) or None if isinstance(query, str) else None


def _is_wanted(url: str, wanted: WebSearchTool) -> bool:
    """Whether a page is of the domains that a request allows, and of none that it forbids."""
    parts = urlsplit(url)
    place = f"{(parts.hostname or '').lower()}{parts.path}"
    if any(_is_of(place, name) for name in wanted.blocked_domains):
        return False
    return not wanted.allowed_domains or any(_is_of(place, name) for name in wanted.allowed_domains)


def _is_of(place: str, domain: str) -> bool:
    """Whether an address is in a domain or a subdomain; the domain may include a path prefix."""
    host, _, path = place.partition("/")
    name, _, begin = domain.partition("/")
    return (host == name or host.endswith(f".{name}")) and path.startswith(begin)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rstrip()} …"
