"""Real servers on loopback: the gateway under uvicorn, and a model server that plays what it is told.

Both run in threads of their own and are stopped cleanly: a task that is left over when a gateway stops is an error.
"""

import asyncio
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec
import uvicorn
from aiohttp import web
from msgspec import Struct

from callwright.gateway.app import create_app
from callwright.gateway.config.config import Config
from callwright.gateway.inspection.turn_source import RecordedTurns
from callwright.gateway.process.serving import ProtocolSettings
from callwright.gateway.running import RunningGateway
from tests.support.waiting import PATIENCE_S

T = TypeVar("T")
HOST: Final = "127.0.0.1"
EVENTS: Final = "text/event-stream"
JSON: Final = "application/json"


# --- the gateway ---


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()


class Gateway:
    """The application of a configuration, served."""

    def __init__(
        self, config: Config, http: type[asyncio.Protocol] | None = None, *, records: RecordedTurns | None = None
    ) -> None:
        """`http`: uvicorn's protocol, if not the fastest that is installed. `records`: shown instead of its turns."""
        listener = socket.create_server((HOST, 0))
        self.port: int = listener.getsockname()[1]
        self.url = f"http://{HOST}:{self.port}"
        app = create_app(config, records=records)
        self.running: RunningGateway = app.state.running
        settings = ProtocolSettings(app, config, http=http, log_config=None, timeout_graceful_shutdown=5)
        self._server = _Server(settings)
        self._left_over: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._run, args=(listener,), name="gateway")
        self._thread.start()
        assert self._server.ready.wait(PATIENCE_S), "the gateway did not start"

    def change(self, config: Config) -> None:
        """Have it serve another configuration. Raises `ConfigError`."""
        self.run(self.running.change(config))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of something that runs in its event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def ask_to_stop(self) -> None:
        self._server.should_exit = True

    def stop(self) -> None:
        self.ask_to_stop()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the gateway did not stop"
        assert not self._left_over, f"tasks were left over: {self._left_over}"

    def _run(self, listener: socket.socket) -> None:
        with asyncio.Runner(loop_factory=self._server.config.get_loop_factory()) as runner:
            runner.run(self._serve(listener))

    async def _serve(self, listener: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve(sockets=[listener])
        self._left_over = asyncio.all_tasks() - {asyncio.current_task()}


# --- what a model server plays ---


class Gate:
    """A place in an answer where the server waits until the test lets it go on."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._opened = asyncio.Event()
        self._reached = threading.Event()

    def open(self) -> None:
        self._loop.call_soon_threadsafe(self._opened.set)

    def wait_until_reached(self) -> None:
        assert self._reached.wait(PATIENCE_S), "the server did not come to the gate"

    async def pass_(self) -> None:
        self._reached.set()
        await self._opened.wait()


# `reset` breaks the connection, `cut` closes it in the middle of the transfer, `silence` lasts until the client leaves.
Step: TypeAlias = bytes | Gate | Literal["reset", "cut", "silence"]


class Answer(Struct, frozen=True):
    """What the server does with one request: each piece of bytes is a write of its own."""

    steps: tuple[Step, ...]
    status: int = 200
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: {"content-type": EVENTS})

    @property
    def text(self) -> str:
        """What would be read of it."""
        return b"".join(step for step in self.steps if isinstance(step, bytes)).decode(errors="replace")


def sse(*events: Mapping[str, Any] | str) -> tuple[bytes, ...]:
    """Server-sent events: objects as JSON, strings as they are."""
    return tuple(f"data: {e if isinstance(e, str) else json.dumps(e, ensure_ascii=False)}\n\n".encode() for e in events)


def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    """A chunk of a chat answer, as vLLM writes it."""
    choice = {"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish, "token_ids": None}
    return {**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}


_HEAD: Final = {"id": "chatcmpl-upstream", "created": 1700000000, "model": "served"}
CACHED: Final = 4  # of the prompt's tokens, by llama.cpp
USAGE: Final = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def chat(*deltas: Mapping[str, Any], finish: str | None = "stop", usage: bool = True, done: bool = True) -> Answer:
    """A streamed chat answer: the role, these deltas, the finish reason, the token counts, the end mark."""
    events: list[Mapping[str, Any] | str] = [chunk({"role": "assistant", "content": ""})]
    events += [chunk(delta) for delta in deltas]
    if finish is not None:
        events.append(chunk({}, finish))
    if usage:
        events.append({**_HEAD, "object": "chat.completion.chunk", "choices": [], "usage": USAGE})
    return Answer(sse(*events, *(["[DONE]"] if done else [])))


def said(*texts: str, **how: Any) -> Answer:
    """A chat answer of plain text, in these pieces."""
    return chat(*({"content": text} for text in texts), **how)


def call_deltas(name: str, *arguments: str, index: int = 0, id_: str = "call_up_0") -> list[dict[str, Any]]:
    """A call as servers stream it: its head, then its arguments in pieces."""
    head = {"index": index, "id": id_, "type": "function", "function": {"name": name, "arguments": ""}}
    pieces = [{"index": index, "function": {"arguments": text}} for text in arguments]
    return [{"tool_calls": [piece]} for piece in (head, *pieces)]


def calling(name: str, *arguments: str, **how: Any) -> Answer:
    """A chat answer that is one call."""
    return chat(*call_deltas(name, *arguments), **{"finish": "tool_calls", **how})


Flavour: TypeAlias = Literal["openai", "vllm", "sglang", "llamacpp"]


def completion(text: str, flavour: Flavour = "vllm", *, finish: str = "stop", size: int = 5) -> Answer:
    """A streamed raw completion, in pieces of `size` characters, in the words of one server."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    if flavour == "llamacpp":
        return Answer(sse(*(_llamacpp(piece) for piece in pieces), _llamacpp_end(finish)))
    events = [_completion_chunk(piece, None, flavour) for piece in pieces] + [_completion_chunk("", finish, flavour)]
    counts = {**_HEAD, "object": "text_completion", "choices": [], "usage": USAGE}
    return Answer(sse(*events, counts, "[DONE]"))


def _completion_chunk(text: str, finish: str | None, flavour: Flavour) -> dict[str, Any]:
    stopped_by = {"vllm": {"stop_reason": None}, "sglang": {"matched_stop": None}}.get(flavour, {})
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, **stopped_by}
    return {**_HEAD, "object": "text_completion", "choices": [choice], "usage": None}


def _llamacpp(text: str) -> dict[str, Any]:
    return {"index": 0, "content": text, "tokens": [], "stop": False, "id_slot": 0, "tokens_predicted": 1}


def _llamacpp_end(finish: str) -> dict[str, Any]:
    return {
        **_llamacpp(""),
        "stop": True,
        "stop_type": "limit" if finish == "length" else "eos",
        "stopping_word": "",
        "truncated": False,
        "tokens_predicted": USAGE["completion_tokens"],
        "tokens_evaluated": USAGE["prompt_tokens"],
        "tokens_cached": USAGE["total_tokens"] - 1,  # what stands in the cache now, not what was found in it
        "timings": {"cache_n": CACHED, "prompt_n": USAGE["prompt_tokens"] - CACHED},
    }


def whole(body: Any, status: int = 200, kind: str = JSON, **headers: str) -> Answer:
    """An answer that is not streamed; a string is sent as it is."""
    text = body if isinstance(body, str) else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer((text.encode(),), status, {"content-type": kind, **named})


# --- the model server ---


class Asked(Struct, frozen=True):
    """A request that came."""

    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes = b""


class ModelServer:
    """Plays one answer for each request, in order, and remembers what it was asked. A function makes its answer from
    the body of the request.

    `left` is set when a client goes away before its answer is over; `peers` are the connections that requests came on.
    It listens on `port`, or on any that is free.
    """

    def __init__(self, port: int = 0) -> None:
        self.asked: list[Asked] = []
        self.peers: list[object] = []
        self.left = threading.Event()
        self.names: tuple[str, ...] = ()
        self._script: deque[Answer | Callable[[Any], Answer]] = deque()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._ready = threading.Event()
        self.port = port
        self._thread = threading.Thread(target=self._run, name="model server")
        self._thread.start()
        assert self._ready.wait(PATIENCE_S), "the model server did not start"
        self.url = f"http://{HOST}:{self.port}/v1"

    def plays(self, *answers: Answer | Callable[[Any], Answer]) -> None:
        """From now on. What was asked before is forgotten."""
        self.asked, self.peers, self.left, self.names = [], [], threading.Event(), ()
        self._script = deque(answers)

    def gate(self) -> Gate:
        return Gate(self._loop)

    @property
    def body(self) -> Any:
        """The body of the only request that came."""
        assert len(self.asked) == 1, f"{len(self.asked)} requests came"
        return self.asked[0].body

    def wait_until_left(self) -> None:
        assert self.left.wait(PATIENCE_S), "the client did not go away"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the model server did not stop"

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        self._route(app.router)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, HOST, self.port)
        await site.start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._over.wait()
        await runner.cleanup()

    def _route(self, router: web.UrlDispatcher) -> None:
        router.add_get("/v1/models", self._list)
        router.add_post("/{path:.*}", self._answer)

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in self.names]})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        self.asked.append(Asked(request.path, dict(request.headers), json.loads(raw), raw))
        assert request.transport is not None
        self.peers.append(request.transport.get_extra_info("peername"))
        if not self._script:
            return web.json_response({"error": {"message": "The script is at its end."}}, status=500)
        answer = self._script.popleft()
        return await self._answered(answer if isinstance(answer, Answer) else answer(self.asked[-1].body), request)

    async def _answered(self, answer: Answer, request: web.Request) -> web.StreamResponse:
        left = self.left
        response = web.StreamResponse(status=answer.status, headers=answer.headers)
        try:
            await self._play(answer.steps, request, response)
        except asyncio.CancelledError:
            left.set()
            raise
        except ConnectionError as error:  # the client has left while something was on its way to it
            left.set()
            raise asyncio.CancelledError from error
        return response

    async def _play(self, steps: Iterable[Step], request: web.Request, response: web.StreamResponse) -> None:
        for step in steps:
            if isinstance(step, Gate):
                await step.pass_()
            elif isinstance(step, bytes):
                if not response.prepared:
                    await response.prepare(request)
                await response.write(step)
            else:
                await _break(step, request)
        if not response.prepared:
            await response.prepare(request)
        await response.write_eof()


async def _break(how: str, request: web.Request) -> None:
    transport = request.transport
    assert transport is not None
    if how == "reset":
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    elif how == "cut":
        transport.close()
    await asyncio.Event().wait()  # until the handler is cancelled, because the connection is gone


class ClosedPort:
    """An address that refuses connections for as long as this is open."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind((HOST, 0))
        self.url = f"http://{HOST}:{self._socket.getsockname()[1]}/v1"

    def close(self) -> None:
        self._socket.close()
