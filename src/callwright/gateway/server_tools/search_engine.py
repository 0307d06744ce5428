"""The search engine of the web search tool: a SearXNG or a tool of an MCP server, as configured.

Results are untrusted text: they are truncated here, and go only to the model and the client.
Source of SearXNG's shapes: its Search API (docs.searxng.org/dev/search_api.html), `format=json`.
"""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from callwright.agent.annotations import Failed
from callwright.agent.mcp.results import result_of
from callwright.calls.web_search import WebSearchTool, one_line
from callwright.errors import ConfigError, RequestError, did_you_mean
from callwright.gateway.config.config import SearchConfig
from callwright.gateway.config.urls import check_header, check_url
from callwright.gateway.server_tools.mcp_servers import McpServers
from callwright.openai_format.mcp_tools import AskedServer
from callwright.schema.keywords import properties, required
from callwright.settings import bounds
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.upstreams.answers import UnreadableError, read_json
from callwright.upstreams.base_urls import without_credentials
from callwright.upstreams.http_client.connections import Connections, Timeouts
from callwright.upstreams.http_client.errors import HttpError, TooLargeError, TooSlowError
from callwright.upstreams.http_client.response import whole
from callwright.wire.server_events import SearchFault

_MAX_TITLE: Final = 300
_MAX_URL: Final = 2_048
_OK: Final = 200
_NO_JSON: Final = 403
_TOO_MANY: Final = 429
# The maximum number of allowed or blocked domains in a query; the results are checked against all of them.
_MAX_OPERATORS: Final = 6
_URL: Final = re.compile(r"https?://[^\s<>\"'\])}]+")


class SearchError(Exception):
    """A search has failed. `words` are for the model; the message is for who runs the gateway."""

    def __init__(self, fault: SearchFault, words: str, message: str = "") -> None:
        super().__init__(message or words)
        self.fault: SearchFault = fault
        self.words = words


class Page(Struct, frozen=True):
    """A page that was found."""

    url: str
    title: str
    text: str
    age: str | None = None


class Found(Struct, frozen=True):
    """The results of a search: pages, or a text that cannot be split into pages."""

    pages: Sequence[Page] = ()
    text: str | None = None


class SearchEngine(Protocol):
    """Something that searches the web."""

    async def search(self, query: str, wanted: WebSearchTool) -> Found:
        """The results. Raises `SearchError`."""
        ...

    async def close(self) -> None:
        """Release its resources."""
        ...


def search_engine(config: SearchConfig, servers: McpServers, labels: Sequence[str]) -> SearchEngine:
    """The engine of a configuration. `labels` are those of its MCP servers. Raises `ConfigError`."""
    if (config.url is None) == (config.mcp is None):
        got = "neither" if config.url is None else "both: leave one of them out"
        raise ConfigError(f"[search]: expected either url = 'http://…' or mcp = '…', got {got}.")
    if config.url is not None:
        if config.tool is not None:
            raise ConfigError("[search]: tool is for mcp; a url has none.")
        return _SearXng(config)
    for field in ("headers", "api_key_env"):
        if getattr(config, field):
            raise ConfigError(f"[search]: {field} is for a url; an MCP server has its own in [[mcp]].")
    assert config.mcp is not None
    if config.mcp not in labels:
        known = f" They are: {', '.join(labels)}." if labels else " There are none."
        raise ConfigError(
            f"[search]: mcp {config.mcp!r} is the label of no [[mcp]] server.{did_you_mean(config.mcp, labels)}{known}"
        )
    if config.tool is None:
        raise ConfigError("[search]: expected tool = '…', the tool of the MCP server that searches the web.")
    return _McpTool(config, servers)


# --- SearXNG ---


class _Result(Struct):
    url: Any = None
    title: Any = None
    content: Any = None
    publishedDate: Any = None  # noqa: N815  # SearXNG's name


class _Answer(Struct):
    results: list[Any]  # one that is odd does not cost the others
    unresponsive_engines: Any = None


class _SearXng:
    """The JSON API of a SearXNG."""

    def __init__(self, config: SearchConfig) -> None:
        assert config.url is not None
        check_url(
            config.url, f"[search]: url {without_credentials(config.url)!r}: expected one such as http://host:8888"
        )
        base = config.url.rstrip("/")
        self._url = base if base.endswith("/search") else f"{base}/search"
        headers = {"accept": "application/json", **{name.lower(): value for name, value in config.headers.items()}}
        if config.api_key_env:
            if "authorization" in headers:
                raise ConfigError("[search]: its key is given by headers.authorization and api_key_env: leave one.")
            headers["authorization"] = f"Bearer {_variable(config.api_key_env)}"
        for name, value in headers.items():
            check_header(name, value, f"[search]: headers.{name}")
        self._config = config
        self._connections = Connections(headers, Timeouts(config.timeout_s, config.timeout_s))

    async def search(self, query: str, wanted: WebSearchTool) -> Found:
        url = f"{self._url}?q={quote(query + _operators(wanted), safe='')}&format=json"
        try:
            async with asyncio.timeout(self._config.timeout_s):
                body = await self._fetched(url)
        except (TimeoutError, TooSlowError) as error:
            raise _failed(f"no whole answer within {self._config.timeout_s:g} s") from error
        except TooLargeError as error:
            raise _failed(str(error)) from error
        except HttpError as error:
            raise _failed(f"no connection, or one that broke ({type(error).__name__})") from error
        try:
            answer = await asyncio.to_thread(read_json, body, _Answer, bounds.MAX_ANSWER_VALUES)
        except (NotJsonError, UnreadableError) as error:
            raise _failed("an answer that is not JSON of SearXNG") from error
        results = [msgspec.convert(one, _Result) for one in answer.results if isinstance(one, dict)]
        pages = [page for result in results if (page := _page(result)) is not None]
        if not pages and answer.unresponsive_engines:
            raise _failed("none of its engines answered")
        return Found(pages)

    async def _fetched(self, url: str) -> bytes | bytearray:
        response = await self._connections.send("GET", url, None, None, self._config.timeout_s)
        async with response:
            if response.status == _TOO_MANY:
                raise SearchError(
                    "too_many_requests", "The search engine takes no more searches for now.", "status 429"
                )
            if response.status != _OK:
                hint = " (does its settings.yml have json in search.formats?)" if response.status == _NO_JSON else ""
                raise _failed(f"status {response.status}{hint}")
            return await whole(response, bounds.MAX_SEARCH_BYTES, self._config.timeout_s)

    async def close(self) -> None:
        await self._connections.close()


def _failed(message: str) -> SearchError:
    return SearchError("unavailable", "The search engine did not give an answer that can be used.", message)


def _operators(wanted: WebSearchTool) -> str:
    """The domains of a request as search operators. Engines may ignore them, so the results are checked."""
    allowed = [f"site:{name}" for name in wanted.allowed_domains[:_MAX_OPERATORS]]
    if len(wanted.allowed_domains) > _MAX_OPERATORS:
        allowed = []
    blocked = [f"-site:{name}" for name in wanted.blocked_domains[:_MAX_OPERATORS]]
    return "".join(f" {words}" for words in (" OR ".join(allowed), *blocked) if words)


def _page(result: _Result) -> Page | None:
    """A result that is an address of the web; None for any other."""
    url = _address(result.url)
    if url is None:
        return None
    title, text, age = (
        one_line(value) if isinstance(value, str) else ""
        for value in (result.title, result.content, result.publishedDate)
    )
    return Page(url, title[:_MAX_TITLE] or _host(url), text, age[:_MAX_TITLE] or None)


def _address(url: object) -> str | None:
    if not isinstance(url, str) or len(url) > _MAX_URL or not url.startswith(("http://", "https://")):
        return None
    return url if url.isprintable() and " " not in url and _host(url) else None


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


# --- a tool of an MCP server ---


class _McpTool:
    """A tool that takes a query. It returns JSON with results, or text, whose paragraphs with a URL are pages."""

    def __init__(self, config: SearchConfig, servers: McpServers) -> None:
        self._config = config
        self._servers = servers

    async def search(self, query: str, wanted: WebSearchTool) -> Found:
        assert self._config.mcp is not None
        assert self._config.tool is not None
        try:
            async with asyncio.timeout(self._config.timeout_s):
                opened = (await self._servers.open([AskedServer(self._config.mcp)]))[self._config.mcp]
                listed = opened.listed.get(self._config.tool)
                if listed is None:
                    raise _failed(f"the MCP server has no tool {self._config.tool!r}")
                arguments = {_parameter(listed.input_schema): query + _operators(wanted)}
                answer = await opened.connection.call(
                    self._config.tool, arguments, is_repeatable=True, progress=_no_progress
                )
                value = result_of(answer, describe_media=True)
        except TimeoutError as error:
            raise _failed(f"no whole answer within {self._config.timeout_s:g} s") from error
        except RequestError as error:
            raise _failed("the MCP server cannot be reached") from error
        except Failed as error:
            raise _failed("the tool of the MCP server has failed") from error
        return _parse_results(value)

    async def close(self) -> None:
        """See `SearchEngine`: the connection is that of the MCP server."""


async def _no_progress(done: float, total: float | None, message: str | None) -> None:
    pass


def _parameter(schema: Mapping[str, Any]) -> str:
    """The parameter that the query goes into. Raises `SearchError` where no name is plain."""
    names = list(properties(schema))
    needed = [name for name in names if name in required(schema)]
    for name in ("query", "q"):
        if name in names:
            return name
    if len(needed) == 1:
        return needed[0]
    raise _failed("the tool of the MCP server has no parameter 'query', and not just one that it needs")


def _parse_results(value: Any) -> Found:
    if isinstance(value, str):
        try:
            value = decode(value)
        except NotJsonError:
            return _paragraphs(value)
    if isinstance(value, Mapping) and isinstance(value.get("results"), list):
        value = value["results"]
    if isinstance(value, list):
        pages = [page for one in value if isinstance(one, Mapping) and (page := _parse_result(one)) is not None]
        return Found(pages) if pages or not value else Found(text=str(value))
    return Found(text=None if value is None else str(value))


def _parse_result(one: Mapping[str, Any]) -> Page | None:
    """A result of a list, by the names that searches have for its fields."""
    fields = {str(name).lower(): value for name, value in one.items()}
    text = next((fields[name] for name in ("content", "text", "snippet", "description") if fields.get(name)), None)
    url = fields.get("url") or fields.get("link")
    return _page(_Result(url, fields.get("title"), text, fields.get("publisheddate") or fields.get("page_age")))


def _paragraphs(text: str) -> Found:
    """Paragraphs with an address as pages: that is the form in which most such tools write."""
    pages: list[Page] = []
    for paragraph in re.split(r"\n\s*\n", text):
        found = _URL.search(paragraph)
        if found is not None and (url := _address(found[0].rstrip(".,;:"))) is not None:
            title = paragraph.strip().partition("\n")[0].replace(found[0], " ")
            pages.append(Page(url, one_line(title)[:_MAX_TITLE] or _host(url), one_line(paragraph)))
    return Found(pages) if pages else Found(text=text)


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise ConfigError(f"[search]: the environment variable {name} is not set.")
    return value
