"""The data of a request for the log and the metrics: the caller, the request, its outcome, its duration.

It has no content, no key and no header but the client's own id. `current` returns the context of the running request,
from any of its tasks.
"""

import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Container, Mapping
from contextvars import ContextVar, Token
from copy import copy
from functools import partial
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from callwright.errors import RefusedByServerError, RequestError, UpstreamError
from callwright.turn.observe import Ended, Observation, Observer

E = TypeVar("E", bound=Exception)
log = logging.getLogger("callwright.gateway")
# Why a request was not answered: no key or a wrong one; a page or a name from elsewhere; a model that there is not for
# the key; a limit of the key; a budget; the limit of the gateway or of a model; the gateway ends; a body that is too
# large, or takes too long; a server of MCP that cannot be used; a hook; anything else in it that is wrong.
Refusal: TypeAlias = Literal[
    "key", "origin", "model", "requests", "tokens", "budget", "busy", "ending", "size", "slow", "mcp", "hook", "invalid"
]
REFUSALS: Final[tuple[Refusal, ...]] = get_args(Refusal)
# Whose API a client speaks.
Api: TypeAlias = Literal["openai", "anthropic"]
_MESSAGES: Final = "/v1/messages"
_ANTHROPIC: Final = b"anthropic-version"  # all clients of that API send it
_BY_STATUS: Final[Mapping[int, Refusal]] = {
    401: "key",
    403: "origin",
    408: "slow",
    413: "size",
    424: "mcp",
    429: "busy",
    503: "ending",
}
_OF_A_KEY: Final[Mapping[str, Refusal]] = {
    "requests": "requests",
    "tokens": "tokens",
    "insufficient_quota": "budget",
}  # by the type of the error

# In place of a server's address, and with the port that follows one.
_HIDDEN: Final = "…"
_PORT: Final = re.compile("…, port [0-9]+")
# As long as OpenAI lets it be, and nothing in it that could break a line or a field of a log.
_CLIENT_ID: Final = re.compile(rb"[!-~]{1,512}")
_CARRIED: Final = frozenset((b"traceparent", b"tracestate"))
_GONE: Final = 499
_OUR_FAULT: Final = 500
_SCHEMA: Final = "tools.parameters"
# The names of chat request fields in the other APIs, by the path of their endpoints.
_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "/v1/responses": {
        "logprobs": "include",
        "reasoning_effort": "reasoning.effort",
        "verbosity": "text.verbosity",
    },
    "/v1/messages": {"reasoning_effort": "output_config.effort", "chat_template_kwargs": "thinking"},
}
_NOT_FOUND: Final = 404
# The codes of errors because of a hook: it denied the request or a required call, or gave no answer.
HOOK_CODES: Final = ("denied_by_hook", "call_denied", "hook_failed")
# What sends the middle of an answer, of which nothing is noted, has this key in an ASGI scope.
SEND_ON: Final = "callwright_send_on"
_MAX_PATH: Final = 200


class Turns(Struct):
    """The turns of a request that have ended: their number, and the sums over them. `fallback` is the other model that
    was asked last, if any. `cost` is in millionths of the currency; None if no model has a price.
    """

    number: int = 0
    tokens: tuple[int, int, int] | None = None
    calls: int = 0
    problems: dict[str, int] = {}
    retries: int = 0
    ambiguous: dict[str, int] = {}
    fallback: str | None = None
    cost: int | None = None

    def add(self, seen: Observation) -> None:
        """One more has ended."""
        self.number += 1
        if seen.usage is not None:
            counts = (seen.usage.prompt_tokens, seen.usage.completion_tokens, seen.usage.cached_tokens)
            self.tokens = counts if self.tokens is None else tuple(map(sum, zip(self.tokens, counts, strict=True)))  # type: ignore[assignment]
        self.calls += len(seen.calls)
        for problem in seen.problems:
            self.problems[problem.kind] = self.problems.get(problem.kind, 0) + 1
        if len(seen.asked) > 1:
            self.retries += seen.retries
            self.fallback = seen.asked[-1].fallback.model if seen.asked[-1].fallback else self.fallback
        if seen.ambiguous is not None:
            self.ambiguous[seen.ambiguous] = self.ambiguous.get(seen.ambiguous, 0) + 1

    def logged(self) -> dict[str, Any]:
        """The fields of the log, without those that are zero."""
        fields: dict[str, Any] = {}
        if self.tokens is not None:
            fields["input_tokens"], fields["output_tokens"], fields["cached_tokens"] = self.tokens
        if self.calls:
            fields["calls"] = self.calls
        if self.problems:
            fields["problems"] = dict(sorted(self.problems.items()))
        if self.retries:
            fields["retries"] = self.retries
        if self.cost is not None:
            fields["cost"] = self.cost / 1_000_000
        if self.fallback is not None:
            fields["fallback"] = self.fallback
        if self.ambiguous:
            fields["ambiguous"] = dict(sorted(self.ambiguous.items()))
        return fields


class RequestContext(Struct, kw_only=True):
    """One request. Times are of `time.monotonic`, in seconds.

    `api` is the one that the client speaks, for errors. `id` is in the answer's headers, too; `caller` is the name
    of its key. `endpoint` is its path as the routes write it, `label` the model's name in the configuration,
    `error` the code or fault of a failure, `message` its field and text, which may quote the conversation and must
    not be logged, `carrier` the headers of a trace, `turns` those that have ended. `received_s`: when the body was
    complete. `has_left`, at its end: the client has gone before its answer was over. `elsewhere_s`: seconds spent
    waiting for others: a queue, a model's server, tools. `reasoning_put_back`: the number of turns of its history
    whose reasoning, dropped by the client, was restored. `given` are the fields of the request, `dropped` those
    sent to no server, `not_passed` those of them that are unknown. `latest` is the turn that runs or ran last.
    `response_id`, `conversation_id` and `previous_response_id` are those of the Responses API. `span_ended` ends
    its span. `body` is set if requests are recorded, or shown. `fallback_wish` is the client's header about other
    models that may answer. `hooks` are the outcomes of hooks other than to allow, with their numbers.
    """

    id: str
    method: str
    path: str
    client_id: str | None = None
    caller: str = ""
    carrier: Mapping[str, str] = {}
    endpoint: str = "other"
    begun_s: float = msgspec.field(default_factory=time.monotonic)
    received_s: float | None = None
    first_s: float | None = None
    ended_s: float | None = None
    elsewhere_s: float = 0.0
    turns: Turns = msgspec.field(default_factory=Turns)
    status: int = 0
    is_whole: bool = False
    has_left: bool = False
    api: Api = "openai"
    model: str | None = None
    label: str = "none"
    response_id: str | None = None
    conversation_id: str | None = None
    previous_response_id: str | None = None
    span_ended: Callable[[str, int, str | None], None] | None = None
    reasoning_put_back: int = 0
    given: Mapping[str, Any] = {}
    dropped: frozenset[str] = frozenset()
    not_passed: frozenset[str] = frozenset()
    latest: Observation | None = None
    error: str | None = None
    message: str | None = None
    refusal: Refusal | None = None
    keeps_body: bool = False
    body: bytes | str | None = None
    fallback_wish: str | None = None
    hooks: Mapping[str, int] = {}

    @property
    def told_dropped(self) -> frozenset[str]:
        """The fields of the request without effect so far, by their names in its API, for the client."""
        if self.latest is None or not (unsent := self.latest.unsent):
            return self.not_passed
        words = _WORDS.get(self.endpoint, {})
        schema = "tools.input_schema" if self.api == "anthropic" else _SCHEMA
        spelled = [words.get(name, name.replace(_SCHEMA, schema)) for name in unsent]
        return self.not_passed.union(name for name in spelled if self.given.get(name.partition(".")[0]) is not None)

    def add(self, seen: Observation) -> None:
        """A turn of it is over."""
        self.turns.add(seen)
        for asked in seen.asked:
            self.elsewhere_s += asked.timings.queued_s + asked.timings.waited_s
            self.dropped |= asked.unsent
            if asked.timings.cost is not None:
                self.turns.cost = (self.turns.cost or 0) + asked.timings.cost
        if isinstance(seen.error, RequestError | UpstreamError):
            self.failed(seen.error)

    def failed(self, error: RequestError | UpstreamError) -> None:
        """Something in it went wrong. A field that a model's server names is the error's, if the request has it, too:
        its message is about that one.
        """
        if isinstance(error, RefusedByServerError) and error.field and self.given.get(error.field) is not None:
            error.param = error.field
        self.message = error.message
        if isinstance(error, UpstreamError):
            self.error = error.fault
        else:
            if error.param and error.param not in error.message:
                self.message = f"{error.param}: {error.message}"
            self.error, self.refusal = error.code or error.type, _refusal(error)

    @property
    def overhead_s(self) -> float:
        """The gateway's own time: from the end of the body to the end of the answer, without waits for others."""
        begun_s = self.received_s or self.begun_s
        return max(0.0, (self.ended_s or time.monotonic()) - begun_s - self.elsewhere_s)

    def log_fields(self) -> dict[str, Any]:
        """The fields of its log entry."""
        now = self.ended_s or time.monotonic()
        told: dict[str, Any] = {"request_id": self.id}
        if self.client_id is not None:
            told["client_request_id"] = self.client_id
        told["method"], told["path"] = self.method, self.path
        if self.caller:
            told["caller"] = self.caller
        if self.model is not None:
            told["model"] = self.model
        if self.response_id is not None:
            told["response_id"] = self.response_id
        told["status"], told["ms"] = self.status, round((now - self.begun_s) * 1_000, 2)
        if self.first_s:
            told["first_byte_ms"] = round((self.first_s - self.begun_s) * 1_000, 2)
        told |= self.turns.logged()
        if self.hooks:
            told["hooks"] = dict(self.hooks)
        if self.reasoning_put_back:
            told["reasoning_put_back"] = self.reasoning_put_back
        if self.has_left:
            told["client_left"] = True
        if self.error is not None:
            told["error"] = self.error
        return told


_current: ContextVar[RequestContext | None] = ContextVar("callwright_request", default=None)
# The context that runs here. Called several times for a request, so it has no function of its own.
current: Final[Callable[[], RequestContext | None]] = _current.get


def api_of(path: str, headers: Container[bytes] = ()) -> Api:
    """Whose API a client speaks that asks for this path with these headers."""
    return "anthropic" if path.startswith(_MESSAGES) or _ANTHROPIC in headers else "openai"


_hides_servers: Final[ContextVar[bool]] = ContextVar("callwright_hides_servers", default=False)
# Set whether the client that asks from here on must not get the addresses of servers.
hide_servers: Final[Callable[[bool], object]] = _hides_servers.set


def client_error(error: E) -> E | UpstreamError:
    """The error for the client of the context that runs. With keys, only an operator gets the address of the model's
    server; for the others it is logged.
    """
    context = _current.get()
    if context is None or not _hides_servers.get() or not isinstance(error, UpstreamError):
        return error
    log.warning("the server of a model failed: %s (%s)", error.upstream, error.fault)
    message, model = error.message, context.given.get("model")
    message = message.replace(f"The upstream at {error.upstream}", f"The server of the model {model!r}")
    parts = urlsplit(error.upstream)
    for place in (error.upstream, f"{parts.scheme}://{parts.netloc}", parts.netloc, parts.hostname):
        if place:
            message = message.replace(place, _HIDDEN)
    found = copy(error)
    found.message = _PORT.sub(_HIDDEN, message)
    return found


def note(response_id: str, conversation_id: str | None, previous_id: str | None) -> None:
    """Which response the context that runs makes, of which conversation, or which response it continues."""
    if (context := _current.get()) is not None:
        context.response_id, context.conversation_id = response_id, conversation_id
        context.previous_response_id = previous_id


def note_given(fields: Mapping[str, Any]) -> None:
    """Record the fields of the running request."""
    if (context := _current.get()) is not None:
        context.given = fields


def note_dropped(names: frozenset[str]) -> None:
    """Record unknown fields of the running request, which are not forwarded."""
    if (context := _current.get()) is not None:
        context.not_passed |= names
        context.dropped |= names


def note_put_back(turns: int) -> None:
    """Count the turns in the running request's history whose reasoning was restored."""
    if (context := _current.get()) is not None:
        context.reasoning_put_back += turns


def observer(label: str) -> Observer:
    """Adds the turns of a model to the context that runs; `label` is the model's name in the configuration."""

    def begin(seen: Observation) -> Ended | None:
        context = _current.get()
        if context is None:
            return None
        context.model, context.label, context.latest = seen.model, label, seen
        return partial(context.add, seen)

    return begin


class RequestContexts:
    """Active requests, with start and end callbacks."""

    def __init__(
        self,
        begun: Callable[[RequestContext], None],
        ended: Callable[[RequestContext], None],
    ) -> None:
        self._begun = begun
        self._ended = ended
        self.keeps_bodies = False

    def open(self, method: str, path: str, headers: Mapping[bytes, bytes]) -> "_Running":
        """A context that runs until this is left."""
        given = headers.get(b"x-client-request-id", b"")
        wish = headers.get(b"x-callwright-fallback")
        return _Running(
            RequestContext(
                id=f"req_{os.urandom(16).hex()}",
                method=method,
                path=_display_path(path),
                api=api_of(path, headers),
                client_id=given.decode() if _CLIENT_ID.fullmatch(given) else None,
                keeps_body=self.keeps_bodies,
                fallback_wish=None if wish is None else wish.decode("latin-1").strip().lower(),
                carrier={} if _CARRIED.isdisjoint(headers) else _carrier(headers),
            ),
            self._begun,
            self._ended,
        )


class _Running(Struct):
    """Makes a context the one that runs. No generator: it is entered for each request."""

    context: RequestContext
    begun: Callable[[RequestContext], None]
    ended: Callable[[RequestContext], None]
    token: Token[RequestContext | None] | None = None

    def __enter__(self) -> RequestContext:
        self.token = _current.set(self.context)
        self.begun(self.context)
        return self.context

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        context = self.context
        if isinstance(error, Exception):
            context.status, context.is_whole = _OUR_FAULT, True
        context.ended_s = time.monotonic()
        context.has_left = not context.is_whole or context.status == _GONE
        if context.has_left and not context.status:
            context.status = _GONE
        self.ended(context)
        assert self.token is not None
        _current.reset(self.token)


class RequestContextMiddleware:
    """An ASGI application whose HTTP requests are contexts."""

    def __init__(self, app: ASGIApp, contexts: RequestContexts) -> None:
        self._app = app
        self._contexts = contexts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._contexts.open(scope["method"], scope["path"], dict(scope["headers"])) as context:

            def send_message(message: Message) -> Awaitable[None]:  # no coroutine of its own
                if message["type"] == "http.response.body":
                    if context.first_s is None:
                        context.first_s = time.monotonic()
                    context.is_whole = not message.get("more_body")
                elif message["type"] == "http.response.start":
                    context.status = message["status"]
                    if context.client_id is not None:
                        message["headers"] = [
                            *message["headers"],
                            (b"x-client-request-id", context.client_id.encode()),
                        ]
                return send(message)

            scope[SEND_ON] = send
            await self._app(scope, receive, send_message)


def _refusal(error: RequestError) -> Refusal | None:
    """Why a request was refused; None if the error is not the client's."""
    if error.status == _NOT_FOUND and error.code == "model_not_found":
        return "model"
    if error.code in HOOK_CODES:
        return "hook"
    known = _OF_A_KEY.get(error.type) or _BY_STATUS.get(error.status)
    return known or ("invalid" if error.status < _OUR_FAULT else None)


def _display_path(path: str) -> str:
    """A path for the log: on one line, and truncated."""
    shown = path if path.isprintable() else path.encode("unicode_escape").decode()
    return shown.replace(" ", "%20")[:_MAX_PATH]


def _carrier(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): headers[name].decode("latin-1") for name in _CARRIED if name in headers}
