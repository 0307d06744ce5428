"""The gateway: OpenAI's endpoints over the configured models. Plain ASGI; what outlives a request is in the store."""

import asyncio
import logging
import os
import platform
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

import callwright
from callwright.database.makers import this_process
from callwright.errors import RequestError
from callwright.gateway.access.admission import AdmissionControl
from callwright.gateway.access.clients import Clients
from callwright.gateway.access.keys import ApiKey, Keys, caller, counters_size
from callwright.gateway.access.middleware import AccessMiddleware
from callwright.gateway.access.shared_counters import SharedCounters
from callwright.gateway.access.shared_limits import SharedLimits
from callwright.gateway.body_budget import BodyBudget
from callwright.gateway.config.build_models import build_models, link_fallbacks
from callwright.gateway.config.config import Config, StoreConfig
from callwright.gateway.connections import Connections
from callwright.gateway.endpoints.chat import ChatEndpoint
from callwright.gateway.endpoints.conversations import ConversationsEndpoint
from callwright.gateway.endpoints.endpoint import Endpoint, Handler
from callwright.gateway.endpoints.handed import HandedEndpoints
from callwright.gateway.endpoints.messages import MessagesEndpoint
from callwright.gateway.endpoints.models import ModelsEndpoint
from callwright.gateway.endpoints.responses import OPEN_RESPONSES, ResponsesEndpoint
from callwright.gateway.endpoints.websocket import ResponsesSocket
from callwright.gateway.free_memory import give_back_behind_storms
from callwright.gateway.hooks.build import build_hooks, with_hooks
from callwright.gateway.http import cancel_quietly, error_response, json_response
from callwright.gateway.inspection.about import GatewayInfo, ModelStates
from callwright.gateway.inspection.endpoint import InspectionEndpoint
from callwright.gateway.inspection.run_again import Again, RunAgain
from callwright.gateway.inspection.siblings import SharedTurns
from callwright.gateway.inspection.spend import spend_view
from callwright.gateway.inspection.turn_source import LocalTurns, RecordedTurns, TurnSource
from callwright.gateway.kept_items.keeper import ItemKeeper
from callwright.gateway.model_windows import ModelWindows
from callwright.gateway.observability.observability import Observability, inspect_level
from callwright.gateway.request_context import RequestContextMiddleware
from callwright.gateway.responses.service import ResponseService
from callwright.gateway.server_tools.mcp_servers import McpServers
from callwright.gateway.server_tools.search_engine import search_engine
from callwright.gateway.server_tools.web_searches import WebSearch
from callwright.gateway.spending.ledger import ledger_of
from callwright.gateway.spending.limit import with_limit
from callwright.gateway.store.store import Store, StoreError
from callwright.gateway.store_upkeep import end_left, prune, tend
from callwright.tolerant_json.codec import encode
from callwright.turn.model import Model, open_models
from callwright.wire.pass_rules import PassRules
from callwright.wire.server import INSTANCE_HEADER, INSTANCE_VARIABLE, Health, Readiness

log = logging.getLogger("callwright.gateway")


def create_app(
    config: Config,
    models: Mapping[str, Model] | None = None,
    counters: SharedCounters | None = None,
    worker: int = 0,
    folder: Path | None = None,
    records: RecordedTurns | None = None,
) -> Starlette:
    """The ASGI application of a configuration. Raises `ConfigError` if it cannot work.

    `models`: those of the configuration, if they have been built and opened already. `counters`: the counters for the
    limits of keys, if not in the application itself; it is that of the workers of the configuration, of which this
    is the one with the number `worker`. `folder`: which these workers share, to show their turns as one.
    `records`: recorded turns, shown instead of the turns of a gateway.
    """
    models = build_models(config) if models is None else models
    gateway = _Gateway(config, models, counters, worker, folder, records)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await gateway.open()
        yield
        await gateway.close()

    endpoints = gateway.endpoints()
    routes = [
        Route(path + slash, Endpoint(handler, path), methods=[method])
        for method, path, handler in endpoints
        for slash in ("/", "")
    ]
    routes.append(Route("/", Endpoint(gateway.probe, "/"), methods=["HEAD"]))
    routes += [Route(path, Endpoint(handler, path), methods=[how]) for how, path, handler in gateway.pages.routes()]
    sockets = [WebSocketRoute(path, gateway.socket.serve) for path in _both("/v1/responses")]
    known: dict[str, str] = {}
    for method, path, _ in endpoints:
        if not path.startswith(OPEN_RESPONSES):
            shown = path.replace(":path", "")
            known[shown] = f"{known[shown]} or {method} {shown}" if shown in known else f"{method} {shown}"

    async def no_route(request: Request) -> Response:
        return error_response(_invalid_url(request, known))  # no failed request: nothing here was asked

    app = _Application(
        Endpoint(no_route, "other"),
        routes=[*routes, *sockets],
        lifespan=lifespan,
        middleware=[
            Middleware(RequestContextMiddleware, gateway.watch.contexts),
            Middleware(
                AccessMiddleware,
                gateway.keys,
                gateway.clients,
                gateway.admission,
                (*config.server.hosts, config.server.host),
                gateway.watch.contexts,
                BodyBudget(config.limits.max_bodies_bytes, gateway.watch.metrics.body_bytes),
            ),
        ],
    )
    app.state.admission = gateway.admission
    app.state.connections = Connections(config.limits.max_connections)
    return app


class _Application(Starlette):
    """Starlette's application without its own exception handlers: endpoints and middleware answer theirs. Routes with a
    fixed path are looked up in a dict; `no_route` answers requests without a route.
    """

    def __init__(self, no_route: ASGIApp, **given: Any) -> None:
        super().__init__(**given)
        self.router.redirect_slashes = False  # a redirect would have no body that a client could show
        self._no_route = no_route
        routes = [route for route in self.router.routes if isinstance(route, Route) and "{" not in route.path]
        routes.reverse()  # of two for the same, the first counts
        self._plain = {(method, route.path): route.app for route in routes for method in route.methods or ()}

    def build_middleware_stack(self) -> ASGIApp:
        """See Starlette."""
        app: ASGIApp = self._route
        for made, args, kwargs in reversed(self.user_middleware):
            app = made(app, *args, **kwargs)
        return app

    def _route(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:  # no coroutine of its own
        if scope["type"] == "http" and not scope.get("root_path"):
            found = self._plain.get((scope["method"], scope["path"]))
            if found is not None:
                return found(scope, receive, send)
        return self._searched(scope, receive, send)

    async def _searched(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.router(scope, receive, send)
        except HTTPException:
            if scope["type"] != "http":
                raise
            await self._no_route(scope, receive, send)


def _both(path: str) -> tuple[str, str]:
    """A path of the Responses API, and the same in the Open Responses dialect."""
    return path, f"{OPEN_RESPONSES.rstrip('/')}{path}"


def _invalid_url(request: Request, known: Mapping[str, str]) -> RequestError:
    """The error for an unknown endpoint: it names the intended one, or all. `known`: how to ask, by path."""
    asked = request.url.path.rstrip("/")
    meant = [how for path, how in known.items() if _ends(asked, path)]
    begins = [how for path, how in known.items() if "{" not in path]
    way_out = f"Expected {meant[0]}" if meant else f"This gateway serves {', '.join(begins)}"
    return RequestError(f"Invalid URL ({request.method} {request.url.path}). {way_out}.", status=404)


def _ends(asked: str, path: str) -> bool:
    """Whether a path that was asked for ends as one that is served."""
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path.removeprefix("/v1")))
    return re.search(f"{pattern}$", asked) is not None


def _widest(places: Sequence[frozenset[str] | None]) -> PassRules:
    """What any of the models takes: a conversation is not yet one model's."""
    schemes = None if None in places else frozenset(scheme for each in places for scheme in each or ())
    return PassRules(media_urls=schemes)


class _Gateway:
    def __init__(
        self,
        config: Config,
        models: Mapping[str, Model],
        counters: SharedCounters | None,
        worker: int,
        folder: Path | None,
        records: RecordedTurns | None,
    ) -> None:
        self._config = config
        self._records = records
        self._server = config.server
        begin, workers = (0, 1) if counters is None else (counters_size(config.keys), config.server.workers)
        self.clients = Clients(config.limits, config.keys, counters, begin, worker, workers)
        self.admission = AdmissionControl(config.server.max_requests, self.clients)
        self.watch = Observability(config, lambda: self.keys.remaining(), worker)
        store = config.store or StoreConfig(url="sqlite://")
        told = self.watch.metrics.store_operation
        self._store = (
            None if store.url == "none" else Store(store.url, store.retention_days, lambda: caller().name, told=told)
        )
        self._ledger = ledger_of(config, self._store)
        count_cost = self.watch.metrics.count_cost
        observed = {
            given.name: self.watch.observed(
                given.name, with_limit(model, given, self.admission, self._ledger, count_cost)
            )
            for given, model in zip(config.models, models.values(), strict=True)
        }
        self._hooks = build_hooks(config, self.watch.metrics.hook_judged)
        self._models = with_hooks(link_fallbacks(observed, config), self._hooks)
        self.keys = Keys(config.keys, self._models, counters=counters)
        self._document: bytes | None = None
        self._limits = self._shared_limits(store, folder)
        self._keeper = ItemKeeper(self._store)
        self._tasks: list[asyncio.Task[None]] = []
        self._mcp = McpServers(config.mcp, self.watch.metrics.mcp_called, config.limits)
        mends = config.server.history == "mend"
        self._search = self._web_search(config)
        windows = ModelWindows(config.models, self._models)
        self._served = ModelsEndpoint(self._models, windows, self.keys, searches=self._search is not None)
        mcp, keeper, search, bounds = self._mcp, self._keeper, self._search, config.limits
        turns = ResponseService(self._served.find, self._store, mcp, keeper, search, mend=mends, bounds=bounds)
        self._chat = ChatEndpoint(self._served.find, mcp, keeper, config.server, bounds, search)
        self._messages = MessagesEndpoint(self._served.find, mcp, keeper, config.server, bounds, search)
        self._handed = HandedEndpoints(self._served.find, config.server, bounds)
        self._responses = ResponsesEndpoint(turns, self._store, config.server, self.admission)
        places = [model.passes.media_urls for model in self._models.values()]
        self._conversations = ConversationsEndpoint(self._store, config.server, config.limits, _widest(places))
        self.socket = ResponsesSocket(turns, config.server, self.admission, self.watch.contexts)
        self._states = ModelStates(config.models, self._models, windows.window)
        self._shared: SharedTurns | None = None
        self.pages = self._pages(config, worker, folder)

    def _shared_limits(self, store: StoreConfig, folder: Path | None) -> SharedLimits | None:
        """What shares limits of keys with other gateways. The workers of one have a folder in common."""
        if not store.shared_limits or self._store is None or not self.keys.limited:
            return None
        gateway = this_process().id if folder is None else f"{platform.node()} {folder.name}"
        return SharedLimits(self.keys, self._store, gateway)

    def _web_search(self, config: Config) -> WebSearch | None:
        if config.search is None:
            return None
        labels = [server.label for server in config.mcp]
        return WebSearch(config.search, search_engine(config.search, self._mcp, labels))

    def _pages(self, config: Config, worker: int, folder: Path | None) -> InspectionEndpoint:
        inspector, ledger = self.watch.inspector, self._ledger
        turns: TurnSource | None = self._records
        again: Callable[[str, Again], Coroutine[Any, Any, str | None]] | None = None
        if inspector is not None:
            turns = own = LocalTurns(inspector)
            here = RunAgain(self.watch, inspector, self._served.find, config.models, config.limits)
            again = here.run
            if folder is not None and config.server.workers > 1:
                turns = self._shared = SharedTurns(own, here, folder, worker, config.server.workers)
                again = self._shared.again
        return InspectionEndpoint(
            self._info,
            turns,
            config.server,
            config.limits,
            self.admission,
            again,
            None if ledger is None else partial(spend_view, ledger, config.spending.currency),
        )

    def endpoints(self) -> list[tuple[str, str, Handler]]:
        """Method, path and handler of everything that is served over HTTP."""
        responses, conversations = self._responses, self._conversations
        one, items = "/v1/conversations/{id}", "/v1/conversations/{id}/items"
        of_responses: tuple[tuple[str, str, Handler], ...] = (
            ("POST", "/v1/responses", responses.create),
            ("POST", "/v1/responses/compact", responses.compact),
            ("POST", "/v1/responses/input_tokens", responses.input_tokens),
            ("GET", "/v1/responses/{id}", responses.show),
            ("DELETE", "/v1/responses/{id}", responses.delete),
            ("GET", "/v1/responses/{id}/input_items", responses.input_items),
            ("POST", "/v1/responses/{id}/cancel", responses.cancel),
        )
        handed = self._handed
        ranks = ("/v1/rerank", "/rerank", "/v2/rerank")  # where clients of Jina's and Cohere's API ask
        return [
            ("POST", "/v1/chat/completions", self._chat.create),
            ("POST", "/v1/messages", self._messages.create),
            ("POST", "/v1/messages/count_tokens", self._messages.count_tokens),
            ("POST", "/v1/completions", handed.completions),
            ("POST", "/v1/embeddings", handed.embeddings),
            *(("POST", path, handed.rerank) for path in ranks),
            ("POST", "/v1/score", handed.score),
            *((method, path, handler) for method, given, handler in of_responses for path in _both(given)),
            ("POST", "/v1/conversations", conversations.create),
            ("GET", one, conversations.show),
            ("POST", one, conversations.update),
            ("DELETE", one, conversations.delete),
            ("GET", items, conversations.list_items),
            ("POST", items, conversations.add_items),
            ("GET", f"{items}/{{item}}", conversations.show_item),
            ("DELETE", f"{items}/{{item}}", conversations.delete_item),
            ("GET", "/v1/models", self._served.list),
            ("GET", "/v1/models/{name:path}", self._served.show),
            ("GET", "/healthz", self.healthz),
            ("GET", "/readyz", self.readyz),
            ("GET", "/openapi.json", self.describe),
            *([("GET", "/metrics", self.metrics)] if self._server.metrics else []),
        ]

    async def open(self) -> None:
        self.watch.open()
        self._tasks = [asyncio.create_task(give_back_behind_storms(lambda: self.admission.running))]
        await open_models(self._models)
        if self._shared is not None:
            await self._shared.open()
        for model in self._models.values():
            if model.mode_selector is not None:
                model.mode_selector.start()
        if self._store is not None:
            await self._store.open()
            await end_left(self._store)
            tended = tend(self._store, lambda: self._responses.makes_some)
            self._tasks += [asyncio.create_task(work) for work in (prune(self._store), tended)]
            self._tasks.append(asyncio.create_task(self._keeper.forget()))
            if self._limits is not None:
                self._tasks.append(asyncio.create_task(self._limits.run()))
            if self._ledger is not None:
                self._tasks.append(asyncio.create_task(self._ledger.run()))

    async def close(self) -> None:
        self.admission.end()
        await self._responses.close()
        for task in self._tasks:
            await cancel_quietly(task)
        if self._limits is not None:
            await self._limits.close()
        if self._ledger is not None:
            await self._ledger.close()
        await self._mcp.close()
        if self._hooks is not None:
            await self._hooks.close()
        if self._search is not None:
            await self._search.close()
        if self._shared is not None:
            await self._shared.close()
        for model in self._models.values():
            await model.close()
        if self._store is not None:
            await self._store.close()
        await self.watch.close()

    # --- endpoints ---

    async def healthz(self, _: Request) -> Response:
        """Whether requests are taken."""
        draining = self.admission.drained.is_set()
        health = Health(status="draining" if draining else "ok", version=callwright.__version__)
        instance = os.environ.get(INSTANCE_VARIABLE)
        headers = {INSTANCE_HEADER: instance} if instance else None
        return json_response(health, 503 if draining else 200, headers)

    async def readyz(self, _: Request) -> Response:
        """Whether a request would be answered: requests are taken, and the store answers."""
        status: Readiness = "draining" if self.admission.drained.is_set() else "ok"
        if status == "ok" and self._store is not None:
            try:
                await self._store.check()
            except StoreError as error:
                log.warning("not ready: %s", error)
                status = "store_unavailable"
        return json_response(Health(status=status, version=callwright.__version__), 200 if status == "ok" else 503)

    async def probe(self, _: Request) -> Response:
        """That something answers here: Anthropic's clients look before they ask."""
        return Response()

    async def metrics(self, request: Request) -> Response:
        """The numbers of this gateway, for Prometheus: to a key those of its own, to an operator all."""
        who = caller()
        return await self.watch.show(request, None if who.is_operator else who.name)

    async def describe(self, _: Request) -> Response:
        """The OpenAPI document of this gateway."""
        if self._document is None:
            self._document = await asyncio.to_thread(self._described_api)
        return Response(self._document, media_type="application/json")

    # --- parts ---

    async def _info(self, who: ApiKey) -> GatewayInfo:
        if self._records is not None:
            return GatewayInfo(source="files", kept=len(self._records))
        inspector = self.watch.inspector
        models = [info for info in await self._states.infos() if who.may_use(info.name)]
        if not who.is_operator:  # where models are is not a client's to know
            models = [msgspec.structs.replace(info, upstream="", why=None) for info in models]
        return GatewayInfo(
            inspect=inspect_level(self._config),
            has_keys=bool(self.keys),
            is_operator=who.is_operator,
            workers=self._server.workers,
            models=models,
            mcp=[server.label for server in self._config.mcp],
            kept=len(inspector.turns) if inspector is not None and who.is_operator else 0,
            has_spending=self._ledger is not None,
        )

    def _described_api(self) -> bytes:
        from callwright.gateway.openapi.document import document  # its types are for nothing else, and take their time

        elsewhere = OPEN_RESPONSES.rstrip("/")
        return encode(document(self.endpoints(), has_keys=bool(self.keys), elsewhere=elsewhere))
