"""A client that takes its time to send a request, over sockets: how long it may, and what it is told."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from callwright.gateway.config.config import Config, ModelConfig, ServerConfig
from callwright.settings import bounds
from tests.support.http_client import CHAT, Live, request
from tests.support.outputs import QUESTION
from tests.support.processes import gateway as process
from tests.support.responses_client import RESPONSES
from tests.support.servers import Answer, Gateway, ModelServer, said
from tests.support.waiting import PATIENCE_S

BODY: dict[str, Any] = {"model": "m", "messages": [QUESTION]}
WRITTEN = json.dumps(BODY).encode()


@pytest.fixture(scope="module")
def hasty() -> Iterator[str]:
    """A gateway with one place, in which a request must come quickly."""
    server = ServerConfig(max_requests=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bounds, "RECEIVE_S", 0.2)
        gateway = Gateway(Config(models=(ModelConfig(name="m", upstream="simulated"),), server=server))
        yield gateway.url
        gateway.stop()


@pytest.mark.parametrize("path", [CHAT, RESPONSES, "/v1/conversations"])
@pytest.mark.parametrize("begun", [b"", WRITTEN[:10]], ids=["nothing", "a part"])
def test_a_body_that_does_not_come_gives_its_place_back(hasty: str, path: str, begun: bytes) -> None:
    length = {"content-length": str(len(WRITTEN)), "connection": "keep-alive"}
    with Live(hasty + path, None, headers=length) as live:
        live.send(begun)
        assert live.status == 408
        (told,) = (json.loads(piece) for piece in live.pieces())
        assert told["error"]["code"] == "request_timeout"
        assert told["error"]["message"].startswith("Request timed out: its body was not here within 0.2 s.")
        assert live.headers["connection"] == "close"
        assert list(told) == ["error"]
    assert request(hasty + CHAT, BODY).status == 200


def test_a_body_in_pieces_that_comes_in_time_is_answered(hasty: str) -> None:
    with Live(hasty + CHAT, None, headers={"transfer-encoding": "chunked"}) as live:
        for at in range(0, len(WRITTEN), 7):
            piece = WRITTEN[at : at + 7]
            live.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        live.send(b"0\r\n\r\n")
        assert live.status == 200


def test_the_answer_may_take_longer_than_the_request(model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "RECEIVE_S", 0.1)
    monkeypatch.setattr(bounds, "HEARTBEAT_S", 0.1)
    gateway = Gateway(Config(models=(ModelConfig(name="m", upstream=model.url),)))
    begin, *rest = said("Hi").steps
    gate = model.gate()
    model.plays(Answer((begin, gate, *rest)))
    try:
        with Live(gateway.url + CHAT, json.dumps({**BODY, "stream": True}).encode()) as live:
            pieces = live.pieces()
            heartbeats = [next(pieces) for _ in range(3)]
            gate.open()
            assert b"".join([*heartbeats, *pieces]).endswith(b"data: [DONE]\n\n")
    finally:
        gateway.stop()


Closed = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def closed() -> Iterator[Closed]:
    """Sends something to a gateway of its own process, and answers all that comes until that closes the connection."""
    with process("--store", "none", RECEIVE_S=0.2) as (url, _):
        parts = urlsplit(url)

        def send(sent: bytes) -> bytes:
            with closing(socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE_S)) as client:
                client.sendall(sent)
                came = b""
                while piece := client.recv(65_536):
                    came += piece
                return came

        yield send


HEAD = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"


@pytest.mark.processes
@pytest.mark.parametrize("sent", [b"", b"PO", HEAD], ids=["nothing", "a word", "half a head"])
def test_a_connection_on_which_no_request_comes_is_closed(closed: Closed, sent: bytes) -> None:
    assert closed(sent) == b""


@pytest.mark.processes
def test_so_is_one_on_which_the_second_request_does_not_come(closed: Closed) -> None:
    came = closed(HEAD + b"\r\n" + HEAD)
    assert came.startswith(b"HTTP/1.1 200 OK")
    assert came.count(b"HTTP/1.1") == 1
