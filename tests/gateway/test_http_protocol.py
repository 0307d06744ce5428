"""What the protocol for HTTP makes of the bytes of clients, over sockets and in both event loops."""

import asyncio
import gc
import logging
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from itertools import chain
from random import Random
from typing import Any, Final

import pytest

from callwright.gateway.http import AsWritten, EventStream
from callwright.settings import bounds
from tests.support.byte_server import TURNS, Loop, each_loop, run, seen, turns
from tests.support.connection_server import reset
from tests.support.protocol_server import PIECES, Answer, Door, answers, begun, opened

Tried = Callable[[Door], Awaitable[None]]
CLOSE: Final = "connection: close"


def asking(line: str, *headers: str, body: bytes = b"", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{line} HTTP/{version}", "host: a", *headers, "", ""]).encode() + body


def posting(path: str, body: bytes, *headers: str) -> bytes:
    return asking(f"POST {path}", f"content-length: {len(body)}", *headers, body=body)


def told(path: str, body: str = "", method: str = "GET") -> Answer:
    return 200, {"method": method, "path": path, "body": body, "trailer": False}


def through(loop: Loop, tried: Tried, most: int = 50) -> None:
    async def opens() -> None:
        async with opened(most) as door:
            await tried(door)

    run(loop, opens)


# --- requests that are sent ahead ---

CHUNKED: Final = b"2;x=y\r\n\r\n\r\n3\r\nabc\r\n0\r\ntrailer-of-a-body: x\r\n\r\n"
AHEAD: Final[dict[str, list[tuple[bytes, Answer]]]] = {
    "heads": [(asking(f"GET /{n}"), told(f"/{n}")) for n in range(3)],
    "bodies": [
        (posting("/a", b"\r\n\r\n"), told("/a", "\r\n\r\n", "POST")),
        (asking("POST /b", "transfer-encoding: chunked", body=CHUNKED), told("/b", "\r\nabc", "POST")),
        (posting("/c", b"x"), told("/c", "x", "POST")),
    ],
    "none": [(asking("GET /none"), (204, b"")), (asking("GET /stream"), (200, b"".join(PIECES)))],
    "unread": [
        (posting("/early", b"abc\r\n"), (401, "early")),
        (asking("POST /early", "transfer-encoding: chunked", body=CHUNKED), (401, "early")),
    ],
    "upgrades": [
        (posting("/a", b"GET /", "connection: Upgrade, HTTP2-Settings", "upgrade: h2c"), told("/a", "GET /", "POST")),
        (
            asking("PUT /b", "connection: upgrade", "upgrade: h2c", "transfer-encoding: chunked", body=CHUNKED),
            told("/b", "\r\nabc", "PUT"),
        ),
    ],
}


@each_loop
@pytest.mark.parametrize("kind", AHEAD)
def test_requests_sent_ahead_are_answered_in_order_wherever_they_are_cut(loop: Loop, kind: str) -> None:
    last = (asking("GET /last", CLOSE), told("/last"))
    sent, expected = zip(*AHEAD[kind], last, strict=True)
    data = b"".join(sent)

    async def tried(door: Door) -> None:
        for at in range(1, len(data)):
            assert answers(await door.says(data[:at], data[at:])) == list(expected), data[:at]

    through(loop, tried)


@each_loop
@pytest.mark.parametrize("rest", [b"\r\n", b"abc\r\n", b"\r\n\r\n"])
def test_what_comes_while_a_request_is_answered_is_no_less_than_it_was(loop: Loop, rest: bytes) -> None:
    ahead = posting("/b", b"12" + rest, CLOSE)

    async def tried(door: Door) -> None:
        for cut in range(len(ahead) - len(rest), len(ahead) + 1):
            door.gate.clear()
            reader, writer = await begun(door, asking("GET /gate") + ahead[:cut])
            for byte in ahead[cut:]:
                writer.write(bytes([byte]))
                await turns(TURNS)
            door.gate.set()
            assert answers(await reader.read()) == [(200, "gate"), told("/b", "12" + rest.decode(), "POST")]
            writer.close()

    through(loop, tried)


@each_loop
@pytest.mark.parametrize("number", [2, 17, 40])
def test_of_many_each_is_answered_once_and_the_last_answer_says_that_it_is(loop: Loop, number: int) -> None:
    async def tried(door: Door) -> None:
        came = await door.says(b"".join(asking(f"GET /{n}") for n in range(number)) + asking("GET /last", CLOSE))
        assert answers(came) == [told(f"/{n}") for n in range(number)] + [told("/last")]
        assert came.count(b"connection: close") == 1

    through(loop, tried)


@each_loop
def test_an_upgrade_asked_for_again_and_again_is_no_trouble(loop: Loop) -> None:
    async def tried(door: Door) -> None:
        came = await door.says(asking("GET /", "upgrade:h", "connection:upgrade") * 400 + asking("GET /", CLOSE))
        assert answers(came) == [told("/")] * 401

    through(loop, tried)


REFUSED: Final[Answer] = (400, "refused")


@each_loop
def test_a_connection_with_a_request_under_way_is_not_closed_for_another_one(loop: Loop) -> None:
    sent = [asking("GET /a"), asking("GET /gate"), asking("GET /b", CLOSE)]

    async def tried(door: Door) -> None:
        for first in (0, 1):  # the request under way is the second one, or the first
            door.gate.clear()
            reader, writer = await begun(door, b"".join(sent[first:]))
            ((status, body),) = answers(await door.says(b""))
            assert (status, body["error"]["code"]) == (429, "rate_limit_exceeded")
            door.gate.set()
            assert answers(await reader.read())[-2:] == [(200, "gate"), told("/b")]
            writer.close()

    through(loop, tried, most=1)


ENDS: Final[dict[str, tuple[bytes, list[Answer]]]] = {
    "a close": (asking("GET /a", CLOSE), [told("/a")]),
    "an old version": (asking("GET /a", version="1.0"), [told("/a")]),
    "an old version that would stay": (asking("GET /a", "connection: keep-alive", version="1.0"), [told("/a")]),
    "no HTTP": (b"what\r\n\r\n", [REFUSED]),
    "a target that is none": (asking("GET http://[/"), [REFUSED]),
}


@each_loop
@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_answered_behind_an_end(loop: Loop, end: str) -> None:
    sent, expected = ENDS[end]

    async def tried(door: Door) -> None:
        came = answers(await door.says(asking("GET /1") + sent + asking("GET /2")))
        assert [REFUSED if answer[0] == 400 else answer for answer in came] == [told("/1"), *expected]

    through(loop, tried)


@each_loop
def test_an_answer_to_head_has_no_body(loop: Loop) -> None:
    paths = ("/a", "/stream", "/none", "/early")

    async def tried(door: Door) -> None:
        sent = b"".join(asking(f"HEAD {path}") for path in paths)
        came = await door.says(sent + asking("GET /a", CLOSE))
        expected: list[Answer] = [(200, b""), (200, b""), (204, b""), (401, b""), told("/a")]
        assert answers(came, lambda n: "HEAD" if n < len(paths) else "GET") == expected
        assert b"transfer-encoding" not in came

    through(loop, tried)


# --- what a request says ---

TARGETS: Final[dict[bytes, str]] = {
    b"/a": "/a",
    b"//x": "//x",
    b"/a?b#c": "/a",
    b"/%ff%41": "/\ufffdA",
    b"http://a/b?c": "/b",
    b"http://a": "/",
    b"http://a?b": "/",
    b"*": "*",
}


@each_loop
@pytest.mark.parametrize("target", TARGETS)
def test_targets_have_a_path(loop: Loop, target: bytes) -> None:
    async def tried(door: Door) -> None:
        came = await door.says(asking("OPTIONS *", CLOSE).replace(b"*", target, 1))
        assert answers(came) == [told(TARGETS[target], method="OPTIONS")]

    through(loop, tried)


NO_REQUESTS: Final = [
    *(b"GET /\0", b"GET /\xc3\xa9", b"GET /a b", b"GET", b"GET http://", b"CONNECT a:1", b"PRI * HTTP/2.0"),
    b"CONNECT a:1 HTTP/1.1\r\nconnection: upgrade\r\nupgrade: x\r\nx:",
]


@each_loop
@pytest.mark.parametrize("line", NO_REQUESTS)
def test_what_is_no_request_is_told_so(loop: Loop, line: bytes) -> None:
    async def tried(door: Door) -> None:
        ((status, body),) = answers(await door.says(line + b" HTTP/1.1\r\nhost: a\r\n\r\n"))
        assert (status, body["error"]["code"]) == (400, "invalid_http_request")

    through(loop, tried)


@each_loop
def test_a_client_of_an_old_version_can_read_a_stream(loop: Loop) -> None:
    async def tried(door: Door) -> None:
        for headers in ([], ["connection: keep-alive"]):
            head, _, body = (await door.says(asking("GET /stream", *headers, version="1.0"))).partition(b"\r\n\r\n")
            assert body == b"".join(PIECES)
            assert b"transfer-encoding" not in head
            assert b"connection: close" in head

    through(loop, tried)


EXPECT: Final = "expect: 100-continue"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


@each_loop
@pytest.mark.parametrize("at_once", [True, False])
def test_a_client_that_waits_is_told_to_go_on_once(loop: Loop, at_once: bool) -> None:
    sent = posting("/a", b"hi", EXPECT, CLOSE)

    async def tried(door: Door) -> None:
        came = await door.says(*([sent] if at_once else [sent[:-2], sent[-2:]]))
        assert came.startswith(CONTINUE)
        assert answers(came.removeprefix(CONTINUE)) == [told("/a", "hi", "POST")]

    through(loop, tried)


@each_loop
def test_where_it_is_not_told_to_go_on_what_comes_next_is_not_guessed(loop: Loop) -> None:
    async def tried(door: Door) -> None:
        came = await door.says(posting("/early", b"hi", EXPECT)[:-2], asking("GET /a"))
        assert answers(came) == [(401, "early")]
        assert b"connection: close" in came

    through(loop, tried)


@each_loop
def test_a_body_that_is_broken_at_once_is_refused_once(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    async def tried(door: Door) -> None:
        broken = asking("POST /a", EXPECT, "transfer-encoding: chunked", body=b"what\r\n")
        ((status, body),) = answers(await door.says(broken))
        assert (status, body["error"]["code"]) == (400, "invalid_http_request")

    with caplog.at_level(logging.ERROR, logger="callwright"):
        through(loop, tried)
    assert not [each for each in caplog.records if each.exc_info and each.exc_info[0] is RuntimeError]


@each_loop
@pytest.mark.parametrize("how", ["read", "unread"])
def test_who_still_sends_a_body_reads_the_answer_that_came_before_it(loop: Loop, how: str) -> None:
    size = 700_000

    async def tried(door: Door) -> None:
        reader, writer = await door.connect()
        writer.write(asking("POST /early", f"content-length: {size}", CLOSE))
        await turns(TURNS)
        if how == "read":
            assert answers(await reader.read()) == [(401, "early")]
        writer.write(b"x" * size)
        await writer.drain()
        if how == "unread":
            assert answers(await reader.read()) == [(401, "early")]
        writer.close()
        await writer.wait_closed()

    through(loop, tried)


# --- applications that fail ---

FAILS: Final[dict[str, bytes]] = {
    "/fails": b"HTTP/1.1 500",
    "/cancelled": b"HTTP/1.1 500",
    "/silent": b"HTTP/1.1 500",
    "/long": b"HTTP/1.1 500",
    "/short": b"HTTP/1.1 500",
    "/split": b"HTTP/1.1 500",
    "/fails%20later": b"HTTP/1.1 200",
}


@each_loop
@pytest.mark.parametrize("path", FAILS)
@pytest.mark.parametrize("behind", [b"", asking("GET /behind")], ids=["alone", "another behind"])
def test_an_application_that_fails_says_so_and_ends_the_connection(loop: Loop, path: str, behind: bytes) -> None:
    async def tried(door: Door) -> None:
        came = await door.says(asking(f"GET {path}") + behind)
        assert came.startswith(FAILS[path])
        assert came.count(b"HTTP/1.1 ") == 1
        assert b"b: c" not in came
        assert not came.endswith(b"0\r\n\r\n")

    through(loop, tried)


# --- clients that leave, or wait ---


def closes(writer: asyncio.StreamWriter) -> None:
    writer.close()


def half_closes(writer: asyncio.StreamWriter) -> None:
    writer.write_eof()


BODY: Final = posting("/a", b"x" * 300)
STAGES: Final[dict[str, bytes]] = {
    "nothing": b"",
    "half a head": BODY[:20],
    "half a body": BODY[:-100],
    "half a chunk": asking("POST /a", "transfer-encoding: chunked", body=b"ff\r\nabc"),
    "a request": asking("GET /left"),
    "a request and half of one": asking("GET /left") + BODY[:-100],
    "two requests": asking("GET /left") * 2,
    "an answer": asking("GET /a"),
    "an early answer": posting("/early", b"x" * 10)[:-5],
    "a stream": asking("GET /much"),
    "a refusal": b"what\r\n\r\n",
    "a websocket": asking("GET /a", "connection: upgrade", "upgrade: websocket"),
}


@each_loop
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("leaves", [closes, half_closes, reset])
def test_nothing_is_left_of_a_client_that_leaves(loop: Loop, stage: str, leaves: Callable[[Any], None]) -> None:
    async def tried(door: Door) -> None:
        _, writer = await door.connect()
        writer.write(STAGES[stage])
        await turns(2 * TURNS)
        leaves(writer)
        await turns(TURNS)
        writer.transport.abort()
        await seen(door.is_empty)
        assert set(door.told) <= {"http.disconnect"}

    through(loop, tried)


@each_loop
@pytest.mark.parametrize(
    "sent",
    [asking("GET /a"), asking("GET /silent"), BODY[:-100], b"what\r\n\r\n", asking("GET /left") * 3],
    ids=["answered", "failed", "half", "refused", "ahead"],
)
def test_a_connection_that_is_over_does_not_wait_for_the_garbage_collector(loop: Loop, sent: bytes) -> None:
    async def tried(door: Door) -> None:
        gc.collect()
        gc.disable()
        try:
            _, writer = await door.connect()
            writer.write(sent)
            await turns(2 * TURNS)
            writer.transport.abort()
            await seen(door.is_empty)
            await turns(TURNS)
            left = weakref.ref(door.made.pop())
            assert left() is None
        finally:
            gc.enable()

    through(loop, tried)


IDLE: Final = ["answered", "an early answer", "nothing", "half a head"]
UNDER_WAY: Final = ["a request", "half a body", "two requests"]
SENT: Final = {**STAGES, "answered": asking("GET /a")}


@each_loop
@pytest.mark.parametrize("stage", [*IDLE, *UNDER_WAY])
def test_who_waits_for_too_long_is_closed_unless_it_is_answered(loop: Loop, stage: str) -> None:
    async def tried(door: Door) -> None:
        _, writer = await door.connect()
        writer.write(SENT[stage])
        await turns(2 * TURNS)
        (one,) = door.made
        limit_s, kept_s = 10.0, float(one.config.timeout_keep_alive)
        bound_s = kept_s if stage == "answered" else limit_s
        for now_s in (100.0, 100.0 + bound_s):
            one.sweep(now_s, limit_s)
            assert not one.transport.is_closing()
        one.sweep(100.1 + bound_s, limit_s)
        assert one.transport.is_closing() is (stage in IDLE)
        writer.transport.abort()

    through(loop, tried)


@each_loop
def test_a_client_that_reads_nothing_is_waited_for_and_reads_all_later(loop: Loop) -> None:
    async def tried(door: Door) -> None:
        reader, writer = await begun(door, asking("GET /much", CLOSE))
        (one,) = door.made
        await seen(lambda: one.flow.write_paused)
        held = one.transport.get_write_buffer_size()
        await turns(TURNS)
        assert one.transport.get_write_buffer_size() == held
        door.gate.set()
        ((status, body),) = answers(await reader.read())
        assert (status, body.strip(b"x")) == (200, b"")
        writer.close()

    through(loop, tried)


@each_loop
def test_many_connections_leave_nothing(loop: Loop) -> None:
    sents = list(STAGES.values())

    async def tried(door: Door) -> None:
        writers = []
        for number in range(600):
            _, writer = await door.connect()
            writer.write(sents[number % len(sents)])
            writers.append(writer)
        await turns(TURNS)
        assert len(door.state.connections) <= 50
        assert len(door.server_state.connections) <= 600
        for writer in writers:
            writer.transport.abort()
        await seen(door.is_empty)

    through(loop, tried)


# --- the end of the server ---


@each_loop
def test_at_the_end_of_the_server_idle_connections_close_and_answers_are_the_last(loop: Loop) -> None:
    async def tried(door: Door) -> None:
        idle, idle_writer = await door.connect()
        kept, kept_writer = await door.connect()
        kept_writer.write(asking("GET /a"))
        await kept.readuntil(b"}")
        busy, busy_writer = await begun(door, asking("GET /gate") + asking("GET /behind"))
        for one in [*door.server_state.connections]:
            one.shutdown()
        assert (await idle.read(), await kept.read()) == (b"", b"")
        door.gate.set()
        came = await busy.read()
        assert answers(came) == [(200, "gate")]
        assert b"connection: close" in came
        for writer in (idle_writer, kept_writer, busy_writer):
            writer.close()

    through(loop, tried)


# --- heartbeats ---


@each_loop
@pytest.mark.parametrize("seed", range(40))
def test_heartbeats_stand_between_events_and_none_behind_the_last(
    loop: Loop, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "HEARTBEAT_S", 0)
    random = Random(seed)
    batches = [[b"event;"] * random.randint(1, 3) for _ in range(random.randint(0, 6))]
    sent: list[tuple[bytes, bool]] = []
    is_sending = False

    async def events() -> AsyncGenerator[list[bytes], None]:
        for batch in batches:
            await turns(random.choice((0, 1, 2, 5, 9)))
            yield batch
        await turns(random.randint(0, 9))

    async def send(message: Any) -> None:
        nonlocal is_sending
        assert not is_sending
        is_sending = True
        await turns(random.choice((0, 0, 1, 2, 5)))
        if message["type"] == "http.response.body":
            sent.append((message["body"], message.get("more_body", False)))
        is_sending = False

    async def tried() -> None:
        stream = EventStream(events(), AsWritten(lambda: b"beat;"))
        receive = asyncio.Event().wait
        answering = asyncio.ensure_future(stream({"type": "http"}, receive, send))  # type: ignore[arg-type]
        await (turns(random.randint(0, 30)) if seed % 4 == 0 else asyncio.wait({answering}))
        was_left = answering.cancel()
        await asyncio.wait({answering})
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert [more for _, more in sent[:-1]].count(False) == 0
        if not was_left:
            assert sent[-1] == (b"", False)
            assert b"".join(body for body, _ in sent).replace(b"beat;", b"") == b"".join(chain(*batches))

    run(loop, tried)
