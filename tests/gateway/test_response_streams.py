"""Responses that are read as streams by their id: made in the background, made before, made by another gateway."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from callwright.gateway.config.config import Config, ServerConfig, StoreConfig
from callwright.gateway.responses.event_log import EventLogs
from tests.conftest import scripted_models
from tests.support.http_client import Live, request
from tests.support.outputs import ARGUMENTS, TEXT, THOUGHT
from tests.support.responses_client import (
    FUNCTIONS,
    OPEN_RESPONSES,
    RESPONSES,
    checked,
    fetch,
    order,
    read_event,
    read_events,
    respond,
    text_of,
)
from tests.support.servers import Answer, Gateway, ModelServer, Step, call_deltas, chat, chunk, said, sse
from tests.support.waiting import until

THINKS_AND_CALLS = chat(
    {"reasoning_content": THOUGHT},
    {"content": TEXT},
    *call_deltas("get_weather", ARGUMENTS[:5], ARGUMENTS[5:]),
    finish="tool_calls",
)


def streamed_again(gateway: str, id_: str, after: int | None = None, path: str = RESPONSES) -> list[Any]:
    more = "" if after is None else f"&starting_after={after}"
    reply = request(f"{gateway}{path}/{id_}?stream=true{more}", method="GET")
    return read_events(reply, done=path == OPEN_RESPONSES)


def gated(model: ModelServer, *texts: str) -> Any:
    """The server says the first text, waits at the gate, and says the others."""
    gate = model.gate()
    steps: list[Step] = [*said(*texts).steps]
    model.plays(Answer((*steps[:2], gate, *steps[2:])))
    return gate


def begun(gateway: str, **fields: Any) -> Live:
    body = {"model": "native", "input": "Hi", "background": True, "stream": True, **fields}
    return Live(gateway + RESPONSES, json.dumps(body).encode())


def taken(live: Live, number: int) -> list[Any]:
    """So many events of a stream, of which more may come."""
    events: list[Any] = []
    for written in live.events():
        events.append(read_event(written))
        if len(events) == number:
            break
    return events


def polled(gateway: str, id_: str) -> Any:
    until(lambda: fetch(f"{gateway}{RESPONSES}/{id_}")[1]["status"] not in ("queued", "in_progress"))
    return fetch(f"{gateway}{RESPONSES}/{id_}")[1]


# --- made in the background ---


def test_a_stream_in_the_background_goes_on_when_its_client_leaves(gateway: str, model: ModelServer) -> None:
    gate = gated(model, "One ", "two ", "three")
    with begun(gateway) as live:
        events = taken(live, 5)
    assert order(events)[:2] == ["created", "in_progress"]
    id_ = events[0]["response"]["id"]
    assert fetch(f"{gateway}{RESPONSES}/{id_}")[1]["status"] == "in_progress"
    gate.open()
    response = polled(gateway, id_)
    assert (response["status"], text_of(response)) == ("completed", "One two three")
    assert not model.left.is_set()


def test_a_client_that_comes_back_reads_on_where_it_was(gateway: str, model: ModelServer) -> None:
    gate = gated(model, "One ", "two ", "three")
    with begun(gateway) as live:
        events = taken(live, 5)
    id_ = events[0]["response"]["id"]
    with Live(f"{gateway}{RESPONSES}/{id_}?stream=true&starting_after=4", method="GET") as back:
        assert back.status == 200
        gate.open()
        rest = [read_event(written) for written in back.events()]
    assert checked([*events, *rest])["status"] == "completed"
    assert streamed_again(gateway, id_) == [*events, *rest]
    assert streamed_again(gateway, id_, 7) == [*events, *rest][8:]
    assert streamed_again(gateway, id_, len([*events, *rest]) + 5) == []


def test_what_was_not_asked_for_as_a_stream_can_be_read_as_one(gateway: str, model: ModelServer) -> None:
    gate = gated(model, "One ", "two")
    with begun(gateway, stream=False) as live:
        (piece,) = live.pieces()
    id_ = json.loads(piece)["id"]
    with Live(f"{gateway}{RESPONSES}/{id_}?stream=true", method="GET") as back:
        assert back.status == 200
        gate.open()
        events = [read_event(written) for written in back.events()]
    assert checked(events) == fetch(f"{gateway}{RESPONSES}/{id_}")[1]


def test_a_stream_in_the_background_that_is_cancelled_says_so(gateway: str, model: ModelServer) -> None:
    gated(model, "One ", "two")
    with begun(gateway) as live:
        coming = (read_event(written) for written in live.events())
        first = next(coming)
        id_ = first["response"]["id"]
        next(coming)
        assert request(f"{gateway}{RESPONSES}/{id_}/cancel", b"").json["status"] == "cancelled"
        last = list(coming)[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "cancelled")
    assert streamed_again(gateway, id_)[-1] == last


def test_a_stream_in_the_background_that_fails_says_so(gateway: str, model: ModelServer) -> None:
    model.plays(Answer((*sse(chunk({"content": "It "})), "cut")))
    with begun(gateway) as live:
        events = [read_event(written) for written in live.events()]
    response = checked(events)
    assert (response["status"], response["error"]["code"]) == ("failed", "server_error")
    assert polled(gateway, response["id"]) == response


def test_what_was_deleted_cannot_be_read_as_a_stream(gateway: str, model: ModelServer) -> None:
    model.plays(said("One"))
    with begun(gateway) as live:
        id_ = read_event(next(live.events()))["response"]["id"]
    polled(gateway, id_)
    request(f"{gateway}{RESPONSES}/{id_}", method="DELETE")
    assert request(f"{gateway}{RESPONSES}/{id_}?stream=true", method="GET").status == 404


# --- told from what is stored ---


@pytest.mark.parametrize("path", [RESPONSES, OPEN_RESPONSES])
@pytest.mark.parametrize("fields", [{}, {"reasoning": {"summary": "auto"}}], ids=["reasoning", "summary"])
def test_a_stored_response_is_told_once_more(
    gateway: str, model: ModelServer, path: str, fields: dict[str, Any]
) -> None:
    model.plays(THINKS_AND_CALLS)
    response = respond(gateway, stream=True, model="native", input="Hi", tools=FUNCTIONS, path=path, **fields)
    events = streamed_again(gateway, response["id"], path=path)
    assert checked(events) == response == fetch(f"{gateway}{RESPONSES}/{response['id']}")[1]
    assert streamed_again(gateway, response["id"], path=path) == events


@pytest.mark.parametrize(
    "answer",
    [
        said("It is", finish="length"),
        chat(*call_deltas("get_weather", ARGUMENTS[:5]), finish="length"),
        chat({"refusal": "No."}),
        chat({"content": "a"}, {"annotations": [{"type": "url_citation", "url_citation": {"url": "u"}}]}),
        chat(*call_deltas("shell", '{"commands": ["ls"]}'), finish="tool_calls"),
        chat(*call_deltas("note", '{"input": "x"}'), finish="tool_calls"),
    ],
    ids=["cut", "a cut call", "a refusal", "annotations", "a built-in tool", "a custom tool"],
)
def test_whatever_is_stored_is_told_as_the_protocol_wants_it(gateway: str, model: ModelServer, answer: Answer) -> None:
    model.plays(answer)
    tools = [*FUNCTIONS, {"type": "shell"}, {"type": "custom", "name": "note"}]
    response = respond(gateway, stream=False, model="native", input="Hi", tools=tools)
    assert checked(streamed_again(gateway, response["id"])) == response


def test_only_who_has_made_a_stream_knows_its_numbers(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    id_ = respond(gateway, stream=True, model="native", input="Hi")["id"]
    reply = request(f"{gateway}{RESPONSES}/{id_}?stream=true&starting_after=3", method="GET")
    assert (reply.status, reply.error["param"], reply.error["code"]) == (400, "starting_after", "events_not_kept")
    assert "Leave out 'starting_after'" in reply.error["message"]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("stream=yes", "stream"),
        ("starting_after=1", "starting_after"),
        ("stream=true&starting_after=-1", "starting_after"),
        ("stream=true&starting_after=x", "starting_after"),
        (f"stream=true&starting_after={'9' * 400}", "starting_after"),
    ],
)
def test_a_query_that_cannot_be_read_is_refused(gateway: str, model: ModelServer, query: str, param: str) -> None:
    model.plays(said("Hi"))
    id_ = respond(gateway, stream=False, model="native", input="Hi")["id"]
    reply = request(f"{gateway}{RESPONSES}/{id_}?{query}", method="GET")
    assert (reply.status, reply.error["param"]) == (400, param)


# --- made by another gateway ---


@contextmanager
def two_gateways(url: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Two gateways with one store."""
    store = StoreConfig(url=f"sqlite:///{folder / 'store.db'}")
    both = [Gateway(Config(server=ServerConfig(), models=scripted_models(url)[:1], store=store)) for _ in range(2)]
    try:
        yield both[0].url, both[1].url
    finally:
        for gateway in both:
            gateway.ask_to_stop()
        for gateway in both:
            gateway.stop()


def test_what_another_gateway_makes_is_waited_for(model: ModelServer, tmp_path: Path) -> None:
    with two_gateways(model.url, tmp_path) as (maker, other):
        gate = gated(model, "One ", "two")
        with begun(maker) as live:
            id_ = taken(live, 2)[0]["response"]["id"]
        found: list[Any] = []
        waiting = threading.Thread(target=lambda: found.append(streamed_again(other, id_)))
        waiting.start()
        gate.open()
        waiting.join(30)
        assert text_of(checked(found[0])) == "One two"
        reply = request(f"{other}{RESPONSES}/{id_}?stream=true&starting_after=1", method="GET")
        assert (reply.status, reply.error["code"]) == (400, "events_not_kept")
        assert streamed_again(maker, id_, 1)[0]["sequence_number"] == 2


# --- OpenAI's library ---


@pytest.mark.processes  # OpenAI's library asks the system for its name
def test_openais_library_reads_on_where_it_was(gateway: str, model: ModelServer) -> None:
    openai = pytest.importorskip("openai", reason="the SDK of OpenAI is not installed")
    gate = gated(model, "One ", "two ", "three")
    with openai.OpenAI(base_url=f"{gateway}/v1", api_key="any", max_retries=0) as client:
        cursor, id_, said_ = -1, "", ""
        with client.responses.create(model="native", input="Hi", background=True, stream=True) as stream:
            for event in stream:
                cursor = event.sequence_number
                if event.type == "response.created":
                    id_ = event.response.id
                if event.type == "response.output_text.delta":
                    said_ += event.delta
                    break
        gate.open()
        with client.responses.retrieve(id_, stream=True, starting_after=cursor) as stream:
            for event in stream:
                assert event.sequence_number == cursor + 1
                cursor = event.sequence_number
                if event.type == "response.output_text.delta":
                    said_ += event.delta
        assert event.type == "response.completed"
        assert said_ == event.response.output_text == "One two three"


# --- bounds ---


def test_events_have_so_much_room_together_and_the_oldest_go_first() -> None:
    logs = EventLogs(100)
    first, second, third = (logs.begin(id_) for id_ in ("a", "b", "c"))
    first.add([b"x" * 40])
    first.end()
    second.add([b"x" * 40])
    third.add([b"x" * 40])
    assert (logs.get("a"), second.first, third.first) == (None, 0, 0)  # what has ended went first
    third.add([b"x" * 10, b"x" * 30])
    assert (second.first, third.first, third.next) == (0, 1, 3)
    third.add([b"x" * 500])
    assert (second.first, third.first, third.next) == (0, 3, 4)  # the newest event always stays
    assert logs.begin("d").next == 0
