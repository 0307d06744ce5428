"""The Responses API over HTTP: what a client gets for what the model wrote, streamed and whole.

Every stream that a test reads is held to the protocol's grammar, and every whole answer to the object's keys
(`tests.support.responses_client`).
"""

import json
from typing import Any

import pytest

from tests.conftest import Served, scripted_models
from tests.support.http_client import Live, request
from tests.support.outputs import ARGUMENTS, FEW_WAYS, TEXT, THOUGHT, WAYS, played, spoken
from tests.support.responses_client import (
    BEGIN,
    FUNCTIONS,
    OPEN_RESPONSES,
    RESPONSES,
    SCHEMA,
    bare,
    body,
    checked,
    function,
    order,
    read_event,
    read_events,
    respond,
    streamed,
    text_of,
)
from tests.support.servers import Answer, ModelServer, call_deltas, calling, chat, chunk, said, sse, whole

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
every_way = pytest.mark.parametrize("way", WAYS)
few_ways = pytest.mark.parametrize("way", FEW_WAYS)
TEXT_ITEM = [
    *("output_item.added", "content_part.added", "output_text.delta", "output_text.done"),
    *("content_part.done", "output_item.done"),
]
THOUGHT_ITEM = [kind.replace("output_text", "reasoning_text") for kind in TEXT_ITEM]
SUMMARY_ITEM = [
    *("output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"),
    *("reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"),
]
CALL_ITEM = [
    *("output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
]
CUSTOM_ITEM = [kind.replace("function_call_arguments", "custom_tool_call_input") for kind in CALL_ITEM]


# --- streams ---


@every_way
def test_a_streamed_text_comes_in_openais_order(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "text"))
    assert order(streamed(gateway, **body(way))) == [*BEGIN, *TEXT_ITEM, "completed"]


@every_way
def test_a_streamed_call_comes_in_openais_order(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "call"))
    assert order(streamed(gateway, **body(way))) == [*BEGIN, *THOUGHT_ITEM, *CALL_ITEM, "completed"]


@few_ways
def test_reasoning_streams_as_a_summary_where_one_is_wanted(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "call"))
    events = streamed(gateway, **body(way, reasoning={"summary": "auto"}))
    assert order(events) == [*BEGIN, *SUMMARY_ITEM, *CALL_ITEM, "completed"]


@few_ways
def test_text_beside_a_call_is_an_item_of_its_own(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "text_and_call"))
    assert order(streamed(gateway, **body(way))) == [*BEGIN, *TEXT_ITEM, *CALL_ITEM, "completed"]


@pytest.mark.parametrize("way", ["native", "prompt-json", "prompt-hermes", "raw-hermes-vllm"])
def test_calls_made_at_once_come_one_behind_the_other(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "two_calls"))
    events = streamed(gateway, **body(way))
    assert order(events) == [*BEGIN, *CALL_ITEM, *CALL_ITEM, "completed"]
    ids = [item["call_id"] for item in events[-1]["response"]["output"]]
    assert len(set(ids)) == 2


def test_a_custom_call_streams_its_input(gateway: str, model: ModelServer) -> None:
    model.plays(calling("note", '{"inp', 'ut": "Buy', " milk", '."}'))
    events = streamed(gateway, **body(tools=[{"type": "custom", "name": "note"}]))
    assert order(events) == [*BEGIN, *CUSTOM_ITEM, "completed"]
    deltas = [event["delta"] for event in events if event["type"].endswith("input.delta")]
    assert deltas == ["Buy", " milk", "."]


@pytest.mark.parametrize(
    ("before", "after", "seen", "tools"),
    [
        (sse(chunk({"content": "It "})), sse(chunk({"content": "is"}), chunk({}, "stop")), "It", FUNCTIONS),
        (sse(chunk({"reasoning_content": "Hm"})), sse(chunk({"content": "is"}), chunk({}, "stop")), "Hm", FUNCTIONS),
        (
            sse(*map(chunk, call_deltas("get_weather", '{"city": "P'))),
            sse(*map(chunk, call_deltas("get_weather", 'aris"}')[1:]), chunk({}, "tool_calls")),
            '{"city": "P',
            FUNCTIONS,
        ),
        (
            sse(*map(chunk, call_deltas("note", '{"input": "Buy'))),
            sse(*map(chunk, call_deltas("note", ' milk."}')[1:]), chunk({}, "tool_calls")),
            "Buy",
            [{"type": "custom", "name": "note"}],
        ),
    ],
    ids=["text", "reasoning", "arguments", "input"],
)
def test_what_is_certain_reaches_the_client_while_the_model_still_writes(
    gateway: str, model: ModelServer, before: tuple[bytes, ...], after: tuple[bytes, ...], seen: str, tools: Any
) -> None:
    gate = model.gate()
    model.plays(Answer((*before, gate, *after)))
    events: list[Any] = []
    got = ""
    with Live(gateway + RESPONSES, json.dumps(body(tools=tools, stream=True)).encode()) as live:
        for piece in live.events():
            events.append(read_event(piece))
            got += events[-1].get("delta", "")
            if seen in got:
                gate.open()
    assert checked(events)["status"] == "completed"


def test_a_stream_is_told_as_one_that_nobody_may_hold_back(gateway: str, model: ModelServer) -> None:
    model.plays(played("native", "text"))
    reply = request(gateway + RESPONSES, body(stream=True))
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    assert reply.headers["x-request-id"].startswith("req_")
    assert reply.headers["transfer-encoding"] == "chunked"
    assert b"[DONE]" not in b"".join(reply.pieces)


def test_a_silent_stream_is_kept_alive_with_data(serve: Served, model: ModelServer) -> None:
    """Codex counts no comments as a sign of life."""
    gateway = serve(*scripted_models(model.url), heartbeat_s=0.05)
    gate = model.gate()
    first, *others = played("native", "text").steps
    model.plays(Answer((gate, first, *others)))
    events: list[Any] = []
    with Live(gateway + RESPONSES, json.dumps(body(stream=True)).encode()) as live:
        for piece in live.events():
            events.append(read_event(piece))
            if len(events) == 5:
                gate.open()
    assert [event["type"] for event in events[:5]] == ["response.created", *["response.in_progress"] * 4]
    assert text_of(checked(events)) == TEXT


@both
def test_what_was_wrong_with_a_call_is_told_beside_the_answer(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(calling("get_weather", '{"city": "Paris",}'))
    reply = request(gateway + RESPONSES, body(stream=stream))
    assert reply.problems == {"json_repaired": 1}


# --- the Open Responses dialect ---


def test_open_responses_ends_its_streams_and_names_reasoning_otherwise(gateway: str, model: ModelServer) -> None:
    model.plays(played("native", "call"))
    events = streamed(gateway, OPEN_RESPONSES, **body())
    thought = [kind.replace("reasoning_text", "reasoning") for kind in THOUGHT_ITEM]
    assert order(events) == [*BEGIN, *thought, *CALL_ITEM, "completed"]


# --- whole answers ---

# gpt-oss stops behind each call.
ANSWERS = [(way, what) for way in WAYS for what in ("call", "text", "text_and_call", "cut_text", "cut_call")]
ANSWERS += [(way, "two_calls") for way in WAYS if "harmony" not in way]


@pytest.mark.parametrize(("way", "what"), ANSWERS)
def test_streamed_and_whole_answers_say_the_same(gateway: str, model: ModelServer, way: str, what: str) -> None:
    model.plays(played(way, what), played(way, what))
    a_whole, a_stream = (bare(respond(gateway, stream=stream, **body(way))) for stream in (False, True))
    assert a_stream == a_whole
    assert a_whole["usage"] is not None


def harmony(*messages: tuple[str, str]) -> Answer:
    """An answer of gpt-oss: channels and texts, and a call of get_weather at its end."""
    written = "<|end|><|start|>assistant".join(f"<|channel|>{channel}<|message|>{text}" for channel, text in messages)
    call = f"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{ARGUMENTS}<|call|>"
    return spoken("raw-harmony-vllm", f"{written}<|end|><|start|>assistant{call}")


PIECES = call_deltas("get_weather", ARGUMENTS[:5], ARGUMENTS[5:])
# Answers whose items stand in an order of their own: way, what the server says, and the items with their phases.
MIXED: dict[str, tuple[str, Answer, list[str]]] = {
    "reasoning between text and call": (
        "raw-harmony-vllm",
        harmony(("analysis", "One."), ("commentary", "Wait."), ("analysis", "Two.")),
        ["reasoning", "message commentary", "reasoning", "function_call"],
    ),
    "two thoughts and a text": (
        "native",
        chat({"reasoning_content": "A"}, {"content": "B"}, {"reasoning_content": "C"}, {"content": "D"}),
        ["reasoning", "message commentary", "reasoning", "message final_answer"],
    ),
    "text after a call": (
        "native",
        chat(*PIECES, {"content": "Done."}, finish="tool_calls"),
        ["function_call", "message final_answer"],
    ),
    "text between the pieces of a call": (
        "native",
        chat(*PIECES[:2], {"content": "Hm."}, *PIECES[2:], finish="tool_calls"),
        ["function_call", "message final_answer"],
    ),
    "reasoning between the pieces of a call": (
        "native",
        chat(*PIECES[:2], {"reasoning_content": "Hm."}, *PIECES[2:], finish="tool_calls"),
        ["function_call", "reasoning"],
    ),
    "blanks around everything": (
        "native",
        chat({"content": "\n"}, {"reasoning_content": "Hm."}, {"content": "\n\n"}, *PIECES, {"content": "\n"}),
        ["reasoning", "function_call"],
    ),
}


STRICT = {**function("get_weather"), "parameters": {**SCHEMA, "additionalProperties": False}, "strict": True}


@pytest.mark.parametrize("tools", [FUNCTIONS, [STRICT]], ids=["loose", "strict"])
@pytest.mark.parametrize("title", MIXED)
@both
def test_items_come_in_the_order_in_which_the_model_made_them(
    gateway: str, model: ModelServer, title: str, tools: Any, stream: bool
) -> None:
    way, answer, expected = MIXED[title]
    model.plays(answer)
    output = respond(gateway, stream=stream, **body(way, tools=tools))["output"]
    assert [" ".join(filter(None, (item["type"], item.get("phase")))) for item in output] == expected
    for item in output:
        assert item["status"] == "completed"
        if item["type"] == "function_call":
            assert item["arguments"] == ARGUMENTS


@both
def test_a_text_is_all_that_the_model_wrote(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(said("\n\n", "  Hi", " there\n"))
    assert text_of(respond(gateway, stream=stream, **body())) == "\n\n  Hi there\n"


@both
def test_an_answer_may_be_empty(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(chat())
    response = respond(gateway, stream=stream, **body())
    assert (response["status"], response["output"]) == ("completed", [])


@both
def test_a_message_is_exactly_as_openai_has_it(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(played("native", "text"))
    (message,) = respond(gateway, stream=stream, **body())["output"]
    assert message == {
        "id": message["id"],
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": TEXT, "annotations": [], "logprobs": []}],
        "phase": "final_answer",
    }
    assert message["id"].startswith("msg_")


@both
def test_reasoning_and_a_call_are_exactly_as_openai_has_them(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(played("native", "call"))
    reasoning, call = respond(gateway, stream=stream, **body())["output"]
    assert reasoning == {
        "id": reasoning["id"],
        "type": "reasoning",
        "status": "completed",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": THOUGHT}],
    }
    assert call == {
        "id": call["id"],
        "type": "function_call",
        "status": "completed",
        "call_id": "call_up_0",
        "name": "get_weather",
        "arguments": ARGUMENTS,
    }
    assert (reasoning["id"][:3], call["id"][:3]) == ("rs_", "fc_")


@both
def test_what_was_asked_comes_back(gateway: str, model: ModelServer, stream: bool) -> None:
    tools = [
        function("f", "Does it.", strict=False),
        {"type": "custom", "name": "c", "format": {"type": "text"}},
        {"type": "namespace", "name": "n", "description": "N.", "tools": [function("f")]},
        {"type": "web_search", "search_context_size": "low"},
    ]
    asked: dict[str, Any] = {
        "instructions": "Be brief.",
        "metadata": {"run": "7"},
        "tools": tools,
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
        "parallel_tool_calls": False,
        "temperature": 0,
        "top_p": 0.5,
        "top_logprobs": 3,
        "presence_penalty": 1,
        "frequency_penalty": -1,
        "max_output_tokens": 99,
        "max_tool_calls": 3,
        "truncation": "auto",
        "store": False,
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
        "reasoning": {"effort": "low", "summary": "detailed"},
        "safety_identifier": "s",
        "prompt_cache_key": "k",
        "user": "u",
    }
    model.plays(said("{}"))
    response = respond(gateway, stream=stream, **body(**asked))
    assert {key: response[key] for key in asked} == asked
    assert response["model"] == "native"


@both
def test_what_was_not_asked_comes_back_with_openais_defaults(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(played("native", "text"))
    response = respond(gateway, stream=stream, model="native", input="Hi")
    assert bare(response) == {
        "object": "response",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "native",
        "output": bare(response)["output"],
        "previous_response_id": None,
        "instructions": None,
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "text": {"format": {"type": "text"}},
        "reasoning": {"effort": None, "summary": None},
        "temperature": 1.0,
        "top_p": 1.0,
        "top_logprobs": 0,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "truncation": "disabled",
        "store": True,
        "background": False,
        "service_tier": "default",
        "metadata": {},
        "safety_identifier": None,
        "prompt_cache_key": None,
        "user": None,
        "usage": {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 18,
        },
    }
    assert response["id"].startswith("resp_")
    assert response["completed_at"] >= response["created_at"]


@pytest.mark.parametrize(
    ("given", "strict"),
    [
        ({"parameters": {**SCHEMA, "additionalProperties": False}}, True),
        ({"parameters": SCHEMA}, False),
        ({"parameters": {**SCHEMA, "additionalProperties": False}, "strict": False}, False),
        ({"parameters": None, "strict": None}, False),
        ({}, False),
    ],
    ids=["a strict schema", "an open schema", "not wanted", "null", "no schema"],
)
def test_an_echoed_function_says_whether_it_is_strict(
    gateway: str, model: ModelServer, given: Any, strict: bool
) -> None:
    model.plays(said("Hi"))
    (tool,) = respond(gateway, stream=False, **body(tools=[{"type": "function", "name": "f", **given}]))["tools"]
    assert tool == {
        "type": "function",
        "name": "f",
        "description": None,
        "parameters": given.get("parameters"),
        "strict": strict,
    }
    assert model.body["tools"][0]["function"].get("strict", False) is strict


@both
def test_the_details_of_token_counts_reach_the_client(gateway: str, model: ModelServer, stream: bool) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 3}}
    counts = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14, **details}
    model.plays(Answer((*said("Hi", usage=False, done=False).steps, *sse({"choices": [], "usage": counts}, "[DONE]"))))
    assert respond(gateway, stream=stream, **body())["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 14,
    }


@both
def test_a_server_that_does_not_count_leaves_the_usage_open(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(said("Hi", usage=False))
    assert respond(gateway, stream=stream, **body())["usage"] is None


# --- ids ---


@both
def test_a_call_id_that_the_conversation_has_already_is_not_given_twice(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    """Some servers begin to count anew in every answer, and some give all calls of an answer the same id."""
    call = {"type": "function_call", "call_id": "functions.f:0", "name": "get_weather", "arguments": ARGUMENTS}
    output = {"type": "function_call_output", "call_id": "functions.f:0", "output": "18 °C"}
    deltas = [
        delta
        for index, city in enumerate(("Paris", "Rome", "Oslo"))
        for delta in call_deltas("get_weather", json.dumps({"city": city}), index=index, id_="functions.f:0")
    ]
    model.plays(chat(*deltas, finish="tool_calls"))
    items = respond(gateway, stream=stream, **body(input=[{"role": "user", "content": "Hi"}, call, output]))["output"]
    assert [json.loads(item["arguments"])["city"] for item in items] == ["Paris", "Rome", "Oslo"]
    assert len({item["call_id"] for item in items} | {"functions.f:0"}) == 4
    assert len({item["id"] for item in items}) == 3


@pytest.mark.parametrize("id_", ["", None, "x" * 65])
@both
def test_a_call_has_an_id_that_openai_would_take(
    gateway: str, model: ModelServer, id_: str | None, stream: bool
) -> None:
    model.plays(chat(*call_deltas("get_weather", ARGUMENTS, id_=id_), finish="tool_calls"))  # type: ignore[arg-type]
    (call,) = respond(gateway, stream=stream, **body())["output"]
    assert call["call_id"].startswith("call_")
    assert len(call["call_id"]) <= 64


def test_no_two_answers_share_an_id(gateway: str, model: ModelServer) -> None:
    model.plays(played("native", "call"), played("native", "call"))
    one, other = (respond(gateway, stream=False, **body()) for _ in range(2))
    ids = [response["id"] for response in (one, other)]
    ids += [item["id"] for response in (one, other) for item in response["output"]]
    assert len(set(ids)) == 6


# --- what is left out by default ---


@pytest.mark.parametrize("summary", [None, "auto"])
@both
def test_reasoning_travels_packed_where_that_is_wanted(
    gateway: str, model: ModelServer, stream: bool, summary: str | None
) -> None:
    model.plays(played("native", "call"), said("Bye"))
    how: dict[str, Any] = {
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "reasoning": {"summary": summary},
    }
    question = {"role": "user", "content": "What is the weather?"}
    reasoning, call = respond(gateway, stream=stream, **body(input=[question], **how))["output"]
    assert isinstance(reasoning["encrypted_content"], str)
    packed = {"type": "reasoning", "id": reasoning["id"], "summary": [], "content": None}
    packed["encrypted_content"] = reasoning["encrypted_content"]
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "18 °C"}
    respond(gateway, stream=stream, **body(input=[question, packed, call, output], **how))
    assistant = model.asked[1].body["messages"][1]
    assert assistant["reasoning_content"] == THOUGHT
    assert assistant["tool_calls"][0]["id"] == call["call_id"]


TOKENS = [{"token": text, "logprob": -0.1, "bytes": list(text.encode()), "top_logprobs": []} for text in ("Hi", "!")]


def measured() -> Answer:
    """A text whose tokens have their probabilities."""
    pieces = [chunk({"content": token["token"]}) for token in TOKENS]
    for piece, token in zip(pieces, TOKENS, strict=True):
        piece["choices"][0]["logprobs"] = {"content": [token], "refusal": None}
    return Answer(sse(*pieces, chunk({}, "stop"), "[DONE]"))


@both
def test_log_probabilities_reach_the_client_where_they_are_wanted(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    model.plays(measured())
    how: dict[str, Any] = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
    (message,) = respond(gateway, stream=stream, **body(**how))["output"]
    assert message["content"][0]["logprobs"] == TOKENS
    assert (model.body["logprobs"], model.body["top_logprobs"]) == (True, 2)


# --- ends ---


@both
@every_way
def test_a_text_cut_by_the_limit_is_incomplete(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "cut_text"))
    response = respond(gateway, stream=stream, **body(way, max_output_tokens=16))
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert response["completed_at"] is None
    assert response["usage"]["output_tokens"] == 7
    (message,) = response["output"]
    assert message["status"] == "incomplete"
    assert text_of(response) == "It is 18"


@both
@every_way
def test_a_call_cut_by_the_limit_is_no_valid_one(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "cut_call"))
    response = respond(gateway, stream=stream, **body(way, max_output_tokens=16))
    assert response["status"] == "incomplete"
    assert [
        item for item in response["output"] if item["type"] == "function_call" and item["status"] != "incomplete"
    ] == []


@both
def test_a_call_behind_which_the_limit_is_reached_is_whole(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(calling("get_weather", ARGUMENTS, finish="length"))
    response = respond(gateway, stream=stream, **body())
    assert response["status"] == "incomplete"
    assert [item["status"] for item in response["output"]] == ["completed"]


@pytest.mark.parametrize("tool", ["strict", "custom", "shell"])
@both
def test_a_cut_call_that_is_held_to_its_form_never_leaves_as_a_valid_one(
    gateway: str, model: ModelServer, tool: str, stream: bool
) -> None:
    grammar = {"type": "grammar", "syntax": "regex", "definition": "[a-z]+"}
    offered = {
        "strict": ({**function("f"), "parameters": {**SCHEMA, "additionalProperties": False}, "strict": True}, "f"),
        "custom": ({"type": "custom", "name": "f", "format": grammar}, "f"),
        "shell": ({"type": "shell"}, "shell"),
    }
    given, name = offered[tool]
    model.plays(calling(name, '{"ci', finish="length"))
    response = respond(gateway, stream=stream, **body(tools=[given]))
    assert response["status"] == "incomplete"
    assert [item for item in response["output"] if item["status"] != "incomplete"] == []


@both
def test_a_filtered_answer_is_incomplete(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(said("I", finish="content_filter"))
    response = respond(gateway, stream=stream, **body())
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "content_filter"})


LIMITED = whole({"error": {"message": "Slow down.", "type": "requests", "code": "x"}}, 429, retry_after="7")
TOO_LONG = whole({"error": {"message": "This model's maximum context length is 9 tokens.", "code": 400}}, 400)
BROKEN = whole({"error": {"message": "The engine is down."}}, 500)


@pytest.mark.parametrize(
    ("answer", "status", "type_"),
    [(BROKEN, 502, "server_error"), (LIMITED, 429, "rate_limit_error"), (TOO_LONG, 400, "invalid_request_error")],
    ids=["broken", "limited", "too long"],
)
@both
def test_a_failure_before_the_first_event_is_a_plain_error(
    gateway: str, model: ModelServer, answer: Answer, status: int, type_: str, stream: bool
) -> None:
    model.plays(answer)
    reply = request(gateway + RESPONSES, body(stream=stream))
    assert (reply.status, reply.error["type"]) == (status, type_)
    assert reply.headers.get("retry-after") == ("7" if status == 429 else None)


@pytest.mark.parametrize(
    ("answer", "code", "word"),
    [
        (BROKEN, "server_error", "The engine is down"),
        (LIMITED, "rate_limit_exceeded", "Slow down"),
        (TOO_LONG, "context_length_exceeded", "exceeds the context window"),
        (whole({"error": {"message": "top_k must be -1"}}, 400), "invalid_prompt", "top_k must be -1"),
    ],
    ids=["broken", "limited", "too long", "wrong"],
)
def test_a_failure_behind_the_first_event_is_told_by_the_response(
    serve: Served, model: ModelServer, answer: Answer, code: str, word: str
) -> None:
    gateway = serve(*scripted_models(model.url), heartbeat_s=0.05)
    gate = model.gate()
    model.plays(Answer((gate, *answer.steps), answer.status, answer.headers))
    events: list[Any] = []
    with Live(gateway + RESPONSES, json.dumps(body(stream=True)).encode()) as live:
        for piece in live.events():
            events.append(read_event(piece))
            gate.open()
    response = checked(events)
    assert (response["status"], response["output"], response["usage"]) == ("failed", [], None)
    assert set(response["error"]) == {"code", "message"}
    assert response["error"]["code"] == code
    assert word in response["error"]["message"]


CUT: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "in a text": ([{"content": "It is"}, {"content": " 18"}], [("message", "It is 18")]),
    "in reasoning": ([{"reasoning_content": "Hm"}], [("reasoning", "Hm")]),
    "in a call": (call_deltas("get_weather", '{"city": "Pa'), [("function_call", '{"city": "Pa')]),
    "in a call after a text": (
        [{"content": "Wait."}, *call_deltas("get_weather", '{"city": "Pa')],
        [("message", "Wait."), ("function_call", '{"city": "Pa')],
    ),
    "in a call after a text that is held": (
        [{"content": 'See {"name": '}, *call_deltas("get_weather", '{"city": "Pa')],
        [("message", "See"), ("function_call", '{"city": "Pa'), ("message", ' {"name": ')],
    ),
}


@pytest.mark.parametrize("title", CUT)
def test_what_came_before_a_failure_is_not_lost(gateway: str, model: ModelServer, title: str) -> None:
    deltas, expected = CUT[title]
    model.plays(Answer((*sse(*map(chunk, deltas)), *sse({"error": {"message": "The engine has crashed."}}))))
    response = checked(read_events(request(gateway + RESPONSES, body(stream=True))))
    assert response["status"] == "failed"
    assert response["error"]["code"] == "server_error"
    assert [(item["type"], said_by(item)) for item in response["output"]] == expected
    calls = [item for item in response["output"] if item["type"] == "function_call"]
    assert [call["status"] for call in calls] == ["incomplete"] * len(calls)


@pytest.mark.parametrize("how", ["cut", "reset"])
def test_a_connection_that_breaks_ends_the_response(gateway: str, model: ModelServer, how: Any) -> None:
    gate = model.gate()
    model.plays(Answer((*sse(chunk({"content": "It is"})), gate, how)))
    events: list[Any] = []
    with Live(gateway + RESPONSES, json.dumps(body(stream=True)).encode()) as live:
        for piece in live.events():
            events.append(read_event(piece))
            if "delta" in events[-1]:
                gate.open()
    response = checked(events)
    assert (response["status"], response["error"]["code"], text_of(response)) == ("failed", "server_error", "It is")


def said_by(item: Any) -> str:
    text = item["arguments"] if item["type"] == "function_call" else item["content"][0]["text"]
    return str(text)


@pytest.mark.parametrize("title", CUT)
def test_a_whole_answer_that_breaks_off_is_a_plain_error(gateway: str, model: ModelServer, title: str) -> None:
    model.plays(Answer((*sse(*map(chunk, CUT[title][0])), "cut")))
    reply = request(gateway + RESPONSES, body())
    assert (reply.status, reply.error["type"]) == (502, "server_error")


def test_a_client_that_goes_away_ends_the_turn(gateway: str, model: ModelServer) -> None:
    for stream in (False, True):
        gate = model.gate()
        model.plays(Answer((*sse(chunk({"content": "Hi"})), gate)))
        with Live(gateway + RESPONSES, json.dumps(body(stream=stream)).encode()):
            gate.wait_until_reached()
        model.wait_until_left()
