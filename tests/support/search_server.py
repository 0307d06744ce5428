"""A search engine on loopback that poses as a SearXNG: it finds what it is told to, or goes wrong in a named way."""

import gzip
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import web

from tests.support.servers import ModelServer, whole

__all__ = ["FAULTS", "PAGES", "SearchServer", "page"]


def page(url: str, title: str, content: str, **fields: Any) -> dict[str, Any]:
    """A result, as SearXNG writes it."""
    return {"url": url, "title": title, "content": content, "engine": "made-up", "score": 1.0, **fields}


PAGES: Final = (
    page(
        "https://tides.example/oban",
        "Tides at Oban",
        "High water at Oban is at 06:12 and 18:40.",
        publishedDate="2026-11-20",
    ),
    page("https://harbour.example/notes", "Notes of the harbour", "The ferry to Mull leaves at 07:25."),
    page("https://sub.tides.example/moon", "The moon", "It is full on Friday."),
)
# Each a way to go wrong, and the words of the gateway's log about it.
FAULTS: Final[Mapping[str, str]] = {
    "stalls": "no whole answer within",
    "drips": "no whole answer within",
    "is huge": "more than 4,194,304 bytes",
    "is a bomb": "more than 4,194,304 bytes",
    "redirects": "status 302",
    "forbids": "search.formats",
    "fails": "status 500",
    "is busy": "status 429",
    "answers HTML": "not JSON",
    "lies": "not JSON",
    "is deep": "not JSON",
    "is cut": "broke",
    "is without engines": "none of its engines",
}
_HUGE: Final = 50 * 1024 * 1024


class SearchServer(ModelServer):
    """Plays what is found for each search, in order, the last one again and again; remembers the queries."""

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.elsewhere = 0
        self._found: deque[Any] = deque([PAGES])
        self._left = threading.Event()
        super().__init__()
        parts = urlsplit(self.url)
        self.url = f"{parts.scheme}://{parts.netloc}"

    def finds(self, *found: Any) -> None:
        """From now on: for each search pages, or the name of a fault."""
        self.queries, self.headers, self.elsewhere = [], [], 0
        self._found = deque(found or [PAGES])

    def _route(self, router: web.UrlDispatcher) -> None:
        router.add_get("/search", self._search)
        router.add_get("/elsewhere", self._elsewhere)

    async def _elsewhere(self, _: web.Request) -> web.Response:
        self.elsewhere += 1
        return web.json_response({"results": [page("https://elsewhere.example/", "Elsewhere", "x")]})

    async def _search(self, request: web.Request) -> web.StreamResponse:
        assert request.query["format"] == "json"
        self.queries.append(request.query["q"])
        self.headers.append(dict(request.headers))
        found = self._found.popleft() if len(self._found) > 1 else self._found[0]
        if not isinstance(found, str):
            return web.json_response(
                {"query": request.query["q"], "results": list(found), "answers": [], "unresponsive_engines": []}
            )
        return await self._goes_wrong(found, request)

    async def _goes_wrong(self, how: str, request: web.Request) -> web.StreamResponse:
        match how:
            case "stalls":
                answer = whole({"results": []})
                return await self._answered(type(answer)(("silence",), 200, answer.headers), request)
            case "drips":
                return await self._answered(_raw(b'{"results": [', "silence"), request)
            case "is huge":
                return await self._answered(_raw(*([b" " * 65_536] * (_HUGE // 65_536))), request)
            case "is a bomb":
                packed = gzip.compress(b" " * _HUGE, 1)
                return web.Response(
                    body=packed, headers={"content-encoding": "gzip", "content-type": "application/json"}
                )
            case "redirects":
                return web.Response(status=302, headers={"location": "/elsewhere"})
            case "forbids":
                return web.Response(status=403, text="Forbidden")
            case "fails":
                return web.Response(status=500, text="no")
            case "is busy":
                return web.Response(status=429, text="no")
            case "answers HTML":
                return web.Response(text="<html>results</html>", content_type="text/html")
            case "lies":
                return web.json_response({"results": "many"})
            case "is deep":
                return web.Response(text='{"results": [' + "[" * 100_000, content_type="application/json")
            case "is cut":
                return await self._answered(_raw(b'{"results": [', "cut"), request)
            case "is without engines":
                return web.json_response({"results": [], "unresponsive_engines": [["made-up", "timeout"]]})
        raise AssertionError(how)


def _raw(*steps: Any) -> Any:
    answer = whole({})
    return type(answer)(steps, 200, answer.headers)
