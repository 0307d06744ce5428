"""What is kept for the pages, at each door by which a turn comes: the newest, and no more of it than the bounds say."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from callwright.gateway.config.config import Config, McpConfig, ModelConfig, ServerConfig
from tests.support.bounded import bounded
from tests.support.http_client import CHAT, Live, request
from tests.support.messages_client import MESSAGES
from tests.support.paths import ROOT
from tests.support.responses_client import CONVERSATIONS, RESPONSES
from tests.support.servers import Answer, Gate, Gateway, ModelServer, calling, said
from tests.support.waiting import PATIENCE_S, until

TURNS: Final = 5
MOST_ROWS: Final = 3
# Of a text as long as this a turn keeps four copies, so two turns have room.
LENGTH: Final = 10_000
ROOM: Final = 100_000
ROOM_FOR: Final = 2
MCP_SERVER: Final = str(ROOT / "tests" / "clients" / "mcp_server.py")
Started = Callable[..., str]


@pytest.fixture
def start(model: ModelServer) -> Iterator[Started]:
    """Starts gateways before the model server, which keep all that was said."""
    with ExitStack() as stack:

        def begin(mcp: tuple[McpConfig, ...] = (), **bounds: int) -> str:
            models = (ModelConfig(name="m", upstream=model.url),)
            server = ServerConfig(inspect="full")
            stack.enter_context(bounded(**bounds))
            gateway = Gateway(Config(models=models, mcp=mcp, server=server))
            stack.callback(gateway.stop)
            return gateway.url

        yield begin


# --- a turn at each door ---


def over_http(path: str, url: str, body: dict[str, Any]) -> Any:
    reply = request(url + path, {"model": "m", **body})
    assert reply.status == 200, reply.text
    return reply.json


def over_websocket(url: str, body: dict[str, Any]) -> Any:
    websockets = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    with websockets.connect(f"{url.replace('http', 'ws')}{RESPONSES}", max_size=None) as connection:
        connection.send(json.dumps({"type": "response.create", "model": "m", **body}))
        while (event := json.loads(connection.recv(PATIENCE_S)))["type"] != "response.completed":
            assert event["type"] != "error", event
        return event["response"]


def messages(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


DOORS: Final[dict[str, Callable[[str, str], Any]]] = {
    "chat": lambda url, text: over_http(CHAT, url, messages(text)),
    "responses": lambda url, text: over_http(RESPONSES, url, {"input": text}),
    "messages": lambda url, text: over_http(MESSAGES, url, {"max_tokens": 50, **messages(text)}),
    "websocket": lambda url, text: over_websocket(url, {"input": text}),
}


def ask(model: ModelServer, url: str, door: str, text: str) -> str:
    """Have a turn at a door; the id of its row."""
    model.plays(said(f"heard {text[:8]}"))
    DOORS[door](url, text)
    return latest(url)


# --- what is kept ---


def rows(url: str) -> list[dict[str, Any]]:
    """The rows, once all turns are over."""

    def found() -> list[dict[str, Any]]:
        return list(request(f"{url}/ui/api/turns", method="GET").json["rows"])

    until(lambda: all(row["over"] for row in found()))
    return found()


def latest(url: str) -> str:
    return str(rows(url)[-1]["id"])


def contents(url: str, id_: str) -> str:
    """What is kept of a turn's contents: `full`, `gone`; or `no row`."""
    reply = request(f"{url}/ui/api/turns/{id_}", method="GET")
    if reply.status == 404:
        return "no row"
    view = reply.json
    (row,) = (row for row in rows(url) if row["id"] == id_)
    assert row["has_contents"] is (view["contents"] == "full")
    assert (view.get("request") is not None) is (view["contents"] == "full")
    return str(view["contents"])


@pytest.mark.parametrize("door", DOORS)
def test_no_more_rows_are_kept_than_their_bound_and_the_newest_are(
    start: Started, model: ModelServer, door: str
) -> None:
    url = start(MAX_INSPECTED_TURNS=MOST_ROWS)
    ids: list[str] = []
    for number in range(TURNS):
        ids.append(ask(model, url, door, f"turn {number}"))
        assert [row["id"] for row in rows(url)] == ids[-MOST_ROWS:]
    assert [contents(url, id_) for id_ in ids] == ["no row"] * (TURNS - MOST_ROWS) + ["full"] * MOST_ROWS


@pytest.mark.parametrize("door", DOORS)
def test_no_more_contents_are_kept_than_their_bound_and_the_newest_are(
    start: Started, model: ModelServer, door: str
) -> None:
    url = start(MAX_INSPECTED_BYTES=ROOM)
    ids: list[str] = []
    for number in range(TURNS):
        ids.append(ask(model, url, door, f"turn {number}".ljust(LENGTH, "x")))
        gone = max(0, len(ids) - ROOM_FOR)
        assert [contents(url, id_) for id_ in ids] == ["gone"] * gone + ["full"] * (len(ids) - gone)
    for number, id_ in enumerate(ids):
        text = request(f"{url}/ui/api/turns/{id_}", method="GET").text
        assert (f"turn {number}xx" in text) is (number >= TURNS - ROOM_FOR)


@pytest.mark.parametrize("door", DOORS)
def test_a_turn_that_is_too_large_by_itself_drives_out_no_other(start: Started, model: ModelServer, door: str) -> None:
    url = start(MAX_INSPECTED_BYTES=ROOM)
    ids = [ask(model, url, door, text) for text in ("small", "x" * ROOM, "small")]
    assert [contents(url, id_) for id_ in ids] == ["full", "gone", "full"]


@pytest.mark.parametrize("door", DOORS)
def test_a_long_answer_counts(start: Started, model: ModelServer, door: str) -> None:
    url = start(MAX_INSPECTED_BYTES=ROOM)
    ids: list[str] = []
    for _ in range(TURNS):
        model.plays(said(*["word "] * 150))  # each piece takes more than its characters
        DOORS[door](url, "Hi")
        ids.append(latest(url))
    kept = [contents(url, id_) for id_ in ids]
    assert kept[-1] == "full"
    assert kept[0] == "gone"
    assert kept == sorted(kept, reverse=True)


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
def test_turns_under_way_have_no_more_rows_either(start: Started, model: ModelServer, path: str) -> None:
    url = start(MAX_INSPECTED_TURNS=1)
    answers, gates = zip(*(slow(model) for _ in range(3)), strict=True)
    model.plays(*answers)
    body = {"model": "m", "stream": True, **({"input": "Hi"} if path == RESPONSES else messages("Hi"))}
    given = json.dumps({**body, **({"max_tokens": 50} if path == MESSAGES else {})}).encode()
    with ExitStack() as stack:
        lives = []
        for gate in gates:
            lives.append(stack.enter_context(Live(url + path, given)))
            gate.wait_until_reached()
            assert len(request(f"{url}/ui/api/turns", method="GET").json["rows"]) == 1
        for gate, live in zip(gates, lives, strict=True):
            gate.open()
            assert list(live.pieces())
            assert len(request(f"{url}/ui/api/turns", method="GET").json["rows"]) == 1
    assert contents(url, latest(url)) == "full"


def slow(model: ModelServer) -> tuple[Answer, Gate]:
    """An answer that waits before its end."""
    begin, *rest = said("Hi").steps
    gate = model.gate()
    return Answer((begin, gate, *rest)), gate


# --- what stands in no body ---


def by_response(url: str, ask_: Callable[[str, dict[str, Any]], Any]) -> None:
    before = ask_(url, {"input": "x" * LENGTH})["id"]
    ask_(url, {"input": "on", "previous_response_id": before})


def by_conversation(url: str, ask_: Callable[[str, dict[str, Any]], Any]) -> None:
    conversation = request(url + CONVERSATIONS, {}).json["id"]
    ask_(url, {"input": "x" * LENGTH, "conversation": conversation})
    ask_(url, {"input": "on", "conversation": conversation})


def responses(url: str, body: dict[str, Any]) -> Any:
    return over_http(RESPONSES, url, body)


CONTINUED: Final = {
    "a response": lambda url: by_response(url, responses),
    "a response, over WebSocket": lambda url: by_response(url, over_websocket),
    "a conversation": lambda url: by_conversation(url, responses),
    "a conversation, over WebSocket": lambda url: by_conversation(url, over_websocket),
}


@pytest.mark.parametrize("case", CONTINUED)
def test_what_a_turn_continues_from_counts(start: Started, model: ModelServer, case: str) -> None:
    url = start(MAX_INSPECTED_BYTES=ROOM * 2 // 3)
    model.plays(said("Go on."), said("Done."))
    CONTINUED[case](url)
    first, second = (row["id"] for row in rows(url))
    assert (contents(url, first), contents(url, second)) == ("gone", "full")


def test_what_is_asked_again_counts(start: Started, model: ModelServer) -> None:
    url = start(MAX_INSPECTED_BYTES=ROOM * 2 // 3)
    first = ask(model, url, "chat", "x" * LENGTH)
    model.plays(said("Again."))
    second = request(f"{url}/ui/api/turns/{first}/again", {}).json["id"]
    assert (contents(url, first), contents(url, second)) == ("gone", "full")


@pytest.mark.clients
def test_what_the_tools_of_a_server_have_said_counts(start: Started, model: ModelServer, tmp_path: Path) -> None:
    pytest.importorskip("mcp.client", reason="the SDK of MCP is not installed")
    command = [sys.executable, MCP_SERVER, "stdio", str(tmp_path)]
    url = start((McpConfig(label="s", command=command, timeout_s=PATIENCE_S),), MAX_INSPECTED_BYTES=ROOM * 2 // 3)
    model.plays(calling("s__say", json.dumps({"x": "y" * LENGTH})), said("So it is."))
    tool = {"type": "mcp", "server_label": "s", "require_approval": "never"}
    over_http(RESPONSES, url, {"input": "Say it.", "tools": [tool]})
    first, second = (row["id"] for row in rows(url))
    assert (contents(url, first), contents(url, second)) == ("full", "gone")
