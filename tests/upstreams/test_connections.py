"""Connections that are kept for the next request, and servers that close them."""

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from callwright.errors import UpstreamError
from callwright.gateway.config.config import ModelConfig
from callwright.upstreams.chat import ChatUpstream
from tests.conftest import Connected, Served
from tests.support.connection_server import Writer, http_answer
from tests.support.http_client import CHAT, Reply, ask, request
from tests.support.outputs import QUESTION
from tests.support.servers import HOST, ModelServer, chunk, sse
from tests.support.waiting import PATIENCE_S

KEPT = 10
ASKED: dict[str, Any] = {"model": "m", "messages": [QUESTION]}


def asked_at_once(gateway: str, what: str, number: int) -> list[Reply]:
    def ask(_: int) -> Reply:
        return request(gateway + CHAT, ASKED) if what == "answer" else request(f"{gateway}/v1/models", method="GET")

    with ThreadPoolExecutor(number) as clients:
        return list(clients.map(ask, range(number)))


def closing_on_the_second(how: bytes | None) -> Any:
    """Answers the first request of a connection; on the second it sends `how`, or nothing, and closes."""

    async def answering(_: int, number: int, writer: Writer) -> bool:
        if not number:
            writer.write(http_answer())
        elif how:
            writer.write(how)
        return not number

    return answering


@pytest.mark.parametrize("what", ["answer", "list of models"])
def test_of_ten_kept_connections_that_the_server_closes_at_once_no_request_fails(
    serve: Served, connected: Connected, what: str
) -> None:
    all_there = asyncio.Barrier(KEPT)

    async def answering(connection: int, number: int, writer: Writer) -> bool:
        if connection < KEPT:
            if number:
                return False
            await all_there.wait()  # so that there are ten connections, which are kept
        writer.write(http_answer() if what == "answer" else http_answer({"data": [{"id": "it"}]}))
        return True

    server = connected(answering)
    gateway = serve(ModelConfig(name="*", upstream=server.url))
    assert [reply.status for reply in asked_at_once(gateway, what, KEPT)] == [200] * KEPT
    for _ in range(3):
        assert [reply.status for reply in asked_at_once(gateway, what, 1)] == [200]
    assert [asked for asked in server.asked if asked[0] < KEPT and asked[1]]  # they were tried


@pytest.mark.parametrize("how", [None, http_answer(b"", 408)], ids=["without a word", "with a 408"])
def test_a_request_that_a_kept_connection_did_not_answer_is_sent_again_on_a_new_one(
    serve: Served, connected: Connected, how: bytes | None
) -> None:
    server = connected(closing_on_the_second(how))
    gateway = serve(ModelConfig(name="m", upstream=server.url))
    assert [request(gateway + CHAT, ASKED).status for _ in range(2)] == [200, 200]
    assert server.asked == [(0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize(
    "how", [b"HTTP/1.1 200 OK\r\ncontent-type: appl", http_answer()[:-5]], ids=["in its head", "in its body"]
)
def test_an_answer_that_has_begun_is_not_asked_for_again(serve: Served, connected: Connected, how: bytes) -> None:
    server = connected(closing_on_the_second(how))
    gateway = serve(ModelConfig(name="m", upstream=server.url))
    statuses = [request(gateway + CHAT, ASKED).status for _ in range(2)]
    assert statuses[0] == 200
    assert statuses[1] in (502, 503)
    assert server.asked == [(0, 0), (0, 1)]


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
# How an answer ends that is not all there, as HTTP has it; `%b` is what came of it.
BREAKS: dict[str, Callable[[bytes], bytes]] = {
    "in a chunk": lambda data: HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b" % (len(data) + 9, data),
    "without a last chunk": lambda data: HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(data), data),
    "before its length": lambda data: HEAD + b"content-length: %d\r\n\r\n%b" % (len(data) + 9, data),
    "in no chunk": lambda data: HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\nzz\r\n" % (len(data), data),
}
MANY = 3_000  # events: more than is read at once, so that the connection has ended before the last is read


def breaking_off(how: str, *events: Any) -> Any:
    data = BREAKS[how](b"".join(sse(*events)))

    async def answering(_: int, __: int, writer: Writer) -> bool:
        writer.write(data)
        return False

    return answering


@pytest.mark.parametrize("how", BREAKS)
def test_what_came_before_a_connection_broke_is_passed_on(serve: Served, connected: Connected, how: str) -> None:
    server = connected(breaking_off(how, *[chunk({"content": "x"})] * MANY))
    *chunks, last = request(serve(ModelConfig(name="m", upstream=server.url)) + CHAT, {**ASKED, "stream": True}).events
    assert last["error"]["code"] == "upstream_cut"
    assert "".join(each["choices"][0]["delta"].get("content") or "" for each in chunks) == "x" * MANY


@pytest.mark.parametrize("how", BREAKS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_behind_the_end_mark_a_connection_may_break(
    serve: Served, connected: Connected, how: str, stream: bool
) -> None:
    server = connected(breaking_off(how, *[chunk({"content": "x"})] * MANY, chunk({}, "stop"), "[DONE]"))
    answer = ask(serve(ModelConfig(name="m", upstream=server.url)), ASKED, stream=stream)
    assert (answer.message["content"], answer.finish_reason) == ("x" * MANY, "stop")


def test_a_whole_answer_in_chunks_that_are_none_is_refused(serve: Served, connected: Connected) -> None:
    async def answering(_: int, __: int, writer: Writer) -> bool:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head + b"%x\r\n%b\r\nzz\r\n" % (300_000, b" " * 300_000))
        return False

    gateway = serve(ModelConfig(name="m", upstream=connected(answering).url))
    assert request(gateway + CHAT, ASKED).error["code"] == "upstream_cut"


def test_a_request_on_a_new_connection_is_sent_once(serve: Served, connected: Connected) -> None:
    async def answering(*_: object) -> bool:
        return False

    server = connected(answering)
    gateway = serve(ModelConfig(name="m", upstream=server.url))
    assert request(gateway + CHAT, ASKED).status == 503
    assert server.asked == [(0, 0)]


def test_the_second_try_is_the_last(serve: Served, connected: Connected) -> None:
    async def answering(connection: int, number: int, writer: Writer) -> bool:
        if connection or number:
            return False
        writer.write(http_answer())
        return True

    server = connected(answering)
    gateway = serve(ModelConfig(name="m", upstream=server.url))
    assert [request(gateway + CHAT, ASKED).status for _ in range(2)] == [200, 503]
    assert server.asked == [(0, 0), (0, 1), (1, 0)]


def test_a_connection_that_a_server_says_it_closes_is_not_used_again(serve: Served, connected: Connected) -> None:
    async def answering(_: int, __: int, writer: Writer) -> bool:
        writer.write(
            http_answer(
                {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}, 200, "connection: close"
            )
        )
        return True

    server = connected(answering)
    gateway = serve(ModelConfig(name="m", upstream=server.url))
    assert [request(gateway + CHAT, ASKED).status for _ in range(3)] == [200] * 3
    assert server.asked == [(0, 0), (1, 0), (2, 0)]


def test_no_cookie_of_a_server_is_kept(connected: Connected) -> None:
    async def answering(_: int, __: int, writer: Writer) -> bool:
        writer.write(http_answer({"data": []}, 200, "set-cookie: session=7"))
        return True

    server = connected(answering)

    async def ask() -> None:
        upstream = ChatUpstream(server.url)
        try:
            assert [await upstream.models() for _ in range(2)] == [[], []]
        finally:
            await upstream.close()

    asyncio.run(ask())
    assert server.asked == [(0, 0), (0, 1)]
    assert not [head for head in server.heads if b"session" in head]


def test_a_server_that_is_down_is_asked_once() -> None:
    async def ask() -> None:
        tried: list[asyncio.StreamWriter] = []

        async def closing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tried.append(writer)
            writer.close()

        server = await asyncio.start_server(closing, HOST, 0)
        upstream = ChatUpstream(f"http://{HOST}:{server.sockets[0].getsockname()[1]}")
        try:
            with pytest.raises(UpstreamError, match="cannot be reached"):
                await upstream.models()
            assert len(tried) == 1
        finally:
            await upstream.close()
            server.close()
            await asyncio.gather(*(writer.wait_closed() for writer in tried), return_exceptions=True)

    asyncio.run(ask())


def answers_of_runs(upstream: ChatUpstream, runs: int) -> list[str]:
    """What each of so many event loops is answered, one after the other."""

    async def asked() -> str:
        return (await upstream.models())[0]

    return [asyncio.run(asked()) for _ in range(runs)]


def test_an_upstream_outlives_the_event_loops_that_use_it(model: ModelServer) -> None:
    """Each loop has connections of its own, and they are closed at its end: what stays open is a warning."""
    model.names = ("served",)
    upstream = ChatUpstream(model.url, {"authorization": "Bearer sk-mine"})
    assert answers_of_runs(upstream, 3) == ["served"] * 3
    gc.collect()


def test_event_loops_use_an_upstream_side_by_side(model: ModelServer) -> None:
    model.names = ("served",)
    upstream = ChatUpstream(model.url)
    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(answers_of_runs, upstream, 3) for _ in range(4)]
    assert [one.result() for one in found] == [["served"] * 3] * 4
    gc.collect()


def test_an_upstream_that_nobody_has_any_more_closes_its_connections(connected: Connected) -> None:
    """Who makes a model for each request keeps none of them; the loop goes on, and hears no complaint."""

    async def answering(_: int, __: int, writer: Writer) -> bool:
        writer.write(http_answer({"data": []}))
        return True

    server = connected(answering)

    async def ask() -> None:
        told: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        upstream = ChatUpstream(server.url)
        assert await upstream.models() == []
        assert server._running
        del upstream
        gc.collect()
        async with asyncio.timeout(PATIENCE_S):
            while server._running:  # until the server has seen the end of the connection
                await asyncio.sleep(0)
        assert not told

    asyncio.run(ask())
    gc.collect()
