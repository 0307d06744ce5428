"""What stands before the endpoints, over HTTP and WebSocket: strangers, too many at once, clients that do not read."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

import pytest

from callwright.conversation import Conversation
from callwright.errors import RequestError, UpstreamError
from callwright.events import Problem
from callwright.gateway.access.admission import AdmissionControl
from callwright.gateway.access.concurrency import ConcurrencyLimit
from callwright.gateway.config.config import Config, ModelConfig, ServerConfig
from callwright.settings import bounds
from callwright.turn.model import Events, Model
from callwright.turn.place import placed
from callwright.turn.run import run_turn
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
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    """Starts a gateway for this test alone, with other `times` of `callwright.settings.bounds`."""
    gateways: list[Gateway] = []

    def start(*models: ModelConfig, times: Mapping[str, float] = {}, **server: Any) -> str:
        for name, seconds in times.items():
            monkeypatch.setattr(bounds, name, seconds)
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
        ModelConfig(name="hasty", upstream=model.url, model="of-the-server", max_requests=1, queue_s=0),
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
                told = b"".join(second.pieces())
                assert (b"limit of requests at once (1)" in told) == (name == "hasty")
                assert b"of-the-server" not in told


class Other:
    """Chooses this upstream, and after a failure this one."""

    def __init__(self, upstream: ScriptedUpstream, instead: ScriptedUpstream | None = None) -> None:
        self._upstream = upstream
        self._instead = instead

    def start(self) -> None:
        pass

    async def choose(self, model: Model) -> Model:
        return Model("m", self._upstream, "m")

    async def instead(self, model: Model, failure: RequestError | UpstreamError | Problem) -> Model | None:
        instead, self._instead = self._instead, None
        return None if instead is None else Model("m", instead, "m")

    async def close(self) -> None:
        pass


def test_what_mode_auto_chooses_is_held_to_the_same_limits() -> None:
    async def story() -> None:
        traffic = AdmissionControl(10)
        own, other, instead = (ScriptedUpstream(["an answer"] * 3) for _ in range(3))
        limit = ConcurrencyLimit("own", traffic, 1, 0)

        def asked(selector: Other) -> Events:
            model = Model("m", own, "m", limit=limit, mode_selector=selector)
            return run_turn(model, Conversation(), {}, today="2026-11-01")

        async with aclosing(asked(Other(other))) as first:
            await anext(first)
            for selector in (Other(other), Other(other, instead)):
                with pytest.raises(RequestError, match="at its limit"):
                    await anext(asked(selector))
        assert not traffic.generations
        traffic.end()
        with pytest.raises(UpstreamError, match="shutting down"):
            await anext(asked(Other(other)))
        assert (len(own.asked), len(other.asked), len(instead.asked)) == (0, 1, 0)

    asyncio.run(story())


class Waits:
    """A server that never answers."""

    name = "waits"

    async def stream(self, _: object) -> Any:
        await asyncio.Event().wait()
        yield []


def test_who_waits_for_a_model_is_told_of_the_end_and_who_is_cancelled_is_cancelled() -> None:
    async def story() -> None:
        traffic = AdmissionControl(10)
        limit = ConcurrencyLimit("waits", traffic, None, 0)
        upstream: Any = Waits()

        def waiting() -> "asyncio.Task[object]":
            model = Model("m", upstream, "m", limit=limit)
            return asyncio.ensure_future(anext(run_turn(model, Conversation(), {}, today="2026-11-01"), None))

        cancelled, told = waiting(), waiting()
        generation = GenerationRequest("m", Conversation())
        handed = asyncio.ensure_future(anext(placed(limit, generation, upstream.stream(generation)), None))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait({cancelled})
        assert cancelled.cancelled()
        traffic.end()
        for task in (handed, told):
            with pytest.raises(UpstreamError, match="shutting down") as failed:
                await task
            assert failed.value.fault == "stopped"
            assert not task.cancelling()
        assert not traffic.generations

    asyncio.run(story())


# --- clients that do not read ---


def flood() -> Answer:
    """Much more than the buffers on the way hold."""
    event = b"".join(sse(chunk({"content": "x" * 65_000})))
    return Answer((event,) * 800, headers={"content-type": EVENTS})


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_a_client_that_reads_nothing_is_given_up(started: Started, model: ModelServer, path: str) -> None:
    url = started(ModelConfig(name="m", upstream=model.url), times={"STALL_S": 0.2, "HEARTBEAT_S": 0.1})
    model.plays(flood(), said("Hi"))
    body = {**BODY, "stream": True} if path == CHAT else {"model": "m", "input": "hi", "stream": True}
    with Live(url + path, json.dumps(body).encode()) as live:
        assert live.status == 200
        model.wait_until_left()
    assert request(url + CHAT, BODY).status == 200


def test_a_client_that_reads_slowly_is_not(started: Started, model: ModelServer) -> None:
    url = started(ModelConfig(name="m", upstream=model.url), times={"STALL_S": 5, "HEARTBEAT_S": 0.05})
    model.plays(Answer((*flood().steps[:100], *said("Hi").steps)))
    with post(url, {**BODY, "stream": True}) as live:
        *_, last = live.pieces()
    assert last == b"data: [DONE]\n\n"


def test_a_connection_that_reads_nothing_is_given_up(started: Started, model: ModelServer) -> None:
    websockets = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    url = started(ModelConfig(name="m", upstream=model.url), times={"STALL_S": 0.2})
    model.plays(flood())
    # Its queue is full at once, and nobody takes anything out of it.
    how: dict[str, Any] = {"max_queue": 1, "compression": None, "close_timeout": 0.1}
    with websockets.connect(f"{url.replace('http', 'ws')}{RESPONSES}", **how) as connection:
        connection.send(json.dumps({"type": "response.create", "model": "m", "input": "hi"}))
        model.wait_until_left()
