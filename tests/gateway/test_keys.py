"""Keys of clients, over HTTP and WebSocket: who is let in, to which models, how often, and to whose responses."""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from callwright.cli import main
from callwright.errors import ConfigError, RequestError
from callwright.gateway.access import keys
from callwright.gateway.access.keys import ApiKey, Keys, hash_of, new_key
from callwright.gateway.app import create_app
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig, load_config
from callwright.settings.expiry import Expiry
from callwright.turn import loop, run
from callwright.turn.fair_pool import CLIENT, FairPool
from tests.support.http_client import CHAT, Live, Reply, request
from tests.support.outputs import QUESTION
from tests.support.responses_client import CONVERSATIONS, RESPONSES
from tests.support.servers import Answer, Gate, Gateway, ModelServer, said

ANNA, BEN, SLOW, READER = "cw-anna-" + "a" * 40, "cw-ben-" + "b" * 40, "cw-slow-" + "c" * 40, "cw-reader-" + "d" * 40
KEYS = (
    KeyConfig(name="anna", sha256=hash_of(ANNA)),
    KeyConfig(name="ben", sha256=hash_of(BEN).upper(), models=("simulated-hermes",)),
    KeyConfig(name="slow", sha256=hash_of(SLOW), requests_per_minute=2),
    KeyConfig(name="reader", sha256=hash_of(READER), models=()),
)
MODELS = (
    ModelConfig(name="simulated", upstream="simulated", mode="raw", dialect="harmony"),
    ModelConfig(name="simulated-hermes", upstream="simulated", mode="raw", dialect="hermes"),
)
CHAT_BODY: dict[str, Any] = {"model": "simulated", "messages": [QUESTION]}
BODY: dict[str, Any] = {"model": "simulated-hermes", "input": "hi"}


@pytest.fixture(scope="module")
def keyed() -> Iterator[str]:
    gateway = Gateway(Config(models=MODELS, keys=KEYS))
    yield gateway.url
    gateway.stop()


def asked(url: str, body: Any = None, key: str | None = None, *, method: str = "POST", **headers: str) -> Reply:
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return request(url, body, method=method, headers=headers)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (None, "You didn't provide an API key."),
        ("", "You didn't provide an API key."),
        ("Bearer", "You didn't provide an API key."),
        (f"Basic {ANNA}", "You didn't provide an API key."),
        (ANNA, "You didn't provide an API key."),
        ("Bearer cw-wrong-key", "Incorrect API key provided."),
        (f"Bearer {ANNA[:-1]}", "Incorrect API key provided."),
        (f"Bearer {ANNA}a", "Incorrect API key provided."),
        (f"Bearer {hash_of(ANNA)}", "Incorrect API key provided."),
        ("Bearer \xff\xfe", "Incorrect API key provided."),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", CHAT), ("POST", RESPONSES), ("GET", "/v1/models"), ("GET", f"{RESPONSES}/resp_1"), ("GET", "/nowhere")],
)
def test_who_has_no_key_is_told_so_and_the_key_is_told_nowhere(
    keyed: str, method: str, path: str, header: str | None, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    headers = {} if header is None else {"authorization": header.encode("utf-8").decode("latin-1")}
    reply = asked(keyed + path, CHAT_BODY if method == "POST" else None, method=method, **headers)
    assert reply.status == 401
    assert reply.error["message"].startswith(words)
    assert (reply.error["type"], reply.error["code"]) == ("invalid_request_error", "invalid_api_key")
    assert reply.headers["www-authenticate"] == "Bearer"
    assert reply.headers["x-request-id"].startswith("req_")
    if header and len(header) > 10:
        secret = header.split()[-1]
        assert secret not in reply.text + str(reply.headers) + caplog.text


def test_whoever_has_one_is_let_in(keyed: str) -> None:
    assert asked(keyed + CHAT, CHAT_BODY, ANNA).status == 200
    assert asked(keyed + CHAT, CHAT_BODY, authorization=f"bearer  {ANNA}").status == 200
    assert asked(keyed + "/healthz", method="GET").status == 200


def test_a_page_may_use_a_gateway_with_a_key(keyed: str) -> None:
    reply = asked(keyed + CHAT, CHAT_BODY, ANNA, origin="https://example.org")
    assert reply.status == 200
    assert not [name for name in reply.headers if name.startswith("access-control")]


def test_a_key_is_good_for_its_models_only(keyed: str) -> None:
    assert asked(keyed + CHAT, {**CHAT_BODY, "model": "simulated-hermes"}, BEN).status == 200
    for path, body in ((CHAT, CHAT_BODY), (RESPONSES, {**BODY, "model": "simulated"})):
        refused = asked(keyed + path, body, BEN)
        assert (refused.status, refused.error["code"], refused.error["param"]) == (404, "model_not_found", "model")
        assert refused.error["message"].endswith("This gateway serves: simulated-hermes.")
    assert asked(f"{keyed}/v1/models/simulated", None, BEN, method="GET").status == 404
    listed = asked(f"{keyed}/v1/models", None, BEN, method="GET").json
    assert [entry["id"] for entry in listed["data"]] == ["simulated-hermes"]
    assert asked(f"{keyed}/v1/models", None, READER, method="GET").json["data"] == []


def test_responses_and_conversations_belong_to_the_key_that_made_them(keyed: str) -> None:
    made = asked(keyed + RESPONSES, BODY, ANNA).json
    item = made["output"][0]["id"]
    conversation = asked(keyed + CONVERSATIONS, {"items": []}, ANNA).json["id"]
    for method, path in (
        ("GET", f"{RESPONSES}/{made['id']}"),
        ("DELETE", f"{RESPONSES}/{made['id']}"),
        ("GET", f"{RESPONSES}/{made['id']}/input_items"),
        ("POST", f"{RESPONSES}/{made['id']}/cancel"),
        ("GET", f"{CONVERSATIONS}/{conversation}"),
        ("DELETE", f"{CONVERSATIONS}/{conversation}"),
        ("GET", f"{CONVERSATIONS}/{conversation}/items"),
    ):
        assert asked(keyed + path, None, BEN, method=method).status == 404, (method, path)
    assert asked(f"{keyed}{CONVERSATIONS}/{conversation}", {"metadata": {}}, BEN).status == 404
    for fields, code in (
        ({"previous_response_id": made["id"]}, "previous_response_not_found"),
        ({"conversation": conversation}, None),
        ({"input": [{"type": "item_reference", "id": item}]}, None),
    ):
        refused = asked(keyed + RESPONSES, {**BODY, **fields}, BEN)
        assert refused.status in (400, 404), fields
        assert refused.error["code"] == code
    again = asked(keyed + RESPONSES, {**BODY, "previous_response_id": made["id"]}, ANNA)
    assert again.status == 200, again.text
    assert asked(f"{keyed}{RESPONSES}/{made['id']}", None, ANNA, method="GET").status == 200
    queued = asked(keyed + RESPONSES, {**BODY, "background": True}, ANNA).json["id"]
    assert asked(f"{keyed}{RESPONSES}/{queued}", None, BEN, method="GET").status == 404
    assert asked(f"{keyed}{RESPONSES}/{queued}", None, ANNA, method="GET").status == 200


def test_too_many_requests_are_told_when_to_come_again(keyed: str) -> None:
    first, second, third = (asked(keyed + CHAT, CHAT_BODY, SLOW) for _ in range(3))
    assert (first.status, second.status, third.status) == (200, 200, 429)
    assert first.headers["x-ratelimit-limit-requests"] == "2"
    assert [reply.headers["x-ratelimit-remaining-requests"] for reply in (first, second, third)] == ["1", "0", "0"]
    assert (third.error["type"], third.error["code"]) == ("requests", "rate_limit_exceeded")
    assert re.fullmatch(r"Rate limit .* Limit 2, Used 2\. Please try again in \d+s\.", third.error["message"])
    assert 1 <= int(third.headers["retry-after"]) <= 30
    assert re.fullmatch(r"(\d+m)?\d+s", third.headers["x-ratelimit-reset-requests"])
    assert asked(f"{keyed}/v1/models", None, SLOW, method="GET").status == 200


def test_what_is_used_comes_back_evenly() -> None:
    now = [0.0]
    who = ApiKey(KeyConfig(name="a", sha256=hash_of("a"), requests_per_minute=60), lambda: now[0])
    for _ in range(60):
        asyncio.run(who.begin())
    now[0] = 0.75
    with pytest.raises(RequestError, match="again in 250ms"):
        asyncio.run(who.begin())
    now[0] = 1.25
    asyncio.run(who.begin())
    with pytest.raises(RequestError, match="again in 750ms"):
        asyncio.run(who.begin())
    now[0] = 1_000.0
    assert who.headers()["x-ratelimit-remaining-requests"] == "60"


def test_tokens_are_counted_as_the_server_counts_them(model: ModelServer) -> None:
    key = KeyConfig(name="t", sha256=hash_of(ANNA), tokens_per_minute=30)
    gateway = Gateway(Config(models=(ModelConfig(name="m", upstream=model.url),), keys=(key,)))
    try:
        model.plays(said("Hi"), said("Ho"))
        body = {**CHAT_BODY, "model": "m"}
        first = asked(gateway.url + CHAT, body, ANNA)
        second = asked(gateway.url + CHAT, {**body, "stream": True}, ANNA)
        third = asked(gateway.url + CHAT, body, ANNA)
    finally:
        gateway.stop()
    assert first.headers["x-ratelimit-remaining-tokens"] == "12"
    assert (first.status, second.status, third.status) == (200, 200, 429)
    assert (third.error["type"], third.headers["x-ratelimit-remaining-tokens"]) == ("tokens", "0")
    assert len(model.asked) == 2


def test_a_connection_needs_a_key_and_counts_its_turns(keyed: str) -> None:
    websockets = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    invalid = pytest.importorskip("websockets.exceptions").InvalidStatus
    address = f"{keyed.replace('http', 'ws')}{RESPONSES}"
    with pytest.raises(invalid) as refused, websockets.connect(address):
        pass
    assert refused.value.response.status_code == 401
    assert json.loads(refused.value.response.body)["error"]["code"] == "invalid_api_key"
    with websockets.connect(address, additional_headers={"authorization": f"Bearer {BEN}"}) as connection:
        connection.send(json.dumps({"type": "response.create", **BODY}))
        kinds = [json.loads(connection.recv())["type"]]
        while kinds[-1] != "response.completed":
            kinds.append(json.loads(connection.recv())["type"])
        connection.send(json.dumps({"type": "response.create", **BODY, "model": "simulated"}))
        assert json.loads(connection.recv())["error"]["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ((KEYS[0], KeyConfig(name="anna", sha256=hash_of(BEN))), "Two keys have the name 'anna'"),
        ((KEYS[0], KeyConfig(name="ben", sha256=hash_of(ANNA).upper())), "Two keys have the sha256"),
        ((KeyConfig(name="a", sha256=hash_of(ANNA), models=("simulatd",)),), "Did you mean 'simulated'?"),
    ],
)
def test_keys_that_cannot_be_are_refused(keys: tuple[KeyConfig, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        create_app(Config(models=MODELS, keys=keys))


def test_the_command_writes_a_key_that_lets_in(tmp_path: Path) -> None:
    path = tmp_path / "callwright.toml"
    path.write_text('[[models]]\nname = "m"\nupstream = "simulated"\n', encoding="utf-8")
    key = CliRunner().invoke(main, ["keys", "add", "anna", "--config", str(path)]).stdout.strip()
    gateway = Gateway(load_config(path))
    try:
        assert asked(f"{gateway.url}/v1/models", None, key, method="GET").status == 200
        assert asked(f"{gateway.url}/v1/models", None, new_key(), method="GET").status == 401
    finally:
        gateway.stop()


# --- keys that expire ---

EXPIRES = Expiry.read(date(2027, 1, 31))
END_S = EXPIRES.timestamp()
EXPIRING = KeyConfig(name="anna", sha256=hash_of(ANNA), expires=EXPIRES)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time by which keys expire, shortly before `EXPIRES`."""
    now = [END_S - 1]
    monkeypatch.setattr(keys, "wall_time_s", lambda: now[0])
    return now


@pytest.fixture
def expiring(model: ModelServer) -> Iterator[str]:
    upstream = ModelConfig(name="m", upstream=model.url)
    gateway = Gateway(Config(models=(upstream,), keys=(EXPIRING, KeyConfig(name="ben", sha256=hash_of(BEN)))))
    yield gateway.url
    gateway.stop()


def half(model: ModelServer) -> tuple[Answer, Gate]:
    """An answer that waits in its middle."""
    gate, answer = model.gate(), said("Well", " done.")
    return Answer((*answer.steps[:2], gate, *answer.steps[2:])), gate


@pytest.mark.parametrize(
    ("given", "at_s"),
    [
        ("2027-01-31", 1_801_440_000.0 - 1e-6),
        ("2027-01-31T18:00:00Z", 1_801_418_400.0),
        ("2027-01-31T18:00:00+05:30", 1_801_398_600.0),
        ("2027-01-31T18:00:00.5Z", 1_801_418_400.5),
    ],
)
def test_a_key_expires_at_its_time(given: str, at_s: float, tmp_path: Path, clock: list[float]) -> None:
    path = tmp_path / "callwright.toml"
    path.write_text(
        f'[[keys]]\nname = "anna"\nsha256 = "{hash_of(ANNA)}"\nexpires = {given}\n'
        '[[models]]\nname = "m"\nupstream = "simulated"\n',
        encoding="utf-8",
    )
    known = Keys(load_config(path).keys)
    clock[0] = at_s - 0.001
    assert known.caller(f"Bearer {ANNA}").name == "anna"
    clock[0] = at_s + 1e-6
    with pytest.raises(RequestError, match=r"This API key expired at 2027-01-31T\d\d:\d\d:\d\dZ\."):
        known.caller(f"Bearer {ANNA}")


@pytest.mark.parametrize("path", [CHAT, RESPONSES, "/v1/messages"])
def test_an_expired_key_is_refused_in_the_words_of_each_api(expiring: str, clock: list[float], path: str) -> None:
    clock[0] = END_S
    reply = asked(expiring + path, {"model": "m"}, ANNA)
    assert reply.status == 401
    assert reply.headers["www-authenticate"] == "Bearer"
    error = reply.json["error"]
    assert error["message"].startswith("This API key expired at 2027-01-31T23:59:59Z.")
    if path == "/v1/messages":
        assert (reply.json["type"], error["type"]) == ("error", "authentication_error")
    else:
        assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")
    assert asked(f"{expiring}/v1/models", None, ANNA, method="GET").status == 401
    assert asked(f"{expiring}/v1/models", None, BEN, method="GET").status == 200
    assert asked(f"{expiring}/v1/models", None, "cw-wrong", method="GET").error["message"].startswith("Incorrect")


def test_a_stream_that_runs_when_its_key_expires_is_whole(
    expiring: str, clock: list[float], model: ModelServer
) -> None:
    answer, gate = half(model)
    model.plays(answer)
    body = json.dumps({**CHAT_BODY, "model": "m", "stream": True}).encode()
    with Live(expiring + CHAT, body, headers={"authorization": f"Bearer {ANNA}"}) as live:
        gate.wait_until_reached()
        assert live.status == 200
        clock[0] = END_S
        assert asked(expiring + CHAT, {**CHAT_BODY, "model": "m"}, ANNA).status == 401
        gate.open()
        written = b"".join(live.pieces())
    assert b" done." in written
    assert written.endswith(b"data: [DONE]\n\n")


def test_an_open_connection_gets_no_turn_after_its_key_has_expired(
    expiring: str, clock: list[float], model: ModelServer
) -> None:
    websockets = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    answer, gate = half(model)
    model.plays(answer)
    turn = json.dumps({"type": "response.create", "model": "m", "input": "hi"})
    address = f"{expiring.replace('http', 'ws')}{RESPONSES}"
    with websockets.connect(address, additional_headers={"authorization": f"Bearer {ANNA}"}) as connection:
        connection.send(turn)
        gate.wait_until_reached()
        clock[0] = END_S
        gate.open()
        events = [json.loads(connection.recv())]
        while events[-1]["type"] not in ("response.completed", "error"):
            events.append(json.loads(connection.recv()))
        assert events[-1]["response"]["output"][-1]["content"][0]["text"] == "Well done."
        connection.send(turn)
        refused = json.loads(connection.recv())
    assert (refused["type"], refused["status"]) == ("error", 401)
    assert refused["error"]["code"] == "invalid_api_key"
    assert refused["error"]["message"].startswith("This API key expired at 2027-01-31T23:59:59Z.")
    assert len(model.asked) == 1


def test_what_takes_seconds_is_shared_by_the_keys(keyed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Pool(FairPool):
        async def run(self, work: Callable[[], Any]) -> Any:
            seen.append(CLIENT.get())
            return await super().run(work)

    monkeypatch.setattr(loop, "is_slow", lambda model: True)
    monkeypatch.setattr(run, "SLOW", Pool(1))
    for key in (ANNA, BEN, ANNA):
        assert asked(keyed + CHAT, {**CHAT_BODY, "model": "simulated-hermes"}, key).status == 200
    assert seen == ["anna", "ben", "anna"]
