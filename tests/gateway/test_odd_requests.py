"""Odd requests are accepted or refused as RFC 9112 requires, and none hides a second request.

Each is followed by an ordinary request, which is answered if and only if the connection stays open.
"""

import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import pytest

from callwright.gateway.config.config import Config, ModelConfig, ServerConfig
from tests.support.byte_server import Loop, each_loop, run
from tests.support.http_client import CHAT
from tests.support.messages_client import MESSAGES
from tests.support.odd_requests import CLOSED, ODD_REQUESTS, OddRequest, Result
from tests.support.protocol_server import Answer, Door, answers, opened
from tests.support.servers import HOST, Gateway
from tests.support.waiting import PATIENCE_S

NEXT = b"GET /next HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
REFUSALS = (
    *("Invalid HTTP request received", "Request head too large", "Request body broken", "Unknown transfer coding"),
    "Invalid WebSocket handshake",
)


def read(came: bytes, odd: OddRequest) -> list[Answer]:
    """The answers to a request and to the next one."""
    has_head = "HEAD" in odd.results
    return answers(came, lambda number: "HEAD" if has_head and number == 0 else "GET")


def in_words(found: Iterable[Answer]) -> Iterator[Result]:
    for status, body in found:
        if status != 200:
            yield status
        elif not body:
            yield "HEAD"
        else:
            assert not body["trailer"]
            yield " ".join(filter(None, (body["method"], body["path"], body["body"])))


def results(came: bytes, odd: OddRequest) -> tuple[Result, ...]:
    """The results of a request, without that of the next one."""
    words = [*in_words(read(came, odd))]
    if words[-1:] == ["GET /next"]:
        words.pop()
    elif words and isinstance(words[-1], str):
        words.append(CLOSED)
    return (*[100] * came.count(GO_ON), *words)


def pieces(odd: OddRequest, size: int) -> Sequence[bytes]:
    sent = odd.raw + NEXT
    return [sent[at : at + size] for at in range(0, len(sent), size)] if size else [sent]


def may_be_cut(odd: OddRequest) -> bool:
    """Whether a client can still send its last bytes: after an ordinary answer, the connection closes at once."""
    return len(odd.sent) < 400 and CLOSED not in odd.results and "websocket" not in odd.sent


@each_loop
@pytest.mark.parametrize("size", [0, 1], ids=["whole", "byte by byte"])
def test_each_request_is_accepted_or_refused_as_its_section_requires(loop: Loop, size: int) -> None:
    async def walked(door: Door) -> dict[OddRequest, tuple[Result, ...]]:
        tried = [odd for odd in ODD_REQUESTS if not size or may_be_cut(odd)]
        assert len(tried) > 300
        return {odd: results(await door.says(*pieces(odd, size)), odd) for odd in tried}

    async def all_of_them() -> None:
        async with opened() as door:
            found = await walked(door)
        assert {odd: words for odd, words in found.items() if words != odd.results} == {}

    run(loop, all_of_them)


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    gateway = Gateway(Config(models=(ModelConfig(name="m", upstream="simulated"),), server=ServerConfig(hosts=("*",))))
    yield gateway
    gateway.stop()


def said(gateway: Gateway, sent: bytes) -> bytes:
    with closing(socket.create_connection((HOST, gateway.port), timeout=PATIENCE_S)) as client:
        client.sendall(sent)
        came = b""
        while piece := client.recv(65_536):
            came += piece
        return came


@pytest.mark.parametrize(
    ("path", "error"), [(CHAT, {"message", "type", "param", "code"}), (MESSAGES, {"message", "type"})]
)
def test_the_gateway_refuses_in_the_form_of_the_api_that_is_asked(gateway: Gateway, path: str, error: set[str]) -> None:
    wrong = {}
    for odd in ODD_REQUESTS:
        sent = odd.raw.replace(b"/a ", f"{path} ".encode())
        came = said(gateway, sent + NEXT)
        found = read(came, odd)
        expected = [each for each in odd.results if each not in (CLOSED, 100)]
        refused = [each for each in expected if isinstance(each, int)]
        is_path_known = len(expected) == 1 and sent.startswith(f"POST {path} HTTP/1.1\r".encode())
        goes_on = not refused and CLOSED not in odd.results
        is_right = len(found) == len(expected) + goes_on
        if refused:
            status, body = found[-1]
            is_right &= [status] == refused and body["error"]["message"].startswith(REFUSALS)
            is_right &= came.count(b"connection: close") == 1
            is_right &= set(body["error"]) == error or not is_path_known
        if not is_right:
            wrong[odd] = found
    assert wrong == {}
