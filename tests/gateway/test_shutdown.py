"""Gateways that are told to end: real processes, real signals."""

import json
import signal
import sys
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from callwright.gateway.access.admission import AdmissionControl
from callwright.gateway.process.serving import Drain
from tests.support.http_client import CHAT, Live, Reply, request
from tests.support.outputs import QUESTION
from tests.support.processes import gateway
from tests.support.responses_client import RESPONSES, checked, read_events
from tests.support.servers import Answer, Gate, ModelServer, said
from tests.support.waiting import PATIENCE_S

pytestmark = [pytest.mark.processes, pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM")]
LONG_S, SHORT_S = 60.0, 0.2
CHAT_BODY: dict[str, Any] = {"model": "any", "messages": [QUESTION], "stream": True}
BODY: dict[str, Any] = {"model": "any", "input": "Tell me.", "stream": True}


def serving(folder: Path, model: ModelServer, drain_s: float) -> AbstractContextManager[tuple[str, "Popen[bytes]"]]:
    config = folder / "callwright.toml"
    config.write_text(
        f'[server]\ndrain_s = {drain_s}\n[store]\nurl = "sqlite:///{folder}/kept.db"\n'
        f'[[models]]\nname = "*"\nupstream = "{model.url}"\nmode = "native"\n'
    )
    return gateway("--config", str(config), HEARTBEAT_S=0.2)


def half(model: ModelServer) -> tuple[Answer, Gate]:
    """An answer that waits in its middle."""
    gate, answer = model.gate(), said("The first half", " and the second.")
    return Answer((*answer.steps[:2], gate, *answer.steps[2:])), gate


def post(url: str, body: Any) -> Live:
    return Live(url, json.dumps(body).encode())


def rest(live: Live) -> Reply:
    return Reply(live.status, live.headers, tuple(live.pieces()))


def when_draining(url: str) -> Reply:
    """What `/healthz` answers once the gateway ends."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        reply = request(f"{url}/healthz", method="GET")
        if reply.status != 200:
            return reply
    raise AssertionError("the gateway does not drain")


def contents(events: list[Any]) -> str:
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event.get("choices"))


def test_what_is_under_way_goes_on_to_its_end_and_nothing_new_is_taken(model: ModelServer, tmp_path: Path) -> None:
    answer, gate = half(model)
    model.plays(answer)
    with serving(tmp_path, model, LONG_S) as (url, process), post(url + CHAT, CHAT_BODY) as live:
        gate.wait_until_reached()
        process.send_signal(signal.SIGTERM)
        health = when_draining(url)
        assert (health.status, health.json["status"]) == (503, "draining")
        refused = request(url + CHAT, CHAT_BODY)
        assert (refused.status, refused.error["code"]) == (503, "shutting_down")
        assert refused.headers["retry-after"] == "1"
        assert request(f"{url}/metrics", method="GET").status == 200
        gate.open()
        assert contents(rest(live).events) == "The first half and the second."
        assert process.wait(PATIENCE_S) == 0


def test_a_gateway_with_nothing_to_do_ends_at_once(model: ModelServer, tmp_path: Path) -> None:
    with serving(tmp_path, model, LONG_S) as (url, process):
        assert request(f"{url}/healthz", method="GET").status == 200  # it heeds signals from here on
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("signals", [1, 2], ids=["after a while", "at a second signal"])
def test_what_is_left_then_ends_with_its_last_event(model: ModelServer, tmp_path: Path, signals: int) -> None:
    answers, gates = zip(*(half(model) for _ in range(4)), strict=True)
    model.plays(*answers)
    with serving(tmp_path, model, SHORT_S if signals == 1 else LONG_S) as (url, process):
        chat, whole = post(url + CHAT, CHAT_BODY), post(url + CHAT, {**CHAT_BODY, "stream": False})
        response = post(url + RESPONSES, BODY)
        queued = request(url + RESPONSES, {**BODY, "stream": False, "background": True}).json
        with chat, whole, response:
            for gate in gates:
                gate.wait_until_reached()
            process.send_signal(signal.SIGTERM)
            if signals == 2:
                when_draining(url)
                process.send_signal(signal.SIGTERM)
            *events, error = rest(chat).events
            assert contents(events) == "The first half"
            assert (error["error"]["type"], error["error"]["code"]) == ("server_error", "upstream_stopped")
            refused = rest(whole)
            assert (refused.status, refused.error["code"]) == (503, "upstream_stopped")
            failed = checked(read_events(rest(response)))
            assert (failed["status"], failed["error"]["code"]) == ("failed", "server_error")
            assert failed["output"][0]["content"][0]["text"] == "The first half"
            assert process.wait(PATIENCE_S) == 0
    model.wait_until_left()
    with serving(tmp_path, model, LONG_S) as (url, _):
        stored = request(f"{url}{RESPONSES}/{queued['id']}", method="GET").json
    assert stored["status"] == "failed"
    assert "shutting down" in stored["error"]["message"]


def test_there_is_time_for_last_events_while_answers_end() -> None:
    now = 0.0
    traffic = AdmissionControl(10)
    drain = Drain(traffic, 20, lambda: now)
    assert not drain.is_over()
    drain.tell()
    with ExitStack() as third, ExitStack() as second, ExitStack() as first:
        for place in (first, second, third):
            place.enter_context(traffic.under_way(limited=False))
        for now, ends, is_over in (
            (19.0, None, False),
            (20.0, None, False),
            (24.0, first, False),
            (28.0, second, False),
            (32.0, None, False),
            (34.0, None, True),
        ):
            if ends is not None:
                ends.close()
            assert drain.is_over() is is_over, now
            assert traffic.is_over is (now >= 20)
    assert drain.is_over()


def frames(socket: Any) -> list[Any]:
    """What comes until the connection is closed, which it is by 1012, the service restarts."""
    exceptions = pytest.importorskip("websockets.exceptions")
    found: list[Any] = []
    code = None
    while code is None:
        try:
            found.append(json.loads(socket.recv(PATIENCE_S)))
        except exceptions.ConnectionClosedError as closed:
            code = closed.rcvd.code
    assert code == 1012
    return found


def test_a_connection_ends_with_the_turn_that_is_answered(model: ModelServer, tmp_path: Path) -> None:
    websockets = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    answer, gate = half(model)
    model.plays(answer)
    with serving(tmp_path, model, SHORT_S) as (url, process):
        address = f"{url.replace('http', 'ws')}{RESPONSES}"
        with websockets.connect(address) as idle, websockets.connect(address) as busy:
            busy.send(json.dumps({"type": "response.create", "model": "any", "input": "Tell me."}))
            gate.wait_until_reached()
            process.send_signal(signal.SIGTERM)
            assert [frame["error"]["code"] for frame in frames(idle)] == ["shutting_down"]
            *events, failed, last = frames(busy)
            assert events[0]["type"] == "response.created"
            assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed")
            assert (last["type"], last["status"], last["error"]["code"]) == ("error", 503, "shutting_down")
        assert process.wait(PATIENCE_S) == 0
