"""Connections and places, over sockets: how many there are, whose they are, and what waits on a WebSocket."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace
from starlette.types import Message, Scope
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.server import ServerState

from callwright.gateway.access.clients import EVERYBODY, Clients
from callwright.gateway.access.key_counters import KeyCounters
from callwright.gateway.access.keys import NOBODY, ApiKey, hash_of
from callwright.gateway.app import create_app
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig, ServerConfig
from callwright.gateway.connections import STATE, Connections
from callwright.gateway.endpoints import websocket as endpoint
from callwright.gateway.http import AsWritten, EventStream
from callwright.gateway.process.protocols.websocket import BoundedWebSocket
from callwright.gateway.process.serving import ProtocolSettings
from callwright.settings import bounds
from callwright.settings.bounds import Bounds
from tests.support.http_client import CHAT, Live, request
from tests.support.messages_client import MESSAGES
from tests.support.outputs import QUESTION
from tests.support.processes import gateway as process
from tests.support.responses_client import RESPONSES
from tests.support.servers import HOST, Answer, Gate, Gateway, ModelServer, said
from tests.support.waiting import PATIENCE_S, until

client = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
exceptions = pytest.importorskip("websockets.exceptions")

ANNA, BEN = "cw-anna-" + "a" * 40, "cw-ben-" + "b" * 40
DEFAULTS = Bounds()
BODY: dict[str, Any] = {"model": "m", "messages": [QUESTION]}
BODIES: dict[str, dict[str, Any]] = {
    CHAT: BODY,
    MESSAGES: {**BODY, "max_tokens": 50},
    RESPONSES: {"model": "m", "input": "hi"},
}
TURN = json.dumps({"type": "response.create", "model": "m", "input": "hi"})
Started = Callable[..., Gateway]


@pytest.fixture
def started(model: ModelServer) -> Iterator[Started]:
    """Starts a gateway before the model server for this test alone."""
    with ExitStack() as stack:

        def start(limits: Bounds = DEFAULTS, keys: tuple[KeyConfig, ...] = (), **server: Any) -> Gateway:
            models = (ModelConfig(name="m", upstream=model.url),)
            gateway = Gateway(Config(models=models, server=ServerConfig(**server), limits=limits, keys=keys))
            stack.callback(gateway.stop)
            return gateway

        yield start


def connected(gateway: Gateway | str, key: str = "", **how: Any) -> Any:
    url = gateway if isinstance(gateway, str) else gateway.url
    headers = {"authorization": f"Bearer {key}"} if key else {}
    address = f"{url.replace('http', 'ws')}{RESPONSES}"
    return client.connect(address, additional_headers=headers, **{"compression": None, "max_size": None, **how})


def slow(model: ModelServer) -> tuple[Answer, Gate]:
    """An answer that waits before its end."""
    begin, *rest = said("Hi").steps
    gate = model.gate()
    return Answer((begin, gate, *rest)), gate


def asked(gateway: Gateway, key: str = "", path: str = CHAT, **headers: str) -> Live:
    if key:
        headers["authorization"] = f"Bearer {key}"
    return Live(gateway.url + path, json.dumps({**BODIES[path], "stream": True}).encode(), headers=headers)


def refusal(live: Live, path: str = CHAT) -> dict[str, Any]:
    assert (live.status, live.headers["retry-after"]) == (429, "1")
    told = json.loads(b"".join(live.pieces()))
    error: dict[str, Any] = told["error"]
    assert error["type"] == "rate_limit_error"
    assert told.get("type") == ("error" if path == MESSAGES else None)
    assert error.get("code") == (None if path == MESSAGES else "rate_limit_exceeded")
    return error


def frame(connection: Any) -> Any:
    return json.loads(connection.recv(PATIENCE_S))


def last_of_turn(connection: Any) -> Any:
    while (event := frame(connection))["type"] not in ("response.completed", "response.failed", "error"):
        pass
    return event


def silent(gateway: Gateway) -> socket.socket:
    return socket.create_connection((HOST, gateway.port), timeout=PATIENCE_S)


def is_closed(one: socket.socket) -> bool:
    """Whether the gateway has closed a silent connection, as far as can be seen."""
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    finally:
        one.settimeout(PATIENCE_S)


# --- connections ---


def is_answered(gateway: Gateway, door: str) -> bool:
    if door != "websocket":
        return request(gateway.url + door, BODIES[door]).status == 200
    with connected(gateway) as connection:
        connection.send(TURN)
        return bool(last_of_turn(connection)["type"] == "response.completed")


@pytest.mark.parametrize("door", [*BODIES, "websocket"])
def test_silent_connections_lock_nobody_out_and_the_first_of_them_end_first(
    started: Started, model: ModelServer, door: str
) -> None:
    gateway = started(Bounds(max_connections=8))
    model.plays(said("Hi"))
    with ExitStack() as stack:
        silent_ones = [stack.enter_context(closing(silent(gateway))) for _ in range(30)]
        assert is_answered(gateway, door)
        until(lambda: all(map(is_closed, silent_ones[:23])))
        assert not any(map(is_closed, silent_ones[23:]))


def test_what_is_under_way_goes_on_while_others_open_connections(started: Started, model: ModelServer) -> None:
    gateway = started(Bounds(max_connections=4))
    answer, gate = slow(model)
    model.plays(answer, said("Hi"))
    with asked(gateway) as live, connected(gateway) as idle:
        gate.wait_until_reached()
        with ExitStack() as stack:
            silent_ones = [stack.enter_context(closing(silent(gateway))) for _ in range(10)]
            until(lambda: all(map(is_closed, silent_ones[:8])))
            idle.send(TURN)  # silent connections end before one on which something was asked
            assert last_of_turn(idle)["type"] == "response.completed"
        gate.open()
        assert b"".join(live.pieces()).endswith(b"data: [DONE]\n\n")


def test_a_websocket_with_nothing_under_way_makes_room(started: Started, model: ModelServer) -> None:
    gateway = started(Bounds(max_connections=2))
    answer, gate = slow(model)
    model.plays(answer)
    with connected(gateway) as first, connected(gateway) as second:
        second.send(TURN)
        gate.wait_until_reached()
        assert request(f"{gateway.url}/healthz", method="GET").status == 200
        told = frame(first)
        assert (told["status"], told["error"]["code"]) == (429, "rate_limit_exceeded")
        assert "Open another one" in told["error"]["message"]
        with pytest.raises(exceptions.ConnectionClosedError) as closed:
            first.recv(PATIENCE_S)
        assert closed.value.rcvd.code == 1013
        gate.open()
        assert last_of_turn(second)["type"] == "response.completed"


def test_where_something_is_under_way_on_all_of_them_one_more_is_told(started: Started, model: ModelServer) -> None:
    gateway = started(Bounds(max_connections=1))
    answer, gate = slow(model)
    model.plays(answer, said("Hi"))
    with asked(gateway) as live:
        gate.wait_until_reached()
        with closing(silent(gateway)) as second, second.makefile("rb") as came:
            assert came.readline() == b"HTTP/1.1 429 Too Many Requests\r\n"
            assert b"max_connections" in came.read()
        gate.open()
        assert live.status == 200
        assert list(live.pieces())
    until(lambda: request_status(gateway) == 200)


def request_status(gateway: Gateway) -> int:
    return request(gateway.url + CHAT, BODY).status


def test_a_connection_that_is_kept_is_no_silent_one() -> None:
    ended: list[str] = []
    connections = Connections(2)
    first = connections.register(lambda: ended.append("first"))
    second = connections.register(lambda: ended.append("second"))
    assert first is not None
    assert second is not None
    first.busy()
    first.idle(lambda: ended.append("first, kept"))
    third = connections.register(lambda: ended.append("third"))
    assert third is not None
    assert ended == ["second"]
    third.busy()
    assert connections.register(lambda: None) is not None
    assert ended == ["second", "first, kept"]
    for each in (first, second, third, third):
        each.closed()
    assert len(connections) == 1


def test_a_stream_whose_client_goes_before_its_first_event_is_ended_too() -> None:
    ended: list[str] = []

    async def events() -> AsyncGenerator[list[bytes], None]:
        try:
            await asyncio.Event().wait()
            yield []
        finally:
            ended.append("events")

    async def send(_: Message) -> None:
        pass

    connection = Connections(1).register(lambda: None)
    assert connection is not None
    connection.closed()

    async def answered() -> None:
        stream = EventStream(events(), AsWritten(bytes))
        await stream({"type": "http", "state": {STATE: connection}}, Mock(), send)

    asyncio.run(answered())
    assert ended == ["events"]


def test_a_heartbeat_that_cannot_be_written_ends_the_stream_and_is_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "HEARTBEAT_S", 0.0)

    async def events() -> AsyncGenerator[list[bytes], None]:
        await asyncio.Event().wait()
        yield []

    async def send(_: Message) -> None:
        pass

    def heartbeat() -> bytes:
        raise ValueError("no beat")

    connection = Connections(1).register(lambda: None)

    async def answered() -> None:
        stream = EventStream(events(), AsWritten(heartbeat))
        await stream({"type": "http", "state": {STATE: connection}}, Mock(), send)

    asyncio.run(answered())
    assert "no beat" in caplog.text


# --- places ---


def test_a_silent_websocket_takes_no_place(started: Started, model: ModelServer) -> None:
    gateway = started(max_requests=1)
    answer, gate = slow(model)
    model.plays(said("Hi"), answer, said("Hi"))
    with connected(gateway) as first, connected(gateway) as second, connected(gateway):
        assert request(gateway.url + CHAT, BODY).status == 200
        first.send(TURN)
        gate.wait_until_reached()
        second.send(TURN)
        told = frame(second)
        assert (told["type"], told["status"], told["error"]["code"]) == ("error", 429, "rate_limit_exceeded")
        assert told["headers"] == {"retry-after": "1"}
        gate.open()
        assert last_of_turn(first)["type"] == "response.completed"
        second.send(TURN)
        assert last_of_turn(second)["type"] == "response.completed"


KEYS = (
    KeyConfig(name="anna", sha256=hash_of(ANNA), max_requests=3),
    KeyConfig(name="ben", sha256=hash_of(BEN)),
)


def test_a_key_has_its_share_of_places_whichever_way_it_takes_them(started: Started, model: ModelServer) -> None:
    anna, ben = KEYS
    gateway = started(Bounds(max_requests_per_key=1), (replace(anna, max_requests=4), ben))
    answers, gates = zip(*(slow(model) for _ in range(5)), strict=True)
    model.plays(*answers)
    queued = {"model": "m", "input": "hi", "background": True}
    with (
        connected(gateway, ANNA) as turn,
        asked(gateway, ANNA) as stream,
        asked(gateway, ANNA, MESSAGES) as message,
    ):
        gates[0].wait_until_reached()
        gates[1].wait_until_reached()
        turn.send(TURN)
        gates[2].wait_until_reached()
        headers = {"authorization": f"Bearer {ANNA}"}
        assert request(gateway.url + RESPONSES, queued, headers=headers).status == 200
        gates[3].wait_until_reached()
        for path in BODIES:
            with asked(gateway, ANNA, path) as one_more:
                told = refusal(one_more, path)["message"]
            assert told.startswith("The key 'anna' has 4 requests under way already, which is its limit.")
            assert "max_requests_per_key" in told
        turn.send(TURN)  # behind its own turn
        with asked(gateway, BEN, MESSAGES) as other:
            gates[4].wait_until_reached()
            for path in BODIES:
                with asked(gateway, BEN, path) as one_more:
                    told = refusal(one_more, path)["message"]
                assert told.startswith("The key 'ben' has 1 requests under way already")
            for gate in gates:
                gate.open()
            assert b"".join(stream.pieces()).endswith(b"data: [DONE]\n\n")
            for live in (message, other):
                assert b"event: message_stop\n" in b"".join(live.pieces())


def test_a_key_has_so_many_websockets(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_CONNECTIONS_PER_KEY", 2)
    gateway = started(keys=KEYS)
    with connected(gateway, ANNA), connected(gateway, ANNA) as second:
        with pytest.raises(exceptions.InvalidStatus) as refused, connected(gateway, ANNA):
            pass
        answer = refused.value.response
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        assert "The key 'anna' has 2 WebSockets open already" in json.loads(answer.body)["error"]["message"]
        with connected(gateway, BEN):
            pass
        second.close()
        until(lambda: connects(gateway, ANNA))


def connects(gateway: Gateway, key: str) -> bool:
    try:
        connected(gateway, key).close()
    except exceptions.InvalidStatus:
        return False
    return True


def test_without_keys_each_address_but_this_machines_own_has_its_share(started: Started, model: ModelServer) -> None:
    gateway = started(Bounds(max_requests_per_key=1))
    answers, gates = zip(*(slow(model) for _ in range(4)), strict=True)
    model.plays(*answers)
    first, second = ({"x-forwarded-for": f"192.0.2.{number}"} for number in (1, 2))
    with asked(gateway, **first), asked(gateway, **second), asked(gateway), asked(gateway):
        for gate in gates:
            gate.wait_until_reached()
        with asked(gateway, **first) as one_more:
            assert refusal(one_more)["message"].startswith("This address has 1 requests under way already")
        for gate in gates:
            gate.open()


def scope(address: str) -> Scope:
    return {"type": "http", "client": (address, 1)}


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:127.0.0.1", ""),
        ("127.0.0.9", ""),
        ("::1", ""),
        ("unknown", ""),
    ],
)
def test_an_address_counts_with_those_that_have_the_same_owner(address: str, counted: str) -> None:
    found = Clients(Bounds()).client(NOBODY, scope(address))
    assert found.name == counted
    assert (found == EVERYBODY) is (counted == "")


def test_workers_count_the_places_of_a_key_together_and_one_that_is_killed_leaves_none(tmp_path: Path) -> None:
    names = [key.name for key in KEYS]
    counters = [KeyCounters(names, 2, tmp_path / "limits") for _ in range(2)]
    one, two = (Clients(Bounds(), KEYS, each, worker) for worker, each in enumerate(counters))
    anna = one.client(ApiKey(KEYS[0]), scope("192.0.2.1"))
    assert [each.take(anna, "requests") for each in (one, two, one, two)] == [True, True, True, False]
    assert two.take(anna, "connections")
    one.give_back(anna, "requests")
    assert two.take(anna, "requests")
    again = Clients(Bounds(), KEYS, counters[1], 1)  # the second worker was killed, and is started again
    assert [again.take(anna, "requests") for _ in range(3)] == [True, True, False]
    limits = counters[0].limits(KEYS[0].name)
    assert [counters[0].counters.numbers[limits + number] for number in range(6)] == [0] * 6  # which are no places


def test_workers_share_what_an_address_may_have() -> None:
    address = Clients(Bounds(max_requests_per_key=5), counters=KeyCounters(workers=2)).client(
        NOBODY, scope("192.0.2.1")
    )
    assert address.requests == 3


# --- silence ---


@pytest.mark.parametrize("turns", [0, 1])
def test_a_websocket_on_which_nothing_is_asked_for_long_is_closed(
    started: Started, model: ModelServer, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "IDLE_S", 0.3)
    gateway = started()
    model.plays(said("Hi"))
    with connected(gateway) as connection:
        for _ in range(turns):
            connection.send(TURN)
            assert last_of_turn(connection)["type"] == "response.completed"
        told = frame(connection)
        assert (told["status"], told["error"]["code"]) == (408, "websocket_idle_limit_reached")
        assert "for 0.3 s" in told["error"]["message"]
        with pytest.raises(exceptions.ConnectionClosedError) as closed:
            connection.recv(PATIENCE_S)
        assert closed.value.rcvd.code == 1013


def test_a_turn_may_take_longer_than_that(
    started: Started, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "IDLE_S", 0.2)
    monkeypatch.setattr(bounds, "HEARTBEAT_S", 0.1)
    gateway = started()
    answer, gate = slow(model)
    model.plays(answer)
    with connected(gateway) as connection:
        connection.send(TURN)
        for _ in range(8):
            frame(connection)  # a heartbeat, mostly
        gate.open()
        assert last_of_turn(connection)["type"] == "response.completed"


@pytest.mark.processes
def test_a_message_that_has_begun_must_come() -> None:
    with process("--store", "none", RECEIVE_S=0.2) as (url, _), connected(url) as connection:
        connection.socket.sendall(b"\x81\xff" + (10_000).to_bytes(8, "big") + b"mask" + b"x" * 100)
        with pytest.raises(exceptions.ConnectionClosedError) as closed:
            connection.recv(PATIENCE_S)
        assert closed.value.rcvd.code == 1008


# --- what waits on a WebSocket ---

FRAME = json.dumps({"type": "x", "padding": "a" * 100_000})
LARGEST, MOST = 200_000, 1_000_000


class Taken:
    """What the gateway has read of WebSockets, and what waits on them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        self.waiting: list[Any] = []
        received = BoundedWebSocket.data_received

        def counted(protocol: BoundedWebSocket, data: bytes) -> None:
            self.bytes += len(data)
            received(protocol, data)

        class Kept(endpoint._WaitingBytes):
            def __init__(kept, *given: int) -> None:  # noqa: N805
                super().__init__(*given)
                self.waiting.append(kept)

        monkeypatch.setattr(BoundedWebSocket, "data_received", counted)
        monkeypatch.setattr(endpoint, "_WaitingBytes", Kept)

    @property
    def is_full(self) -> bool:
        return any(each.of_all + LARGEST > MOST for each in self.waiting)


def test_behind_a_turn_no_more_bytes_are_read_than_may_wait(
    started: Started, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = Taken(monkeypatch)
    monkeypatch.setattr(bounds, "MAX_WAITING_BYTES", MOST)
    gateway = started(max_body_bytes=LARGEST)
    answer, gate = slow(model)
    model.plays(answer)
    with connected(gateway) as connection:
        connection.send(TURN)
        gate.wait_until_reached()
        sending = threading.Thread(target=lambda: [connection.send(FRAME) for _ in range(30)])
        sending.start()
        until(lambda: taken.is_full)
        assert taken.bytes <= MOST + 262_144  # and one read
        gate.open()
        assert last_of_turn(connection)["type"] == "response.completed"
        told = [frame(connection)["error"]["code"] for _ in range(30)]
        assert told == ["invalid_value"] * 30
        sending.join()
    until(lambda: taken.waiting[0].of_all == 0)


def test_the_first_frame_that_waits_is_always_read_and_more_only_while_all_have_room() -> None:
    async def has_room(frames: Any) -> bool:
        task = asyncio.create_task(frames.room())
        await asyncio.sleep(0)
        task.cancel()
        return task.done()

    async def story() -> None:
        waiting = endpoint._WaitingBytes(1_000, 100)
        one, other = endpoint._WaitingFrames(waiting), endpoint._WaitingFrames(waiting)
        waiting.of_all = 1_000 * 8
        assert other.put("x")
        assert await has_room(one)
        assert not await has_room(other)
        waiting.of_all = 1
        assert await has_room(other)
        assert other.put("x" * 950)
        assert not await has_room(other)
        other.clear()
        assert waiting.of_all == 0

    asyncio.run(story())


def test_a_small_frame_cannot_stand_for_a_large_one(started: Started) -> None:
    with connected(started(), compression="deflate") as connection:
        assert connection.protocol.extensions == []


def test_a_message_has_so_many_frames(started: Started) -> None:
    gateway = started()
    with connected(gateway) as connection:
        connection.send("{}"[number : number + 1] for number in range(4_095))
        assert frame(connection)["error"]["code"] == "missing_required_parameter"
        with pytest.raises(exceptions.ConnectionClosed):
            connection.send("" for _ in range(200_000))


def masked(opcode: int, data: bytes) -> bytes:
    """A client's frame, with a mask of zeros."""
    return bytes([0x80 | opcode, 0x80 | len(data), 0, 0, 0, 0]) + data


@pytest.mark.parametrize("behind", [b"", masked(8, b""), masked(8, b"\x03\xe8"), masked(1, b"\x92")])
@pytest.mark.parametrize("text", [masked(1, b"\x92"), bytes([0x01, 0x81, 0, 0, 0, 0]) + b"\xc3" + masked(0, b"(")])
def test_a_text_that_is_no_utf8_ends_the_connection_and_is_no_fault_of_the_gateway(
    started: Started, model: ModelServer, caplog: pytest.LogCaptureFixture, text: bytes, behind: bytes
) -> None:
    gateway = started()
    with connected(gateway) as connection:
        connection.socket.sendall(text + behind)
        with pytest.raises(exceptions.ConnectionClosed) as closed:
            connection.recv(PATIENCE_S)
        if behind[:1] != b"\x88":
            assert closed.value.rcvd.code == 1007
    model.plays(said("Hi"))
    assert request_status(gateway) == 200
    assert not [record for record in caplog.records if record.exc_info or record.levelname == "ERROR"]


def test_pings_come_so_often(started: Started) -> None:
    gateway = started()
    with connected(gateway) as connection:
        for _ in range(50):
            assert connection.ping().wait(PATIENCE_S)
        with pytest.raises((exceptions.ConnectionClosed, OSError)):
            all(connection.ping() for _ in range(100_000))


def test_tiny_messages_keep_nobody_waiting_and_are_all_answered(started: Started, model: ModelServer) -> None:
    gateway = started()
    with connected(gateway) as connection:
        sending = threading.Thread(target=lambda: [connection.send("1") for _ in range(1_000)])
        sending.start()
        told = [frame(connection)["status"] for _ in range(1_000)]
        assert set(told) <= {400, 429}
        sending.join()
        model.plays(said("Hi"))
        connection.send(TURN)
        assert last_of_turn(connection)["type"] == "response.completed"


def test_what_is_sent_behind_a_close_is_as_if_the_client_had_left() -> None:
    """The window between both is small: the client has broken the protocol, and has not read what it was sent."""

    async def story() -> None:
        config = Config(models=(ModelConfig(name="m", upstream="simulated"),))
        settings = ProtocolSettings(create_app(config), config, log_config=None)
        protocol = BoundedWebSocket(settings, ServerState(), {})
        protocol.handshake_complete = protocol.close_sent = True
        with pytest.raises(ClientDisconnected):
            await protocol.send({"type": "websocket.send", "text": "x"})

    asyncio.run(story())


def test_a_client_that_is_not_read_is_not_given_up_for_a_pong() -> None:
    async def story() -> None:
        config = Config(models=(ModelConfig(name="m", upstream="simulated"),))
        settings = ProtocolSettings(create_app(config), config, log_config=None)
        protocol = BoundedWebSocket(settings, ServerState(), {})
        protocol.transport = Mock(**{"is_closing.return_value": False})
        protocol._is_stopped = True
        protocol.keepalive_timeout()
        assert protocol.pong_timer is not None
        protocol.transport.close.assert_not_called()
        protocol.stop_keepalive()

    asyncio.run(story())
