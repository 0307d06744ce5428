"""Answers that break: wherever and however they do, and however their packets are cut, all that came is read, and the
same is told.
"""

import asyncio
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

import pytest

from callwright.conversation import Conversation
from callwright.errors import UpstreamError
from callwright.gateway.config.config import ModelConfig
from callwright.settings.bounds import Bounds
from callwright.upstreams.base import GenerationRequest, TextDelta
from callwright.upstreams.chat import ChatUpstream
from callwright.upstreams.http_client.connections import Timeouts
from tests.conftest import Connected, Served
from tests.support.connection_server import Reader, Writer, http_answer, read_request, reset
from tests.support.examples import some
from tests.support.http_client import CHAT, ask, request
from tests.support.outputs import QUESTION
from tests.support.servers import EVENTS, HOST, JSON, sse
from tests.support.waiting import PATIENCE_S

ASKED: Final[dict[str, Any]] = {"model": "m", "messages": [QUESTION]}
GENERATION: Final = GenerationRequest("m", Conversation(()), messages=[QUESTION])
SECRET: Final = "session=of-somebody"

Packets: TypeAlias = Sequence[bytes]


def said(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": finish}]}


DATA: Final = b"".join(sse(said("Oslo "), said("is “wet” "), said("today.", "stop"), said(""), "[DONE]"))
WHOLE: Final = json.dumps(
    {"choices": [{"message": {"content": "Oslo is “wet”."}, "finish_reason": "stop", "score": -1.5e2}]}
).encode()


def head(kind: str, *more: str) -> bytes:
    lines = ("HTTP/1.1 200 OK", f"content-type: {kind}", f"set-cookie: {SECRET}", *more)
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def in_chunks(kind: str, came: bytes, size: int = 40) -> bytes:
    pieces = (came[at : at + size] for at in range(0, len(came), size))
    return head(kind, "transfer-encoding: chunked") + b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in pieces)


# What a server sends whose answer breaks behind `came`, all of which can be read; and how it ends the connection.
BREAKS: Final[dict[str, tuple[Callable[[str, bytes], bytes], str]]] = {
    "closed between chunks": (in_chunks, "close"),
    "closed in a chunk": (lambda kind, came: in_chunks(kind, came) + b"ff\r\n", "close"),
    "reset between chunks": (in_chunks, "reset"),
    "reset, without a length": (lambda kind, came: head(kind, "connection: close") + came, "reset"),
    "a length that is too long": (lambda kind, came: head(kind, "content-length: 9999") + came, "close"),
    "no chunk": (lambda kind, came: in_chunks(kind, came) + b"zz\r\n" + came, "close"),
    "no chunk, and it stays open": (lambda kind, came: in_chunks(kind, came) + b"zz\r\n", "stay"),
    "no end of a chunk": (lambda kind, came: in_chunks(kind, came + b"\n")[:-2] + b"5\r\ndata:\r\n", "stay"),
}
# And those that look like an end: HTTP cannot tell that there should be more.
ENDS: Final[dict[str, tuple[Callable[[str, bytes], bytes], str]]] = {
    "closed, without a length": (lambda kind, came: head(kind, "connection: close") + came, "close"),
    "a last chunk": (lambda kind, came: in_chunks(kind, came) + b"0\r\n\r\n", "close"),
    "a length that is too short": (
        lambda kind, came: head(kind, f"content-length: {len(came)}", "connection: close") + came + DATA,
        "close",
    ),
}


def cuttings(sent: bytes, came: bytes) -> Iterator[Packets]:
    """Ways to cut what is sent: not at all, behind the head, before what is wrong, in the middle, and in many."""
    body = sent.index(b"\r\n\r\n") + 4
    wrong = sent.rindex(came) + len(came) if came and came in sent else len(sent) - 2
    for places in ((), (body,), (wrong,), (len(sent) // 2,), tuple(range(9, len(sent), 31))):
        yield [sent[begin:end] for begin, end in zip((0, *places), (*places, len(sent)), strict=True)]


class Broken:
    """A server in the event loop of its client: sends what it is given, packet by packet, and ends the connection."""

    def __init__(self) -> None:
        self.packets: Packets = ()
        self.how = "close"
        self.asked = 0
        self.url = ""
        self.running: set[asyncio.Task[None]] = set()

    def connected(self, reader: Reader, writer: Writer) -> None:
        self.running.add(asyncio.create_task(self.answer(reader, writer)))

    async def answer(self, reader: Reader, writer: Writer) -> None:
        with suppress(ConnectionError):  # the client has left
            while await read_request(reader):
                self.asked += 1
                for packet in self.packets:
                    writer.write(packet)
                    await writer.drain()
                    for _ in range(3):  # until the client has read it: both have one loop
                        await asyncio.sleep(0)
                if self.how == "reset":
                    reset(writer)
                if self.how == "stay":
                    await reader.read()
                if self.how != "keep":
                    break
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def broken(kind: Callable[..., ChatUpstream] = ChatUpstream, **how: Any) -> Any:
    """A server, and an upstream that asks it."""
    plays = Broken()
    server = await asyncio.start_server(plays.connected, HOST, 0)
    plays.url = f"http://{HOST}:{server.sockets[0].getsockname()[1]}/v1"
    upstream = kind(plays.url, **how)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield plays, upstream
    finally:
        await upstream.close()
        server.close()
        await asyncio.gather(*plays.running)


async def read(upstream: ChatUpstream) -> tuple[str, str, str]:
    """The text of an answer; the fault that ended it, and its words."""
    text = ""
    try:
        async with aclosing(upstream.stream(GENERATION)) as batches:
            async for batch in batches:
                text += "".join(delta.text for delta in batch if isinstance(delta, TextDelta))
    except UpstreamError as error:
        return text, error.fault, str(error)
    return text, "", ""


def expected(came: bytes, *, ends: bool) -> tuple[str, str]:
    """The text and the fault, by the events that are there, with or without their empty line."""
    text, stopped, half = "", False, False
    for data in (line[6:] for line in came.split(b"\n") if line.startswith(b"data: ")):
        if data == b"[DONE]":
            return text, ""
        try:
            (choice,) = json.loads(data)["choices"]
        except ValueError:
            half = not b"[DONE]".startswith(data)
        else:
            text += choice["delta"]["content"]
            stopped = stopped or choice["finish_reason"] == "stop"
    return text, "" if ends and stopped and not half else "cut"


@pytest.mark.parametrize("name", [*BREAKS, *ENDS])
def test_a_stream_that_breaks_anywhere_is_read_so_far_and_told_alike_in_every_cut(name: str) -> None:
    sends, how = {**BREAKS, **ENDS}[name]

    async def tried() -> None:
        async with broken(timeouts=Timeouts(idle_s=PATIENCE_S)) as (server, upstream):
            server.how = how
            for at in some(range(1, len(DATA) + 1), first=len(name)):
                came = DATA[:at]
                if name == "no end of a chunk":
                    came = came.removesuffix(b"\n")  # which is there, where the end of the chunk should be
                told = set()
                for server.packets in cuttings(sends(EVENTS, came), came):
                    text, fault, words = await read(upstream)
                    assert (text, fault) == expected(came, ends=name in ENDS), (came, server.packets)
                    told.add(words)
                assert len(told) == 1, (came, told)

    asyncio.run(tried())


@pytest.mark.parametrize("name", [*BREAKS, *ENDS])
def test_and_an_answer_that_is_not_streamed(name: str) -> None:
    sends, how = {**BREAKS, **ENDS}[name]

    async def tried() -> None:
        async with broken(timeouts=Timeouts(idle_s=PATIENCE_S)) as (server, upstream):
            server.how = how
            for at in (*some(range(1, len(WHOLE)), first=len(name)), len(WHOLE)):
                is_there = name in ENDS and at == len(WHOLE)
                for server.packets in cuttings(sends(JSON, WHOLE[:at]), WHOLE[:at]):
                    text, fault, _ = await read(upstream)
                    assert (text, fault) == (("Oslo is “wet”.", "") if is_there else ("", "cut")), server.packets

    asyncio.run(tried())


# --- heads ---


@pytest.mark.parametrize("is_kept", [False, True], ids=["new", "kept"])
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_head_that_breaks_anywhere_is_a_cut_and_is_neither_told_nor_asked_for_again(how: str, is_kept: bool) -> None:
    sent = b"HTTP/1.1 100 Continue\r\n\r\n" + head(EVENTS, "transfer-encoding: chunked")

    async def tried() -> None:
        async with broken() as (server, upstream):
            for at in range(1, len(sent) + 1, 3):
                if is_kept:
                    server.packets, server.how = [http_answer()], "keep"
                    assert (await read(upstream))[0] == "Hi"
                before = server.asked
                server.packets, server.how = [sent[:at]], how
                text, fault, words = await read(upstream)
                assert (text, fault, server.asked - before) == ("", "cut", 1), sent[:at]
                assert "closed the connection in the middle of its answer" in words

    asyncio.run(tried())


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 2x %b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx-echo: %b\r\n",
        b"HTTP/1.1 200 OK\r\nx-echo: %b\x00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx echo: %b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nset-cookie: %b%b\r\n\r\n" % (b"%b", b"x" * 9_000),
        b"%b\r\n\r\n",
    ],
)
def test_nothing_of_a_head_is_told(sent: bytes) -> None:
    async def tried() -> None:
        async with broken() as (server, upstream):
            server.packets = [sent.replace(b"%b", SECRET.encode(), 1)]
            _, fault, words = await read(upstream)
            assert fault in ("cut", "protocol")
            assert SECRET[:7] not in words
            assert "Message" not in words

    asyncio.run(tried())


@pytest.mark.parametrize(("protocol", "wanted"), [("HTTP/1.0", ""), ("RTSP/1.0", "protocol"), ("ICE/1.0", "protocol")])
def test_an_answer_in_another_protocol_is_none(protocol: str, wanted: str) -> None:
    event = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    head = f"{protocol} 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(event)}\r\n\r\n"

    async def tried() -> None:
        async with broken() as (server, upstream):
            server.packets = [head.encode() + event]
            _, fault, _ = await read(upstream)
            assert fault == wanted

    asyncio.run(tried())


# --- refusals ---

LIMITED: Final = b'{"error": {"message": "Slow down."}}'


@pytest.mark.parametrize("cut", [0, 3])
@pytest.mark.parametrize("status", [400, 429])
def test_a_status_is_told_though_its_body_breaks_off(
    serve: Served, connected: Connected, status: int, cut: int
) -> None:
    body = LIMITED[: len(LIMITED) - cut]

    async def answering(_: int, __: int, writer: Writer) -> bool:
        lines = f"HTTP/1.1 {status} NO\r\ncontent-type: {JSON}\r\nretry-after: 7\r\ncontent-length: 500\r\n\r\n"
        writer.write(lines.encode() + body)
        return False

    gateway = serve(ModelConfig(name="m", upstream=connected(answering).url, retries=0))
    reply = request(gateway + CHAT, ASKED)
    assert reply.status == status
    assert "Slow down" in reply.error["message"]
    assert reply.headers.get("retry-after") == (None if status == 400 else "7")


def test_what_cannot_be_decompressed_is_no_connection_that_broke() -> None:
    packing = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    good = packing.compress(DATA[:150]) + packing.flush(zlib.Z_FULL_FLUSH)

    async def tried() -> None:
        async with broken() as (server, upstream):
            for body in (b"data: {}\n\n", good + b"\xff" * 40):
                for framed in (
                    head(EVENTS, "content-encoding: gzip", f"content-length: {len(body)}") + body,
                    head(EVENTS, "content-encoding: gzip", "connection: close") + body,
                    in_chunks(EVENTS, body).replace(b"set-cookie", b"content-encoding: gzip\r\nset-cookie"),
                ):
                    for server.packets in cuttings(framed, body[-40:]):
                        _, fault, words = await read(upstream)
                        assert fault == "protocol"
                        assert "not compressed as its head says" in words

    asyncio.run(tried())


def test_another_server_answers_for_one_whose_first_event_is_cut(serve: Served, connected: Connected) -> None:
    """Of a stream without a length no more is seen than that half an event is there."""

    async def cutting(_: int, __: int, writer: Writer) -> bool:
        writer.write(head(EVENTS, "connection: close") + DATA[:20])
        return False

    async def answering(_: int, __: int, writer: Writer) -> bool:
        writer.write(http_answer())
        return True

    servers = [connected(cutting), connected(answering)]
    gateway = serve(ModelConfig(name="m", upstream=[server.url for server in servers], retries=0, balance="least"))
    answers = [ask(gateway, ASKED, stream=True).message["content"] for _ in range(3)]
    assert answers == ["Hi"] * 3
    assert servers[0].asked


# --- bounds ---


def test_what_comes_before_the_bound_of_an_answer_is_read_in_every_cut() -> None:
    async def tried() -> None:
        for most in range(1, len(DATA) + 1, 7):
            async with broken(bounds=Bounds(max_answer_bytes=most)) as (server, upstream):
                for server.packets in cuttings(in_chunks(EVENTS, DATA + b": more\n" * 9), DATA):
                    text, fault, words = await read(upstream)
                    due, cut = expected(DATA[:most], ends=False)
                    assert (text, fault) == (due, "protocol" if cut else "")
                    assert not cut or f"an answer of more than {most:,} bytes" in words

    asyncio.run(tried())
