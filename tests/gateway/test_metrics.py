"""`GET /metrics`, scraped as Prometheus does it: what a request, a turn and a call count as."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.sync.client import connect

from callwright.events import PROBLEM_KINDS
from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig, ServerConfig
from callwright.gateway.endpoints.websocket import ENDPOINT
from callwright.turn.call_outcome import call_outcome
from callwright.turn.observe import SeenCall
from tests.conftest import Served
from tests.support.http_client import CHAT, Live, request
from tests.support.outputs import QUESTION, TOOLS, block
from tests.support.responses_client import RESPONSES, body
from tests.support.servers import Answer, Gateway, ModelServer, call_deltas, chat, chunk, completion, said, sse, whole

Sample: TypeAlias = tuple[str, frozenset[tuple[str, str]]]
Scrape: TypeAlias = Callable[..., float]


def settled(url: str) -> dict[Sample, float]:
    """The samples once nothing but the scrape is in flight: a client hears the end of its answer before it counts."""
    while value(samples := scraped(url), "requests_in_flight") > 1:
        pass
    return samples


def scraped(url: str) -> dict[Sample, float]:
    """Every sample of a gateway, by name and labels."""
    reply = request(f"{url}/metrics", method="GET")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(reply.text)
    samples = [sample for family in families for sample in family.samples]
    return {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}


def value(samples: dict[Sample, float], name: str, **labels: str) -> float:
    """The sum of the samples of a name that have these labels."""
    wanted = labels.items()
    return sum(number for (own, found), number in samples.items() if own == f"callwright_{name}" and found >= wanted)


@pytest.fixture
def gateway(model: ModelServer) -> Iterator[str]:
    """A gateway of its own, so that nothing is counted but what the test does."""
    ways: dict[str, dict[str, Any]] = {
        "native": {},
        "hermes": {"mode": "raw", "dialect": "hermes", "server": "vllm", "retries": 1},
        "caching": {"mode": "raw", "dialect": "hermes", "server": "llamacpp"},
        "*": {"retries": 0},
    }
    models = tuple(ModelConfig(name=name, upstream=model.url, **how) for name, how in ways.items())
    gateway = Gateway(Config(models=models))
    yield gateway.url
    gateway.stop()


def asked(url: str, model: str = "native", **fields: Any) -> int:
    return request(url + CHAT, {"model": model, "messages": [QUESTION], "tools": TOOLS, **fields}).status


PARIS = '{"city": "Paris"}'


@pytest.mark.parametrize(
    ("answers", "counted"),
    [
        ([completion(block("get_weather", PARIS))], {"right": 1}),
        ([completion(block("get_weather", "{'city': 'Paris'}"))], {"repaired": 1}),
        ([completion(block("get_weather", PARIS)[:40], finish="length")], {"truncated": 1}),
        ([completion(block("get_weather", PARIS)[:60], finish="length")], {"truncated": 1}),
        ([completion(block("get_whether_or_not", PARIS))] * 2, {"unknown_tool": 1}),
        ([completion(block("get_weather", '{"town": 7}'))] * 2, {"invalid": 1}),
        ([completion(block("get_weather", '{"town": 7}')), completion(block("get_weather", PARIS))], {"right": 1}),
        ([completion("It rains.")], {}),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_call_counts_as_what_it_was(
    gateway: str, model: ModelServer, answers: list[Answer], counted: dict[str, int], stream: bool
) -> None:
    model.plays(*(answers if not stream else answers[-1:]))
    assert asked(gateway, "hermes", stream=stream) == 200
    samples = settled(gateway)
    counts = {labels: number for (name, labels), number in samples.items() if name == "callwright_calls_total"}
    outcomes = {dict(labels)["outcome"]: number for labels, number in counts.items()}
    assert outcomes == counted
    assert value(samples, "calls_total", model="hermes", dialect="hermes") == sum(counted.values())
    assert value(samples, "retries_total", model="hermes") == len(model.asked) - 1


def test_a_call_that_the_server_printed_as_text_has_leaked(gateway: str, model: ModelServer) -> None:
    model.plays(said(block("get_weather", PARIS)))
    assert asked(gateway) == 200
    samples = settled(gateway)
    assert value(samples, "calls_total", model="native", dialect="none", outcome="leaked") == 1
    assert value(samples, "problems_total", model="native", kind="call_in_text") == 1


def test_a_call_that_may_not_leave_is_refused(gateway: str, model: ModelServer) -> None:
    model.plays(chat(*call_deltas("get_weather", PARIS), finish="tool_calls"))
    assert asked(gateway, tool_choice="none") == 200
    model.plays(said("No."))
    assert asked(gateway, "any", tool_choice="required") == 502
    samples = settled(gateway)
    assert value(samples, "calls_total", model="native", outcome="refused") == 1
    assert value(samples, "calls_total", model="*", outcome="refused") == 1
    assert value(samples, "upstream_errors_total", model="*", fault="unmet") == 1
    assert value(samples, "choices_total", choice="none", kept="yes") == 1
    assert value(samples, "choices_total", choice="required", kept="no") == 1


def test_what_of_a_prompt_is_read_again_is_counted(gateway: str, model: ModelServer) -> None:
    model.plays(*(completion("Hi<|im_end|>", "llamacpp") for _ in range(3)))
    name = "caching"
    for words in ("one", "two", "one"):  # 11 tokens each, of which 4 were in the cache
        assert request(gateway + CHAT, {"model": name, "messages": [{"role": "user", "content": words}]}).status == 200
    samples = settled(gateway)
    assert value(samples, "repeated_tokens_total", model=name, kind="all") == 11
    assert value(samples, "repeated_tokens_total", model=name, kind="read_again") == 7


@pytest.mark.parametrize("kind", PROBLEM_KINDS)
def test_every_problem_leaves_a_call_with_an_outcome(kind: str) -> None:
    assert call_outcome(SeenCall("f", problems=[kind])) != "right"


def test_requests_tokens_and_times_are_counted(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"), said("Hi"), whole({"error": {"message": "broken"}}, 500))
    assert asked(gateway, stream=True) == 200
    assert request(gateway + RESPONSES, body("native")).status == 200
    assert asked(gateway, "served/by-name") == 502
    assert request(gateway + CHAT, b"{").status == 400
    assert request(f"{gateway}/v1/else", method="GET").status == 404
    samples = settled(gateway)
    assert value(samples, "requests_total", endpoint=CHAT, model="native", status="200") == 1
    assert value(samples, "requests_total", endpoint=RESPONSES, model="native", status="200") == 1
    assert value(samples, "requests_total", endpoint=CHAT, model="*", status="502") == 1
    assert value(samples, "requests_total", endpoint=CHAT, model="none", status="400") == 1
    assert value(samples, "requests_total", endpoint="other", model="none", status="404") == 1
    assert value(samples, "request_seconds_count", endpoint=CHAT, model="native") == 1
    assert value(samples, "first_event_seconds_count", model="native") == 2
    assert value(samples, "tokens_total", model="native", kind="input") == 22
    assert value(samples, "tokens_total", model="native", kind="output") == 14
    assert value(samples, "upstream_errors_total", model="*", fault="status") == 1
    assert value(samples, "turns_total", model="native", reason="stop") == 2
    assert value(samples, "turns_total", model="*", reason="failed") == 1
    assert value(samples, "store_operations_total", operation="put_response", outcome="ok") == 1
    assert value(samples, "requests_in_flight") == 1  # the scrape itself


def test_tasks_come_back_to_what_they_were(serve: Served, model: ModelServer) -> None:
    # A gateway of its own: no connection of another test ends while the tasks are counted.
    gateway = serve(ModelConfig(name="native", upstream=model.url, model="served/native"), drain_s=7)
    gate, answer = model.gate(), said("Hi")
    model.plays(answer, Answer((*answer.steps[:2], gate, *answer.steps[2:])))
    assert asked(gateway) == 200
    before = value(settled(gateway), "tasks")
    while (now := value(settled(gateway), "tasks")) < before:
        before = now
    with Live(f"{gateway}{CHAT}", json.dumps({"model": "native", "messages": [QUESTION], "stream": True}).encode()):
        gate.wait_until_reached()
        during = value(scraped(gateway), "tasks")
        gate.open()
    # `before` may hold a task that was about to end, so it is not compared with `during`.
    while (after := value(settled(gateway), "tasks")) > before or after >= during:
        pass


def test_a_stream_that_its_client_ends_is_counted(gateway: str, model: ModelServer) -> None:
    gate = model.gate()
    model.plays(Answer((*sse(chunk({"role": "assistant", "content": "Hi"})), gate, "silence")))
    fields = b'{"model": "native", "stream": true, "messages": [{"role": "user", "content": "x"}]}'
    with Live(gateway + CHAT, fields) as live:
        next(live.pieces())
        assert value(scraped(gateway), "requests_in_flight") == 2
    gate.open()
    model.wait_until_left()
    samples = settled(gateway)
    assert value(samples, "clients_left_total", endpoint=CHAT) == 1
    assert value(samples, "turns_total", model="native", reason="left") == 1


def test_a_client_that_leaves_before_its_answer_begins_is_counted(gateway: str, model: ModelServer) -> None:
    model.plays(Answer(("silence",)))
    fields = b'{"model": "native", "messages": [{"role": "user", "content": "x"}]}'
    with Live(gateway + CHAT, fields):
        while value(scraped(gateway), "requests_in_flight") < 2 or not model.asked:
            pass
    samples = settled(gateway)
    assert value(samples, "requests_total", endpoint=CHAT, status="499") == 1
    assert value(samples, "clients_left_total", endpoint=CHAT) == 1


def test_each_turn_of_a_websocket_is_a_request(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"), said("Hi"))
    with connect(f"{gateway.replace('http', 'ws')}{RESPONSES}", open_timeout=10) as socket:
        for given in (body("native"), body("native"), {}):
            socket.send(json.dumps({**given, "type": "response.create"}))
            while json.loads(socket.recv(10))["type"] not in ("response.completed", "error"):
                pass
    samples = settled(gateway)
    assert value(samples, "requests_total", endpoint=ENDPOINT, model="native", status="200") == 2
    assert value(samples, "requests_total", endpoint=ENDPOINT, model="none", status="400") == 1


def test_labels_hold_nothing_that_a_client_says(gateway: str, model: ModelServer) -> None:
    model.plays(*[said("Hi")] * 4)
    for number in range(4):
        assert asked(gateway, f"made-up-{number}", user=f"made-up-{number}") == 200
        request(f"{gateway}/v1/made-up-{number}", method="GET")
        request(f"{gateway}/v1/responses/made-up-{number}", method="GET")
    samples = settled(gateway)
    assert not [labels for _, labels in samples if any("made-up" in text for _, text in labels)]
    assert value(samples, "requests_total", model="*", status="200") == 4
    assert value(samples, "requests_total", endpoint="/v1/responses/{id}", status="404") == 4


def test_applications_count_for_themselves_and_it_can_be_switched_off(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    assert asked(gateway) == 200
    models = (ModelConfig(name="simulated", upstream="simulated"),)
    other, off = Gateway(Config(models=models)), Gateway(Config(server=ServerConfig(metrics=False), models=models))
    try:
        assert value(scraped(other.url), "requests_total", endpoint=CHAT) == 0
        assert request(f"{off.url}/metrics", method="GET").status == 404
    finally:
        other.stop()
        off.stop()


@pytest.mark.processes
def test_processes_that_serve_one_port_answer_for_all_of_them(tmp_path: Path) -> None:
    counts = (
        "from callwright.gateway.observability.metrics import Metrics\n"
        "metrics = Metrics()\n"
        "metrics.request_begun()\n"
        "metrics.store_operation('get_item', 0.1, failed=False)\n"
        "print(metrics.exposition('')[0].decode())"
    )
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    texts = [
        subprocess.run(
            [sys.executable, "-c", counts], env=environment, capture_output=True, check=True, encoding="utf-8"
        ).stdout
        for _ in range(2)
    ]
    assert 'callwright_store_operations_total{operation="get_item",outcome="ok"} 2.0' in texts[1]


def test_a_key_sees_its_own_numbers_and_an_operator_all(model: ModelServer) -> None:
    names = {"anna": False, "ben": False, "ops": True}
    keys = tuple(
        KeyConfig(name=name, sha256=hash_of(f"cw-{name}"), operator=operator, requests_per_minute=60)
        for name, operator in names.items()
    )
    server = Gateway(Config(models=(ModelConfig(name="secret-model", upstream=model.url),), keys=keys))
    try:
        for name in ("anna", "ben"):
            model.plays(said("Hi"))
            body = {"model": "secret-model", "messages": [QUESTION]}
            assert request(server.url + CHAT, body, headers={"authorization": f"Bearer cw-{name}"}).status == 200

        def seen(name: str) -> str:
            return request(f"{server.url}/metrics", method="GET", headers={"authorization": f"Bearer cw-{name}"}).text

        own = seen("anna")
        assert 'callwright_key_requests_total{key="anna"}' in own
        assert 'callwright_key_left{key="anna",kind="requests"}' in own
        assert all('key="anna"' in line for line in own.splitlines() if not line.startswith("#"))
        assert "secret-model" not in own
        for name in ("anna", "ben"):
            assert f'callwright_key_requests_total{{key="{name}"}}' in seen("ops")
        assert "secret-model" in seen("ops")
    finally:
        server.stop()
