"""The Open Responses specification, held by a checker that others wrote and by checks of our own.

The schema is the published one, as the package llm-comply brings it along. Below `/openresponses` everything fits it;
in OpenAI's dialect everything but the names of the two events that carry reasoning.
"""

import functools
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, Final

import jsonschema_rs
import pytest

from callwright.gateway.config.config import ModelConfig
from tests import conftest
from tests.conftest import Served
from tests.support.http_client import request
from tests.support.outputs import QUESTION, TEXT, played
from tests.support.responses_client import ENDS, RESPONSE_KEYS, checked, kinds, read_events, text_of
from tests.support.servers import Answer, ModelServer, chat, chunk, said, sse

pytestmark = pytest.mark.clients

OPEN: Final = "/openresponses/v1"
OPENAI: Final = "/v1"
PATIENCE_S: Final = 60
WEATHER: Final = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
PIXEL: Final = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
# OpenAI's names for events that the specification calls differently; else the two are the same.
OPENAI_EVENTS: Final = {
    "response.reasoning_text.delta": "response.reasoning.delta",
    "response.reasoning_text.done": "response.reasoning.done",
}

both_dialects = pytest.mark.parametrize("base", [OPEN, OPENAI], ids=["open responses", "openai"])
every_way = pytest.mark.parametrize("way", conftest.WAYS)


# --- the schema ---


@functools.cache
def spec() -> Any:
    pytest.importorskip("llm_comply", reason="llm-comply is not installed")
    return json.loads((files("llm_comply") / "specs" / "openresponses.json").read_text(encoding="utf-8"))


@functools.cache
def validator(name: str) -> Any:
    components = spec()["components"]
    assert name in components["schemas"]
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": components})


def fits(name: str, value: Any) -> None:
    """Fail where a value is none of this schema."""
    faults = [f"{name} at {list(error.instance_path)}: {error.message}" for error in validator(name).iter_errors(value)]
    assert not faults, f"{faults}\n{value}"


@functools.cache
def event_schemas() -> Mapping[str, str]:
    """The names of the schemas of all events, by the event's type."""
    schemas = spec()["components"]["schemas"]
    names = (name for name in schemas if name.endswith("StreamingEvent"))
    return {schemas[name]["properties"]["type"]["enum"][0]: name for name in names}


def event_fits(event: Mapping[str, Any], base: str) -> None:
    kind = event["type"]
    if base == OPENAI and kind in OPENAI_EVENTS:
        kind = OPENAI_EVENTS[kind]
    assert kind in event_schemas(), f"{kind} is no event of the specification"
    fits(event_schemas()[kind], {**event, "type": kind})


def test_the_schema_is_the_one_that_the_checks_mean() -> None:
    assert spec()["info"]["version"] == "2026-04-24"
    assert len(event_schemas()) == 24
    wanted = spec()["components"]["schemas"]["ResponseResource"]["required"]
    assert len(wanted) == 31
    assert set(wanted) < RESPONSE_KEYS
    assert not set(OPENAI_EVENTS) & set(event_schemas())


# --- llm-comply ---


def complied(base_url: str, name: str, format_: str) -> list[dict[str, Any]]:
    """What llm-comply finds; nothing may have failed or been left out."""
    pytest.importorskip("llm_comply", reason="llm-comply is not installed")
    command = [sys.executable, "-m", "llm_comply.cli", "-u", base_url, "-k", "any", "-m", name, "--format", format_]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    results: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    assert {result["status"] for result in results} == {"passed"}, results
    return results


@pytest.fixture
def reasoner(serve: Served) -> str:
    """A gateway whose model has a name that llm-comply takes for one that reasons; else it leaves a test out."""
    return serve(ModelConfig(name="simulated-gpt-5", upstream="simulated"))


def test_llm_comply_finds_nothing_wrong_with_open_responses(reasoner: str) -> None:
    results = complied(reasoner + OPEN, "simulated-gpt-5", "open-responses")
    assert len(results) == 13
    assert not [result for result in results if result.get("warnings")]


def test_llm_comply_finds_nothing_wrong_with_chat(reasoner: str) -> None:
    results = complied(reasoner + OPENAI, "simulated-gpt-5", "openai-chat")
    assert len(results) == 9
    borne = {
        "choices[0].message missing 'annotations' field",  # an empty list that no client needs
        "usage.completion_tokens_details.reasoning_tokens is 0 (model may not support reasoning)",
    }
    assert {warning for result in results for warning in result.get("warnings", ())} <= borne


def test_llm_comply_finds_nothing_wrong_with_messages(serve: Served) -> None:
    name = "simulated-claude-4"  # for one that reasons, as above
    url = serve(ModelConfig(name=name, upstream="simulated"))
    results = complied(url + OPENAI, name, "anthropic")
    assert len(results) == 9
    (warning,) = [warning for result in results for warning in result.get("warnings", ())]
    assert warning.startswith("no thinking content block found")  # without tools this model does not think


# --- over HTTP ---


def whole(url: str, name: str, given: Any, **more: Any) -> Any:
    """A response that is not streamed, and fits."""
    reply = request(f"{url}/responses", {"model": name, "input": given, **more})
    assert reply.status == 200, reply.text
    fits("ResponseResource", reply.json)
    return reply.json


def streamed(gateway: str, base: str, name: str, given: Any, **more: Any) -> Any:
    """A response at the end of a stream, all of whose events fit and stand where they should."""
    reply = request(f"{gateway}{base}/responses", {"model": name, "input": given, "stream": True, **more})
    events = read_events(reply, done=base == OPEN)
    for event in events:
        event_fits(event, base)
    fits("ResponseResource", events[-1]["response"])
    return checked(events)


def message(text: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text, **more}


@both_dialects
@every_way
def test_a_text_answer_fits(simulated: str, base: str, way: str) -> None:
    response = whole(simulated + base, way, [message("Say hello in three words.")])
    assert response["status"] == "completed"
    assert text_of(response) == "You said: Say hello in three words."


@both_dialects
@every_way
def test_the_events_of_a_text_answer_fit(simulated: str, base: str, way: str) -> None:
    response = streamed(simulated, base, way, [message("Count to five.")])
    assert response["status"] == "completed"
    assert kinds(response["output"])[-1] == "message"


@both_dialects
@every_way
def test_a_system_message_is_taken(simulated: str, base: str, way: str) -> None:
    for role in ("system", "developer"):
        response = whole(simulated + base, way, [message("Talk like a pirate.", role), message("Say hello.")])
        assert text_of(response) == "You said: Say hello."


@both_dialects
@every_way
def test_a_longer_conversation_is_taken(simulated: str, base: str, way: str) -> None:
    given = [message("I am Ada."), message("Hello Ada!", "assistant"), message("Who am I?")]
    assert text_of(whole(simulated + base, way, given)) == "You said: Who am I?"


@both_dialects
@every_way
def test_a_call_fits_whole_and_streamed(simulated: str, base: str, way: str) -> None:
    given = [message("What is the weather in Lisbon?")]
    first = whole(simulated + base, way, given, tools=[WEATHER])
    second = streamed(simulated, base, way, given, tools=[WEATHER], tool_choice="required")
    for response in (first, second):
        assert kinds(response["output"])[-1] == "function_call"
        assert json.loads(response["output"][-1]["arguments"]) == {"city": "Lisbon"}


@both_dialects
def test_an_image_is_taken(simulated: str, base: str) -> None:
    parts = [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": PIXEL}]
    given = [{"type": "message", "role": "user", "content": parts}]
    assert whole(simulated + base, "native", given)["status"] == "completed"


@both_dialects
@every_way
def test_phases_are_taken_and_given(gateway: str, model: ModelServer, simulated: str, base: str, way: str) -> None:
    given = [
        message("I look it up.", "assistant", phase="commentary"),
        message("Four.", "assistant", phase="final_answer"),
        message("Once more?"),
    ]
    answered = whole(simulated + base, way, given)
    assert answered["output"][-1]["phase"] == "final_answer"
    model.plays(played("native", "text_and_call"))
    called = whole(gateway + base, "native", [QUESTION], tools=[WEATHER])
    assert [item.get("phase") for item in called["output"]] == ["commentary", None]


@both_dialects
@pytest.mark.parametrize("summary", [None, "auto"], ids=["as it is", "summarised"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_reasoning_fits(simulated: str, base: str, summary: str | None, packed: bool) -> None:
    more: dict[str, Any] = {"reasoning": {"effort": "low", "summary": summary}, "store": False}
    more |= {"include": ["reasoning.encrypted_content"] if packed else [], "tools": [WEATHER]}
    for response in (
        whole(simulated + base, "native", "Hello", **more),
        streamed(simulated, base, "native", "Hello", **more),
    ):
        reasoning = response["output"][0]
        assert reasoning["type"] == "reasoning"
        (part,) = reasoning["summary"] if summary else reasoning["content"]
        assert part == {"type": "summary_text" if summary else "reasoning_text", "text": "No tool is needed here."}
        assert ("encrypted_content" in reasoning) is packed


@both_dialects
def test_what_was_asked_comes_back_as_the_schema_has_it(simulated: str, base: str) -> None:
    named = {"type": "function", "name": "get_weather"}
    for more in (
        {"tools": [WEATHER], "tool_choice": named},
        {"tools": [WEATHER], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [named]}},
        {"tools": [{"type": "function", "name": "bare"}], "tool_choice": "none"},
        {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
        {"temperature": 0, "top_p": 1, "presence_penalty": 1, "max_output_tokens": 64, "truncation": "auto"},
        {"metadata": {"a": "b"}, "safety_identifier": "s", "prompt_cache_key": "k", "service_tier": "auto"},
        {"instructions": "Be brief.", "max_tool_calls": 3, "parallel_tool_calls": False},
    ):
        whole(simulated + base, "native", "Hello", **more)


@both_dialects
def test_a_schema_for_the_text_comes_back_with_all_its_fields(simulated: str, base: str) -> None:
    asked = {"type": "json_schema", "name": "s", "schema": {"type": "object"}}
    body = {"model": "native", "input": "Hello", "text": {"format": asked}}
    response = request(f"{simulated}{base}/responses", body).json
    format_ = response["text"]["format"]
    assert format_ == {**asked, "description": None, "strict": False}
    # Of the schema itself the published one allows null only, which would not be what was asked.
    fits("ResponseResource", {**response, "text": {"format": {**format_, "schema": None}}})


@both_dialects
@pytest.mark.parametrize(
    ("answer", "end", "reason"),
    [
        (said("It is", finish="length"), "incomplete", "max_output_tokens"),
        (played("native", "cut_call"), "incomplete", "max_output_tokens"),
        (said("It is", finish="content_filter"), "incomplete", "content_filter"),
        (chat({"content": "It is"}, finish=None, usage=False, done=False), "failed", None),
    ],
    ids=["text cut", "call cut", "filtered", "broken off"],
)
def test_an_answer_that_ends_early_fits(
    gateway: str, model: ModelServer, base: str, answer: Answer, end: str, reason: str | None
) -> None:
    model.plays(answer)
    response = streamed(gateway, base, "native", [QUESTION], tools=[WEATHER])
    assert response["status"] == end
    assert response["incomplete_details"] == (reason and {"reason": reason})
    assert (response["error"] is not None) is (end == "failed")


@both_dialects
def test_a_response_that_was_kept_fits(simulated: str, base: str) -> None:
    made = whole(simulated + base, "native", "Hello")
    reply = request(f"{simulated}{base}/responses/{made['id']}", method="GET")
    fits("ResponseResource", reply.json)
    assert reply.json == made


# --- compaction ---


def compacted(gateway: str, base: str) -> Any:
    """A conversation made short."""
    parts = [{"type": "input_text", "text": "Remember: slate."}, {"type": "input_image", "image_url": PIXEL}]
    given = [
        message("We launch on Tuesday."),
        message("Understood.", "assistant"),
        {"type": "message", "role": "user", "content": parts},
        {"role": "assistant", "content": [{"type": "output_text", "text": "OK."}]},
    ]
    body = {"model": "native", "input": given, "prompt_cache_key": "short"}
    reply = request(f"{gateway}{base}/responses/compact", body)
    assert reply.status == 200, reply.text
    return reply.json


@both_dialects
def test_a_compaction_fits(simulated: str, base: str) -> None:
    short = compacted(simulated, base)
    fits("CompactResource", short)
    assert kinds(short["output"]) == ["message", "message", "compaction"]
    assert [item["role"] for item in short["output"][:2]] == ["user", "user"]


@both_dialects
def test_a_compaction_needs_a_model(simulated: str, base: str) -> None:
    reply = request(f"{simulated}{base}/responses/compact", {"input": [message("Make it short.")]})
    assert reply.status == 400
    assert (reply.error["param"], reply.error["code"]) == ("model", "missing_required_parameter")


# --- over WebSocket ---


class Lane:
    """A connection on which one turn follows another."""

    def __init__(self, socket: Any, base: str) -> None:
        self._socket = socket
        self._base = base

    def turn(self, name: str, given: Any, **more: Any) -> Any:
        """The response of a turn, all of whose events fit."""
        return self.events(name, given, **more)[-1]["response"]

    def events(self, name: str, given: Any, **more: Any) -> list[Any]:
        self._send(name, given, **more)
        events = [self._receive()]
        while events[-1]["type"] not in ENDS:
            events.append(self._receive())
        for event in events:
            event_fits(event, self._base)
        fits("ResponseResource", events[-1]["response"])
        checked(events)
        return events

    def begin(self, name: str, given: Any, until: str) -> None:
        """Begin a turn, and read until an event of this kind comes."""
        self._send(name, given)
        while self._receive()["type"] != until:
            pass

    def error(self, name: str, given: Any, **more: Any) -> Any:
        """The error that comes instead of a turn."""
        self._send(name, given, **more)
        frame = self._receive()
        error = frame["error"]
        # OpenAI has errors without a code, over HTTP and here.
        has_code = self._base == OPEN or error["code"] is not None
        fits("WebSocketErrorEvent", frame if has_code else {**frame, "error": {**error, "code": "none"}})
        return error

    def _send(self, name: str, given: Any, **more: Any) -> None:
        body = {"type": "response.create", "model": name, "input": given, **more}
        self._socket.send(json.dumps({key: value for key, value in body.items() if value is not None}))

    def _receive(self) -> Any:
        frame = self._socket.recv(PATIENCE_S)
        assert isinstance(frame, str)
        return json.loads(frame)


@contextmanager
def connected(gateway: str, base: str) -> Iterator[Lane]:
    client = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    headers = {"authorization": "Bearer any", "content-type": "application/json"}
    with client.connect(f"ws{gateway.removeprefix('http')}{base}/responses", additional_headers=headers) as socket:
        yield Lane(socket, base)


@both_dialects
@every_way
def test_a_turn_on_a_socket_fits(simulated: str, base: str, way: str) -> None:
    with connected(simulated, base) as fast_path:
        response = fast_path.turn(way, [message("Count to three.")])
    assert response["status"] == "completed"
    assert text_of(response) == "You said: Count to three."


@both_dialects
def test_turns_on_a_socket_follow_each_other(simulated: str, base: str) -> None:
    with connected(simulated, base) as fast_path:
        first = fast_path.turn("native", "first", store=False)
        second = fast_path.turn("native", "second", store=False)
    assert (text_of(first), text_of(second)) == ("You said: first", "You said: second")
    assert first["id"] != second["id"]


@both_dialects
@every_way
def test_a_socket_goes_on_from_what_is_not_stored(simulated: str, base: str, way: str) -> None:
    with connected(simulated, base) as fast_path:
        first = fast_path.turn(way, "What is the weather in Lisbon?", tools=[WEATHER], store=False)
        call = first["output"][-1]
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "21 °C"}
        last = fast_path.turn(way, [output], tools=[WEATHER], store=False, previous_response_id=first["id"])
    assert "21 °C" in text_of(last)
    assert last["previous_response_id"] == first["id"]


@both_dialects
def test_a_socket_is_warmed_up(simulated: str, base: str) -> None:
    with connected(simulated, base) as fast_path:
        warm = fast_path.turn("native", "Get ready.", generate=False, store=False)
        response = fast_path.turn("native", "Go.", store=False, previous_response_id=warm["id"])
    assert warm["output"] == []
    assert warm["status"] == "completed"
    assert text_of(response) == "You said: Go."


@both_dialects
def test_another_socket_does_not_know_what_is_not_stored(simulated: str, base: str) -> None:
    with connected(simulated, base) as fast_path:
        first = fast_path.turn("native", "Remember: copper.", store=False)
    with connected(simulated, base) as fast_path:
        error = fast_path.error("native", "Go on.", store=False, previous_response_id=first["id"])
        response = fast_path.turn("native", [message("Then begin anew.")], store=False)
    assert error["code"] == "previous_response_not_found"
    assert text_of(response) == "You said: Then begin anew."


@both_dialects
def test_another_socket_knows_what_is_stored(simulated: str, base: str) -> None:
    with connected(simulated, base) as fast_path:
        first = fast_path.turn("native", "Remember: copper.")
    with connected(simulated, base) as fast_path:
        response = fast_path.turn("native", "Go on.", previous_response_id=first["id"])
    assert response["previous_response_id"] == first["id"]


@both_dialects
def test_an_unknown_previous_response_is_an_error(simulated: str, base: str) -> None:
    with connected(simulated, base) as fast_path:
        error = fast_path.error("native", "Go on.", store=False, previous_response_id="resp_missing")
    assert error["code"] == "previous_response_not_found"
    assert error["param"] == "previous_response_id"


@both_dialects
def test_a_continuation_that_fails_makes_the_socket_forget(simulated: str, base: str) -> None:
    stray = {"type": "function_call_output", "call_id": "call_missing", "output": "Nobody asked."}
    with connected(simulated, base) as fast_path:
        first = fast_path.turn("native", "Remember: ember.", store=False)
        failed = fast_path.error("native", [stray], store=False, previous_response_id=first["id"])
        error = fast_path.error("native", "Go on.", store=False, previous_response_id=first["id"])
    assert "call_missing" in failed["message"]
    assert error["code"] == "previous_response_not_found"


@both_dialects
def test_a_compaction_begins_a_conversation_on_a_socket(simulated: str, base: str) -> None:
    short = compacted(simulated, base)
    with connected(simulated, base) as fast_path:
        response = fast_path.turn("native", [*short["output"], message("Go on.")], tools=[], store=False)
    assert text_of(response) == "You said: Go on."
    assert response["previous_response_id"] is None


@both_dialects
def test_what_only_a_stream_is_asked_for_means_nothing_on_a_socket(simulated: str, base: str) -> None:
    more = {"stream": True, "stream_options": {"include_obfuscation": False}, "background": False}
    with connected(simulated, base) as fast_path:
        assert text_of(fast_path.turn("native", "Hello", **more)) == "You said: Hello"


@both_dialects
def test_an_answer_on_a_socket_that_breaks_off_fits(gateway: str, model: ModelServer, base: str) -> None:
    model.plays(chat({"content": "It is"}, finish=None, usage=False, done=False), said(TEXT))
    with connected(gateway, base) as fast_path:
        failed = fast_path.turn("native", "Hello", store=False)
        response = fast_path.turn("native", "Hello", store=False)
    assert (failed["status"], response["status"]) == ("failed", "completed")


@both_dialects
def test_a_socket_that_is_closed_leaves_the_model(gateway: str, model: ModelServer, base: str) -> None:
    model.plays(Answer((*sse(chunk({"role": "assistant", "content": "It is"})), "silence")))
    with connected(gateway, base) as fast_path:
        fast_path.begin("native", "Hello", "response.output_text.delta")
    model.wait_until_left()
