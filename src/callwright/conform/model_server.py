"""The scripted model server: a chat server with the simulated model, and a scripted one for requests with a mark.

It listens on loopback for a gateway under test. Its answers to marked requests have the faults that models and servers
have; to all others it is our own gateway with the simulated model, whose server parses calls itself.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import uvicorn

from callwright.conform.answer import DONE, EVENTS, JSON
from callwright.conform.checks.faults import NO_FAULT, REFUSAL, SENDINGS, Sending, mark_in, turn_of
from callwright.conversation import AssistantTurn, Conversation, FunctionTool
from callwright.dialects.base import get_dialect
from callwright.errors import ConfigError, reason_of
from callwright.gateway.app import create_app
from callwright.gateway.config.config import ServerConfig, simulated_config
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.upstreams.simulated.faults import FAULTS

MODEL: Final = "simulated-native"
_HOST: Final = "127.0.0.1"
_HEAD: Final = {"id": "chatcmpl-scripted", "created": 1_700_000_000, "model": MODEL}
_USAGE: Final = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
_CUT: Final = 3  # pieces before a server fails
_BROKEN: Final = {"error": {"message": "the engine has crashed", "type": "server_error", "param": None, "code": None}}
_CHAT_ONLY: Final = {"error": {**_BROKEN["error"], "message": "a chat server has no such path", "type": "not_found"}}


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """See uvicorn: signals are the command's."""
        yield


class _BreakOffError(Exception):
    """Raised to close a connection in the middle of an answer."""


@asynccontextmanager
async def model_server(port: int, seen: Callable[[], None]) -> AsyncGenerator[str, None]:
    """Serve on a port of loopback, 0 for any that is free; yields the base URL. Calls `seen` with each marked request.
    Raises `ConfigError` if the port is taken.
    """
    inner = create_app(simulated_config(ServerConfig()))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and (scope["method"], scope["path"]) == ("GET", "/health"):
            await _send(send, 200, JSON, [b"{}"])  # as vLLM, SGLang and llama.cpp do; some gateways ask for it first
            return
        if scope["type"] != "http" or scope["method"] != "POST":
            await inner(scope, receive, send)
            return
        if not scope["path"].endswith(
            "/chat/completions"
        ):  # a gateway that hands the other APIs on would be credited with our work
            await _send(send, 404, JSON, [encode(_CHAT_ONLY)])
            return
        body, more = bytearray(), True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        mark = mark_in(body.decode(errors="replace"))
        if mark is None:
            messages = iter([{"type": "http.request", "body": bytes(body), "more_body": False}])

            async def replay() -> Any:
                return next(messages, None) or await receive()

            await inner(scope, replay, send)
            return
        seen()
        with suppress(_BreakOffError):
            await _answer(bytes(body), *mark, send)

    try:
        listener = socket.create_server((_HOST, port))
    except OSError as error:
        raise ConfigError(f"--serve-model {port}: {reason_of(error)}. Choose another port.") from error
    settings: dict[str, Any] = {"lifespan": "on", "timeout_graceful_shutdown": 1}
    server = _Server(uvicorn.Config(app, log_config=None, log_level="critical", **settings))
    serving = asyncio.create_task(server.serve([listener]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        yield f"http://{_HOST}:{listener.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        await serving


def struck_text(fault: str, dialect: str) -> str:
    """The text of the model in a dialect, with a fault."""
    text = get_dialect(dialect).write(struck_turn(fault))
    writing = FAULTS[fault].writing if fault in FAULTS else None
    return writing(text) if writing else text


def struck_turn(fault: str) -> AssistantTurn:
    """The turn of the model, with a fault in its meaning."""
    turn = turn_of(fault)
    meaning = FAULTS[fault].meaning if fault in FAULTS else None
    return meaning(turn, Conversation(tools=(FunctionTool("book_table", ""),))) if meaning else turn


async def _answer(body: bytes, fault: str, dialect: str, send: Any) -> None:
    """Answer a marked request."""
    try:
        asked = decode(body)
    except NotJsonError:
        asked = {}
    streamed = bool(asked.get("stream"))
    if fault == "error_500" or (fault == "error_event" and not streamed):
        await _send(send, 500, JSON, [encode(_BROKEN)])
    elif fault == "html":
        await _send(send, 502, "text/html", [b"<html><body><h1>Bad gateway</h1></body></html>"])
    else:
        writes = fault in FAULTS and FAULTS[fault].writing is not None
        in_text = dialect != "native" and (writes or fault == NO_FAULT or not asked.get("tools"))
        sending = SENDINGS.get(fault, Sending())
        size, turn = sending.piece, struck_turn(fault)
        if fault == REFUSAL:
            deltas = _text_deltas(turn.text, size, "refusal")
        else:
            deltas = _text_deltas(struck_text(fault, dialect), size) if in_text else _native_deltas(turn, size)
        if streamed:
            await _stream(send, deltas, fault, sending)
        else:
            await _whole(send, deltas, fault)


def _text_deltas(text: str, size: int, field: str = "content") -> list[dict[str, Any]]:
    return [{field: text[at : at + size]} for at in range(0, len(text), size)]


def _native_deltas(turn: AssistantTurn, size: int) -> list[dict[str, Any]]:
    deltas = _text_deltas(turn.text, size)
    for index, call in enumerate(turn.calls):
        head = {"id": f"call_scripted_{index}", "type": "function", "function": {"name": call.name, "arguments": ""}}
        deltas.append({"tool_calls": [{"index": index, **head}]})
        for at in range(0, len(call.arguments), size):
            piece = {"index": index, "function": {"arguments": call.arguments[at : at + size]}}
            deltas.append({"tool_calls": [piece]})
    return deltas


async def _stream(send: Any, deltas: Sequence[dict[str, Any]], fault: str, sending: Sending) -> None:
    values: list[object] = [_chunk({"role": "assistant", "content": None}), *map(_chunk, deltas)]
    cut = _CUT if fault in ("cut_stream", "error_event") else sending.cut
    if cut is not None:
        values = [*values[: cut + 1], *([_BROKEN] if fault == "error_event" else [])]
    else:
        finish = "tool_calls" if "tool_calls" in deltas[-1] else "stop"
        counts = {**_HEAD, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE}
        values += [_chunk({}, finish), counts, DONE]
    events = [_event(value, sending) for value in values]
    if sending.packet:
        data = b"".join(events)
        events = [data[at : at + sending.packet] for at in range(0, len(data), sending.packet)]
    await _send(send, 200, EVENTS, events, cut=cut is not None)


async def _whole(send: Any, deltas: Sequence[dict[str, Any]], fault: str) -> None:
    calls: list[dict[str, Any]] = []
    for piece in (piece for delta in deltas for piece in delta.get("tool_calls", ())):
        if "id" in piece:
            calls.append({"id": piece["id"], "type": "function", "function": dict(piece["function"])})
        else:
            calls[-1]["function"]["arguments"] += piece["function"]["arguments"]
    texts = {field: "".join(delta.get(field, "") for delta in deltas) or None for field in ("content", "refusal")}
    message = {"role": "assistant", **texts, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    data = encode({**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE})
    cut = fault == "cut_stream"
    await _send(send, 200, JSON, [data[: len(data) // 2] if cut else data], cut=cut)


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}


def _event(value: object, sending: Sending) -> bytes:
    data = value if isinstance(value, str) else encode(value).decode()
    return f"{sending.before}data:{sending.space}{data}\n\n".replace("\n", sending.newline).encode()


async def _send(send: Any, status: int, kind: str, pieces: Any, *, cut: bool = False) -> None:
    """Send an answer. `cut`: close the connection in the middle of it."""
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind.encode())]})
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    if cut:
        raise _BreakOffError
    await send({"type": "http.response.body", "body": b""})
