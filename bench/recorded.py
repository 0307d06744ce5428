"""Recorded requests, and the work that they take: counts that no machine changes.

The gateway runs in this process, with its defaults and without sockets to the client; its model server is a loopback
socket of the same event loop, which sends a chunk when all that follows from the one before is done. The clock stands
still, so that nothing is done for the time that has passed. Each request is made some times. The first is not counted,
so what is kept from request to request is warm; of the others the one that takes least, for the gateway tends its store
when it has started. Chats are of one tool, or of 40 tools behind 40 calls (`large`, 60 kB); answers are one call,
streams of them are five chunks.
"""

import asyncio
import gc
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, redirect_stderr
from io import StringIO
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import callwright
from callwright.gateway.app import create_app
from callwright.gateway.config.config import Config, InspectLevel, ModelConfig, ServerConfig
from callwright.gateway.observability.logs import configure
from fake_model import MODEL, PATHS, Wire, asked
from json_bytes import JSON
from loading import HOST, chunk, sse

__all__ = ["RECORDED", "Recorded", "Work", "file_of", "parsed", "worked"]

SOURCES: Final = str(Path(callwright.__file__).parent)
_ROUNDS: Final = 100  # of the event loop, for all that follows from a chunk
_TIMES: Final = 3
_SIZES: Final = {"": (1, 0), ", large": (40, 40)}
_ARGUMENTS: Final = ('{"path": "not', 'es/today.txt", ', '"mode": "app', 'end"}')
_HARMONY: Final = (
    "<|channel|>analysis<|message|>The user wants a note.",
    "<|end|><|start|>assistant<|channel|>commentary to=functions.write_file <|constrain|>json<|message|>",
    '{"path": "not',
    'es/today.txt"',
    ', "mode": "append"}<|call|>',
)
_SHELL: Final = {
    "type": "custom",
    "name": "shell",
    "description": "Runs a command.",
    "format": {"type": "grammar", "syntax": "regex", "definition": "[a-z]+( -?[a-z/]+)*"},
}
_CUSTOM: Final = (
    "<|channel|>commentary to=functions.shell <|constrain|>json<|message|>",
    '{"input": "pytest"}<|call|>',
)
_HERMES: Final = ("Hm. <tool_call>", '{"name": "get_weather", "arguments": {"city": "Paris"}}', "</tool_call>")
_WEATHER: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}


class Recorded(NamedTuple):
    """A request, what the model server answers with, and what the client's answer holds."""

    path: str
    body: dict[str, Any]
    answer: list[bytes]
    expected: bytes
    raw: bool = False
    inspect: InspectLevel | None = None


class Work(NamedTuple):
    """What one request took: functions of ours that were entered, in order (a generator that goes on is entered anew),
    tasks that were made, bytes that JSON was read from and written to, and objects that were left in circles, for the
    collector of garbage.
    """

    entered: list[CodeType]
    tasks: int
    decoded: int
    encoded: int
    garbage: int

    @property
    def changes(self) -> int:
        """How often the next function that is entered is in another file."""
        return sum(one != other for one, other in pairwise(map(file_of, self.entered)))


# --- what is asked, and answered ---


def _native(*, stream: bool) -> list[bytes]:
    function = {"name": "write_file", "arguments": "" if stream else "".join(_ARGUMENTS)}
    call = {"index": 0, "id": "call_x", "type": "function", "function": function}
    if not stream:
        choice = {"index": 0, "message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}
        return [json.dumps({"id": "x", "object": "chat.completion", "model": MODEL, "choices": [choice]}).encode()]
    deltas = [{"index": 0, "function": {"arguments": piece}} for piece in _ARGUMENTS]
    events = [chunk({"tool_calls": [call]}), *(chunk({"tool_calls": [delta]}) for delta in deltas[:-1])]
    return sse(*events, chunk({"tool_calls": [deltas[-1]]}, "tool_calls"), "[DONE]")


def _raw(pieces: tuple[str, ...]) -> list[bytes]:
    ends = [{"index": 0, "text": piece, "finish_reason": None} for piece in pieces]
    ends[-1]["finish_reason"] = "stop"
    return sse(*({"choices": [choice]} for choice in ends), "[DONE]")


def _recorded() -> dict[str, Recorded]:
    found: dict[str, Recorded] = {}
    ends: dict[Wire, bytes] = {"chat": b"tool_calls", "responses": b"response.completed", "messages": b"message_stop"}
    for size, (tools, calls) in _SIZES.items():

        def of(wire: Wire, *, stream: bool = True, tools: int = tools, calls: int = calls) -> Recorded:
            body = asked(wire, tools, calls, stream=stream)
            return Recorded(PATHS[wire], body, _native(stream=stream), ends[wire])

        chat = of("chat")
        found |= {
            f"native whole{size}": of("chat", stream=False),
            f"native stream{size}": chat,
            f"raw stream{size}": chat._replace(answer=_raw(_HARMONY), raw=True),
            f"responses stream{size}": of("responses"),
            f"messages stream{size}": of("messages"),
        }
    custom = {"model": MODEL, "input": "Run the tests.", "tools": [_SHELL], "store": True}
    unseen = found["raw stream"]._replace(inspect="off")
    tests = Recorded(PATHS["responses"], custom, _raw(_CUSTOM), b'"input":"pytest"', raw=True)
    return found | {"raw stream, pages off": unseen, "custom tool": tests}


RECORDED: Final = _recorded()


# --- the count ---


class _Counting:
    """Counts in this thread, and in those that begin while it is there, between `begin` and `end`."""

    def __init__(self) -> None:
        self._entered: list[CodeType] | None = None
        self._tasks = self._decoded = self._encoded = 0

    def __enter__(self) -> "_Counting":
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        return self

    def __exit__(self, *args: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        if self._entered is not None and event == "call" and frame.f_code.co_filename.startswith(SOURCES):
            self._entered.append(frame.f_code)

    def task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        """The factory of a loop's tasks."""
        self._tasks += 1
        return asyncio.Task(work, loop=loop, **options)

    def begin(self) -> None:
        gc.collect()
        gc.disable()  # what is collected has finalizers
        self._tasks, self._decoded, self._encoded = 0, JSON.decoded, JSON.encoded
        self._entered = []

    def end(self) -> Work:
        entered, self._entered = self._entered, None
        assert entered is not None
        garbage = gc.collect()
        gc.enable()
        return Work(entered, self._tasks, JSON.decoded - self._decoded, JSON.encoded - self._encoded, garbage)


def file_of(code: CodeType) -> str:
    """Where a function stands, in the package."""
    return str(Path(code.co_filename).relative_to(SOURCES))


def parsed() -> Work:
    """The work of one `callwright.parse` of three chunks."""
    with _Counting() as counting:
        for _ in range(2):
            counting.begin()
            turn = callwright.parse(iter(_HERMES), dialect="hermes", tools=[_WEATHER])
            work = counting.end()
    assert [(call.name, call.arguments) for call in turn.calls] == [("get_weather", '{"city": "Paris"}')]
    return work


def worked(recorded: Recorded) -> Work:
    """The work of a request that has been made before."""
    now = time.monotonic()
    with patch("time.monotonic", lambda: now):  # of the event loop, too
        return asyncio.run(_worked(recorded))


async def _worked(recorded: Recorded) -> Work:
    with redirect_stderr(StringIO()):
        configure("info", "plain")  # as the gateway does, whose lines go nowhere here
    with _Counting() as counting:
        async with _model_server(recorded.answer) as url:
            how: dict[str, Any] = {"mode": "raw", "dialect": "harmony", "server": "vllm"} if recorded.raw else {}
            model = ModelConfig(name=MODEL, upstream=url, **({"mode": "native"} | how))
            server = ServerConfig(inspect=recorded.inspect)
            app = create_app(Config(server=server, models=(model,)))
            async with app.router.lifespan_context(app):
                asyncio.get_running_loop().set_task_factory(counting.task)
                works = []
                for _ in range(1 + _TIMES):
                    counting.begin()
                    answer = await _asked(app, recorded)
                    await _settled()  # the client's answer may have ended before that of the server
                    works.append(counting.end())
                    assert recorded.expected in answer, answer
                asyncio.get_running_loop().set_task_factory(None)
    return min(works[1:], key=lambda work: len(work.entered))


# --- the model server, and the client ---


@asynccontextmanager
async def _model_server(pieces: list[bytes]) -> AsyncIterator[str]:
    """Answers each request with a body in these pieces, one at a time."""
    kind = b"text/event-stream" if len(pieces) > 1 else b"application/json"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\ntransfer-encoding: chunked\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while asks := await reader.readuntil(b"\r\n\r\n"):
            length = next(int(line[15:]) for line in asks.split(b"\r\n") if line.lower().startswith(b"content-length:"))
            await reader.readexactly(length)
            for written in (head, *(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces), b"0\r\n\r\n"):
                writer.write(written)
                await _settled()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connected, HOST, 0, limit=1 << 24)
    async with server:
        yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}/v1"
        await _settled()


async def _settled() -> None:
    """All has followed that follows by itself."""
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)


async def _asked(app: Callable[..., Awaitable[None]], recorded: Recorded) -> bytes:
    """One request to an ASGI application; answers the body."""
    came: list[bytes] = []
    messages = [{"type": "http.request", "body": json.dumps(recorded.body).encode(), "more_body": False}]
    stays = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await stays.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        came.append(message.get("body", b""))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": recorded.path,
        "raw_path": recorded.path.encode(),
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"host", b"127.0.0.1:8642")],
        "scheme": "http",
        "client": (HOST, 5),
        "server": (HOST, 8642),
        "root_path": "",
        "state": {},
    }
    await app(scope, receive, send)
    return b"".join(came)
