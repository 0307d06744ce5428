"""The gateway: OpenAI's endpoints over the configured models. Plain ASGI, no state between requests."""

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import date
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import toolwright
from toolwright.collect import collect
from toolwright.errors import RequestError, UpstreamError, did_you_mean
from toolwright.events import Event, Problem, Usage
from toolwright.gateway.config import ANY_MODEL, Config, build_models
from toolwright.gateway.responses import (
    ClientLeft,
    EventStream,
    error_response,
    json_response,
    read_body,
    unless_left,
)
from toolwright.jsontext import NotJsonError, decode, encode
from toolwright.turn import Model, run_turn
from toolwright.wire.chat import ChatRequest, read_request
from toolwright.wire.chat_answer import ChatChunks, completion
from toolwright.wire.errors import error_body, json_fault
from toolwright.wire.sse import DONE, comment, data

__all__ = ["create_app"]

# Says what was wrong with an answer, and that it was mended or asked for again.
PROBLEMS_HEADER = "x-toolwright-problems"
log = logging.getLogger("toolwright.gateway")
Events = AsyncGenerator[Event | Usage, None]
Handler = Callable[[Request], Awaitable[Response]]
_OUR_FAULT = RequestError(
    "The gateway has failed; its log says how.", status=500, type_="server_error", code="internal_error"
)


def create_app(config: Config) -> Starlette:
    """The ASGI application of a configuration. Raises `ConfigError` for one that cannot work."""
    gateway = _Gateway(config)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await gateway.close()

    endpoints: tuple[tuple[str, str, Handler], ...] = (
        ("POST", "/v1/chat/completions", gateway.chat_completions),
        ("GET", "/v1/models", gateway.list_models),
        ("GET", "/v1/models/{name:path}", gateway.show_model),
        ("GET", "/healthz", gateway.healthz),
    )
    routes = [
        Route(path + slash, gateway.answer(handler), methods=[method])
        for method, path, handler in endpoints
        for slash in ("/", "")
    ]
    known = {path: f"{method} {path.replace(':path', '')}" for method, path, _ in endpoints}

    async def no_route(request: Request, _: Exception) -> Response:
        return _identified(error_response(_invalid_url(request, known)), _request_id())

    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: no_route, 405: no_route})
    app.router.redirect_slashes = False  # a redirect would have no body that a client could show
    return app


def _invalid_url(request: Request, known: Mapping[str, str]) -> RequestError:
    """The error for what is no endpoint: it names the one that was meant, or all. `known`: how to ask, by path."""
    asked = request.url.path.rstrip("/")
    meant = [how for path, how in known.items() if asked.endswith(path.removeprefix("/v1"))]
    way_out = f"Expected {meant[0]}" if meant else f"This gateway serves {', '.join(known.values())}"
    return RequestError(f"Invalid URL ({request.method} {request.url.path}). {way_out}.", status=404)


def _request_id() -> str:
    return f"req_{secrets.token_hex(16)}"


def _identified(response: Response, request_id: str) -> Response:
    response.headers["x-request-id"] = request_id
    return response


class _Gateway:
    def __init__(self, config: Config) -> None:
        self._server = config.server
        self._models = build_models(config)
        self._started = int(time.time())
        self.problems: Counter[str] = Counter()  # by kind, since the start

    async def close(self) -> None:
        for model in self._models.values():
            await model.upstream.close()

    def answer(self, handler: Handler) -> Handler:
        """A handler whose errors are told the way OpenAI's API tells them."""

        async def answered(request: Request) -> Response:
            request_id = _request_id()
            try:
                response = await handler(request)
            except (RequestError, UpstreamError) as error:
                log.info("%s %s refused: %s", request_id, request.url.path, error)
                response = error_response(error)
            except ClientLeft:
                response = Response(status_code=499)
            except Exception:
                log.exception("%s %s failed", request_id, request.url.path)
                response = error_response(_OUR_FAULT)
            return _identified(response, request_id)

        return answered

    # --- endpoints ---

    async def healthz(self, _: Request) -> Response:
        return json_response({"status": "ok", "version": toolwright.__version__})

    async def list_models(self, request: Request) -> Response:
        names = [name for name in self._models if name != ANY_MODEL]
        if (any_model := self._models.get(ANY_MODEL)) is not None:
            try:
                names += [name for name in await any_model.upstream.models() if name not in names]
            except UpstreamError as error:
                if not names:
                    raise
                log.info("%s lists the configured models only: %s", request.url.path, error)
        return json_response({"object": "list", "data": [self._described(name) for name in names]})

    async def show_model(self, request: Request) -> Response:
        name = request.path_params["name"]
        self._model(name)
        return json_response(self._described(name))

    async def chat_completions(self, request: Request) -> Response:
        body = await read_body(request, self._server.max_body_bytes)
        chat = read_request(_decoded(body), mend=self._server.history == "mend")
        model = self._model(chat.model)
        today = date.today().isoformat()
        events = run_turn(model, chat.conversation, chat.fields, today=today, streamed=chat.stream)
        if not chat.stream:
            return await unless_left(request.receive, self._whole(chat, events))
        chunks = self._chunks(chat)
        first = asyncio.ensure_future(anext(events, None))
        try:
            await unless_left(request.receive, asyncio.wait({first}, timeout=self._server.heartbeat_s))
            if first.done():
                first.result()  # what fails before the first byte is a plain error
        except BaseException:
            await _given_up(first)
            await events.aclose()
            raise
        return EventStream(_stream(chunks, first, events, self._counted), chunks.heartbeat, self._server.heartbeat_s)

    # --- parts ---

    def _model(self, name: str) -> Model:
        model = self._models.get(name)
        if model is None and (any_model := self._models.get(ANY_MODEL)) is not None:
            return any_model.called(name)
        if model is None:
            known = ", ".join(self._models)
            raise RequestError(
                f"The model '{name}' does not exist.{did_you_mean(name, self._models)} This gateway serves: {known}.",
                param="model",
                code="model_not_found",
                status=404,
            )
        return model

    def _described(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._started, "owned_by": "toolwright"}

    async def _whole(self, chat: ChatRequest, events: Events) -> Response:
        kept: list[Event] = []
        usage: Usage | None = None
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Usage):
                    usage = event
                else:
                    kept.append(event)
        turn = collect(kept)
        answer = completion(
            turn,
            usage,
            legacy=chat.legacy,
            reasoning=self._server.reasoning,
            **self._identity(chat),
        )
        told = _told(self._counted(turn.problems))
        return json_response(answer, headers={PROBLEMS_HEADER: told} if told else None)

    def _counted(self, problems: Iterable[Problem]) -> Counter[str]:
        """The kinds of some problems with their numbers, which are counted over all requests, too."""
        kinds: Counter[str] = Counter(problem.kind for problem in problems)
        self.problems.update(kinds)
        return kinds

    def _chunks(self, chat: ChatRequest) -> ChatChunks:
        return ChatChunks(
            include_usage=chat.include_usage,
            legacy=chat.legacy,
            reasoning=self._server.reasoning,
            **self._identity(chat),
        )

    def _identity(self, chat: ChatRequest) -> Mapping[str, Any]:
        return {
            "id_": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": chat.model,
            "call_id": _call_id,
        }


async def _stream(
    chunks: ChatChunks,
    first: "asyncio.Future[Event | Usage | None]",
    events: Events,
    counted: Callable[[Iterable[Problem]], Counter[str]],
) -> AsyncGenerator[bytes, None]:
    """The chunks of a turn whose first event is awaited in `first`. A failure becomes an event.

    What was wrong with the turn comes as a comment before the end: the headers are gone by then.
    """
    usage: Usage | None = None
    problems: list[Problem] = []
    try:
        async with aclosing(events):
            try:
                event = await first
            finally:
                await _given_up(first)
            while event is not None:
                if isinstance(event, Usage):
                    usage = event
                else:
                    if isinstance(event, Problem):
                        problems.append(event)
                    for chunk in chunks.event(event):
                        yield chunk
                event = await anext(events, None)
    except (RequestError, UpstreamError) as error:
        log.info("stream failed: %s", error)
        yield data(encode(error_body(error)))
    except Exception:
        log.exception("stream failed")
        yield data(encode(error_body(_OUR_FAULT)))
    else:
        if usage_chunk := chunks.usage(usage):
            yield usage_chunk
    if told := _told(counted(problems)):
        yield comment(f"{PROBLEMS_HEADER}: {told}")
    yield DONE


def _told(kinds: Counter[str]) -> str:
    """Kinds of problems in a header: `argument_coerced=2, json_repaired=1`."""
    return ", ".join(f"{kind}={number}" for kind, number in sorted(kinds.items()))


async def _given_up(task: "asyncio.Future[Any]") -> None:
    """End a task that nobody waits for any more; what it answers or raises is not wanted."""
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task


def _decoded(body: bytes) -> object:
    try:
        return decode(body)
    except NotJsonError as error:
        fault = json_fault(body, error)
        raise RequestError(f"We could not parse the JSON body of your request. (It {fault}.)") from error


def _call_id() -> str:
    return f"call_{secrets.token_hex(12)}"
