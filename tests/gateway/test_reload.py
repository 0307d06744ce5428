"""Another configuration for a gateway that runs: no request is lost, and each is served by one configuration."""

import gc
import json
import random
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from callwright.errors import ConfigError
from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.changes import applicable, differences
from callwright.gateway.config.config import (
    Config,
    InspectLevel,
    KeyConfig,
    McpConfig,
    ModelConfig,
    SearchConfig,
    ServerConfig,
    StoreConfig,
)
from callwright.gateway.config.hooks import PolicyConfig, RedactConfig
from callwright.gateway.revision import Revision
from callwright.settings.bounds import Bounds
from tests.agent.test_mcp import SERVER
from tests.conftest import Starts
from tests.support.http_client import CHAT, Live, Reply, request
from tests.support.messages_client import MESSAGES
from tests.support.outputs import QUESTION
from tests.support.responses_client import RESPONSES
from tests.support.servers import Answer, Gate, ModelServer, said
from tests.support.waiting import until

ANNA, BEN = "cw-anna-" + "a" * 40, "cw-ben-" + "b" * 40
KEY = KeyConfig(name="anna", sha256=hash_of(ANNA), operator=True)


def served(model: ModelServer, *names: str, keys: tuple[KeyConfig, ...] = (), **more: Any) -> Config:
    """Models of these names of the model server, asked natively."""
    models = tuple(ModelConfig(name=name, upstream=model.url, mode="native") for name in names)
    return Config(models=models, keys=keys, **more)


def halves(gate: Gate) -> Answer:
    """An answer that waits in its middle."""
    steps = said("Both", " halves.").steps
    return Answer((*steps[:2], gate, *steps[2:]))


def asked(url: str, key: str, body: Any, path: str = CHAT) -> Reply:
    return request(url + path, body, headers={"authorization": f"Bearer {key}"})


def chat(name: str = "a") -> dict[str, Any]:
    return {"model": name, "messages": [QUESTION]}


# --- requests that run ---

WAYS: dict[str, tuple[str, dict[str, Any], bytes]] = {
    "chat": (CHAT, chat(), b'"finish_reason":"stop"'),
    "chat, streamed": (CHAT, {**chat(), "stream": True}, b"[DONE]"),
    "responses": (RESPONSES, {"model": "a", "input": "Hi"}, b'"status":"completed"'),
    "responses, streamed": (RESPONSES, {"model": "a", "input": "Hi", "stream": True}, b"response.completed"),
    "messages": (MESSAGES, {**chat(), "max_tokens": 50}, b"end_turn"),
    "messages, streamed": (MESSAGES, {**chat(), "max_tokens": 50, "stream": True}, b"message_stop"),
    "background, streamed": (
        RESPONSES,
        {"model": "a", "input": "Hi", "stream": True, "background": True},
        b"response.completed",
    ),
}


def test_requests_that_run_are_whole_and_later_ones_are_served_anew(model: ModelServer, start: Starts) -> None:
    gateway = start(served(model, "a", "b"))
    model.plays()
    gates: list[Gate] = []
    lives: list[Live] = []
    for path, body, _ in [*WAYS.values()] * 2:
        gates.append(model.gate())
        model.plays(halves(gates[-1]))
        lives.append(Live(gateway.url + path, json.dumps(body).encode()))
        gates[-1].wait_until_reached()
    gateway.change(served(model, "b", "c"))
    model.plays(said("Anew."))
    assert request(gateway.url + CHAT, chat("a")).error["code"] == "model_not_found"
    assert b"Anew." in b"".join(request(gateway.url + CHAT, chat("c")).pieces)
    for gate in gates:
        gate.open()
    for live, (_, _, end) in zip(lives, [*WAYS.values()] * 2, strict=True):
        with live:
            text = b"".join(live.pieces())
            assert live.status == 200
            assert b" halves." in text
            assert end in text


def test_a_background_response_is_found_streamed_and_cancelled_by_the_next_configuration(
    model: ModelServer, start: Starts
) -> None:
    gateway = start(served(model, "a"))
    body = {"model": "a", "input": "Hi", "background": True}
    ids: list[str] = []
    gates = [model.gate() for _ in range(2)]
    for gate in gates:
        model.plays(halves(gate))
        ids.append(request(gateway.url + RESPONSES, body).json["id"])
        gate.wait_until_reached()
    before = weakref.ref(gateway.running.revision)
    gateway.change(served(model, "b"))
    one, other = (f"{gateway.url}{RESPONSES}/{id_}" for id_ in ids)
    assert request(one, method="GET").json["status"] == "in_progress"
    assert request(f"{other}/cancel", b"").json["status"] == "cancelled"
    assert before() is not None
    gates[1].open()
    with Live(f"{one}?stream=true", method="GET") as live:
        gates[0].open()
        text = b"".join(live.pieces())
    assert b"response.completed" in text
    assert b" halves." in text
    until(lambda: is_collected(before))


def is_collected(found: weakref.ref[Any]) -> bool:
    gc.collect()
    return found() is None


# --- parts: shared, and closed ---


def test_equal_parts_are_shared_and_the_others_closed_after_their_last_request(
    model: ModelServer, start: Starts, tmp_path: Path
) -> None:
    pytest.importorskip("mcp.client", reason="the SDK of MCP is not installed")
    mcp = McpConfig(label="s", command=[sys.executable, SERVER, "stdio", str(tmp_path)])
    gateway = start(served(model, "a", "b", mcp=(mcp,)))
    gate = model.gate()
    tools = [{"type": "mcp", "server_label": "s", "require_approval": "never"}]
    model.plays(halves(gate))
    live = Live(gateway.url + RESPONSES, json.dumps({"model": "a", "input": "Hi", "tools": tools}).encode())
    gate.wait_until_reached()
    parts = gateway.running.lasting.parts
    first = {key: part.value for key, part in parts.items()}
    upstreams = {name: weakref.ref(one.upstream) for name, one in gateway.running.revision._bases.items()}
    gateway.change(served(model, "b", "c", mcp=(mcp,), limits=Bounds(max_items=5)))
    again = {name: one.upstream for name, one in gateway.running.revision._bases.items()}
    assert again["b"] is upstreams["b"]()
    assert {key for key, part in parts.items() if first.get(key) is part.value} == set(first)
    del first
    gate.open()
    assert b" halves." in b"".join(live.pieces())
    live.close()
    until(lambda: len(parts) == 5)  # two models with their servers, and the MCP server
    until(lambda: is_collected(upstreams["a"]))
    gateway.change(served(model, "b", "c"))
    until(lambda: len(parts) == 4)


def test_a_wrong_configuration_changes_nothing(model: ModelServer, start: Starts) -> None:
    gateway = start(served(model, "a", keys=(KEY,)))
    revision, parts = gateway.running.revision, dict(gateway.running.lasting.parts)
    wrong = [
        replace(served(model, "a", "b"), models=(ModelConfig(name="b", upstream="nowhere.gguf"),)),
        served(model, "b", keys=(KEY, replace(KEY, name="ben"))),
        served(model, "b", mcp=(McpConfig(label="s"),)),
        served(model, "b", search=SearchConfig(mcp="s", tool="find")),
        served(model, "b", redact=RedactConfig(patterns=("(",))),
    ]
    for config in wrong:
        with pytest.raises(ConfigError):
            gateway.change(config)
    model.plays(said("Hi"))
    assert asked(gateway.url, ANNA, chat()).status == 200
    assert gateway.running.revision is revision
    assert gateway.running.lasting.parts == parts


# --- keys and limits ---


def test_a_new_key_works_and_a_removed_one_is_refused(model: ModelServer, start: Starts) -> None:
    gateway = start(served(model, "a", keys=(KEY,)))
    model.plays(*(said("Hi") for _ in range(3)))
    assert (asked(gateway.url, ANNA, chat()).status, asked(gateway.url, BEN, chat()).status) == (200, 401)
    gateway.change(served(model, "a", keys=(KeyConfig(name="ben", sha256=hash_of(BEN)),)))
    refused = asked(gateway.url, ANNA, chat())
    assert (refused.status, refused.error["code"]) == (401, "invalid_api_key")
    assert asked(gateway.url, BEN, chat()).status == 200
    gateway.change(served(model, "a"))
    assert request(gateway.url + CHAT, chat()).status == 200


def test_a_connection_asks_by_the_present_keys_and_models(model: ModelServer, start: Starts) -> None:
    websockets = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    closed = pytest.importorskip("websockets.exceptions").ConnectionClosed
    gateway = start(served(model, "a", keys=(KEY,)))
    before = weakref.ref(gateway.running.revision)
    gate = model.gate()
    model.plays(halves(gate), said("Anew."))
    address, headers = f"{gateway.url.replace('http', 'ws')}{RESPONSES}", {"authorization": f"Bearer {ANNA}"}
    with websockets.connect(address, additional_headers=headers) as connection:

        def turn(name: str, during: Callable[[], object] = lambda: None) -> Any:
            connection.send(json.dumps({"type": "response.create", "model": name, "input": "Hi"}))
            during()
            while (event := json.loads(connection.recv()))["type"] not in ("response.completed", "error"):
                pass
            return event

        def change() -> None:
            gate.wait_until_reached()
            gateway.change(served(model, "b", keys=(KEY,)))
            gate.open()

        assert turn("a", change)["type"] == "response.completed"
        until(lambda: is_collected(before))  # though the connection is open
        assert turn("a")["error"]["code"] == "model_not_found"
        assert turn("b")["type"] == "response.completed"
        gateway.change(served(model, "b", keys=(KeyConfig(name="ben", sha256=hash_of(BEN)),)))
        refused = turn("b")
        assert (refused["status"], refused["error"]["code"]) == (401, "invalid_api_key")
        with pytest.raises(closed) as ended:
            connection.recv()
        assert ended.value.rcvd.code == 1008


def test_limits_count_on_by_the_name_of_the_key(model: ModelServer, start: Starts) -> None:
    limited = replace(KEY, requests_per_minute=3)
    other = KeyConfig(name="ben", sha256=hash_of(BEN), requests_per_minute=9)
    gateway = start(served(model, "a", keys=(limited,)))
    model.plays(*(said("Hi") for _ in range(9)))

    def left(key: str = ANNA) -> str:
        return asked(gateway.url, key, chat()).headers["x-ratelimit-remaining-requests"]

    assert [left(), left()] == ["2", "1"]
    gateway.change(served(model, "a", keys=(other, limited)))  # another place in the list
    assert left() == "0"
    assert asked(gateway.url, ANNA, chat()).status == 429
    assert left(BEN) == "8"
    gateway.change(served(model, "a", keys=(other,)))
    gateway.change(served(model, "a", keys=(replace(limited, requests_per_minute=100), other)))
    assert int(left()) < 97 + 2  # a few were refilled meanwhile
    assert left(BEN) == "7"


def test_running_requests_of_a_key_count_in_the_next_configuration(model: ModelServer, start: Starts) -> None:
    gateway = start(served(model, "a", keys=(replace(KEY, max_requests=1),)))
    gate = model.gate()
    model.plays(halves(gate), said("Hi"), said("Hi"))
    headers = {"authorization": f"Bearer {ANNA}"}
    live = Live(gateway.url + CHAT, json.dumps(chat()).encode(), headers=headers)
    gate.wait_until_reached()
    gateway.change(served(model, "b", keys=(replace(KEY, max_requests=1),)))
    assert asked(gateway.url, ANNA, chat("b")).status == 429
    gateway.change(served(model, "b", keys=(replace(KEY, max_requests=2),)))
    assert asked(gateway.url, ANNA, chat("b")).status == 200
    gateway.change(served(model, "b", keys=(KeyConfig(name="ben", sha256=hash_of(BEN)),)))
    gate.open()
    assert live.status == 200  # and its place is given back, though its key is gone
    live.close()
    gateway.change(served(model, "b", keys=(replace(KEY, max_requests=1),)))
    assert asked(gateway.url, ANNA, chat("b")).status == 200


def test_a_model_keeps_its_limit_over_a_change(model: ModelServer, start: Starts) -> None:
    limited = ModelConfig(name="a", upstream=model.url, mode="native", max_requests=1, queue_s=0)
    gateway = start(Config(models=(limited,)))
    gate = model.gate()
    model.plays(halves(gate), said("Hi"))
    live = Live(gateway.url + CHAT, json.dumps(chat()).encode())
    gate.wait_until_reached()
    gateway.change(Config(models=(limited, replace(limited, name="b"))))
    assert request(gateway.url + CHAT, chat()).status == 429
    assert request(gateway.url + CHAT, chat("b")).status == 200
    gate.open()
    assert live.status == 200
    live.close()


# --- pages ---


def test_contents_that_were_kept_without_keys_are_not_shown_with_the_first_key(
    model: ModelServer, start: Starts
) -> None:
    gateway = start(served(model, "a"))
    model.plays(said("A secret."), said("Hi"))
    assert request(gateway.url + CHAT, chat()).status == 200
    (row,) = request(f"{gateway.url}/ui/api/turns", method="GET").json["rows"]
    view = f"{gateway.url}/ui/api/turns/{row['id']}"
    assert "A secret." in request(view, method="GET").text
    with Live(f"{gateway.url}/ui/api/turns/live", method="GET") as page:
        pieces = page.pieces()
        next(pieces)
        gateway.change(served(model, "a", keys=(KEY,)))
        list(pieces)  # which ends: the page asks again, and needs a key
    headers = {"authorization": f"Bearer {ANNA}"}
    assert request(view, method="GET", headers=headers).status == 404
    assert asked(gateway.url, ANNA, chat()).status == 200
    (row,) = request(f"{gateway.url}/ui/api/turns", method="GET", headers=headers).json["rows"]
    shown = request(f"{gateway.url}/ui/api/turns/{row['id']}", method="GET", headers=headers).json
    assert shown["contents"] == "metadata"


@pytest.mark.parametrize("levels", [("off", "full"), ("full", "off"), ("metadata", "full")])
def test_the_level_of_the_pages_changes(
    model: ModelServer, start: Starts, levels: tuple[InspectLevel, InspectLevel]
) -> None:
    def shown() -> str:
        assert request(gateway.url + CHAT, chat()).status == 200
        rows = request(f"{gateway.url}/ui/api/turns", method="GET").json["rows"]
        if not rows:
            return "off"
        return str(request(f"{gateway.url}/ui/api/turns/{rows[-1]['id']}", method="GET").json["contents"])

    gateway = start(served(model, "a", server=ServerConfig(inspect=levels[0])))
    model.plays(said("Hi"), said("Hi"))
    assert shown() == levels[0]
    gateway.change(served(model, "a", server=ServerConfig(inspect=levels[1])))
    assert shown() == levels[1]


def test_turns_that_are_kept_already_are_redacted_by_the_present_rules(model: ModelServer, start: Starts) -> None:
    gateway = start(served(model, "a"))
    model.plays(said("The word is plover."))
    assert request(gateway.url + CHAT, chat()).status == 200
    (row,) = request(f"{gateway.url}/ui/api/turns", method="GET").json["rows"]
    view = f"{gateway.url}/ui/api/turns/{row['id']}"
    assert "plover" in request(view, method="GET").text
    gateway.change(served(model, "a", redact=RedactConfig(patterns=("plover",))))
    assert "plover" not in request(view, method="GET").text


def test_policies_apply_to_later_requests(model: ModelServer, start: Starts) -> None:
    gateway = start(served(model, "a"))
    hooks = gateway.running.revision.models["a"].hooks
    assert hooks is None
    policies = (PolicyConfig(tools=("get_*",), action="deny"),)
    gateway.change(served(model, "a", policies=policies))
    hooks = gateway.running.revision.models["a"].hooks
    assert hooks is not None
    gateway.change(served(model, "a", "b", policies=policies))
    assert gateway.running.revision.models["b"].hooks is hooks


# --- any changes at any time ---


@pytest.mark.parametrize("seed", range(4))
def test_no_request_is_lost_or_answered_by_a_model_of_another_configuration(
    model: ModelServer, start: Starts, seed: int
) -> None:
    draw = random.Random(seed)
    names = ("a", "b", "c", "d")
    now: tuple[str, ...] = ("a", "b")
    gateway = start(served(model, *now))
    revisions: list[weakref.ref[Revision]] = []
    running: list[tuple[str, Gate, Live, bytes]] = []

    def end_one() -> None:
        name, gate, live, end = running.pop(draw.randrange(len(running)))
        gate.open()
        with live:
            text = b"".join(live.pieces())
            assert live.status == 200, text
        assert f"{name} said it.".encode() in text
        assert end in text

    for _ in range(60):
        step = draw.choice(("ask", "ask", "change", "end"))
        if step == "ask":
            way, name, gate = draw.choice([*WAYS]), draw.choice(names), model.gate()
            path, body, end = WAYS[way]

            def answer(given: Any, gate: Gate = gate) -> Answer:
                role, *rest = said(f"{given['model']} said it.").steps
                return Answer((role, gate, *rest))

            model.plays(answer)
            live = Live(gateway.url + path, json.dumps({**body, "model": name}).encode())
            if name in now:
                gate.wait_until_reached()
                running.append((name, gate, live, end))
            else:
                assert live.status == 404
                live.close()
        elif step == "change":
            now = tuple(draw.sample(names, draw.randint(1, 3)))
            before = gateway.running.revision
            gateway.change(served(model, *now))
            if gateway.running.revision is not before:
                revisions.append(weakref.ref(before))
            del before
        elif running:
            end_one()
    while running:
        end_one()
    until(lambda: all(map(is_collected, revisions)))
    assert len(gateway.running.lasting.parts) == 2 * len(now)


# --- what differs ---

A = ModelConfig(name="a", upstream="simulated")
BASE = Config(models=(A,), keys=(KEY,))
CHANGES: dict[str, tuple[Config, list[str]]] = {
    "nothing": (BASE, []),
    "a model more": (replace(BASE, models=(A, replace(A, name="b"))), ["[[models]] b: added"]),
    "no key": (replace(BASE, keys=()), ["[[keys]] anna: removed"]),
    "two settings of a model": (
        replace(BASE, models=(replace(A, retries=1, retry_s=5.0),)),
        ["[[models]] a: retries, retry_s changed"],
    ),
    "a setting, and one for a restart": (
        replace(BASE, server=ServerConfig(port=9_000, max_requests=5)),
        ["[server]: max_requests changed", "[server]: port changed (needs a restart)"],
    ),
    "a store": (replace(BASE, store=StoreConfig(url="none")), ["[store]: added (needs a restart)"]),
    "a limit": (replace(BASE, limits=Bounds(max_tools=3)), ["[limits]: max_tools changed"]),
    "a policy": (replace(BASE, policies=(PolicyConfig(action="deny"),)), ["[[policies]] 1: added"]),
    "redaction": (replace(BASE, redact=RedactConfig()), ["[redact]: added"]),
}


@pytest.mark.parametrize("title", CHANGES)
def test_differences_are_named_and_what_needs_a_restart_stays(title: str) -> None:
    after, words = CHANGES[title]
    assert [str(one) for one in differences(BASE, after)] == words
    left = differences(applicable(BASE, after), after)
    assert left == [one for one in differences(BASE, after) if one.needs_restart]


def test_an_order_is_a_difference() -> None:
    two = replace(BASE, models=(A, replace(A, name="b")))
    assert [str(one) for one in differences(two, replace(two, models=two.models[::-1]))] == ["[models]: order changed"]
