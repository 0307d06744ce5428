"""Access control before every endpoint: key, origin, rate, number of concurrent requests.

Without keys the gateway is open to every client that can reach it, by default only this machine. Then requests of
foreign web pages are refused, also of pages whose host name was made to resolve to here (DNS rebinding). With keys,
the key decides. There are no CORS headers: no web page can read an answer, unless a proxy allows it.
"""

from collections.abc import Iterable
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from callwright.errors import RequestError
from callwright.gateway.access.admission import AdmissionControl
from callwright.gateway.access.clients import Client, Clients, for_client
from callwright.gateway.access.keys import ApiKey, Keys, asking
from callwright.gateway.body_budget import BodyBudget, BodyRoom
from callwright.gateway.config.hosts import host_of, is_address, is_loopback
from callwright.gateway.http import error_response
from callwright.gateway.request_context import RequestContexts, current, hide_servers

# Open to every client, also during a shutdown; so is HEAD /, by which clients see whether something answers here.
_OPEN: Final = frozenset(("/healthz", "/healthz/", "/readyz", "/readyz/"))
# The pages contain no data of the gateway; they request it below this path.
_PAGES: Final = ("/", "/ui")
_PAGE_DATA: Final = "/ui/api/"
# Answered without a free place, too: metrics matter most when the gateway is full or shuts down.
_ALWAYS: Final = frozenset(("/metrics", "/metrics/"))
# Ask no model, so a limit on requests to models does not count them.
_ASK_NO_MODEL: Final = tuple(
    f"{path}{slash}"
    for path in (
        "/v1/messages/count_tokens",
        "/v1/responses/input_tokens",
        "/openresponses/v1/responses/input_tokens",
        "/ui/api/read",
    )
    for slash in ("", "/")
)
_READ: Final = frozenset((b"host", b"origin", b"authorization", b"x-api-key"))
_ANY_HOST: Final = "*"
_MAX_SHOWN: Final = 200


class Access:
    """Who may ask: the keys of the configuration, or without keys, clients by which host. It applies to each request
    and each turn over WebSocket when it begins.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self.change(Keys(()), ())

    def change(self, keys: Keys, hosts: Iterable[str]) -> None:
        """Apply other keys from now on. `hosts`: names under which the gateway is reached, `*` for any."""
        self.keys = keys
        self._is_open = not keys
        self._hosts = frozenset(host.strip("[]").lower() for host in hosts)

    def who_asks(self, scope: Scope) -> tuple[ApiKey, Client]:
        """The key that asks, and whom its places are counted for, from here on. Raises `RequestError` if it may not
        ask.
        """
        headers: dict[bytes, str] = {}
        for name, value in scope["headers"]:
            if name in _READ:
                headers.setdefault(name, value.decode("latin-1"))
        if self._is_open:
            self._refuse_strangers(headers.get(b"host"), headers.get(b"origin"))
        who = self.keys.caller(headers.get(b"authorization"), headers.get(b"x-api-key"))
        if (context := current()) is not None:
            context.caller = who.name
        hide_servers(not who.is_operator)
        asking(who)
        client = self._clients.client(who, scope)
        for_client(client)
        return who, client

    def _refuse_strangers(self, host: str | None, origin: str | None) -> None:
        """Raises `RequestError` (403) for a page of a foreign origin, and for an unknown host name."""
        if origin is not None and not self._is_known(host_of(origin)):
            raise _foreign(f"pages of {_display_name(origin)} may not use this gateway", host_of(origin))
        if host is None:  # not from a browser, which always sends it
            return
        name = host_of(f"//{host}")
        if not self._is_known(name) and not is_address(name):  # an IP address cannot be rebound
            raise _foreign(f"this gateway is not known as {_display_name(host)}", name)

    def _is_known(self, name: str) -> bool:
        return _ANY_HOST in self._hosts or name in self._hosts or is_loopback(name)


class AccessMiddleware:
    """ASGI middleware; see the module's docstring."""

    def __init__(
        self, app: ASGIApp, access: Access, admission: AdmissionControl, contexts: RequestContexts, bodies: BodyBudget
    ) -> None:
        self._app = app
        self._access = access
        self._contexts = contexts
        self._bodies = bodies
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        is_asked = scope["type"] in ("http", "websocket")
        if not is_asked or scope["path"] in _OPEN or (scope.get("method") != "POST" and _is_page(scope)):
            await self._app(scope, receive, send)
            return
        is_admitted = False
        try:
            who, client = self._access.who_asks(scope)
            if scope["type"] == "websocket":
                with self._admission.connected():  # each turn takes a place of its own
                    is_admitted = True
                    await self._app(scope, receive, send)
                return
            path, method = scope["path"], scope["method"]
            is_watching = path in _ALWAYS or (method == "GET" and path.startswith(_PAGE_DATA))
            with self._admission.under_way(limited=not is_watching), BodyRoom(self._bodies, client.name):
                if who.is_limited and method == "POST" and path not in _ASK_NO_MODEL:
                    await who.begin()
                is_admitted = True
                await self._app(scope, receive, _telling(who, send) if who.is_limited else send)
        except RequestError as error:
            if is_admitted:
                raise
            await self._refuse(error, scope, receive, send)

    async def _refuse(self, error: RequestError, scope: Scope, receive: Receive, send: Send) -> None:
        context = current()
        if context is None:  # a refused WebSocket counts as a request, too
            with self._contexts.open("WEBSOCKET", scope["path"], dict(scope["headers"])) as context:
                context.status, context.is_whole = error.status, True
                await self._refuse(error, scope, receive, send)
            return
        context.failed(error)
        response = error_response(error)
        response.headers["x-request-id"] = context.id
        if context.api == "anthropic":
            response.headers["request-id"] = context.id
        await response(scope, receive, send)


def _is_page(scope: Scope) -> bool:
    """Whether a page or a file of one is asked for, or only whether something answers at all."""
    path: str = scope["path"]
    if scope.get("method") not in ("GET", "HEAD"):
        return False
    return path in _PAGES or (path.startswith("/ui/") and not path.startswith(_PAGE_DATA))


def _display_name(text: str) -> str:
    return f"'{text[:_MAX_SHOWN]}'" if text.isascii() and text.isprintable() else "this name"


def _foreign(what: str, name: str) -> RequestError:
    as_in = f", as in hosts = [{_display_name(name)}]" if name else ""
    return RequestError(
        f"Forbidden: without keys, {what}. If it is yours, add it to hosts in [server]{as_in}, or give the gateway "
        "[[keys]].",
        code="forbidden_origin",
        status=403,
    )


def _telling(who: ApiKey, send: Send) -> Send:
    """Adds the rate limit headers of a key to an answer."""

    async def telling(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(who.headers())
        await send(message)

    return telling
