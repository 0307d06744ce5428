"""What stands before the endpoints, over HTTP and WebSocket: strangers, too many at once, clients that do not read."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from callwright.conversation import Conversation
from callwright.errors import RequestError, UpstreamError
from callwright.events import Problem
from callwright.gateway.access.admission import AdmissionControl
from callwright.gateway.access.concurrency import ConcurrencyLimit, LimitedModeSelector
from callwright.gateway.config.config import Config, ModelConfig, ServerConfig
from callwright.turn.model import Model
from callwright.upstreams.base import GenerationRequest
from callwright.upstreams.simulated.scripted import ScriptedUpstream
from tests.support.http_client import CHAT, Live, Reply, request
from tests.support.outputs import QUESTION
from tests.support.responses_client import RESPONSES
from tests.support.servers import EVENTS, Answer, Gate, Gateway, ModelServer, chunk, said, sse

Started = Callable[..., str]
BODY: dict[str, Any] = {"model": "m", "messages": [QUESTION]}
PAGES = ["https://evil.example", "http://evil.example:8080", "null", "file://", "http://localhost.evil.example", ""]
OWN_PAGES = [
    "http://localhost:3000",
    "http://127.0.0.1",
    "http://[::1]:80",
    "https://app.localhost",
    "tauri://localhost",
]
NAMES = ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example"]
OWN_NAMES = ["localhost", "LOCALHOST:9", "127.0.0.1", "[::1]:80", "localhost.", "192.168.1.5:8080", "0.0.0.0"]


@pytest.fixture
def started() -> Iterator[Started]:
    """Starts a gateway for this test alone."""
    gateways: list[Gateway] = []

    def start(*models: ModelConfig, **server: Any) -> str:
        served = models or (ModelConfig(name="m", upstream="simulated"),)
        gateways.append(Gateway(Config(models=served, server=ServerConfig(**server))))
        return gateways[-1].url

    yield start
    for gateway in gateways:
        gateway.stop()


@pytest.fixture(scope="module")
def open_() -> Iterator[str]:
    """A gateway without keys, which is also known as gateway.lan."""
    gateway = Gateway(
        Config(models=(ModelConfig(name="m", upstream="simulated"),), server=ServerConfig(hosts=("Gateway.LAN",)))
    )
    yield gateway.url
    gateway.stop()


# --- strangers ---


@pytest.mark.parametrize("origin", PAGES)
@pytest.mark.parametrize("path", [CHAT, RESPONSES, "/v1/models"])
def test_a_page_from_elsewhere_is_refused(open_: str, path: str, origin: str) -> None:
    method = "GET" if path == "/v1/models" else "POST"
    reply = request(open_ + path, None if method == "GET" else BODY, method=method, headers={"origin": origin})
    assert_refused(reply)


@pytest.mark.parametrize("host", NAMES)
def test_a_name_that_leads_here_by_a_trick_is_refused(open_: str, host: str) -> None:
    assert_refused(request(open_ + CHAT, BODY, headers={"host": host}))


@pytest.mark.parametrize("host", ["local host", "[::1"])
def test_what_is_no_name_of_a_host_is_no_request(open_: str, host: str) -> None:
    reply = request(open_ + CHAT, BODY, headers={"host": host})
    assert (reply.status, reply.error["code"]) == (400, "invalid_http_request")


def assert_refused(reply: Reply) -> None:
    assert (reply.status, reply.error["code"]) == (403, "forbidden_origin")
    assert "hosts in [server]" in reply.error["message"]
    assert reply.headers["x-request-id"].startswith("req_")
    assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize("origin", [*OWN_PAGES, "http://gateway.lan:81"])
def test_pages_of_this_machine_and_of_the_names_that_are_configured_are_let_in(open_: str, origin: str) -> None:
    reply = request(open_ + CHAT, BODY, headers={"origin": origin})
    assert reply.status == 200
    assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize("host", [*OWN_NAMES, "gateway.lan", "GATEWAY.lan:8080"])
def test_the_names_of_this_machine_are_known(open_: str, host: str) -> None:
    assert request(open_ + CHAT, BODY, headers={"host": host}).status == 200


def test_a_page_may_not_ask_whether_it_may(open_: str) -> None:
    asked = {"origin": "http://localhost:3000", "access-control-request-method": "POST"}
    reply = request(open_ + CHAT, None, method="OPTIONS", headers=asked)
    assert reply.status == 404
    assert not [name for name in reply.headers if name.startswith("access-control")]


def test_any_name_will_do_where_that_is_configured(started: Started) -> None:
    url = started(hosts=("*",))
    assert request(url + CHAT, BODY, headers={"host": "a.example", "origin": "https://b.example"}).status == 200


def test_health_is_told_to_everybody(open_: str) -> None:
    headers = {"host": "evil.example", "origin": "null"}
    assert request(f"{open_}/healthz", method="GET", headers=headers).status == 200


@pytest.mark.parametrize("headers", [{"origin": "https://evil.example"}, {"host": "evil.example"}])
def test_a_page_from_elsewhere_gets_no_connection(open_: str, headers: dict[str, str]) -> None:
    upgrade = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-version": "13",
    }
    assert request(open_ + RESPONSES, None, method="GET", headers={**upgrade, **headers}).status == 403
    with Live(open_ + RESPONSES, None, method="GET", headers=upgrade) as live:
        assert live.status == 101


# --- too many at once ---


def waiting(model: ModelServer) -> tuple[Answer, Gate]:
    """An answer that has begun, and does not go on before it is told to."""
    gate = model.gate()
    begin, *rest = said("Hi").steps
    return Answer((begin, gate, *rest)), gate


def post(url: str, body: Any) -> Live:
    return Live(url + CHAT, json.dumps(body).encode())


def test_one_more_than_the_gateway_takes_is_told_to_come_again(started: Started, model: ModelServer) -> None:
    url = started(ModelConfig(name="m", upstream=model.url), max_requests=2)
    answers, gates = zip(*(waiting(model) for _ in range(2)), strict=True)
    model.plays(*answers, said("Hi"))
    with post(url, BODY) as first, post(url, {**BODY, "stream": True}) as second:
        for gate in gates:
            gate.wait_until_reached()
        refused = request(url + CHAT, BODY)
        assert (refused.status, refused.error["code"]) == (429, "rate_limit_exceeded")
        assert refused.error["type"] == "rate_limit_error"
        assert refused.headers["retry-after"] == "1"
        assert request(f"{url}/healthz", method="GET").status == 200
        assert request(f"{url}/metrics", method="GET").status == 200
        for gate in gates:
            gate.open()
        assert b"Hi" in b"".join([*first.pieces(), *second.pieces()])
    assert request(url + CHAT, BODY).status == 200


def test_one_more_than_a_model_takes_waits_for_its_turn(started: Started, model: ModelServer) -> None:
    url = started(
        ModelConfig(name="patient", upstream=model.url, max_requests=1, queue_s=30),
        ModelConfig(name="hasty", upstream=model.url, max_requests=1, queue_s=0),
        ModelConfig(name="other", upstream=model.url),
    )
    for name in ("patient", "hasty"):
        answer, gate = waiting(model)
        model.plays(answer, said("Second"), said("Third"))
        body = {**BODY, "model": name}
        with post(url, body) as first:
            gate.wait_until_reached()
            with post(url, body) as second:
                if name == "hasty":
                    assert second.status == 429
                    assert second.headers["retry-after"] == "1"
                else:
                    assert request(url + CHAT, {**body, "model": "other"}).status == 200
                    assert len(model.asked) == 2  # the second one waits
                gate.open()
                assert b"Hi" in b"".join(first.pieces())
                assert second.status == (200 if name == "patient" else 429)
                assert list(second.pieces())


class Other:
    """Chooses this upstream instead of the model's own, whatever happens."""

    def __init__(self, upstream: ScriptedUpstream) -> None:
        self._upstream = upstream

    def start(self) -> None:
        pass

    async def choose(self, model: Model) -> Model:
        return msgspec.structs.replace(model, upstream=self._upstream)

    async def instead(self, model: Model, failure: RequestError | UpstreamError | Problem) -> Model | None:
        return msgspec.structs.replace(model, upstream=self._upstream)

    async def close(self) -> None:
        pass


def test_what_mode_auto_chooses_is_held_to_the_same_limits() -> None:
    async def story() -> None:
        traffic = AdmissionControl(10)
        own, other = ScriptedUpstream(["own"]), ScriptedUpstream(["other", "another"])
        fast_path = ConcurrencyLimit(own, traffic, 1, 0)
        model = Model("m", fast_path, "m")
        mode_selector = LimitedModeSelector(Other(other), fast_path)
        chosen = await mode_selector.choose(model)
        instead = await mode_selector.instead(model, RequestError("It does not look at it."))
        assert instead is not None
        asked = GenerationRequest("m", Conversation())
        async with aclosing(chosen.upstream.stream(asked)) as first:
            await anext(first)
            for taken in (fast_path, instead.upstream):
                with pytest.raises(RequestError, match="answers 1 requests already"):
                    await anext(taken.stream(asked))
        traffic.end()
        with pytest.raises(UpstreamError, match="shutting down"):
            await anext(instead.upstream.stream(asked))
        assert (len(own.asked), len(other.asked)) == (0, 1)

    asyncio.run(story())


# --- clients that do not read ---


def flood() -> Answer:
    """Much more than the buffers on the way hold."""
    event = b"".join(sse(chunk({"content": "x" * 65_000})))
    return Answer((event,) * 800, headers={"content-type": EVENTS})


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_a_client_that_reads_nothing_is_given_up(started: Started, model: ModelServer, path: str) -> None:
    url = started(ModelConfig(name="m", upstream=model.url), stall_s=0.2, heartbeat_s=0.1)
    model.plays(flood(), said("Hi"))
    body = {**BODY, "stream": True} if path == CHAT else {"model": "m", "input": "hi", "stream": True}
    with Live(url + path, json.dumps(body).encode()) as live:
        assert live.status == 200
        model.wait_until_left()
    assert request(url + CHAT, BODY).status == 200


def test_a_client_that_reads_slowly_is_not(started: Started, model: ModelServer) -> None:
    url = started(ModelConfig(name="m", upstream=model.url), stall_s=5, heartbeat_s=0.05)
    model.plays(Answer((*flood().steps[:100], *said("Hi").steps)))
    with post(url, {**BODY, "stream": True}) as live:
        *_, last = live.pieces()
    assert last == b"data: [DONE]\n\n"


def test_a_connection_that_reads_nothing_is_given_up(started: Started, model: ModelServer) -> None:
    websockets = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    url = started(ModelConfig(name="m", upstream=model.url), stall_s=0.2)
    model.plays(flood())
    # Its queue is full at once, and nobody takes anything out of it.
    how: dict[str, Any] = {"max_queue": 1, "compression": None, "close_timeout": 0.1}
    with websockets.connect(f"{url.replace('http', 'ws')}{RESPONSES}", **how) as connection:
        connection.send(json.dumps({"type": "response.create", "model": "m", "input": "hi"}))
        model.wait_until_left()
