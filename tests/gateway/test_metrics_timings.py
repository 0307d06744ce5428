"""What `GET /metrics` tells of the way of a request: queues, overhead, other servers, refusals, keys, tools."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from callwright.errors import RequestError
from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import Config, KeyConfig, McpConfig, ModelConfig, ServerConfig
from callwright.gateway.observability.metrics import Metrics
from callwright.gateway.observability.metrics_gauges import Gauges
from callwright.gateway.request_context import REFUSALS, RequestContext
from tests.agent.test_mcp import SERVER
from tests.gateway.test_metrics import PARIS, asked, scraped, settled, value
from tests.support.http_client import CHAT, Live, request
from tests.support.outputs import QUESTION, block
from tests.support.paths import ROOT
from tests.support.responses_client import RESPONSES, body
from tests.support.servers import Answer, Gateway, ModelServer, calling, completion, said, whole

ANNA, SLOW, SCRAPER = "cw-anna-" + "a" * 40, "cw-slow-" + "b" * 40, "cw-scraper-" + "c" * 40
BUSY = whole({"error": {"message": "Busy."}}, 503)


@pytest.fixture
def other() -> Iterator[ModelServer]:
    server = ModelServer()
    yield server
    server.stop()


@pytest.fixture
def gateway(model: ModelServer, other: ModelServer) -> Iterator[str]:
    """A gateway of its own, so that nothing is counted but what the test does."""
    both = [model.url, other.url]
    models = (
        ModelConfig(name="native", upstream=model.url, retries=1),
        ModelConfig(name="hermes", upstream=model.url, mode="raw", dialect="hermes", server="vllm", retries=1),
        ModelConfig(name="few", upstream=model.url, max_requests=1, queue_s=0),
        ModelConfig(name="pool", upstream=both, model="served", balance="least"),
    )
    gateway = Gateway(Config(models=models))
    yield gateway.url
    gateway.stop()


def test_what_another_waits_for_is_no_overhead(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"), said("Hi"))
    assert asked(gateway) == 200
    assert asked(gateway, stream=True) == 200
    assert request(f"{gateway}/v1/models", method="GET").status == 200
    samples = settled(gateway)
    assert value(samples, "overhead_seconds_count") == value(samples, "overhead_seconds_count", model="native") == 2
    assert value(samples, "upstream_seconds_count", model="native") == 2
    assert value(samples, "held_seconds_count", model="native") == 1  # of the stream
    assert value(samples, "output_token_seconds_count", model="native") == 1
    assert value(samples, "queue_seconds_count") == 0
    spent = value(samples, "overhead_seconds_sum") + value(samples, "upstream_seconds_sum")
    assert 0 < spent <= value(samples, "request_seconds_sum", endpoint=CHAT) + 1e-6


def test_overhead_is_what_is_left_of_a_request_without_the_waits() -> None:
    exchange = RequestContext(id="req_1", method="POST", path=CHAT, begun_s=100.0, received_s=101.0, elsewhere_s=3.0)
    exchange.ended_s = 104.25
    assert exchange.overhead_s == 0.25


def test_a_retry_has_a_reason_and_another_way_is_none(gateway: str, model: ModelServer) -> None:
    model.plays(completion(block("get_weather", '{"town": 7}')), completion(block("get_weather", PARIS)))
    assert asked(gateway, "hermes") == 200
    model.plays(said("No."), calling("get_weather", PARIS))
    assert asked(gateway, tool_choice="required") == 200
    samples = settled(gateway)
    assert value(samples, "retries_total", model="hermes", reason="invalid_arguments") == 1
    assert value(samples, "retries_total", model="native", reason="call_missing") == 1
    assert value(samples, "retries_total") == 2
    assert value(samples, "fallbacks_total") == 0


def test_another_server_and_the_state_of_each_are_told(gateway: str, model: ModelServer, other: ModelServer) -> None:
    model.plays(*[BUSY] * 9)
    other.plays(*[said("Hi")] * 9)
    assert value(scraped(gateway), "upstream_up") == 0
    while len(model.asked) < 3:
        assert asked(gateway, "pool") == 200
    samples = settled(gateway)
    assert value(samples, "fallbacks_total", model="pool", to="server") == 3
    assert value(samples, "retries_total") == 0
    assert value(samples, "upstream_up", model="pool", server=other.url) == 1
    assert value(samples, "upstream_up", model="pool", server=model.url) == 0
    assert sum(name == "callwright_upstream_in_flight" for name, _ in samples) == 2


def test_fields_that_no_server_gets_are_counted(gateway: str, model: ModelServer) -> None:
    model.plays(completion("Hi"), said("Hi"))
    fields = {"reasoning_effort": "low", "service_tier": "default", "temperature": 0.5}
    assert asked(gateway, "hermes", **fields) == asked(gateway, "native", **fields) == 200
    samples = settled(gateway)
    assert value(samples, "dropped_fields_total", field="reasoning_effort") == 1
    assert value(samples, "dropped_fields_total") == 2


def test_who_constrains_is_who_did(gateway: str, model: ModelServer) -> None:
    whole = block("get_weather", PARIS)
    behind = whole.partition('{"name": "')[2]  # where a call is demanded the prompt begins it
    model.plays(completion(behind), completion(whole), calling("get_weather", PARIS))
    for name, fields in (("hermes", {"tool_choice": "required"}), ("hermes", {}), ("native", {})):
        assert asked(gateway, name, **fields) == 200
    samples = settled(gateway)
    counts = {by: value(samples, "constraints_total", by=by) for by in ("gateway", "none", "server")}
    assert counts == {"gateway": 1, "none": 1, "server": 1}


def test_searches_for_tools_are_counted(gateway: str, model: ModelServer) -> None:
    deferred = [
        {"type": "tool_search"},
        {"type": "function", "name": "get_time", "description": "The time.", "parameters": {}, "defer_loading": True},
    ]
    model.plays(calling("tool_search", '{"query": "time"}'), said("Noon."))
    assert request(gateway + RESPONSES, {**body("native"), "tools": deferred}).status == 200
    assert value(settled(gateway), "searches_total", model="native") == 1


def test_the_wait_for_a_place_is_told_and_that_there_was_none(gateway: str, model: ModelServer) -> None:
    gate = model.gate()
    begin, *rest = said("Hi").steps
    model.plays(Answer((begin, gate, *rest)))
    fields = json.dumps({"model": "few", "messages": [QUESTION]}).encode()
    with Live(gateway + CHAT, fields) as live:
        gate.wait_until_reached()
        assert asked(gateway, "few") == 429
        gate.open()
        assert b"Hi" in b"".join(live.pieces())
    samples = settled(gateway)
    assert value(samples, "queue_seconds_count", model="few") == 2
    assert value(samples, "refused_total", reason="busy") == 1


def test_each_refusal_has_its_reason(model: ModelServer) -> None:
    keys = (
        KeyConfig(name="anna", sha256=hash_of(ANNA), models=("native",), operator=True),
        KeyConfig(name="slow", sha256=hash_of(SLOW), requests_per_minute=1),
        KeyConfig(name="scraper", sha256=hash_of(SCRAPER), models=(), operator=True),
    )
    models = (ModelConfig(name="native", upstream=model.url), ModelConfig(name="other", upstream=model.url))
    gateway = Gateway(Config(models=models, keys=keys, server=ServerConfig(max_body_bytes=1_000)))
    try:
        model.plays(said("Hi"), said("Hi"))
        anna, slow = ({"authorization": f"Bearer {key}"} for key in (ANNA, SLOW))
        one: dict[str, Any] = {"model": "native", "messages": [QUESTION]}
        for headers, given, status in (
            ({}, one, 401),
            (anna, {**one, "model": "other"}, 404),
            (anna, {**one, "user": "x" * 1_000}, 413),
            (anna, {}, 400),
            (anna, one, 200),
            (slow, one, 200),
            (slow, one, 429),
        ):
            assert request(gateway.url + CHAT, given, headers=headers).status == status
        with pytest.raises(InvalidStatus), connect(f"{gateway.url.replace('http', 'ws')}{RESPONSES}", open_timeout=10):
            pass
        scraper = {"authorization": f"Bearer {SCRAPER}"}
        reply = request(f"{gateway.url}/metrics", method="GET", headers=scraper)
    finally:
        gateway.stop()
    families = text_string_to_metric_families(reply.text)
    samples = {(one.name, frozenset(one.labels.items())): one.value for each in families for one in each.samples}
    reasons = {"key": 2, "model": 1, "size": 1, "invalid": 1, "requests": 1}
    assert {reason: value(samples, "refused_total", reason=reason) for reason in reasons} == reasons
    assert value(samples, "refused_total") == sum(reasons.values())
    assert value(samples, "key_requests_total", key="slow") == 2
    assert value(samples, "key_tokens_total", key="anna", kind="input") == 11
    assert value(samples, "key_tokens_total", key="anna", kind="output") == 7
    assert 0 <= value(samples, "key_left", key="slow", kind="requests") < 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RequestError("?", status=429, type_="tokens", code="rate_limit_exceeded"), "tokens"),
        (RequestError("?", status=429, type_="rate_limit_error"), "busy"),
        (RequestError("?", status=403), "origin"),
        (RequestError("?", status=408), "slow"),
        (RequestError("?", status=424), "mcp"),
        (RequestError("?", status=503, type_="server_error"), "ending"),
        (RequestError("?", status=404), "invalid"),
        (RequestError("?", status=400, code="whatever the upstream says"), "invalid"),
        (RequestError("?", status=500, type_="server_error"), None),
    ],
)
def test_a_reason_is_one_of_a_closed_set(error: RequestError, reason: str | None) -> None:
    exchange = RequestContext(id="req_1", method="POST", path=CHAT)
    exchange.failed(error)
    assert exchange.refusal == reason
    assert reason is None or reason in REFUSALS


@pytest.mark.clients
def test_calls_of_tools_of_servers_are_counted(model: ModelServer, tmp_path: Path) -> None:
    pytest.importorskip("mcp.client", reason="the SDK of MCP is not installed")
    servers = (McpConfig(label="s", command=[sys.executable, SERVER, "stdio", str(tmp_path)]),)
    gateway = Gateway(Config(models=(ModelConfig(name="native", upstream=model.url),), mcp=servers))
    try:
        model.plays(calling("s__add", '{"a": 1, "b": 2}'), calling("s__fail", "{}"), said("It is 3."))
        tools = [{"type": "mcp", "server_label": "s", "require_approval": "never"}]
        assert request(gateway.url + RESPONSES, {**body("native"), "tools": tools}).status == 200
        samples = settled(gateway.url)
    finally:
        gateway.stop()
    assert value(samples, "mcp_calls_total", server="s", outcome="ok") == 1
    assert value(samples, "mcp_seconds_count", server="s") == value(samples, "mcp_calls_total")


# --- one list of all of them ---


def exposed() -> set[str]:
    """The names of all metrics that an application may expose, as Prometheus stores counters and histograms."""
    return {
        re.sub("^# TYPE (\\S+) .*", "\\1", line)
        for line in Metrics().exposition("")[0].decode().splitlines()
        if line.startswith("# TYPE callwright_") and "_created" not in line
    }


def test_the_page_names_every_metric_and_no_other() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(callwright_\w+)`", text, re.MULTILINE)
    assert sorted(documented) == sorted(exposed())


def test_the_page_names_every_reason_of_a_refusal() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert not [reason for reason in REFUSALS if f"`{reason}`" not in text]


def named(expressions: list[str]) -> set[str]:
    return {name for one in expressions for name in re.findall(r"\bcallwright_\w+", one)}


def stored() -> set[str]:
    """The names of the series that a scrape gives."""
    return exposed() | {f"{name}_{end}" for name in exposed() for end in ("bucket", "count", "sum")}


def test_the_dashboard_shows_metrics_that_there_are() -> None:
    dashboard = json.loads((ROOT / "deploy" / "grafana.json").read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(expressions) >= len(dashboard["panels"]) > 5
    assert all(named([one]) for one in expressions)
    assert named(expressions) <= stored()
    places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)


def test_the_alerts_are_about_metrics_that_there_are() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    rules = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text(encoding="utf-8"))
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert len({alert["alert"] for alert in alerts}) == len(alerts) > 3
    assert all(named([alert["expr"]]) and alert["annotations"]["summary"] for alert in alerts)
    assert named([alert["expr"] for alert in alerts]) <= stored() | {"callwright"}


def test_gauges_are_looked_up_when_they_are_asked_for() -> None:
    left = {"anna": {"requests": 2.0}}
    gauges = Gauges(lambda: left)
    left["anna"] = {"requests": 1.0}
    (sample,) = [one for family in gauges.collect() for one in family.samples if one.name == "callwright_key_left"]
    assert (sample.labels, sample.value) == ({"key": "anna", "kind": "requests"}, 1.0)
