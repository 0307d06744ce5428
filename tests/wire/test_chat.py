"""Chat Completions over HTTP: what a client gets for what the model wrote, streamed and whole."""

import json
from typing import Any

import pytest

from callwright.wire.sse import packed
from tests.conftest import Served, scripted_models
from tests.support.http_client import CHAT, Live, Said, ask, assembled, read_event, request, split_events
from tests.support.outputs import ARGUMENTS, FEW_WAYS, HISTORY, QUESTION, TEXT, THOUGHT, TOOLS, WAYS, played
from tests.support.servers import (
    CACHED,
    Answer,
    ModelServer,
    call_deltas,
    calling,
    chat,
    chunk,
    completion,
    said,
    sse,
    whole,
)

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
every_way = pytest.mark.parametrize("way", WAYS)
few_ways = pytest.mark.parametrize("way", FEW_WAYS)


def body(way: str, **fields: Any) -> dict[str, Any]:
    return {"model": way, "messages": [QUESTION], "tools": TOOLS, **fields}


def streamed(gateway: str, way: str, **fields: Any) -> list[Any]:
    return request(gateway + CHAT, body(way, stream=True, **fields)).events


def deltas(events: list[Any]) -> list[dict[str, Any]]:
    return [choice["delta"] for event in events for choice in event["choices"]]


def kinds(events: list[Any]) -> list[str]:
    """What each chunk brings, neighbours of one kind as one."""
    found: list[str] = []
    for event in events:
        if not event["choices"]:
            found.append("usage")
            continue
        (choice,) = event["choices"]
        kind = " ".join(sorted(key for key, value in choice["delta"].items() if key == "role" or value is not None))
        if choice["finish_reason"] is not None:
            assert not choice["delta"], choice
            kind = f"finish {choice['finish_reason']}"
        if "tool_calls" in choice["delta"]:
            (piece,) = choice["delta"]["tool_calls"]
            kind = f"{'call' if 'id' in piece else 'arguments'} {piece['index']}"
        if "role" in choice["delta"]:
            assert not choice["delta"]["content"], choice
            kind = "role"
        if not found or found[-1] != kind:
            found.append(kind)
    return found


# --- streams ---


@every_way
def test_a_streamed_call_comes_in_openais_order(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "call"))
    events = streamed(gateway, way, stream_options={"include_usage": True})
    thought = "reasoning reasoning_content"
    assert kinds(events) == ["role", thought, "call 0", "arguments 0", "finish tool_calls", "usage"]


@every_way
def test_a_streamed_text_comes_in_openais_order(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "text"))
    events = streamed(gateway, way, stream_options={"include_usage": True})
    assert kinds(events) == ["role", "content", "finish stop", "usage"]


@pytest.mark.parametrize("way", ["native", "prompt-json", "prompt-hermes", "raw-hermes-vllm"])
def test_each_of_two_streamed_calls_has_its_own_index_and_id(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "two_calls"))
    events = streamed(gateway, way)
    assert kinds(events) == ["role", "call 0", "arguments 0", "call 1", "arguments 1", "finish tool_calls"]
    said_ = assembled(events)
    assert said_.calls == [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"})]
    assert len({call["id"] for call in said_.message["tool_calls"]}) == 2


@few_ways
def test_the_first_piece_of_a_call_has_all_but_its_arguments(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "call"))
    pieces = [piece for delta in deltas(streamed(gateway, way)) for piece in delta.get("tool_calls", ())]
    id_ = pieces[0]["id"]
    head = {"index": 0, "id": id_, "type": "function", "function": {"name": "get_weather", "arguments": ""}}
    assert pieces[0] == head
    assert isinstance(id_, str)
    assert 1 <= len(id_) <= 64
    assert all(set(piece) == {"index", "function"} and set(piece["function"]) == {"arguments"} for piece in pieces[1:])
    assert "".join(piece["function"]["arguments"] for piece in pieces) == ARGUMENTS


@few_ways
@pytest.mark.parametrize("what", ["call", "text"])
def test_every_chunk_has_exactly_openais_keys(gateway: str, model: ModelServer, way: str, what: str) -> None:
    model.plays(played(way, what))
    for event in streamed(gateway, way):
        assert set(event) == {"id", "object", "created", "model", "choices"}
        assert event["object"] == "chat.completion.chunk"
        (choice,) = event["choices"]
        assert set(choice) == {"index", "delta", "logprobs", "finish_reason"}
        assert choice["index"] == 0
        assert choice["logprobs"] is None


@few_ways
def test_all_chunks_of_a_stream_name_the_same_answer(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "call"), played(way, "call"))
    first, second = (streamed(gateway, way, stream_options={"include_usage": True}) for _ in range(2))
    (identity,) = {(event["id"], event["created"], event["model"]) for event in first}
    assert identity[0].startswith("chatcmpl-")
    assert isinstance(identity[1], int)
    assert identity[2] == way
    assert second[0]["id"] != identity[0]


def test_the_first_chunk_says_who_speaks(gateway: str, model: ModelServer) -> None:
    model.plays(played("native", "call"), played("native", "text"))
    before_a_call, before_a_text = (deltas(streamed(gateway, "native"))[0] for _ in range(2))
    assert before_a_call == {"role": "assistant", "content": None, "refusal": None}
    assert before_a_text == {"role": "assistant", "content": "", "refusal": None}


def test_only_the_first_chunk_says_who_speaks(gateway: str, model: ModelServer) -> None:
    model.plays(played("native", "call"))
    first, *others = deltas(streamed(gateway, "native"))
    assert first["role"] == "assistant"
    assert not [delta for delta in others if "role" in delta]


@few_ways
def test_token_counts_come_in_a_last_chunk_when_they_are_wanted(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "text"))
    *others, last = streamed(gateway, way, stream_options={"include_usage": True})
    assert last["choices"] == []
    assert last["usage"] == {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    assert all(event["usage"] is None for event in others)


@both
def test_the_details_of_token_counts_reach_the_client(gateway: str, model: ModelServer, stream: bool) -> None:
    details = {
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": None},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    counts = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14, **details}
    model.plays(Answer((*said("Hi", usage=False, done=False).steps, *sse({"choices": [], "usage": counts}, "[DONE]"))))
    usage = ask(gateway, body("native"), stream=stream).usage
    assert usage is not None
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (9, 5, 14)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 4
    assert usage["completion_tokens_details"]["reasoning_tokens"] == 3


@both
def test_llamacpps_cached_tokens_are_those_it_found(gateway: str, model: ModelServer, stream: bool) -> None:
    """Seen with build b11549: `tokens_cached` counts prompt and answer, `timings.cache_n` what was cached before."""
    model.plays(completion("Hi", "llamacpp"))
    usage = ask(gateway, body("raw-hermes-llamacpp"), stream=stream).usage
    assert usage is not None
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (11, 7)
    assert usage["prompt_tokens_details"]["cached_tokens"] == CACHED


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"include_obfuscation": False}])
def test_no_chunk_speaks_of_token_counts_when_they_are_not_wanted(
    gateway: str, model: ModelServer, options: dict[str, Any] | None
) -> None:
    model.plays(played("native", "text"))
    events = streamed(gateway, "native", stream_options=options)
    assert not [event for event in events if "usage" in event or not event["choices"]]


@few_ways
def test_no_write_cuts_an_event(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "call"))
    reply = request(gateway + CHAT, body(way, stream=True, stream_options={"include_usage": True}))
    assert reply.headers["transfer-encoding"] == "chunked"
    assert sum(len(split_events(piece)) for piece in reply.pieces) > 5
    assert [piece for piece in reply.pieces if not piece.endswith(b"\n\n")] == []


@pytest.mark.parametrize(
    ("sizes", "writes"),
    [
        ([], []),
        ([0, 0], []),
        ([20], [20]),
        ([700, 700], [1_400]),
        ([700, 701], [700, 701]),
        ([5_000, 30, 40, 0], [5_000, 70]),
        ([30, 5_000, 40], [30, 5_000, 40]),
    ],
)
def test_events_share_a_write_that_fits_into_a_packet(sizes: list[int], writes: list[int]) -> None:
    assert [len(piece) for piece in packed([b"x" * size for size in sizes])] == writes


def test_a_stream_is_told_as_one_that_nobody_may_hold_back(gateway: str, model: ModelServer) -> None:
    model.plays(played("native", "text"))
    headers = request(gateway + CHAT, body("native", stream=True)).headers
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-cache"
    assert headers["x-accel-buffering"] == "no"
    assert headers["x-request-id"].startswith("req_")
    assert "content-length" not in headers


@pytest.mark.parametrize(
    ("way", "before", "after", "seen"),
    [
        ("native", sse(chunk({"content": "It "})), sse(chunk({"content": "is"}), chunk({}, "stop")), "It"),
        ("prompt-json", sse(chunk({"content": "It "})), sse(chunk({}, "stop")), "It"),
        ("raw-hermes-vllm", completion("It ").steps[:1], completion("is<|im_end|>").steps, "It"),
        (
            "raw-harmony-vllm",
            completion("<|channel|>final<|message|>It ", size=99).steps[:1],
            completion("is<|return|>").steps,
            "It",
        ),
        (
            "native",
            sse(*map(chunk, call_deltas("get_weather", '{"city": "P'))),
            sse(*map(chunk, call_deltas("get_weather", 'aris"}')[1:]), chunk({}, "tool_calls")),
            '{"city": "P',
        ),
        (
            "raw-hermes-vllm",
            completion('<tool_call>\n{"name": "get_weather", "arguments": {"city": "P', size=99).steps[:1],
            completion('aris"}}\n</tool_call><|im_end|>').steps,
            '{"city": "P',
        ),
        (
            "raw-harmony-vllm",
            completion('<|channel|>commentary to=functions.get_weather<|message|>{"city": "P', size=99).steps[:1],
            completion('aris"}<|call|>').steps,
            '{"city": "P',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_certain_reaches_the_client_while_the_model_still_writes(
    gateway: str, model: ModelServer, way: str, before: tuple[bytes, ...], after: tuple[bytes, ...], seen: str
) -> None:
    gate = model.gate()
    model.plays(Answer((*before, gate, *after)))
    got = ""
    with Live(gateway + CHAT, json.dumps(body(way, stream=True)).encode()) as live:
        for piece in live.events():
            event = read_event(piece)
            if event == "[DONE]":
                break
            (delta,) = deltas([event])
            got += delta.get("content") or ""
            got += "".join(part["function"]["arguments"] for part in delta.get("tool_calls", ()))
            if seen in got:
                gate.open()
        else:
            pytest.fail(f"the stream ended with {got!r}")


def test_a_silent_stream_is_kept_alive_with_chunks_without_news(serve: Served, model: ModelServer) -> None:
    gateway = serve(*scripted_models(model.url), heartbeat_s=0.05)
    gate = model.gate()
    model.plays(Answer((gate, *played("native", "text").steps)))
    events: list[Any] = []
    with Live(gateway + CHAT, json.dumps(body("native", stream=True)).encode()) as live:
        for piece in live.events():
            events.append(read_event(piece))
            if len(events) == 3:
                gate.open()
    assert events.pop() == "[DONE]"
    assert deltas(events)[0]["role"] == "assistant"
    assert deltas(events)[1:3] == [{}, {}]
    assert assembled(events).message["content"] == TEXT


# --- whole answers ---


@few_ways
def test_a_whole_answer_has_exactly_openais_keys(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "text"))
    reply = request(gateway + CHAT, body(way))
    answer = reply.json
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-request-id"].startswith("req_")
    assert set(answer) - {"system_fingerprint"} == {"id", "object", "created", "model", "choices", "usage"}
    assert isinstance(answer.get("system_fingerprint", ""), str)
    assert answer["id"].startswith("chatcmpl-")
    assert answer["object"] == "chat.completion"
    assert isinstance(answer["created"], int)
    assert answer["model"] == way
    assert answer["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": TEXT, "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert answer["usage"]["total_tokens"] == 18


@every_way
def test_a_whole_answer_holds_the_call(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(played(way, "call"))
    (choice,) = request(gateway + CHAT, body(way)).json["choices"]
    message = choice["message"]
    (call,) = message["tool_calls"]
    assert message["content"] is None
    assert call == {
        "id": call["id"],
        "type": "function",
        "function": {"name": "get_weather", "arguments": ARGUMENTS},
    }
    assert isinstance(call["id"], str)
    assert call["id"]
    assert choice["finish_reason"] == "tool_calls"


# gpt-oss stops behind each call.
ANSWERS = [(way, what) for way in WAYS for what in ("call", "text", "text_and_call", "cut_text", "cut_call")]
ANSWERS += [(way, "two_calls") for way in WAYS if "harmony" not in way]


@pytest.mark.parametrize(("way", "what"), ANSWERS)
def test_streamed_and_whole_answers_say_the_same(gateway: str, model: ModelServer, way: str, what: str) -> None:
    model.plays(played(way, what), played(way, what))
    a_whole, a_stream = (ask(gateway, body(way), stream=stream) for stream in (False, True))
    for said_ in (a_whole, a_stream):
        for call in said_.message.get("tool_calls", ()):
            assert call.pop("id")
    assert (a_stream.message["content"] or None) == a_whole.message["content"]
    assert {**a_stream.message, "content": 0} == {**a_whole.message, "content": 0}
    assert a_stream.finish_reason == a_whole.finish_reason
    assert a_stream.usage == a_whole.usage
    assert a_whole.usage is not None


@both
@every_way
def test_text_beside_a_call_stays_in_the_content(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "text_and_call"))
    answer = ask(gateway, body(way), stream=stream)
    assert answer.message["content"].strip() == "One moment."
    assert answer.calls == [("get_weather", {"city": "Paris"})]
    assert answer.finish_reason == "tool_calls"


@both
def test_a_servers_own_call_id_is_kept(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(chat(*call_deltas("get_weather", ARGUMENTS, id_="functions.get_weather:0"), finish="tool_calls"))
    answer = ask(gateway, body("native"), stream=stream)
    assert answer.message["tool_calls"][0]["id"] == "functions.get_weather:0"


@both
@every_way
def test_reasoning_goes_out_under_both_names(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "call"))
    message = ask(gateway, body(way), stream=stream).message
    assert message["reasoning_content"].strip() == THOUGHT
    assert message["reasoning"] == message["reasoning_content"]


@both
@every_way
def test_a_text_cut_by_the_limit_ends_with_length(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "cut_text"))
    answer = ask(gateway, body(way, max_completion_tokens=3), stream=stream)
    assert answer.message["content"] == "It is 18"
    assert answer.finish_reason == "length"


@both
@every_way
def test_a_call_cut_by_the_limit_is_there_as_far_as_it_was_written(
    gateway: str, model: ModelServer, way: str, stream: bool
) -> None:
    model.plays(played(way, "cut_call"))
    answer = ask(gateway, body(way, max_tokens=9), stream=stream)
    assert answer.finish_reason == "length"
    if "json" in way:  # where it was no call yet
        assert "tool_calls" not in answer.message
    else:
        assert [call["function"]["arguments"] for call in answer.message["tool_calls"]] == ['{"city": "Pa']


@both
def test_a_filtered_answer_ends_with_content_filter(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(said("I", finish="content_filter"))
    assert ask(gateway, body("native"), stream=stream).finish_reason == "content_filter"


@both
def test_an_answer_may_be_empty(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(chat())
    answer = ask(gateway, body("native"), stream=stream)
    assert not answer.message["content"]
    assert "tool_calls" not in answer.message
    assert answer.finish_reason == "stop"


@both
def test_a_tool_without_parameters_can_be_called(gateway: str, model: ModelServer, stream: bool) -> None:
    tools = [{"type": "function", "function": {"name": "ping"}}]
    model.plays(calling("ping", "{}"))
    answer = ask(gateway, body("native", tools=tools), stream=stream)
    assert answer.calls == [("ping", {})]


@both
def test_log_probabilities_of_a_server_reach_the_client(gateway: str, model: ModelServer, stream: bool) -> None:
    told = {"content": [{"token": "Hi", "logprob": -0.1, "bytes": [72, 105], "top_logprobs": []}], "refusal": None}
    hi = chunk({"content": "Hi"})
    hi["choices"][0]["logprobs"] = told
    model.plays(Answer(sse(hi, chunk({}, "stop"), "[DONE]")))
    reply = request(gateway + CHAT, body("native", logprobs=True, stream=stream))
    chunks = reply.events if stream else [reply.json]
    assert model.body["logprobs"] is True
    assert told in [choice["logprobs"] for event in chunks for choice in event["choices"]]


# --- what is borne ---


@pytest.mark.parametrize(
    "extra",
    [
        {"client_metadata": {"x": 1}},
        {"metadata": {"run": "7"}},
        {"store": True, "service_tier": "auto", "user": "u", "safety_identifier": "s", "prompt_cache_key": "k"},
        {"prediction": {"type": "content", "content": "x"}, "verbosity": "low"},
        {"modalities": ["text"], "n": 1, "stop": ["END"], "seed": 7, "logit_bias": {"50256": -100}},
        {"temperature": None, "tools": None, "tool_choice": None, "functions": None, "response_format": None},
        {"tools": [], "stream_options": None, "stop": None, "parallel_tool_calls": None},
        {"tools": [], "tool_choice": "none"},
        {"response_format": {"type": "text"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}},
        {"parallel_tool_calls": True, "tools": TOOLS},
        {"stream_options": {"include_usage": True, "include_obfuscation": True, "later": 1}, "stream": True},
        {"messages": [{**QUESTION, "name": "anna", "later": {"x": 1}}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "later": 1}]}]},
        {"messages": [{"role": "user", "content": ""}]},
        {"messages": [{"role": "developer", "content": "Be brief."}, QUESTION, {"role": "system", "content": "Now."}]},
        {"messages": [QUESTION, {"role": "assistant", "content": "Hm.", "refusal": None, "audio": None}, QUESTION]},
        {"messages": [{"role": "assistant", "content": None, "refusal": "No."}, QUESTION]},
        {"messages": HISTORY},
        {"messages": [*HISTORY, {"role": "assistant", "content": TEXT, "annotations": []}, QUESTION]},
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": None, "description": None}}]},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}, "strict": None}}]},
        {"tools": [{"type": "function", "function": {"name": "x" * 64, "description": "d" * 5000}}]},
        {"tools": [{"type": "function", "function": {"name": f"f{n}"}} for n in range(128)]},
        {
            "tools": [
                {
                    "type": "function",
                    "cache_control": {"type": "ephemeral"},
                    "function": {
                        "name": "f",
                        "later": 1,
                        "parameters": {
                            "$schema": "http://json-schema.org/draft-07/schema#",
                            "title": "F",
                            "type": "object",
                            "encrypted": True,
                            "properties": {"x": {"$ref": "#/$defs/X", "format": "odd"}},
                            "$defs": {"X": {"type": ["string", "null"], "default": None}},
                        },
                    },
                }
            ]
        },
    ],
    ids=lambda extra: " ".join(extra),
)
@few_ways
def test_a_request_is_not_refused_for(gateway: str, model: ModelServer, way: str, extra: dict[str, Any]) -> None:
    model.plays(played(way, "text"))
    reply = request(gateway + CHAT, {"model": way, "messages": [QUESTION], **extra})
    assert reply.status == 200, reply.text
    answer = assembled(reply.events) if extra.get("stream") else Said(**_choice(reply.json))
    assert answer.message["content"] == TEXT


def _choice(answer: Any) -> dict[str, Any]:
    (choice,) = answer["choices"]
    return {"message": choice["message"], "finish_reason": choice["finish_reason"], "usage": answer["usage"]}


def test_any_key_and_any_header_will_do(gateway: str, model: ModelServer) -> None:
    headers = {"authorization": "Bearer any", "openai-beta": "assistants=v2", "x-stainless-lang": "python"}
    model.plays(said("Hi"))
    assert request(gateway + CHAT, body("native"), headers=headers).status == 200


def test_a_server_that_does_not_stream_is_served_as_a_stream(gateway: str, model: ModelServer) -> None:
    message = {"role": "assistant", "content": TEXT, "tool_calls": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    model.plays(whole({"id": "x", "object": "chat.completion", "choices": [choice], "usage": {"prompt_tokens": 3}}))
    events = streamed(gateway, "native", stream_options={"include_usage": True})
    assert kinds(events) == ["role", "content", "finish stop", "usage"]
    assert assembled(events).message["content"] == TEXT
