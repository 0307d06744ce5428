"""The inspection pages and their API, below `/ui/api`.

Contents of turns are for operators' keys; another key sees the rows of its own turns. Posts are accepted only from
this gateway's own pages, even if keys are configured.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

import callwright
from callwright.api import Start
from callwright.errors import RequestError
from callwright.events import FinishReason
from callwright.gateway.access.admission import AdmissionControl, busy
from callwright.gateway.access.keys import ApiKey, caller
from callwright.gateway.config.config import ServerConfig
from callwright.gateway.http import (
    AsWritten,
    EventStream,
    cancel_on_disconnect,
    cancel_quietly,
    json_response,
    read_body,
)
from callwright.gateway.inspection.about import GatewayInfo
from callwright.gateway.inspection.run_again import Again
from callwright.gateway.inspection.spend import SpendView
from callwright.gateway.inspection.static_files import asset, shell, wants_page
from callwright.gateway.inspection.turn_source import Rows, TurnSource, no_rows
from callwright.inspection.quality import merged
from callwright.inspection.reading import Reading, read_output
from callwright.inspection.turn_view import TurnView, bare_view
from callwright.openai_format.errors import from_validation
from callwright.settings.bounds import Bounds
from callwright.tolerant_json.codec import encode
from callwright.turn.reread import RecordError
from callwright.wire.body import decoded
from callwright.wire.sse import comment, typed_event

# The paths of the pages; which one it is, the browser sees.
PAGES: Final = ("/", "/ui", "/ui/turns/{id}", "/ui/read", "/ui/try", "/ui/quality", "/ui/spend", "/ui/problems")
# Headers that proxies add.
_FORWARDED: Final = (
    *("forwarded", "via", "x-real-ip", "cf-connecting-ip", "true-client-ip"),
    *("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port"),
)
# Browsers that may follow the turns of one process at the same time.
_MAX_LIVE: Final = 64
# Characters of a pasted output: each is traced.
_MAX_CHARS: Final = 1_000_000
# Days that the page may ask for: a year, and some.
_MOST_DAYS: Final = 400
_TEXT: Final = """Callwright {version}: OpenAI's and Anthropic's API over your model servers.

  POST {base}/v1/chat/completions   OPENAI_BASE_URL={base}/v1
  POST {base}/v1/responses
  POST {base}/v1/messages           ANTHROPIC_BASE_URL={base}
  GET  {base}/v1/models             the models
  GET  {base}/openapi.json          all of it, described
  GET  {base}/                      in a browser: requests live, what models saw and wrote, and why
"""


class RowList(Struct):
    """The recorded turns, oldest first."""

    rows: Rows


class OutputToRead(Struct):
    """A pasted output, and how to parse it: the arguments of `callwright.Parser`."""

    output: Annotated[str, msgspec.Meta(max_length=_MAX_CHARS)]
    dialect: str
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    start: Start | None = None
    finish_reason: FinishReason = "stop"


class InspectionEndpoint:
    """Serves the pages. `info` returns the data they show; `turns`: None if no turns are recorded; `again` repeats a
    turn; None if the pages run without a gateway. A page's stream of turns ends when the configuration `is_replaced`:
    the page opens another. `spend` returns the costs of a number of days that a key may see; None if nothing has a
    price or a budget.
    """

    def __init__(
        self,
        info: Callable[[ApiKey], Awaitable[GatewayInfo]],
        turns: TurnSource | None,
        server: ServerConfig,
        bounds: Bounds,
        admission: AdmissionControl,
        is_replaced: asyncio.Event,
        again: Callable[[str, Again], Coroutine[Any, Any, str | None]] | None = None,
        spend: Callable[[ApiKey, int], Awaitable[SpendView]] | None = None,
    ) -> None:
        self._info = info
        self._turns = turns
        self._server = server
        self._bounds = bounds
        self._admission = admission
        self._is_replaced = is_replaced
        self._again = again
        self._spend = spend
        self._live = 0

    def routes(self) -> list[tuple[str, str, Callable[[Request], Awaitable[Response]]]]:
        """Method, path and handler of each."""
        return [
            *(("GET", path, self.page) for path in PAGES),
            ("GET", "/ui/assets/{name:path}", self.asset),
            ("GET", "/ui/api/gateway", self.gateway),
            ("GET", "/ui/api/turns", self.rows),
            ("GET", "/ui/api/turns/live", self.live),
            ("GET", "/ui/api/turns/{id}", self.turn),
            ("POST", "/ui/api/turns/{id}/again", self.again),
            ("GET", "/ui/api/quality", self.quality),
            ("GET", "/ui/api/spend", self.spend),
            ("POST", "/ui/api/read", self.read),
        ]

    async def page(self, request: Request) -> Response:
        """A page; at `/`, a few lines of text for clients other than browsers."""
        if request.url.path == "/" and not wants_page(request):
            base = f"{request.url.scheme}://{request.url.netloc}"
            return PlainTextResponse(_TEXT.format(version=callwright.__version__, base=base))
        return shell(request)

    async def asset(self, request: Request) -> Response:
        """A file of the pages."""
        return asset(request)

    async def gateway(self, _: Request) -> Response:
        """Information about the gateway."""
        return json_response(await self._info(caller()))

    async def rows(self, request: Request) -> Response:
        """The recorded turns."""
        rows = await self._turns.rows() if self._turns else ()
        return json_response(RowList(_seen_by(caller(), rows, contents=self._sees_contents(request))))

    async def live(self, request: Request) -> Response:
        """The recorded turns, then each new or changed one."""
        if self._live >= _MAX_LIVE:
            raise busy(f"{_MAX_LIVE} browsers follow the turns of this gateway already, which is the limit.")
        who = caller()
        rows = self._turns.live() if self._turns is not None else no_rows()
        return EventStream(
            self._events(rows, who, contents=self._sees_contents(request)),
            AsWritten(lambda: comment("live")),
        )

    async def turn(self, request: Request) -> Response:
        """One turn, whole for an operator."""
        view = await self._find(request.path_params["id"])
        if view.contents == "full" and not self._sees_contents(request):
            view = bare_view(view.row.without_contents(), "operators")
        return Response(await asyncio.to_thread(encode, view), media_type="application/json")

    async def again(self, request: Request) -> Response:
        """Repeat a recorded turn with another model, mode or dialect."""
        _from_own_page(request)
        asked = await self._body(request, Again)
        if not self._sees_contents(request):
            raise RequestError("Only an operator may do that.", code="not_operator", status=403)
        id_ = request.path_params["id"]
        found = None
        if self._again is not None:
            found = await cancel_on_disconnect(request, self._again(id_, asked))
        if found is None:
            raise _unknown(id_, "A turn can be run again only while its content is stored.")
        return json_response({"id": found})

    async def quality(self, _: Request) -> Response:
        """Results of turns over time. Not separated by key, so for operators only."""
        buckets = await self._turns.buckets() if self._turns is not None and caller().is_operator else ()
        return json_response(merged(list(buckets)))

    async def spend(self, request: Request) -> Response:
        """The usage and costs of the last `days`, by default 31: to a key its own, to an operator all."""
        given = request.query_params.get("days", "31")
        days = int(given) if given.isascii() and given.isdigit() and len(given) <= len(str(_MOST_DAYS)) else 0
        if not 1 <= days <= _MOST_DAYS:
            raise RequestError(f"Expected a number from 1 to {_MOST_DAYS}, got {given[:20]!r}.", param="days")
        if self._spend is None:
            raise RequestError(
                "Nothing is counted: no model has a price, and there are no budgets. Add a price to [[models]], or a "
                "budget, in the gateway's configuration.",
                code="no_spending",
                status=404,
            )
        return json_response(await self._spend(caller(), days))

    async def read(self, request: Request) -> Response:
        """Read an output as a dialect."""
        _from_own_page(request)
        given = await self._body(request, OutputToRead)
        return Response(await asyncio.to_thread(_read, given), media_type="application/json")

    def _sees_contents(self, request: Request) -> bool:
        """Whether the client may see contents. If `inspect` is not set, contents are recorded only because the gateway
        is reachable from this machine alone; a request through a proxy may be from anyone.
        """
        is_forwarded = any(name in request.headers for name in _FORWARDED)
        return caller().is_operator and not (is_forwarded and self._server.inspect is None)

    async def _find(self, id_: str) -> TurnView:
        try:
            view = await self._turns.view(id_) if self._turns is not None else None
        except RecordError as error:
            raise RequestError(f"The turn '{id_}' cannot be shown: {error}", status=422) from error
        who = caller()
        if view is None or not (who.is_operator or view.row.key == who.name):
            raise _unknown(id_, "It may have been too long ago.")
        return view

    async def _body(self, request: Request, kind: type[Any]) -> Any:
        body = await read_body(request, self._server.max_body_bytes)
        given = await asyncio.to_thread(decoded, body, self._bounds)
        try:
            return msgspec.convert(given, kind)
        except msgspec.ValidationError as error:
            raise from_validation(error, given, {}) from error

    async def _events(
        self, live: AsyncGenerator[Rows, None], who: ApiKey, *, contents: bool
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """Until the gateway ends, or has another configuration."""
        self._live += 1
        overs = [asyncio.ensure_future(event.wait()) for event in (self._admission.drained, self._is_replaced)]
        try:
            yield [comment("begin")]
            async with aclosing(live):
                while not any(over.done() for over in overs):
                    coming = asyncio.ensure_future(anext(live, None))
                    try:
                        await asyncio.wait((*overs, coming), return_when=asyncio.FIRST_COMPLETED)
                        rows = coming.result() if coming.done() else None
                    finally:
                        await cancel_quietly(coming)
                    if rows is None:
                        return
                    if rows := _seen_by(who, rows, contents=contents):
                        yield [typed_event("rows", encode(rows))]
        finally:
            self._live -= 1
            for over in overs:
                await cancel_quietly(over)


def _read(given: OutputToRead) -> bytes:
    reading: Reading = read_output(
        given.output,
        dialect=given.dialect,
        tools=given.tools or (),
        tool_choice=given.tool_choice,
        start=given.start,
        finish_reason=given.finish_reason,
    )
    return encode(reading)


def _seen_by(who: ApiKey, rows: Rows, *, contents: bool) -> Rows:
    seen = rows if who.is_operator else [row for row in rows if row.key == who.name]
    return seen if contents else [row.without_contents() for row in seen]


def _unknown(id_: str, more: str) -> RequestError:
    return RequestError(f"The turn '{id_[:100]}' does not exist. {more}", code="turn_not_found", status=404)


def _from_own_page(request: Request) -> None:
    """Raises `RequestError` (403) for a post from another site's page."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "same-origin")
    is_own = origin is None or urlsplit(origin).netloc == request.headers.get("host")
    if not is_own or site not in ("same-origin", "none"):
        raise RequestError("Forbidden: only the gateway's own pages may do that.", code="forbidden_origin", status=403)
