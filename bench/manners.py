"""The clients of `bench/soak.py`: each asks once, in its own manner, and says what came of it."""

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from faulty import GOOD, arguments_of, text_of, word_of
from loading import HOST

__all__ = ["Broken", "Client", "Manner", "Outcome", "Reply", "Wave", "ask", "fetch"]

# `slowly`: with a small buffer, a piece at a time; `unread`: with a small buffer, and nothing but the first event.
# `leaves early`: before the first byte of the answer; `half a request`: says the first half and then leaves, or `stays`
# and says nothing more.
Manner: TypeAlias = Literal["reads", "slowly", "leaves midway", "leaves early", "half a request", "stays", "unread"]
# How it ended: with the whole answer, with an error as the last event of a stream or as a status, or as the client
# wanted it.
Outcome: TypeAlias = Literal["answered", "error event", "error status", "left"]
_PATIENCE_S: Final = 60.0  # of those that only ask how things are
_SMALL: Final = 4_096
_SLOWLY: Final = (16_384, 0.1)  # bytes each time, s between two
_TERMINAL: Final = ("response.completed", "response.failed", "response.incomplete", "error")
_PATHS: Final = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
_NOTE: Final = {
    "name": "note",
    "description": "Keeps a note.",
    "parameters": {
        "type": "object",
        "properties": {"number": {"type": "integer"}, "text": {"type": "string"}},
        "required": ["number", "text"],
        "additionalProperties": False,
    },
}


class Broken(Exception):  # noqa: N818  # what a client says of its answer
    """What was wrong with an answer."""


class Reply(NamedTuple):
    """A whole answer, its body without the transfer encoding."""

    status: int
    headers: dict[str, str]
    body: bytes


class Wave:
    """Clients that are under way together. When `leaving` is set, those that wait for that leave."""

    def __init__(self, number: int, port: int) -> None:
        self.number = number
        self.port = port
        self.leaving = asyncio.Event()


class Client(NamedTuple):
    """One request. `row` is the name under which its outcome is counted."""

    number: int
    row: str
    play: str
    manner: Manner
    api: Literal["chat", "responses"]
    model: str
    stream: bool

    async def run(self, wave: Wave) -> Outcome | str:
        """Ask, in this manner. Answers the outcome; a text says what was wrong."""
        try:
            return await self._run(wave)
        except (OSError, EOFError, Broken) as error:
            return str(error) or type(error).__name__

    async def _run(self, wave: Wave) -> Outcome:
        request = _request(_PATHS[self.api], self._body(wave.number))
        is_small = self.manner in ("slowly", "unread")
        reader, writer = await _connected(wave.port, _SMALL if is_small else None)
        try:
            match self.manner:
                case "half a request" | "stays":
                    writer.write(request[: -len(request) // 3])
                case _:
                    writer.write(request)
            match self.manner:
                case "leaves early" | "half a request":
                    await wave.leaving.wait()
                    return "left"
                case "leaves midway" | "unread":
                    await reader.readuntil(b"data: ")
                    await wave.leaving.wait()
                    return "left"
            reply = await _read(reader, _SLOWLY if self.manner == "slowly" else None)
            return self._judged(reply)
        finally:
            writer.transport.abort()

    def _body(self, wave: int) -> dict[str, Any]:
        asked = f"Please do {word_of(self.play, wave, self.number)} for me."
        if self.api == "chat":
            tools = [{"type": "function", "function": _NOTE}]
            given: dict[str, Any] = {"messages": [{"role": "user", "content": asked}], "tools": tools}
        else:
            given = {"input": asked, "tools": [{"type": "function", **_NOTE}]}
        return {"model": self.model, "stream": self.stream, **given}

    # --- what has come ---

    def _judged(self, reply: Reply) -> Outcome:
        """Raises `Broken` for an answer that is none, or not the one that was to come."""
        outcome = self._outcome(reply)
        is_good = self.play in GOOD and self.manner != "stays"
        if is_good != (outcome == "answered"):
            raise Broken(f"{'an answer' if is_good else 'an error'} was to come, not: {reply.body[-300:]!r}")
        return outcome

    def _outcome(self, reply: Reply) -> Outcome:
        if reply.status >= 400:
            if not reply.body.startswith(b'{"error":'):
                raise Broken(f"status {reply.status} without an error: {reply.body[:300]!r}")
            return "error status"
        if not self.stream:
            said = json.loads(reply.body)
            self._check(said["choices"][0]["message"] if self.api == "chat" else said)
            return "answered"
        events = list(_events(reply.body))
        return self._of_chunks(events) if self.api == "chat" else self._of_events(events)

    def _of_chunks(self, events: list[Any]) -> Outcome:
        if not events or events[-1] != "[DONE]":
            raise Broken(f"a stream of chat ends in {events[-1:]}")
        content, arguments, reason = "", "", None
        for event in events[:-1]:
            if "error" in event:
                return "error event"
            (choice,) = event["choices"]
            content += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls") or ():
                arguments += call["function"].get("arguments") or ""
            reason = choice["finish_reason"] or reason
        if reason is None:
            raise Broken("a stream of chat has neither a finish reason nor an error")
        self._check({"content": content, "tool_calls": arguments and [{"function": {"arguments": arguments}}]})
        return "answered"

    def _of_events(self, events: list[Any]) -> Outcome:
        kinds = [event["type"] for event in events]
        if not kinds or kinds[-1] not in _TERMINAL or sum(kind in _TERMINAL for kind in kinds) > 1:
            raise Broken(f"a stream of a response ends in {kinds[-2:]}")
        if kinds[-1] in ("response.failed", "error"):
            return "error event"
        self._check(events[-1]["response"])
        return "answered"

    def _check(self, said: dict[str, Any]) -> None:
        """That it is this request's own answer, whole. `said`: a chat message, or a response."""
        if self.api == "chat":
            texts = [said.get("content")]
            calls = [call["function"]["arguments"] for call in said.get("tool_calls") or ()]
        else:
            texts = [part["text"] for item in said["output"] if item["type"] == "message" for part in item["content"]]
            calls = [item["arguments"] for item in said["output"] if item["type"] == "function_call"]
        if self.play == "call":
            is_right = [json.loads(call) for call in calls] == [arguments_of(self.number)]
        else:
            is_right = texts == [text_of(self.play, self.number)]
        if not is_right:
            raise Broken(f"the answer is not the one that was sent: {str(said)[:300]}")


async def ask(client: Client, wave: int, port: int) -> Reply:
    """The answer to a client's request, whatever it is."""
    return await _asked(port, _request(_PATHS[client.api], client._body(wave)))


async def fetch(port: int, path: str, method: str = "GET") -> Reply:
    """What a server answers."""
    return await _asked(port, f"{method} {path} HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\n\r\n".encode())


async def _asked(port: int, request: bytes) -> Reply:
    reader, writer = await _connected(port)
    try:
        writer.write(request)
        async with asyncio.timeout(_PATIENCE_S):
            return await _read(reader)
    except TimeoutError:
        raise Broken(f"no answer came for {_PATIENCE_S:g} s to {request[:60]!r}") from None
    finally:
        writer.transport.abort()


def _request(path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: {HOST}\r\ncontent-type: application/json\r\nconnection: close\r\n"
    return f"{head}content-length: {len(data)}\r\n\r\n".encode() + data


async def _connected(port: int, buffer: int | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection; `buffer` is the size of what the system keeps of an answer that is not read."""
    opened = socket.socket()
    opened.setblocking(False)
    if buffer is not None:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    await asyncio.get_running_loop().sock_connect(opened, (HOST, port))
    return await asyncio.open_connection(sock=opened, limit=buffer or 65_536)


async def _read(reader: asyncio.StreamReader, slowly: tuple[int, float] | None = None) -> Reply:
    """An answer up to its end. Raises `Broken` where the connection ends before it."""
    size, pause_s = slowly or (65_536, 0.0)
    pieces: list[bytes] = []
    while piece := await reader.read(size):
        pieces.append(piece)
        if pause_s:
            await asyncio.sleep(pause_s)
    head, _, body = b"".join(pieces).partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    if not lines:
        raise Broken("the connection ends without an answer")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if "content-length" not in headers:
        body = _dechunked(body)
    elif len(body) != int(headers["content-length"]):
        raise Broken("the body ends too early")
    return Reply(int(status.split()[1]), headers, body)


def _dechunked(body: bytes) -> bytes:
    pieces: list[bytes] = []
    at = 0
    while True:
        end = body.find(b"\r\n", at)
        if end < 0:
            raise Broken(f"the connection ends in the middle of a stream: {body[-200:]!r}")
        size = int(body[at:end], 16)
        if not size:
            return b"".join(pieces)
        pieces.append(body[end + 2 : end + 2 + size])
        at = end + size + 4


def _events(body: bytes) -> Iterator[Any]:
    """The values of a stream's events, the end mark as its text."""
    for event in body.split(b"\n\n"):
        if (at := event.find(b"data: ")) >= 0:
            data = event[at + 6 :]
            yield "[DONE]" if data == b"[DONE]" else json.loads(data)
