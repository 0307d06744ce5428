"""The room for request bodies: who gets how much, how long it is held, and what the others are told."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from callwright.gateway.body_budget import BodyBudget, BodyRoom, body_room
from callwright.gateway.config.config import Config, ModelConfig
from callwright.settings.bounds import Bounds
from tests.support.http_client import CHAT, request
from tests.support.messages_client import MESSAGES
from tests.support.responses_client import RESPONSES
from tests.support.servers import HOST, Answer, Gate, Gateway, ModelServer, said
from tests.support.waiting import PATIENCE_S, until

MOST = 1_000_000
SAID: dict[str, Any] = {"messages": [{"role": "user", "content": ""}]}
ASKED: dict[str, dict[str, Any]] = {CHAT: SAID, RESPONSES: {"input": ""}, MESSAGES: {"max_tokens": 50, **SAID}}
TOLD = "The gateway holds"


@pytest.fixture
def gateway(model: ModelServer) -> Iterator[Gateway]:
    made = Gateway(Config(models=(ModelConfig(name="m", upstream=model.url),), limits=Bounds(max_bodies_bytes=MOST)))
    yield made
    made.stop()


def slow(model: ModelServer) -> tuple[Answer, Gate]:
    """An answer that waits before its end."""
    begin, *rest = said("Hi").steps
    gate = model.gate()
    return Answer((begin, gate, *rest)), gate


def sized(path: str, size: int, **more: Any) -> bytes:
    fields: dict[str, Any] = {"model": "m", **ASKED[path]}
    bare = json.dumps({**fields, **more})
    return bare.replace('""', f'"{"a" * (size - len(bare))}"').encode()


def held(gateway: Gateway) -> int:
    text = request(f"{gateway.url}/metrics", None, method="GET").text
    (line,) = [line for line in text.splitlines() if line.startswith("callwright_body_bytes ")]
    return int(float(line.split()[1]))


@pytest.mark.parametrize("path", ASKED, ids=["chat", "responses", "messages"])
def test_bodies_have_so_much_room_together(gateway: Gateway, model: ModelServer, path: str) -> None:
    answer, gate = slow(model)
    model.plays(answer, said("small"), said("again"), said("last"))
    body = sized(path, 600_000, stream=True)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    with closing(socket.create_connection((HOST, gateway.port), timeout=PATIENCE_S)) as first:
        first.sendall(head.encode() + body[:300_000])
        until(lambda: 200_000 < held(gateway) <= 300_000)  # what is read counts
        first.sendall(body[300_000:])
        gate.wait_until_reached()
        assert held(gateway) == 600_000
        refused = request(gateway.url + path, sized(path, 500_000))
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        error = refused.json["error"]
        assert error["type"] == "rate_limit_error"
        assert refused.json.get("type") == ("error" if path == MESSAGES else None)
        assert error.get("code") == (None if path == MESSAGES else "rate_limit_exceeded")
        assert error["message"].startswith(f"{TOLD} 600,000 bytes of request bodies already")
        assert held(gateway) == 600_000
        assert request(gateway.url + path, sized(path, 60_000)).status == 200  # small ones are not counted
        assert request(gateway.url + path, sized(path, 300_000)).status == 200
        gate.open()
        while first.recv(65_536):
            pass
    until(lambda: not held(gateway))
    assert request(gateway.url + path, sized(path, 2 * MOST)).status == 200  # the only one
    until(lambda: not held(gateway))


def test_a_client_that_leaves_gives_its_room_back(gateway: Gateway) -> None:
    with closing(socket.create_connection((HOST, gateway.port), timeout=PATIENCE_S)) as client:
        client.sendall(
            f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 900000\r\n\r\n".encode() + b" " * 200_000
        )
        until(lambda: held(gateway) > 100_000)
    until(lambda: not held(gateway))


Taken = Callable[[str, int], bool]


@pytest.fixture
def taken() -> Iterator[Taken]:
    """Takes room for a client and keeps it; says whether there was any."""
    budget = BodyBudget(MOST)
    with ExitStack() as stack:

        def take(client: str, size: int) -> bool:
            stack.enter_context(BodyRoom(budget, client))
            room = body_room()
            assert room is not None
            return room.maybe_full(size) is None

        yield take
    assert (budget.taken, budget.of_clients) == (0, {})


def test_one_client_leaves_half_of_the_room_to_others(taken: Taken) -> None:
    assert [taken("anna", 200_000) for _ in range(3)] == [True, True, False]
    assert [taken("ben", 400_000), taken("ben", 200_000)] == [True, False]
    assert [taken("", 200_000), taken("", 100_000)] == [True, False]
    assert taken("cleo", 60_000)


def test_a_body_that_is_the_only_one_is_read_however_large(taken: Taken) -> None:
    assert taken("anna", 2 * MOST)
    assert not taken("anna", 100_000)
    assert not taken("ben", 100_000)
