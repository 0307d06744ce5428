"""`POST /v1/messages`: what clients get for what a model writes, and what is refused."""

import json
from typing import Any

import pytest

from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import KeyConfig, ModelConfig
from tests.conftest import Served
from tests.support.http_client import Live, request
from tests.support.messages_client import COUNT, MESSAGES, TOOLS, assembled, message_of, named_events, user
from tests.support.outputs import TEXT, THOUGHT, WAYS, played, spoken
from tests.support.servers import Answer, ModelServer, call_deltas, calling, chat, completion, said, whole

ASKED: dict[str, Any] = {"messages": [user("What is the weather in Paris?")], "tools": TOOLS}
PARIS = {"type": "tool_use", "name": "get_weather", "input": {"city": "Paris"}}
ROME = {"type": "tool_use", "name": "get_weather", "input": {"city": "Rome"}}
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def said_in(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks without ids and signatures."""
    return [
        {key: value for key, value in block.items() if key not in ("id", "signature", "caller", "citations")}
        for block in message["content"]
    ]


# --- what a model writes ---

ONE: list[dict[str, Any]] = [{"type": "text", "text": "One moment."}, PARIS]
WRITTEN: dict[str, tuple[list[dict[str, Any]], str]] = {
    "text": ([{"type": "text", "text": TEXT}], "end_turn"),
    "call": ([PARIS], "tool_use"),
    "text_and_call": (ONE, "tool_use"),
    "cut_text": ([{"type": "text", "text": "It is 18"}], "max_tokens"),
}


@STREAMED
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", WRITTEN)
def test_it_is_read_in_every_mode(gateway: str, model: ModelServer, way: str, what: str, stream: bool) -> None:
    model.plays(played(way, what))
    message = message_of(gateway, {"model": way, **ASKED}, stream=stream)
    assert (said_in(message), message["stop_reason"]) == WRITTEN[what]
    assert message["model"] == way


@STREAMED
@pytest.mark.parametrize("way", [way for way in WAYS if "harmony" not in way])
def test_calls_at_once_are_blocks_of_their_own(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "two_calls"))
    message = message_of(gateway, {"model": way, **ASKED}, stream=stream)
    assert (said_in(message), message["stop_reason"]) == ([PARIS, ROME], "tool_use")


@STREAMED
@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_was_cut_off_is_run_by_nobody(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "cut_call"))
    message = message_of(gateway, {"model": way, **ASKED}, stream=stream)
    assert message["stop_reason"] == "max_tokens"
    assert not [block for block in message["content"] if isinstance(block.get("input"), dict)]


@STREAMED
@pytest.mark.parametrize(
    ("thinking", "shown"),
    [
        (None, None),
        ({"type": "disabled"}, None),
        ({"type": "adaptive"}, THOUGHT),
        ({"type": "enabled", "budget_tokens": 2000}, THOUGHT),
        ({"type": "adaptive", "display": "omitted"}, ""),
        ({"type": "adaptive", "display": "updates"}, THOUGHT),
    ],
)
@pytest.mark.parametrize("way", ["native", "raw-harmony-vllm"])
def test_reasoning_is_shown_as_it_is_asked_for_and_comes_back(
    gateway: str, model: ModelServer, way: str, thinking: dict[str, Any] | None, shown: str | None, stream: bool
) -> None:
    more = {} if thinking is None else {"thinking": thinking}
    model.plays(played(way, "call"), played(way, "text"))
    message = message_of(gateway, {"model": way, **ASKED, **more}, stream=stream)
    thoughts = [block for block in message["content"] if block["type"] == "thinking"]
    assert [block["thinking"] for block in thoughts] == ([] if shown is None else [shown])
    result = {"type": "tool_result", "tool_use_id": message["content"][-1]["id"], "content": "18 °C"}
    history = [
        *ASKED["messages"],
        {"role": "assistant", "content": message["content"]},
        {"role": "user", "content": [result]},
    ]
    message_of(gateway, {"model": way, **ASKED, **more, "messages": history}, stream=stream)
    assert THOUGHT in json.dumps(model.asked[-1].body)  # also what the client was not shown


@STREAMED
def test_what_the_server_counts_is_told_with_cached_tokens_apart(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    model.plays(played("raw-hermes-llamacpp", "text"))
    message = message_of(gateway, {"model": "raw-hermes-llamacpp", **ASKED}, stream=stream)
    usage = message["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (7, 4, 7)


# --- stop sequences ---


@STREAMED
@pytest.mark.parametrize("way", ["native", "raw-hermes-vllm"])
def test_a_stop_sequence_ends_the_answer_and_is_named(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(spoken(way, "<block>no</block> because it is fine"))
    body = {"model": way, "messages": [user("May it run?")], "stop_sequences": ["</severity>", "</block>"]}
    message = message_of(gateway, body, stream=stream)
    assert said_in(message) == [{"type": "text", "text": "<block>no"}]
    assert message["stop_sequence"] == "</block>"
    assert "</block>" not in model.body.get("stop", ())


# --- calls that clients refuse are mended, or asked for again ---


@STREAMED
@pytest.mark.parametrize(
    ("name", "arguments", "made"),
    [
        ("send_mail", '{"to": "a", "text": "b", "copies": null}', {"to": "a", "text": "b"}),
        ("send_mail", '{"to": "a", "text": "b", "copies": 2.0}', {"to": "a", "text": "b", "copies": 2}),
        ("Send_Mail", '{"To": "a", "text": "b"}', {"to": "a", "text": "b"}),
        ("send_mail", '{"to": "a", "text": "b",}', {"to": "a", "text": "b"}),
    ],
)
def test_a_call_is_mended(
    gateway: str, model: ModelServer, name: str, arguments: str, made: dict[str, Any], stream: bool
) -> None:
    model.plays(calling(name, arguments))
    message = message_of(gateway, {"model": "native", **ASKED}, stream=stream)
    assert said_in(message) == [{"type": "tool_use", "name": "send_mail", "input": made}]


@STREAMED
def test_an_unknown_key_is_asked_about_again_and_never_dropped(serve: Served, model: ModelServer, stream: bool) -> None:
    gateway = serve(ModelConfig(name="m", upstream=model.url, retries=1))
    wrong = calling("get_weather", '{"city": "Paris", "country": "France"}')
    model.plays(wrong, calling("get_weather", '{"city": "Paris"}'))
    assert said_in(message_of(gateway, {"model": "m", **ASKED}, stream=stream)) == [PARIS]
    model.plays(wrong, wrong)
    kept = {"city": "Paris", "country": "France"}
    assert said_in(message_of(gateway, {"model": "m", **ASKED}, stream=stream)) == [{**PARIS, "input": kept}]


# --- errors ---

BAD: list[tuple[dict[str, Any], str]] = [
    ({"max_tokens": None}, "max_tokens"),
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "messages[0].content[0].type"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}]},
        "source.type",
    ),
    ({"tools": [{"name": "bad name", "input_schema": {"type": "object"}}]}, "tools[0].name"),
    ({"tools": [{"name": "a"}]}, "tools[0].input_schema"),
    ({"tools": [{"type": "bash_20250124", "name": ["bash"]}]}, "tools[0].name"),
    ({"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}, "code_execution_20250825"),
    ({"tools": [{"type": "computer_20250124", "name": "computer"}]}, "computer_20250124"),
    ({"tools": [TOOLS[0], TOOLS[0]]}, "get_weather"),
    ({"tool_choice": {"type": "tool", "name": "get_wether"}}, "get_weather"),
    ({"tool_choice": {"type": "required"}}, "tool_choice"),
    ({"compaction": {"type": "summarize"}}, "compaction"),
    ({"output_config": {"format": {"type": "json_object"}}}, "output_config.format.type"),
    ({"output_config": {"effort": "huge"}}, "output_config.effort"),
]


@STREAMED
@pytest.mark.parametrize(("fields", "told"), BAD, ids=range(len(BAD)))
def test_what_is_wrong_is_refused_by_name(gateway: str, fields: dict[str, Any], told: str, stream: bool) -> None:
    body = {"model": "native", "max_tokens": 50, **ASKED, "stream": stream, **fields}
    reply = request(gateway + MESSAGES, {key: value for key, value in body.items() if value is not None})
    assert reply.status == 400, reply.text
    assert (reply.json["type"], reply.json["error"]["type"]) == ("error", "invalid_request_error")
    assert told in reply.json["error"]["message"]
    assert reply.json["request_id"] == reply.headers["request-id"]


def test_a_thread_is_refused_so_that_the_sdk_goes_on_without(gateway: str) -> None:
    body = {"model": "native", "max_tokens": 50, **ASKED, "thread": {"type": "create"}}
    reply = request(gateway + MESSAGES, body)
    assert reply.status == 400
    assert reply.json["error"]["details"] == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}


def test_only_an_unknown_model_is_not_found(gateway: str) -> None:
    reply = request(gateway + MESSAGES, {"model": "claude-none", "max_tokens": 50, **ASKED})
    assert (reply.status, reply.json["error"]["type"]) == (404, "not_found_error")


def test_either_header_brings_the_key(serve: Served, model: ModelServer) -> None:
    key = KeyConfig(name="anna", sha256=hash_of("cw-secret"))
    gateway = serve(ModelConfig(name="m", upstream=model.url), keys=(key,))
    body = {"model": "m", "max_tokens": 50, **ASKED}
    for headers in ({"x-api-key": "cw-secret"}, {"authorization": "Bearer cw-secret"}):
        model.plays(said("Hi"))
        assert request(gateway + MESSAGES, body, headers=headers).status == 200
    model.plays(said("Hi"))
    both = {"authorization": "Bearer of-somebody-else", "x-api-key": "cw-secret"}
    assert request(gateway + MESSAGES, body, headers=both).status == 200
    assert request(gateway + "/", method="HEAD").status == 200
    refused = request(gateway + MESSAGES, body, headers={"x-api-key": "cw-other"})
    assert (refused.status, refused.json["error"]["type"]) == (401, "authentication_error")
    assert "request-id" in refused.headers


TOO_LONG = "This model's maximum context length is 8192 tokens. However, your request has 9001 input tokens."
TOO_MUCH = (
    "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 8192 tokens "
    "and your request has 1000 input tokens (32000 > 8192 - 1000)."
)


@STREAMED
def test_a_prompt_that_is_too_long_is_told_in_the_words_at_which_clients_compact(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    model.plays(whole({"error": {"message": TOO_LONG, "type": "BadRequestError", "code": 400}}, 400))
    reply = request(gateway + MESSAGES, {"model": "native", "max_tokens": 50, **ASKED, "stream": stream})
    assert reply.status == 400
    assert reply.json["error"]["message"] == "prompt is too long: 9001 tokens > 8192 maximum"


@STREAMED
def test_an_answer_may_be_as_long_as_the_window_leaves_room(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(whole({"error": {"message": TOO_MUCH, "type": "BadRequestError", "code": 400}}, 400), said("Hi"))
    body = {"model": "native", "max_tokens": 32000, "messages": [user("hi")]}
    assert said_in(message_of(gateway, body, stream=stream)) == [{"type": "text", "text": "Hi"}]
    assert [asked.body["max_tokens"] for asked in model.asked] == [32000, 7192]


@pytest.mark.parametrize(
    ("answer", "status", "kind"),
    [
        (whole({"error": {"message": "no"}}, 429, retry_after="7"), 429, "rate_limit_error"),
        (whole({"error": {"message": "no"}}, 500), 500, "api_error"),
        (whole("<html>", 200, "text/html"), 500, "api_error"),
    ],
)
@STREAMED
def test_a_failing_server_is_told_before_the_first_byte_by_a_status(
    gateway: str, model: ModelServer, answer: Answer, status: int, kind: str, stream: bool
) -> None:
    model.plays(answer)
    reply = request(gateway + MESSAGES, {"model": "native", "max_tokens": 50, **ASKED, "stream": stream})
    assert (reply.status, reply.json["error"]["type"]) == (status, kind)
    assert reply.headers.get("retry-after") == ("7" if status == 429 else None)


def test_and_behind_it_by_the_last_event(gateway: str, model: ModelServer) -> None:
    begun = said("It is").steps[:2]
    model.plays(Answer((*begun, "cut")))
    reply = request(gateway + MESSAGES, {"model": "native", "max_tokens": 50, **ASKED, "stream": True})
    events = named_events(reply)
    assert events[0][0] == "message_start"
    name, event = events[-1]
    assert (name, event["type"], event["error"]["type"]) == ("error", "error", "api_error")
    assert event["request_id"] == reply.headers["request-id"]


# --- counting, models, probes ---


def test_tokens_are_counted_as_a_stream_estimates_them(gateway: str, model: ModelServer) -> None:
    counted = request(gateway + COUNT, {"model": "native", **ASKED}).json
    assert counted.keys() == {"input_tokens"}
    model.plays(said("Hi"))
    reply = request(gateway + MESSAGES, {"model": "native", "max_tokens": 50, **ASKED, "stream": True})
    assert named_events(reply)[0][1]["message"]["usage"]["input_tokens"] == counted["input_tokens"] > 10
    assert request(gateway + COUNT, {"model": "native", "messages": [user("hi")], "tools": []}).status == 200


def test_a_probe_is_answered(gateway: str) -> None:
    with Live(gateway + "/", method="HEAD") as probe:
        assert probe.status == 200
        assert "content-type" not in probe.headers  # the page that a GET has there is not made for it


def test_a_list_of_models_serves_both_kinds_of_clients(gateway: str) -> None:
    listed = request(gateway + "/v1/models?limit=1000", method="GET", headers={"anthropic-version": "2023-06-01"}).json
    assert (listed["has_more"], listed["first_id"]) == (False, listed["data"][0]["id"])
    assert listed["last_id"] == listed["data"][-1]["id"]


# --- fields ---


def test_fields_go_to_the_server_in_its_words_and_what_is_left_out_is_named(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    body = {
        "model": "native",
        "max_tokens": 50,
        "messages": [user("hi")],
        "temperature": 0.5,
        "top_k": 40,
        "metadata": {"user_id": "u"},
        "output_config": {"effort": "max"},
        "service_tier": "auto",
        "new_field_of_tomorrow": {"a": 1},
        "cache_control": {"type": "ephemeral"},
    }
    reply = request(gateway + MESSAGES, body, headers={"anthropic-beta": "beta-of-tomorrow-2027-01-01"})
    assert reply.status == 200
    assert reply.headers["x-callwright-dropped-fields"] == "new_field_of_tomorrow, service_tier"
    sent = model.body
    assert {name: sent[name] for name in ("temperature", "top_k", "max_tokens", "reasoning_effort")} == {
        "temperature": 0.5,
        "top_k": 40,
        "max_tokens": 50,
        "reasoning_effort": "high",
    }
    assert not sent.keys() & {"metadata", "service_tier", "new_field_of_tomorrow", "output_config", "cache_control"}


@pytest.mark.parametrize(
    ("choice", "sent", "parallel"),
    [
        ({"type": "auto"}, None, None),
        ({"type": "any"}, "required", None),
        ({"type": "tool", "name": "get_weather"}, {"type": "function", "function": {"name": "get_weather"}}, None),
        ({"type": "none"}, "none", None),
        ({"type": "auto", "disable_parallel_tool_use": True}, None, False),
    ],
)
def test_the_choice_among_tools_reaches_the_server(
    gateway: str, model: ModelServer, choice: dict[str, Any], sent: Any, parallel: bool | None
) -> None:
    model.plays(calling("get_weather", '{"city": "Paris"}') if choice["type"] != "none" else said("Hi"))
    message_of(gateway, {"model": "native", **ASKED, "tool_choice": choice}, stream=False)
    assert (model.body.get("tool_choice"), model.body.get("parallel_tool_calls")) == (sent, parallel)


def test_thinking_that_is_off_is_off_at_the_server(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    message_of(gateway, {"model": "native", "messages": [user("hi")], "thinking": {"type": "disabled"}}, stream=False)
    assert model.body["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}


@pytest.mark.parametrize(
    ("asked", "begins"), [("enabled", "<think>"), ("disabled", "</think>"), ("adaptive", "</think>")]
)
def test_a_raw_prompt_begins_with_a_thought_where_one_is_asked_for(
    serve: Served, model: ModelServer, asked: str, begins: str
) -> None:
    gateway = serve(ModelConfig(name="m", upstream=model.url, mode="raw", dialect="deepseek_v31", server="vllm"))
    model.plays(completion("Hi<｜end▁of▁sentence｜>"))
    message_of(gateway, {"model": "m", "messages": [user("hi")], "thinking": {"type": asked}}, stream=False)
    assert model.body["prompt"].endswith(begins)


@STREAMED
def test_an_answer_has_the_form_that_is_asked_for(serve: Served, model: ModelServer, stream: bool) -> None:
    gateway = serve(ModelConfig(name="m", upstream=model.url, retries=1))
    schema = {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
        "additionalProperties": False,
    }
    model.plays(said("The title is: Hello"), said('```json\n{"title": "Hello"}\n```'))
    body = {
        "model": "m",
        "messages": [user("hi")],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    }
    message = message_of(gateway, body, stream=stream)
    assert [json.loads(block["text"]) for block in message["content"]] == [{"title": "Hello"}]
    assert len(model.asked) == 2


@STREAMED
def test_text_behind_a_call_that_came_before_its_end_is_a_block_of_its_own(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    head, *rest = call_deltas("get_weather", '{"city":', ' "Paris"}')
    model.plays(chat(head, rest[0], {"content": "One moment."}, rest[1], finish="tool_calls"))
    message = message_of(gateway, {"model": "native", **ASKED}, stream=stream)
    assert sorted(block["type"] for block in message["content"]) == ["text", "tool_use"]


# --- an answer that the request begins ---


@STREAMED
@pytest.mark.parametrize("repeats", [False, True])
def test_an_answer_goes_on_from_where_the_request_begins_it(
    gateway: str, model: ModelServer, repeats: bool, stream: bool
) -> None:
    begun = "The answer is ("
    model.plays(said(*((begun[:4], begun[4:]) if repeats else ()), "B", ") for sure"))
    messages = [user("A or B?"), {"role": "assistant", "content": begun}]
    message = message_of(gateway, {"model": "native", "messages": messages}, stream=stream)
    assert said_in(message) == [{"type": "text", "text": "B) for sure"}]
    assert model.body["messages"][-1] == {"role": "assistant", "content": begun}
    assert (model.body["continue_final_message"], model.body["add_generation_prompt"]) == (True, False)


@pytest.mark.parametrize("way", ["raw-harmony-vllm", "raw-hermes-vllm", "raw-json-vllm"])
@STREAMED
def test_so_does_a_raw_prompt(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    end = {"harmony": "<|return|>", "hermes": "<|im_end|>", "json": ""}[way.split("-")[1]]
    model.plays(completion(f"B) for sure{end}"))
    messages = [user("A or B?"), {"role": "assistant", "content": "The answer is ("}]
    message = message_of(gateway, {"model": way, "messages": messages}, stream=stream)
    assert said_in(message) == [{"type": "text", "text": "B) for sure"}]
    assert model.body["prompt"].endswith("The answer is (")


# --- a search for tools that runs here ---

SEARCHED: dict[str, Any] = {
    "model": "native",
    "messages": [user("Any news of tea?")],
    "tools": [
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        TOOLS[0],
        {**TOOLS[1], "defer_loading": True},
    ],
}


@STREAMED
def test_a_search_finds_deferred_tools_and_the_model_goes_on(gateway: str, model: ModelServer, stream: bool) -> None:
    made = {"to": "a", "text": "b"}
    model.plays(calling("tool_search", '{"query": "mail"}'), calling("send_mail", json.dumps(made)))
    message = message_of(gateway, SEARCHED, stream=stream)
    search, found, call = message["content"]
    assert (search["type"], search["name"], search["input"]) == (
        "server_tool_use",
        "tool_search_tool_bm25",
        {"query": "mail"},
    )
    references = [{"type": "tool_reference", "tool_name": "send_mail"}]
    assert found["content"] == {"type": "tool_search_tool_search_result", "tool_references": references}
    assert (call["name"], call["input"], message["stop_reason"]) == ("send_mail", made, "tool_use")
    first, second = (asked.body for asked in model.asked)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["tool_search", "get_weather"]
    # the next request is read as the model has seen this one
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "sent"}]}
    model.plays(said("Done."))
    history = [*SEARCHED["messages"], {"role": "assistant", "content": message["content"]}, result]
    message_of(gateway, {**SEARCHED, "messages": history}, stream=stream)
    shown = model.body
    assert shown["messages"][: len(second["messages"])] == second["messages"]
    assert shown["tools"] == second["tools"]


@STREAMED
def test_a_cache_is_warmed_without_an_answer(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(said("It", finish="length"))
    body = {"model": "native", "max_tokens": 0, **ASKED, "stream": stream}
    reply = request(gateway + MESSAGES, body)
    answer = assembled(named_events(reply)) if stream else reply.json
    assert (answer["content"], answer["stop_reason"]) == ([], "max_tokens")
    assert model.body["max_tokens"] == 1


def test_a_search_of_the_web_is_answered_in_text_and_named(gateway: str, model: ModelServer) -> None:
    model.plays(said("I cannot search the web here."))
    tools = [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}, *TOOLS]
    body = {"model": "native", "max_tokens": 50, "messages": [user("Perform a web search for: tea")], "tools": tools}
    reply = request(gateway + MESSAGES, {**body, "tool_choice": {"type": "auto"}})
    assert reply.json["stop_reason"] == "end_turn"
    assert reply.headers["x-callwright-dropped-fields"] == "web_search_20250305"
    assert model.body["messages"][0]["content"].startswith("The web cannot be searched here.")
    assert [tool["function"]["name"] for tool in model.body["tools"]] == [tool["name"] for tool in TOOLS]


def test_counting_tokens_is_no_request_to_a_model(serve: Served, model: ModelServer) -> None:
    key = KeyConfig(name="ben", sha256=hash_of("cw-ben"), requests_per_minute=2)
    gateway = serve(ModelConfig(name="m", upstream=model.url), keys=(key,))
    for _ in range(5):
        counted = request(gateway + COUNT, {"model": "m", **ASKED}, headers={"x-api-key": "cw-ben"})
        assert counted.status == 200


def test_an_answer_that_would_be_all_too_short_is_a_prompt_that_is_too_long(gateway: str, model: ModelServer) -> None:
    words = TOO_MUCH.replace("1000", "8100")
    model.plays(whole({"error": {"message": words, "type": "BadRequestError", "code": 400}}, 400))
    reply = request(gateway + MESSAGES, {"model": "native", "max_tokens": 32000, **ASKED})
    assert reply.status == 400
    assert reply.json["error"]["message"].startswith("prompt is too long: ")
