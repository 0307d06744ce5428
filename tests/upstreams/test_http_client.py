"""The HTTP client and servers that do what HTTP allows, or does not: in both event loops, whole and byte by byte."""

import gzip
import zlib
from typing import Final

import pytest

from callwright.upstreams.http_client.errors import (
    BrokenAnswerError,
    BrokenFramingError,
    DisconnectedError,
    EncodingError,
    NoConnectionError,
    NotHttpError,
    SilentError,
)
from callwright.upstreams.http_client.target import target_of
from tests.support.byte_server import (
    HI,
    LARGE,
    MANY_TURNS,
    OK,
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
    with_lines,
)
from tests.support.waiting import PATIENCE_S

CHUNKS: Final = OK + b"transfer-encoding: chunked\r\n\r\n"
IN_CHUNKS: Final = CHUNKS + b"2\r\nhi\r\n0\r\n\r\n"

# --- answers ---

# What a server sends twice on a connection that it keeps, what is read, and whether the second comes over the first
# connection.
ANSWERS: Final[dict[str, tuple[bytes, object, bool]]] = {
    "a length": (HI, (200, b"hi"), True),
    "chunks": (IN_CHUNKS, (200, b"hi"), True),
    "names in capitals": (with_lines(b"CONTENT-TYPE: a/b").replace(b"content-l", b"Content-L"), (200, b"hi"), True),
    "line feeds only": (HI.replace(b"\r\n", b"\n"), (200, b"hi"), True),
    "a folded line": (with_lines(b"x: y", b"  z"), (200, b"hi"), True),
    "values that are empty": (with_lines(b"x:", b"y: "), (200, b"hi"), True),
    "values that are no ASCII": (with_lines(b"x: \xff\xe9"), (200, b"hi"), True),
    "no reason": (HI.replace(b" OK", b""), (200, b"hi"), True),
    "a line before it": (b"\r\n" + HI, (200, b"hi"), True),
    "100 before it": (b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + HI, (200, b"hi"), True),
    "103 before it": (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + HI, (200, b"hi"), True),
    "an upgrade that it offers": (with_lines(b"connection: upgrade", b"upgrade: h2c"), (200, b"hi"), True),
    "chunks with extensions": (CHUNKS + b'2;a=b;c="d"\r\nhi\r\n0;e\r\n\r\n', (200, b"hi"), True),
    "spaces behind a size": (CHUNKS + b"2  \r\nhi\r\n0\r\n\r\n", (200, b"hi"), True),
    "trailers": (CHUNKS + b"2\r\nhi\r\n0\r\ncontent-type: x/y\r\nx: y\r\n\r\n", (200, b"hi"), True),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b""), True),
    "204 with chunks": (b"HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n", (204, b""), True),
    "304 with a length": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", (304, b""), True),
    "HTTP/1.0": (HI.replace(b"1.1", b"1.0"), (200, b"hi"), False),
    "HTTP/1.0, kept": (with_lines(b"connection: keep-alive").replace(b"1.1", b"1.0"), (200, b"hi"), True),
    "to be closed": (with_lines(b"connection: close"), (200, b"hi"), False),
    "another protocol": (
        OK.replace(b"200", b"101") + b"connection: upgrade\r\nupgrade: x\r\n\r\n",
        NotHttpError,
        False,
    ),
    "a length and chunks": (with_lines(b"content-length: 2", of=IN_CHUNKS), NotHttpError, False),
    "two lengths": (with_lines(b"content-length: 2"), NotHttpError, False),
    "a list of lengths": (HI.replace(b": 2", b": 2, 2"), NotHttpError, False),
    "a length that is none": (HI.replace(b": 2", b": -2"), NotHttpError, False),
    "a chunk of no size": (CHUNKS + b"zz\r\n", BrokenFramingError, False),
    "a chunk too large to count": (CHUNKS + b"f" * 17 + b"\r\n", BrokenFramingError, False),
    "something else": (b"SSH-2.0-OpenSSH\r\n", NotHttpError, False),
}
# And those that end with the connection.
ENDED: Final[dict[str, tuple[bytes, object]]] = {
    "no length": (OK + b"\r\nhi", (200, b"hi")),
    "HTTP/1.0, no length": (b"HTTP/1.0 200 OK\r\n\r\nhi", (200, b"hi")),
    "an encoding without chunks": (OK + b"transfer-encoding: gzip\r\n\r\nhi", (200, b"hi")),
    "chunks that are encoded": (OK + b"transfer-encoding: chunked, identity\r\n\r\nhi", (200, b"hi")),
    "an encoding that is named like chunks": (OK + b"transfer-encoding: xchunked\r\n\r\nhi", (200, b"hi")),
    "chunks, and more of them": (CHUNKS + b"2\r\nhi\r\n", BrokenAnswerError),
    "half its length": (HI[:-1], BrokenAnswerError),
    "a head": (HI[:30], BrokenAnswerError),
    "an answer before the answer": (b"HTTP/1.1 100 Continue\r\n\r\n", BrokenAnswerError),
    "nothing": (b"", DisconnectedError),
}


@each_loop
@pytest.mark.parametrize("size", [0, 7, 1], ids=["whole", "in pieces", "byte by byte"])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_read_alike_in_every_cut_and_its_connection_kept(loop: Loop, name: str, size: int) -> None:
    sent, told, is_kept = ANSWERS[name]

    async def tried() -> None:
        async with served(in_pieces(sent, size)) as server, connections() as these:
            assert [await asked(these, server.url, wants_all=bool(at)) for at in range(2)] == [told] * 2
            assert server.connections == (1 if is_kept else 2)
            await seen(lambda: number_open(these) == is_kept)

    run(loop, tried)


@each_loop
@pytest.mark.parametrize("name", ENDED)
def test_an_answer_that_ends_with_its_connection_is_read_alike_in_every_cut(loop: Loop, name: str) -> None:
    sent, told = ENDED[name]

    async def tried() -> None:
        for size in (0, 1):
            async with served([*in_pieces(sent, size), "close"]) as server, connections() as these:
                assert await asked(these, server.url) == told

    run(loop, tried)


@each_loop
@pytest.mark.parametrize("behind", [b"junk", HI, b"HTTP/1.1 100 Continue\r\n\r\n"], ids=["junk", "an answer", "100"])
@pytest.mark.parametrize("later", [0, TURNS], ids=["in its packet", "later"])
def test_what_comes_behind_an_answer_is_no_answer_to_the_next_request(loop: Loop, behind: bytes, later: int) -> None:
    async def tried() -> None:
        async with served([HI, later, behind, "stay"] if later else [HI + behind]) as server, connections() as these:
            for number in range(1, 4):
                assert await asked(these, server.url) == (200, b"hi")
                await seen(lambda: not number_open(these))
                assert server.connections == number

    run(loop, tried)


@each_loop
def test_a_head_may_have_64_kb_in_every_cut_and_no_more(loop: Loop) -> None:
    room = 65_536 - len(with_lines(b"x: ")) + len(b"hi")
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"

    async def tried() -> None:
        for more in (0, 1):
            sent = with_lines(b"x: " + b"y" * (room + more))
            for size in (0, 6_000, 65_536, len(sent) - 9):
                async with served(in_pieces(sent, size)) as server, connections() as these:
                    told = await asked(these, server.url)
                    assert told == (NotHttpError if more else (200, b"hi")), size
        async with served([interim * 9_000]) as server, connections() as these:
            assert await asked(these, server.url) == NotHttpError

    run(loop, tried)


@each_loop
def test_large_packets_may_end_anywhere_in_the_framing(loop: Loop) -> None:
    """Packets of more than 64 KB are read in parts, and a part may hold no byte of the body."""

    async def tried() -> None:
        for size in range(65_536 - len(CHUNKS) - 20, 65_536 - len(CHUNKS)):
            first = CHUNKS + b"%x\r\n%b\r\n5\r\n" % (size, LARGE[:size])
            async with served([first, TURNS, b"hello\r\n0\r\n\r\n"]) as server, connections() as these:
                assert await asked(these, server.url) == (200, LARGE[:size] + b"hello")

    run(loop, tried)


# --- bodies that are compressed ---

TEXT: Final = b"".join(b"line %d of the text\n" % number for number in range(20_000))
_RAW: Final = zlib.compressobj(wbits=-15)
GZIP, ZLIB, RAW = gzip.compress(TEXT), zlib.compress(TEXT), _RAW.compress(TEXT) + _RAW.flush()
COMPRESSED: Final[dict[str, tuple[bytes, bytes, object]]] = {
    "gzip": (b"gzip", GZIP, (200, TEXT)),
    "x-gzip, in capitals": (b"X-GZIP", GZIP, (200, TEXT)),
    "deflate": (b"deflate", ZLIB, (200, TEXT)),
    "deflate without a head": (b"deflate", RAW, (200, TEXT)),
    "gzip of three": (b"gzip", gzip.compress(TEXT[:9]) + gzip.compress(b"") + gzip.compress(TEXT[9:]), (200, TEXT)),
    "identity": (b"identity", TEXT, (200, TEXT)),
    "nothing": (b"gzip", b"", (200, b"")),
    "gzip without its end": (b"gzip", GZIP[:-1], BrokenAnswerError),
    "gzip, and more": (b"gzip", GZIP + b"more", EncodingError),
    "gzip with a wrong sum": (b"gzip", GZIP[:-8] + bytes(8), EncodingError),
    "twice": (b"gzip, gzip", gzip.compress(GZIP), EncodingError),
    "unknown": (b"br", b"xx", EncodingError),
}


@each_loop
@pytest.mark.parametrize("name", COMPRESSED)
def test_a_compressed_body_is_read_alike_in_every_cut(loop: Loop, name: str) -> None:
    encoding, body, told = COMPRESSED[name]
    sent = OK + b"content-encoding: %b\r\ncontent-length: %d\r\n\r\n%b" % (encoding, len(body), body)

    async def tried() -> None:
        for size in (0, 4_001):
            async with served(in_pieces(sent, size)) as server, connections() as these:
                for wants_all in (False, True):
                    assert await asked(these, server.url, wants_all=wants_all) == told

    run(loop, tried)


# --- requests ---

URLS: Final[dict[str, tuple[str, str, str | None]]] = {
    "http://h": ("/", "h", None),
    "http://H:80/A?": ("/A", "h", None),
    "https://h:443/": ("/", "h", None),
    "https://h:80/": ("/", "h:80", None),
    "http://h?q=1#f": ("/?q=1", "h", None),
    "http://h/a b?c d": ("/a%20b?c%20d", "h", None),
    "http://h/%2e%zz?a=%20&b=é": ("/%2e%zz?a=%20&b=%C3%A9", "h", None),
    "http://h//a/../{b}\\\x01": ("//a/../%7Bb%7D%5C%01", "h", None),
    "http://h/\r\nx: y": ("/x:%20y", "h", None),
    "http://bücher.example:8080/": ("/", "xn--bcher-kva.example:8080", None),
    "http://[::1]:8080/": ("/", "[::1]:8080", None),
    "http://u:p%40@h/": ("/", "h", "Basic dTpwQA=="),
    "http://u:é@h/": ("/", "h", "Basic dTrDqQ=="),
}


@pytest.mark.parametrize("url", URLS)
def test_a_url_is_asked_for_as_http_has_it(url: str) -> None:
    target = target_of(url)
    assert (target.asked, target.host, target.authorization) == URLS[url]


@each_loop
@pytest.mark.parametrize(
    "host", ["a" * 64, "a..b", ".a", "é" * 64, "a\0b", "h:99999", "h:x", ""], ids=lambda host: f"{host[:4]!r}"
)
def test_a_host_that_can_be_no_host_is_not_reached(loop: Loop, host: str) -> None:
    async def tried() -> None:
        async with connections() as these:
            assert await asked(these, f"http://{host}/") == NoConnectionError

    run(loop, tried)


@each_loop
@pytest.mark.parametrize(
    "header",
    [("a", "b\r\nc: d"), ("a", "b\n"), ("a", "\r"), ("a\n", "b"), ("a: b\r\nc", "d"), ("a", "\0"), ("a", "\ud800")],
    ids=repr,
)
def test_a_header_that_would_be_two_is_not_sent(loop: Loop, header: tuple[str, str]) -> None:
    async def tried() -> None:
        async with served([HI]) as server, connections() as these:
            with pytest.raises(ValueError, match=r"header|surrogates"):
                await these.send("GET", server.url, None, dict([header]), PATIENCE_S)
            assert not server.connections

    run(loop, tried)


@each_loop
def test_each_header_is_sent_once_and_that_of_who_asks_counts(loop: Loop) -> None:
    given = {"Host": "virtual.example", "Content-Length": "77", "User-Agent": "me", "Authorization": "mine", "X": "é€"}

    async def tried() -> None:
        async with served([HI]) as server, connections() as these:
            url = server.url.replace("//", "//user:password@")
            async with await these.send("POST", url, b"body", given, PATIENCE_S) as response:
                assert response.status == 200
            lines = server.heads[0].split(b"\r\n")[1:-2]
        due = {"host": "virtual.example", "content-length": "4", "user-agent": "me", "authorization": "mine", "x": "é€"}
        assert sorted(lines) == sorted(
            f"{name}: {value}".encode() for name, value in {**due, "accept-encoding": "identity"}.items()
        )

    run(loop, tried)


# --- large requests ---

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
# What a server does with a body that is more than fits into buffers, what is told of it, and whether its connection is
# used again.
UPLOADS: Final[dict[str, tuple[Steps, object, bool]]] = {
    "it reads": (["unread", "read all", HI], (200, b"hi"), True),
    "100 at once": (["unread", CONTINUE, "read all", HI], (200, b"hi"), True),
    "102 again and again": (
        ["unread", *in_pieces(CONTINUE.replace(b"100", b"102") * 9, 25), "read all", HI],
        (200, b"hi"),
        True,
    ),
    "100 when it is full": (["unread", MANY_TURNS, CONTINUE, TURNS, "read all", HI], (200, b"hi"), True),
    "an answer at once": (["unread", HI, "stay"], (200, b"hi"), False),
    "an answer when it is full": (["unread", MANY_TURNS, HI, "stay"], (200, b"hi"), False),
    "an answer byte by byte": (["unread", MANY_TURNS, *in_pieces(HI, 1), "stay"], (200, b"hi"), False),
    "an answer, then half an end": (["unread", MANY_TURNS, HI, "half", "stay"], (200, b"hi"), False),
    "an answer, then a reset": (["unread", MANY_TURNS, HI, TURNS, "reset"], (200, b"hi"), False),
    "half an end": (["unread", MANY_TURNS, "half", "stay"], DisconnectedError, False),
    "a reset": (["unread", MANY_TURNS, "reset"], DisconnectedError, False),
    "nothing": (["unread", "stay"], SilentError, False),
}


@each_loop
@pytest.mark.parametrize("name", UPLOADS)
def test_a_large_body_is_sent_until_it_is_answered_and_not_held_where_nobody_reads_it(loop: Loop, name: str) -> None:
    steps, told, is_kept = UPLOADS[name]

    async def tried() -> None:
        silent_s = 0.5 if told is SilentError else PATIENCE_S
        async with served(steps) as server, connections() as these:
            for _ in range(1 + is_kept):
                assert await asked(these, server.url, LARGE, silent_s) == told
            await seen(lambda: number_open(these) == is_kept)
            assert server.connections == 1

    run(loop, tried)
