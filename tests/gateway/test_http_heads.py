"""What comes before a request is one, over sockets: how large it may be, and what it is told."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from callwright.gateway.config.config import Config, ModelConfig
from callwright.gateway.process.protocols.http import HttpProtocol
from callwright.gateway.process.protocols.reading import RequestReader
from callwright.gateway.request_context import Api
from callwright.settings.bounds import MAX_HEAD_BYTES as MOST
from tests.support.http_client import CHAT, Live, request
from tests.support.messages_client import COUNT, MESSAGES
from tests.support.outputs import QUESTION
from tests.support.responses_client import RESPONSES
from tests.support.servers import HOST, Answer, Gateway, ModelServer, said
from tests.support.waiting import PATIENCE_S, until

SLICE = 16_384
WRITTEN = json.dumps({"model": "m", "messages": [QUESTION]}).encode()


def counting(parsed: list[bytes]) -> type[HttpProtocol]:
    """The protocol, with a note of what its parser gets at a time."""

    class CountingReader(RequestReader):
        def _parse(self, piece: bytes) -> None:
            parsed.append(piece)
            super()._parse(piece)

    class Counting(HttpProtocol):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self._reader = CountingReader(self._begin, self._change_to_websocket, MOST)

    return Counting


class Door(Gateway):
    """A gateway. `parsed`: what its parser got."""

    def __init__(self, model: ModelServer) -> None:
        self.parsed: list[bytes] = []
        served = (ModelConfig(name="m", upstream="simulated"), ModelConfig(name="served", upstream=model.url))
        super().__init__(Config(models=served), counting(self.parsed))

    def says(self, *sent: bytes) -> bytes:
        """All that comes until the gateway closes the connection."""
        self.parsed.clear()
        with closing(socket.create_connection((HOST, self.port), timeout=PATIENCE_S)) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            came = b""
            try:
                for piece in sent:
                    client.sendall(piece)
                while piece := client.recv(65_536):
                    came += piece
            except ConnectionError:  # closed while more was on its way
                pass
            return came


@pytest.fixture(scope="module")
def door(_model_server: ModelServer) -> Iterator[Door]:
    gateway = Door(_model_server)
    yield gateway
    gateway.stop()


def head(size: int, how: str = "one value", more: str = "connection: close\r\n") -> bytes:
    """A head of so many bytes."""
    path = "/healthz?" if how == "a long line" else "/healthz"
    begin, end = f"GET {path}", f" HTTP/1.1\r\nhost: localhost\r\n{more}"
    left = size - len(begin) - len(end) - 2
    match how:
        case "a long line":
            return f"{begin}{'a' * left}{end}\r\n".encode()
        case "short headers":
            number, rest = divmod(left - 9, 4)
            short = "a:\r\n" * number
            return f"{begin}{end}{short}b: {'b' * (rest + 4)}\r\n\r\n".encode()
    return f"{begin}{end}x: {'a' * (left - 5)}\r\n\r\n".encode()


def refusal(came: bytes, api: Api = "openai") -> dict[str, Any]:
    """The error of the last answer, which says that it is the last."""
    first, _, rest = came[came.rindex(b"HTTP/1.1 ") :].partition(b"\r\n")
    assert first == b"HTTP/1.1 431 Request Header Fields Too Large"
    headers, _, body = rest.partition(b"\r\n\r\n")
    assert b"connection: close" in headers
    assert b"content-type: application/json" in headers
    told = json.loads(body)
    error: dict[str, Any] = told.pop("error")
    assert error["type"] == "invalid_request_error"
    if api == "anthropic":
        assert told == {"type": "error"}
        assert set(error) == {"type", "message"}
    else:
        assert told == {}
        assert error["code"] == "request_head_too_large"
    assert f"expected at most {MOST} bytes" in error["message"]
    return error


HOWS = ["one value", "short headers", "a long line"]
CUTS: dict[str, Callable[[bytes], list[bytes]]] = {
    "whole": lambda data: [data],
    "in pieces": lambda data: [data[at : at + 9_973] for at in range(0, len(data), 9_973)],
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("how", HOWS)
def test_a_head_as_large_as_it_may_be_is_answered(door: Door, how: str, cut: str) -> None:
    sent = head(MOST, how)
    assert len(sent) == MOST
    assert door.says(*CUTS[cut](sent)).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("how", HOWS)
def test_a_larger_one_is_refused_before_it_is_parsed(door: Door, how: str, cut: str) -> None:
    refusal(door.says(*CUTS[cut](head(MOST + 1, how))))
    assert sum(map(len, door.parsed)) <= MOST


LINES: dict[str, tuple[str, Api]] = {
    "chat": (f"POST {CHAT}", "openai"),
    "responses": (f"POST {RESPONSES}", "openai"),
    "websocket": (f"GET {RESPONSES}", "openai"),
    "messages": (f"POST {MESSAGES}", "anthropic"),
    "tokens of messages": (f"POST {COUNT}", "anthropic"),
}


@pytest.mark.parametrize("asked", LINES)
def test_a_larger_one_is_refused_at_each_door(door: Door, asked: str) -> None:
    line, api = LINES[asked]
    upgrade = "".join(f"{name}: {value}\r\n" for name, value in UPGRADE.items()) if line[0] == "G" else ""
    begin = f"{line} HTTP/1.1\r\nhost: localhost\r\n{upgrade}x: "
    refusal(door.says(f"{begin}{'a' * (MOST + 1 - len(begin) - 4)}\r\n\r\n".encode()), api)


@pytest.mark.parametrize(("path", "api"), [(CHAT, "openai"), (MESSAGES, "anthropic")])
def test_a_refusal_is_in_the_form_of_the_api_whose_head_it_is(door: Door, path: str, api: Api) -> None:
    long = f"POST {path}?{'a' * 2 * MOST} HTTP/1.1\r\n".encode()
    refusal(door.says(long), api)
    for before in (CHAT, MESSAGES):
        kept = f"POST {before} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{{}}".encode()
        came = door.says(kept + long)
        assert came.startswith(b"HTTP/1.1 400 Bad Request")
        refusal(came, api)


@pytest.mark.parametrize("how", HOWS)
def test_of_one_that_does_not_end_no_more_is_parsed_either(door: Door, how: str) -> None:
    door.says(head(64 * MOST, how)[:-4])  # what it is told may be lost: it does not stop to read
    assert sum(map(len, door.parsed)) <= MOST


def test_the_head_of_a_second_request_is_bounded_too(door: Door) -> None:
    came = door.says(head(100, more="") + head(2 * MOST))
    assert came.startswith(b"HTTP/1.1 200 OK")
    refusal(came)
    assert sum(map(len, door.parsed)) <= MOST + SLICE


def chunked(behind: bytes, extension: bytes = b"", path: str = CHAT) -> bytes:
    """A request whose body comes in one chunk."""
    said = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    )
    return said + b"%x%b\r\n%b\r\n0\r\n%b" % (len(WRITTEN), extension, WRITTEN, behind)


def test_trailers_are_read_and_are_no_headers(door: Door) -> None:
    assert door.says(chunked(b"x: y\r\n" * 1_000 + b"\r\n")).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(("path", "api"), [(CHAT, "openai"), (MESSAGES, "anthropic")])
@pytest.mark.parametrize("behind", [b"x: y\r\n" * MOST, b"x: " + b"y" * 4 * MOST], ids=["many", "long"])
def test_trailers_are_bounded(door: Door, behind: bytes, path: str, api: Api) -> None:
    assert "body broken" in refusal(door.says(chunked(behind, path=path)), api)["message"]
    assert sum(map(len, door.parsed)) <= MOST + 2 * SLICE


def test_so_is_what_stands_behind_the_size_of_a_chunk(door: Door) -> None:
    came = door.says(chunked(b"\r\n", extension=b";" + b"a" * 4 * MOST))
    assert "body broken" in refusal(came)["message"]
    assert sum(map(len, door.parsed)) <= MOST + 2 * SLICE


def test_a_body_may_come_in_tiny_chunks(door: Door) -> None:
    body = b"".join(b"1;x=%d\r\n%c\r\n" % (at, each) for at, each in enumerate(WRITTEN + b" " * 20_000))
    begin = (
        f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    )
    assert door.says(begin + body + b"0\r\n\r\n").startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("data", [b"\r\n", b"\r\n" * 8_192, b"0\r\n\r\n"], ids=["tiny", "large", "like the last"])
def test_empty_lines_in_a_body_are_bounded(door: Door, data: bytes) -> None:
    begin = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    chunk = b"%x\r\n%b\r\n" % (len(data), data)
    came = door.says(begin + chunk * (2_000_000 // len(chunk)))
    assert came.startswith(b"HTTP/1.1 400 Bad Request")
    assert "empty lines" in json.loads(came.partition(b"\r\n\r\n")[2])["error"]["message"]
    assert len(door.parsed) <= 16_384 + SLICE // 4


def test_a_body_may_have_some_empty_lines(door: Door) -> None:
    begin = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    body = b"2\r\n\r\n\r\n" * 10_000 + b"%x\r\n%b\r\n0\r\n\r\n" % (len(WRITTEN), WRITTEN)
    assert door.says(begin.encode() + body).startswith(b"HTTP/1.1 200 OK")


def test_requests_that_are_sent_ahead_are_answered_in_order_and_none_is_parsed_before_its_turn(door: Door) -> None:
    sent = [f"GET /v1/models/{number} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode() for number in range(2_000)]
    sent[-1] = sent[-1].replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
    came = door.says(b"".join(sent))
    answers = came.split(b"HTTP/1.1 404 Not Found")[1:]
    assert answers
    assert all(f"The model '{number}' does not".encode() in answer for number, answer in enumerate(answers))
    assert all(piece.count(b"GET ") <= 1 for piece in door.parsed)  # a read may end within the word


@pytest.mark.parametrize("streams", [(True, True), (False, True), (True, False)])
@pytest.mark.parametrize("ahead", [True, False])
def test_a_client_that_leaves_its_second_request_is_noticed(
    door: Door, model: ModelServer, streams: tuple[bool, bool], ahead: bool
) -> None:
    first, second = (asking(stream=stream) for stream in streams)
    model.plays(said("Hi"), Answer(("silence",)))
    with closing(socket.create_connection((HOST, door.port), timeout=PATIENCE_S)) as client:
        client.sendall(first + second if ahead else first)
        came = b""
        while not came.endswith(b"0\r\n\r\n" if streams[0] else b"}"):
            came += client.recv(65_536)
        client.sendall(b"" if ahead else second)
        until(lambda: len(model.asked) == 2)
    model.wait_until_left()


def asking(*, stream: bool) -> bytes:
    """A request that leaves its connection open."""
    body = json.dumps({"model": "served", "messages": [QUESTION], "stream": stream}).encode()
    return f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def test_what_is_no_http_is_told_so(door: Door) -> None:
    came = door.says(b"what is this\r\n\r\n")
    assert came.startswith(b"HTTP/1.1 400 Bad Request")
    assert json.loads(came.partition(b"\r\n\r\n")[2])["error"]["code"] == "invalid_http_request"


@pytest.mark.parametrize("behind", [b"what is this\r\n\r\n", head(2 * MOST)], ids=["no HTTP", "a large head"])
def test_what_comes_behind_a_request_does_not_break_its_answer(door: Door, model: ModelServer, behind: bytes) -> None:
    begin, *rest = said("Hi").steps
    gate = model.gate()
    model.plays(Answer((begin, gate, *rest)))
    asked = json.dumps({"model": "served", "messages": [QUESTION], "stream": True}).encode()
    with Live(door.url + CHAT, headers={"content-length": str(len(asked)), "connection": "keep-alive"}) as live:
        live.send(asked + behind)
        gate.wait_until_reached()
        live.send(behind)
        gate.open()
        *_, last = live.pieces()
    assert last.endswith(b"data: [DONE]\n\n")


UPGRADE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
}


@pytest.mark.parametrize("more", [{"x": "a" * 9_000}, {f"x{n}": "a" for n in range(200)}], ids=["one", "many"])
def test_what_the_library_of_websockets_refuses_is_told(door: Door, more: dict[str, str]) -> None:
    refused = request(door.url + RESPONSES, None, method="GET", headers={**UPGRADE, **more})
    assert (refused.status, refused.error["code"]) == (431, "request_head_too_large")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sec-websocket-key", None),
        ("sec-websocket-key", "short"),
        ("sec-websocket-version", None),
        ("sec-websocket-version", "8"),
    ],
)
def test_a_handshake_that_lacks_something_gets_an_error_that_names_it(door: Door, name: str, value: str | None) -> None:
    given = {**UPGRADE, name: value}
    headers = {key: text for key, text in given.items() if text is not None}
    refused = request(door.url + RESPONSES, None, method="GET", headers=headers)
    assert (refused.status, refused.error["code"]) == (400, "invalid_http_request")
    assert name in refused.error["message"].lower()
    assert refused.headers["sec-websocket-version"] == "13"


def test_no_websocket_is_made_of_a_connection_that_owes_an_answer(door: Door) -> None:
    upgrade = "".join(f"{name}: {value}\r\n" for name, value in UPGRADE.items())
    asked = f"GET {RESPONSES} HTTP/1.1\r\nhost: localhost\r\n{upgrade}\r\n".encode()
    with closing(socket.create_connection((HOST, door.port), timeout=PATIENCE_S)) as client:
        client.sendall(head(100, more="") + asked)
        came = b""
        while came.count(b"HTTP/1.1 ") < 2:
            came += client.recv(65_536)
    assert came.startswith(b"HTTP/1.1 200 OK")
