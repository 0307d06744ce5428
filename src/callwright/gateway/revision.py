"""One revision of the configuration, and all that serves it: models, keys, hooks, endpoints and their routes.

A request is served to its end by the revision in which it began. Entries with equal settings in two revisions are one
part, which both have, see `parts`; the rest outlives them all, see `lasting`.
"""

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

import callwright
from callwright.errors import RequestError
from callwright.gateway.access.concurrency import LimitCounts
from callwright.gateway.access.keys import ApiKey, Keys, caller
from callwright.gateway.config.build_models import link_fallbacks
from callwright.gateway.config.config import Config, McpConfig, ModelConfig
from callwright.gateway.endpoints.chat import ChatEndpoint
from callwright.gateway.endpoints.conversations import ConversationsEndpoint
from callwright.gateway.endpoints.endpoint import Endpoint, Handler
from callwright.gateway.endpoints.handed import HandedEndpoints
from callwright.gateway.endpoints.messages import MessagesEndpoint
from callwright.gateway.endpoints.models import ModelsEndpoint
from callwright.gateway.endpoints.responses import OPEN_RESPONSES, ResponsesEndpoint
from callwright.gateway.hooks.build import build_hooks, idle_rules, with_hooks
from callwright.gateway.http import error_response, json_response
from callwright.gateway.inspection.about import GatewayInfo, ModelStates
from callwright.gateway.inspection.endpoint import InspectionEndpoint
from callwright.gateway.inspection.run_again import RunAgain
from callwright.gateway.inspection.spend import spend_view
from callwright.gateway.inspection.turn_source import LocalTurns, TurnSource
from callwright.gateway.lasting import Lasting
from callwright.gateway.model_parts import ModelParts
from callwright.gateway.model_windows import ModelWindows
from callwright.gateway.observability.observability import inspect_level
from callwright.gateway.observability.redaction import Redactor
from callwright.gateway.parts import RevisionParts, Uses
from callwright.gateway.responses.service import ResponseService
from callwright.gateway.server_tools.mcp_servers import ConfiguredServer, McpServers
from callwright.gateway.server_tools.search_engine import search_engine
from callwright.gateway.server_tools.web_searches import WebSearch
from callwright.gateway.spending.ledger import counts_spending
from callwright.gateway.spending.limit import with_limit
from callwright.gateway.store.store import StoreError
from callwright.tolerant_json.codec import encode
from callwright.turn.model import Model
from callwright.wire.pass_rules import PassRules
from callwright.wire.server import INSTANCE_HEADER, INSTANCE_VARIABLE, Health, Readiness

log = logging.getLogger("callwright.gateway")


class Revision:
    """Serves a configuration. To build one changes nothing for others; it takes effect with `apply`. Raises
    `ConfigError` if the configuration cannot work.
    """

    def __init__(self, config: Config, lasting: Lasting, built: Mapping[str, Model] | None = None) -> None:
        """`built`: the models of the configuration, if they have been built and opened already."""
        self.config = config
        self.uses = Uses()
        self._lasting = lasting
        self._parts = RevisionParts(lasting.parts)
        self.inspector = lasting.watch.inspector_for(config)
        self._redactor = Redactor(config.redact)
        self._model_parts = ModelParts(config, self._parts, self._with_limit)
        self._bases = self._model_parts.build(built)
        self.models = self._with_observers()
        self.keys = Keys(config.keys, self.models, counters=lasting.counters)
        take = partial(self._part, "mcp")
        mcp = McpServers(config.mcp, lasting.watch.metrics.mcp_called, config.limits, take)
        search = self._web_search(mcp)
        windows = ModelWindows(config.models, self.models)
        searches = search is not None
        self._served = ModelsEndpoint(self.models, windows, self.keys, searches=searches, started=lasting.started)
        self._states = ModelStates(config.models, self.models, windows.window)
        find, server, bounds, keeper = self._served.find, config.server, config.limits, lasting.keeper
        mends = server.history == "mend"
        self.turns = ResponseService(
            find, lasting.store, mcp, keeper, search, mend=mends, bounds=bounds, uses=self.uses
        )
        self._chat = ChatEndpoint(find, mcp, keeper, server, bounds, search)
        self._messages = MessagesEndpoint(find, mcp, keeper, server, bounds, search)
        self._handed = HandedEndpoints(find, server, bounds)
        self._responses = ResponsesEndpoint(self.turns, lasting.store, server, lasting.background)
        places = [model.passes.media_urls for model in self.models.values()]
        self._conversations = ConversationsEndpoint(lasting.store, server, bounds, _widest(places))
        self._own_turns: TurnSource | None = None
        self._again: RunAgain | None = None
        self._pages = self._inspection()
        self._document: bytes | None = None
        self.serve = Routes(self.endpoints(), [("HEAD", "/", self.probe), *self._pages.routes()])

    # --- parts ---

    def _part(self, kind: str, given: McpConfig, build: Callable[[], ConfiguredServer]) -> ConfiguredServer:
        return self._parts.get(kind, (given, self.config.limits.max_answer_bytes), build)

    def _with_limit(self, model: Model, given: ModelConfig, counts: LimitCounts) -> Model:
        lasting = self._lasting
        ledger = lasting.ledger if counts_spending(self.config) else None
        return with_limit(model, given, counts, lasting.admission, ledger, lasting.watch.metrics.count_cost)

    def _with_observers(self) -> dict[str, Model]:
        """The models with observers and hooks, and with their fallbacks, which have them, too."""
        config, watch = self.config, self._lasting.watch
        inspecting = self.inspector.observer() if self.inspector is not None else None
        observed = {name: watch.observed(name, model, inspecting) for name, model in self._bases.items()}
        linked = link_fallbacks(observed, config)
        if not (config.hooks or config.policies):
            return linked
        for warning in idle_rules(config):
            log.warning("%s", warning)
        build = partial(build_hooks, config, watch.metrics.hook_judged)
        return with_hooks(linked, self._parts.get("hooks", (config.hooks, config.policies), build))

    def _web_search(self, mcp: McpServers) -> WebSearch | None:
        config = self.config
        if (given := config.search) is None:
            return None
        labels = [server.label for server in config.mcp]
        servers = config.mcp if given.mcp is not None else ()
        build = lambda: WebSearch(given, search_engine(given, mcp, labels))  # noqa: E731
        return self._parts.get("search", (given, servers, config.limits.max_answer_bytes), build)

    def _inspection(self) -> InspectionEndpoint:
        lasting, inspector = self._lasting, self.inspector
        given = self.config.server, self.config.limits, lasting.admission, self.uses.is_replaced
        spend = None
        if counts_spending(self.config):
            spend = partial(spend_view, lasting.ledger, self.config.spending.currency)
        if inspector is None:
            return InspectionEndpoint(self._info, lasting.records, *given, spend=spend)
        self._own_turns = LocalTurns(inspector)
        self._again = again = RunAgain(lasting.watch, inspector, self._served.find, self.config, self.uses)
        if (shared := lasting.shared_turns) is not None:
            return InspectionEndpoint(self._info, shared, *given, shared.again, spend)
        return InspectionEndpoint(self._info, self._own_turns, *given, again.run, spend)

    # --- life ---

    async def open(self) -> None:
        """Open the parts that no other revision has. Raises `ConfigError`."""
        await self._model_parts.open(self._bases, self._parts.hold())

    def apply(self) -> None:
        """Let this be the configuration of all that outlives it. Never fails."""
        lasting = self._lasting
        lasting.change(self.config, self.keys)
        lasting.watch.change(self.inspector, self._redactor)
        if lasting.shared_turns is not None:
            lasting.shared_turns.change(self._own_turns, self._again)

    async def close(self) -> None:
        """Close the parts that no other revision has. No request may run by this one any more."""
        for name in self.models:
            self._lasting.watch.metrics.forget_servers(name)
        await self._parts.close()

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
            *((method, path, handler) for method, given, handler in of_responses for path in both(given)),
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
            *([("GET", "/metrics", self.metrics)] if self.config.server.metrics else []),
        ]

    # --- endpoints ---

    async def healthz(self, _: Request) -> Response:
        """Whether requests are taken."""
        draining = self._lasting.admission.drained.is_set()
        health = Health(status="draining" if draining else "ok", version=callwright.__version__)
        instance = os.environ.get(INSTANCE_VARIABLE)
        headers = {INSTANCE_HEADER: instance} if instance else None
        return json_response(health, 503 if draining else 200, headers)

    async def readyz(self, _: Request) -> Response:
        """Whether a request would be answered: requests are taken, and the store answers."""
        status: Readiness = "draining" if self._lasting.admission.drained.is_set() else "ok"
        if status == "ok" and self._lasting.store is not None:
            try:
                await self._lasting.store.check()
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
        return await self._lasting.watch.show(request, None if who.is_operator else who.name)

    async def describe(self, _: Request) -> Response:
        """The OpenAPI document of this gateway."""
        if self._document is None:
            self._document = await asyncio.to_thread(self._described_api)
        return Response(self._document, media_type="application/json")

    # --- parts ---

    async def _info(self, who: ApiKey) -> GatewayInfo:
        if self._lasting.records is not None:
            return GatewayInfo(source="files", kept=len(self._lasting.records))
        inspector = self.inspector
        models = [info for info in await self._states.infos() if who.may_use(info.name)]
        if not who.is_operator:  # where models are is not a client's to know
            models = [msgspec.structs.replace(info, upstream="", why=None) for info in models]
        return GatewayInfo(
            inspect=inspect_level(self.config),
            has_keys=bool(self.keys),
            is_operator=who.is_operator,
            workers=self.config.server.workers,
            models=models,
            mcp=[server.label for server in self.config.mcp],
            config_error=self._lasting.config_error if who.is_operator else None,
            has_spending=counts_spending(self.config),
            kept=len(inspector.turns) if inspector is not None and who.is_operator else 0,
        )

    def _described_api(self) -> bytes:
        from callwright.gateway.openapi.document import document  # its types are for nothing else, and take their time

        elsewhere = OPEN_RESPONSES.rstrip("/")
        return encode(document(self.endpoints(), has_keys=bool(self.keys), elsewhere=elsewhere))


class Routes:
    """Calls the endpoint of a request. Those with a fixed path are looked up in a dict."""

    def __init__(self, api: Sequence[tuple[str, str, Handler]], more: Sequence[tuple[str, str, Handler]]) -> None:
        """Methods, paths and handlers of the API, whose paths may end in a slash; and `more`."""
        routes = [
            Route(path + slash, Endpoint(handler, path), methods=[method])
            for method, path, handler in api
            for slash in ("/", "")
        ]
        routes += [Route(path, Endpoint(handler, path), methods=[method]) for method, path, handler in more]
        self.router = Router(routes, redirect_slashes=False)  # a redirect would have no body that a client could show
        plain = [route for route in reversed(routes) if "{" not in route.path]  # of two for the same, the first counts
        self._plain = {(method, route.path): route.app for route in plain for method in route.methods or ()}
        self._no_route = Endpoint(self._invalid, "other")
        self._known: dict[str, str] = {}
        for method, path, _ in api:
            if not path.startswith(OPEN_RESPONSES):
                shown = path.replace(":path", "")
                how = f"{method} {shown}"
                self._known[shown] = f"{self._known[shown]} or {how}" if shown in self._known else how

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:  # no coroutine of its own
        """See ASGI."""
        if not scope.get("root_path"):
            found: ASGIApp | None = self._plain.get((scope["method"], scope["path"]))
            if found is not None:
                return found(scope, receive, send)
        return self._searched(scope, receive, send)

    async def _searched(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.router(scope, receive, send)
        except HTTPException:
            await self._no_route(scope, receive, send)

    async def _invalid(self, request: Request) -> Response:
        return error_response(_invalid_url(request, self._known))  # no failed request: nothing here was asked


def both(path: str) -> tuple[str, str]:
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
