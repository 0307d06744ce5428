"""The HTTP client over time: slow readers, silent servers, connections that are kept, closed and left, and TLS."""

import asyncio
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from shutil import which
from typing import Final

import pytest

from callwright.upstreams.faults import no_connection
from callwright.upstreams.http_client import connections as connections_module
from callwright.upstreams.http_client.errors import (
    ClosedError,
    ConnectTimeoutError,
    DisconnectedError,
    NoConnectionError,
    SilentError,
    TooSlowError,
)
from tests.support.byte_server import (
    HI,
    LARGE,
    MANY_TURNS,
    OK,
    SHORT_S,
    TURNS,
    Loop,
    Steps,
    asked,
    connections,
    each_loop,
    in_pieces,
    number_open,
    run,
    seen,
    served,
    turns,
    with_lines,
)
from tests.support.servers import HOST
from tests.support.waiting import PATIENCE_S

CHUNKS: Final = OK + b"transfer-encoding: chunked\r\n\r\n"

# --- readers that are slow ---


@each_loop
@pytest.mark.parametrize("framing", ["length", "chunks", "end"])
def test_what_is_read_slowly_comes_whole_and_the_next_answers_too(loop: Loop, framing: str) -> None:
    random = Random(7)
    body = random.randbytes(1_500_000)
    pieces = [body[at : at + 70_001] for at in range(0, len(body), 70_001)]
    framings: dict[str, Steps] = {
        "length": [OK + b"content-length: %d\r\n\r\n%b" % (len(body), body)],
        "chunks": [CHUNKS, *(b"%x\r\n%b\r\n" % (len(one), one) for one in pieces), b"0\r\n\r\n"],
        "end": [OK + b"\r\n" + body, "close"],
    }

    async def tried() -> None:
        async with served(framings[framing]) as server, connections() as these:
            for number in range(6):
                response = await these.send(
                    "GET", server.url, None, None, SHORT_S if number == 3 else PATIENCE_S, wants_all=number == 0
                )
                read = bytearray()
                async with response:
                    if number == 3:
                        await asyncio.sleep(2 * SHORT_S)  # longer than the server may be silent
                    async for piece in response:
                        assert len(piece) <= 131_072 + 262_144
                        read += piece
                        await turns(random.randrange(5))
                assert (bytes(read) == body, response.broken) == (True, None)
            assert server.connections == (6 if framing == "end" else 1)

    run(loop, tried)


# --- time ---


@each_loop
@pytest.mark.parametrize(
    ("steps", "wants_all", "told"),
    [
        (["stay"], False, SilentError),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", "stay"], False, SilentError),
        ([OK, b"x: ", "bytes"], False, TooSlowError),
        ([HI[:-1], "stay"], False, SilentError),
        ([HI[:-1], "stay"], True, SilentError),
        ([OK, b"\r\n", "bytes"], True, TooSlowError),
        (
            [with_lines(b"content-type: text/event-stream").replace(b": 2", b": 20"), "bytes"],
            True,
            (200, b"hi" + b"x" * 18),
        ),
    ],
)
def test_a_server_may_be_silent_for_so_long(loop: Loop, steps: Steps, wants_all: bool, told: object) -> None:
    async def tried() -> None:
        async with served(steps) as server, connections(2 * SHORT_S) as these:
            assert await asked(these, server.url, None, SHORT_S, wants_all=wants_all) == told
            await seen(lambda: not number_open(these))

    run(loop, tried)


@each_loop
@pytest.mark.parametrize(
    ("rest", "is_kept"),
    [
        ([b"0\r\n\r\n"], True),
        ([TURNS, b"100000\r\n", LARGE[:0x100000], b"\r\n0\r\n\r\n"], True),
        (["stay"], False),
        (["chunks"], False),
        ([b"zz\r\n", "stay"], False),
        (["reset"], False),
    ],
    ids=["its end", "much, then its end", "nothing", "without end", "no chunk", "a reset"],
)
def test_an_answer_that_is_left_may_end_in_time(loop: Loop, rest: Steps, is_kept: bool) -> None:
    async def tried() -> None:
        async with served([CHUNKS, b"2\r\nhi\r\n", TURNS, *rest]) as server, connections() as these:
            for number in (1, 2):
                async with await these.send("GET", server.url, None, None, PATIENCE_S) as response:
                    assert await anext(response) == b"hi"
                    response.leave(PATIENCE_S if is_kept else SHORT_S)
                await seen(lambda: response.is_over)
                await seen(lambda: number_open(these) == is_kept)
                assert server.connections == (1 if is_kept else number)

    run(loop, tried)


# --- connections ---


@each_loop
@pytest.mark.parametrize("how", ["close", "reset", "half"])
def test_a_connection_that_ends_while_it_is_idle_is_not_used(loop: Loop, how: str) -> None:
    async def tried() -> None:
        async with served([HI, how, "stay"]) as server, connections() as these:
            for number in range(1, 4):
                assert await asked(these, server.url) == (200, b"hi")
                await seen(lambda: not number_open(these))
                assert server.connections == number

    run(loop, tried)


@each_loop
def test_connections_that_nobody_uses_are_closed(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections_module, "_KEPT_S", SHORT_S)

    async def tried() -> None:
        async with served([HI]) as server, connections() as these:
            assert await asyncio.gather(*(asked(these, server.url) for _ in range(20))) == [(200, b"hi")] * 20
            await seen(lambda: not number_open(these))
            await seen(lambda: server.ended == 20)

    run(loop, tried)


@each_loop
def test_each_connection_is_closed_at_its_own_time(loop: Loop) -> None:
    async def tried() -> None:
        async with served([HI]) as server, connections() as these:
            await asyncio.gather(*(asked(these, server.url) for _ in range(2)))
            (mine,) = these._by_loop.values()
            ((old, young),) = mine._free.values()
            old.since -= connections_module._KEPT_S
            young.since -= connections_module._KEPT_S / 2
            mine._close_old()
            assert (old.is_open, young.is_open) == (False, True)
            assert mine._sweep is not None
            assert mine._sweep.when() == pytest.approx(young.since + connections_module._KEPT_S, abs=1.0)

    run(loop, tried)


@each_loop
@pytest.mark.parametrize("steps", [["stay"], [HI[:-1], "stay"]], ids=["before its head", "in its body"])
@pytest.mark.parametrize("when", [0, 1, 3, TURNS])
def test_a_request_ends_when_the_connections_are_closed(loop: Loop, steps: Steps, when: int) -> None:
    async def tried() -> None:
        async with served(steps) as server, connections() as these:
            asking = asyncio.create_task(asked(these, server.url))
            await turns(1 + when)
            mine = list(these._by_loop.values())
            await these.close()
            assert await asking == ClosedError
            assert not [one for one in mine if one._open]
            assert await asked(these, f"http://{HOST}:1/") == NoConnectionError  # they can be used again

    run(loop, tried)


@each_loop
@pytest.mark.parametrize("body", [None, LARGE[:1_000_000]], ids=["small", "large"])
def test_a_request_can_be_cancelled_at_every_step(loop: Loop, body: bytes | None) -> None:
    async def tried() -> None:
        outcomes = set()
        async with served(in_pieces(HI, 19)) as server:
            for step in range(40):
                for is_kept in (False, True):
                    async with connections() as these:
                        if is_kept:
                            await asked(these, server.url)
                        asking = asyncio.create_task(asked(these, server.url, body))
                        await turns(step)
                        asking.cancel()
                        with suppress(asyncio.CancelledError):
                            await asking
                        outcomes.add(asking.cancelled())
                        assert await asked(these, server.url) == (200, b"hi")
        assert True in outcomes

    run(loop, tried)


# --- TLS ---


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with keys and certificates that sign themselves."""
    if which("openssl") is None:
        pytest.skip("makes its certificates with openssl")
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=PATIENCE_S)

    for name, names, days in (
        ("good", "DNS:localhost,IP:127.0.0.1,IP:::1", 1),
        ("strange", "IP:127.0.0.1", 1),
        ("others", "DNS:other.example", 1),
        ("old", "IP:127.0.0.1", -1),
    ):
        (folder / "names").write_text(f"subjectAltName={names}")
        key, request, made = f"{name}.key", f"{name}.request", f"{name}.pem"
        openssl(
            "req",
            "-new",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            key,
            "-subj",
            f"/CN={name}",
            "-out",
            request,
        )
        openssl(
            *("x509", "-req", "-in", request, "-signkey", key, "-days", str(days), "-extfile", "names", "-out", made)
        )
    (folder / "trusted.pem").write_bytes(
        b"".join((folder / f"{name}.pem").read_bytes() for name in ("good", "others", "old"))
    )
    return folder


@pytest.fixture
def secure(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ssl.SSLContext]]:
    """Contexts of servers, by their certificates, of which those are trusted that a variable names."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "trusted.pem"))
    contexts: dict[str, ssl.SSLContext] = {}
    for name in ("good", "strange", "others", "old"):
        contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[name].load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
    contexts["with clients' certificates"] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    contexts["with clients' certificates"].load_cert_chain(certificates / "good.pem", certificates / "good.key")
    contexts["with clients' certificates"].verify_mode = ssl.CERT_REQUIRED
    connections_module._secure.cache_clear()
    yield contexts
    connections_module._secure.cache_clear()


@pytest.mark.processes
@each_loop
@pytest.mark.parametrize(
    ("name", "steps", "told", "number"),
    [
        ("good", [HI], (200, b"hi"), 1),
        ("good", in_pieces(HI, 1), (200, b"hi"), 1),
        ("good", [HI, "close"], (200, b"hi"), 3),
        ("good", [HI, "reset"], (200, b"hi"), 3),
        ("good", [HI, TURNS, b"junk", "stay"], (200, b"hi"), 3),
        ("good", [with_lines(b"connection: close"), "stay"], (200, b"hi"), 3),
        ("good", [CHUNKS + b"%x\r\n%b\r\n0\r\n\r\n" % (2_000_000, LARGE[:2_000_000])], (200, LARGE[:2_000_000]), 1),
        ("good", [OK + b"\r\n" + LARGE[:2_000_000], "close"], (200, LARGE[:2_000_000]), 3),
        ("good", ["at once", "close"], DisconnectedError, 3),
        ("good", ["at once", "reset"], DisconnectedError, 3),
        ("with clients' certificates", [HI], DisconnectedError, 0),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_requests_over_tls(
    loop: Loop, secure: dict[str, ssl.SSLContext], name: str, steps: Steps, told: object, number: int
) -> None:
    async def tried() -> None:
        async with served(steps, secure=secure[name]) as server, connections() as these:
            for _ in range(3):
                assert await asked(these, server.url) == told
                await seen(lambda: number_open(these) == (number == 1))
            assert server.connections == number

    run(loop, tried)


@pytest.mark.processes
@each_loop
@pytest.mark.parametrize(("host", "name"), [(HOST, "localhost"), ("::1", "[::1]")])
def test_a_certificate_is_that_of_the_host_in_the_url(
    loop: Loop, secure: dict[str, ssl.SSLContext], host: str, name: str
) -> None:
    async def tried() -> None:
        async with served([HI], host=host, name=name, secure=secure["good"]) as server, connections() as these:
            assert [await asked(these, server.url) for _ in range(2)] == [(200, b"hi")] * 2
            assert server.connections == 1
            assert server.heads[0].split(b"\r\n")[1] == f"host: {server.url[8:-1]}".encode()

    run(loop, tried)


@pytest.mark.processes
@each_loop
@pytest.mark.parametrize(
    ("name", "words"), [("strange", "self-signed|self signed"), ("others", "not valid for"), ("old", "has expired")]
)
def test_a_certificate_that_is_not_trusted_is_told(
    loop: Loop, secure: dict[str, ssl.SSLContext], name: str, words: str
) -> None:
    async def tried() -> None:
        async with served([HI], secure=secure[name]) as server, connections() as these:
            with pytest.raises(NoConnectionError, match=words) as failure:
                await these.send("GET", server.url, None, None, PATIENCE_S)
            assert "its certificate is not trusted" in no_connection(failure.value)
            assert not server.heads

    run(loop, tried)


@pytest.mark.processes
@each_loop
def test_a_url_with_the_other_scheme_is_told(loop: Loop, secure: dict[str, ssl.SSLContext]) -> None:
    async def tried() -> None:
        async with served([HI], secure=secure["good"]) as server, connections() as these:
            assert await asked(these, server.url.replace("https", "http")) == DisconnectedError
        async with served(["at once", b"HTTP/1.1 400 Bad Request\r\n\r\n", "stay"]) as server, connections() as these:
            with pytest.raises(NoConnectionError) as failure:
                await these.send("GET", server.url.replace("http", "https"), None, None, PATIENCE_S)
            assert "it does not speak https://" in no_connection(failure.value)
        async with served(["at once", "stay"]) as server, connections(SHORT_S) as these:
            assert await asked(these, server.url.replace("http", "https")) == ConnectTimeoutError

    run(loop, tried)


@pytest.mark.processes
@each_loop
def test_a_large_body_that_nobody_reads_is_not_held_over_tls(loop: Loop, secure: dict[str, ssl.SSLContext]) -> None:
    async def tried() -> None:
        async with (
            served(["unread", MANY_TURNS, HI, "stay"], secure=secure["good"]) as server,
            connections() as these,
        ):
            assert await asked(these, server.url, LARGE) == (200, b"hi")
            await seen(lambda: not number_open(these))

    run(loop, tried)


@pytest.mark.processes
@each_loop
def test_a_handshake_can_be_cancelled_at_every_step(loop: Loop, secure: dict[str, ssl.SSLContext]) -> None:
    async def tried() -> None:
        async with served([HI], secure=secure["good"]) as server:
            for step in range(30):
                async with connections() as these:
                    asking = asyncio.create_task(asked(these, server.url))
                    await turns(step)
                    asking.cancel()
                    with suppress(asyncio.CancelledError):
                        await asking
                    assert await asked(these, server.url) == (200, b"hi")

    run(loop, tried)
