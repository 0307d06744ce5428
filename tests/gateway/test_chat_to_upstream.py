"""Chat Completions over HTTP: what the model server is asked for what the client asked."""

import json
from typing import Any

import pytest

from callwright.dialects.base import get_dialect
from callwright.gateway.config.config import ModelConfig
from tests.conftest import KEY, Served
from tests.support.http_client import CHAT, ask, request
from tests.support.outputs import ARGUMENTS, CALL, FEW_WAYS, HISTORY, QUESTION, TEXT, TOOLS, played, spoken
from tests.support.servers import Answer, ModelServer, said, sse


def asked(gateway: str, model: ModelServer, way: str, **fields: Any) -> dict[str, Any]:
    """The body that the model server got; its answer is a text, which is none where a call is demanded."""
    model.plays(played(way, "text"))
    reply = request(gateway + CHAT, {"model": way, "messages": [QUESTION], **fields})
    choice = fields.get("tool_choice", fields.get("function_call", "auto"))
    assert reply.status == (200 if choice in ("auto", "none") else 502), reply.text
    return dict(model.body)


def sent(gateway: str, model: ModelServer, *messages: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """The messages that a server with tools of its own got."""
    return list(asked(gateway, model, "native", messages=list(messages), tools=TOOLS, **fields)["messages"])


# --- fields ---

PLAIN_FIELDS: dict[str, Any] = {
    "temperature": 0.3,
    "top_p": 0.9,
    "seed": 7,
    "stop": ["END", "STOP"],
    "frequency_penalty": 0.5,
    "presence_penalty": -0.5,
    "logit_bias": {"50256": -100},
    "max_tokens": 50,
    "user": "anna",
}
CHAT_FIELDS: dict[str, Any] = {
    "max_completion_tokens": 50,
    "logprobs": True,
    "top_logprobs": 3,
    "reasoning_effort": "low",
    "verbosity": "low",
    "chat_template_kwargs": {"enable_thinking": False},
    "structured_outputs": {"regex": "a+"},
    "top_k": 20,
}


@pytest.mark.parametrize(("field", "value"), [*PLAIN_FIELDS.items(), *CHAT_FIELDS.items()])
def test_a_chat_server_gets_the_other_fields_as_they_came(
    gateway: str, model: ModelServer, field: str, value: Any
) -> None:
    assert asked(gateway, model, "native", **{field: value})[field] == value


@pytest.mark.parametrize("way", ["raw-harmony-vllm", "raw-hermes-sglang", "raw-hermes-openai"])
@pytest.mark.parametrize("field", [field for field in PLAIN_FIELDS if field != "stop"])
def test_a_completion_server_gets_the_fields_that_it_knows(
    gateway: str, model: ModelServer, way: str, field: str
) -> None:
    assert asked(gateway, model, way, **{field: PLAIN_FIELDS[field]})[field] == PLAIN_FIELDS[field]


@pytest.mark.parametrize("way", ["raw-harmony-vllm", "raw-hermes-sglang", "raw-hermes-openai", "raw-hermes-llamacpp"])
def test_a_completion_server_is_spared_the_fields_of_chat(gateway: str, model: ModelServer, way: str) -> None:
    fields = {"logprobs": True, "top_logprobs": 3, "max_completion_tokens": 50, "reasoning_effort": "low"}
    got = asked(gateway, model, way, tools=TOOLS, tool_choice="auto", parallel_tool_calls=True, **fields)
    assert not set(got) & {
        *("messages", "tools", "tool_choice", "parallel_tool_calls", "logprobs", "top_logprobs"),
        *("max_completion_tokens", "reasoning_effort"),
    }


@pytest.mark.parametrize(
    ("way", "name"),
    [
        ("raw-hermes-openai", "max_tokens"),
        ("raw-hermes-vllm", "max_tokens"),
        ("raw-hermes-sglang", "max_tokens"),
        ("raw-hermes-llamacpp", "n_predict"),
    ],
)
@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_the_token_limit_has_the_servers_name(
    gateway: str, model: ModelServer, way: str, name: str, limit: str
) -> None:
    assert asked(gateway, model, way, **{limit: 50})[name] == 50


@pytest.mark.parametrize("way", FEW_WAYS)
def test_a_stream_is_asked_for_with_token_counts_and_a_whole_answer_whole(
    gateway: str, model: ModelServer, way: str
) -> None:
    got = asked(gateway, model, way, stream=True)
    assert (got["stream"], got["stream_options"]) == (True, {"include_usage": True})
    got = asked(gateway, model, way, stream=False)
    assert got["stream"] is False
    assert "stream_options" not in got


@pytest.mark.parametrize("way", FEW_WAYS)
def test_no_server_gets_what_is_the_gateways(gateway: str, model: ModelServer, way: str) -> None:
    got = asked(gateway, model, way, n=1, modalities=["text"], temperature=None)
    assert not set(got) & {"n", "modalities", "functions", "function_call", "temperature"}
    assert got["model"].startswith("served/")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("way", ["raw-hermes-vllm", "raw-hermes-sglang", "raw-harmony-vllm", "raw-hermes-llamacpp"])
def test_a_stop_text_of_the_client_is_not_in_the_answer(
    gateway: str, model: ModelServer, way: str, stream: bool
) -> None:
    text = "<|channel|>final<|message|>One two" if "harmony" in way else "One two"

    def stopped(body: Any) -> Answer:
        """A server that is told to keep the text at which it stops keeps the client's, too."""
        assert " END" in body["stop"]
        kept = body.get("include_stop_str_in_output") or body.get("no_stop_trim")
        return spoken(way, f"{text} END" if kept else text)

    model.plays(stopped)
    answer = ask(gateway, {"model": way, "messages": [QUESTION], "stop": [" END"]}, stream=stream)
    assert answer.message["content"] == "One two"
    assert answer.finish_reason == "stop"


@pytest.mark.parametrize("heading", ["### User\n", "### System\n", "### Assistant\n"])
@pytest.mark.parametrize("server", ["openai", "vllm", "sglang", "llamacpp"])
def test_a_heading_of_the_plain_prompt_ends_the_answer_and_is_not_in_it(
    gateway: str, model: ModelServer, server: str, heading: str
) -> None:
    written = f"### User guide\nHi.\n\n{heading}"

    def stopped(body: Any) -> Answer:
        """At the first stop text, which is in the answer if the server keeps it, or apart from it."""
        end, stop = min((written.find(stop), stop) for stop in body["stop"] if stop in written)
        if server == "llamacpp":
            return Answer(sse({"content": written[:end], "stop": True, "stop_type": "word", "stopping_word": stop}))
        kept = body.get("include_stop_str_in_output") or body.get("no_stop_trim")
        return spoken(f"raw-json-{server}", written[: end + len(stop)] if kept else written[:end])

    model.plays(stopped)
    answer = ask(gateway, {"model": f"raw-json-{server}", "messages": [QUESTION]}, stream=False)
    assert (answer.message["content"], answer.finish_reason) == ("### User guide\nHi.\n\n", "stop")


@pytest.mark.parametrize(
    ("way", "fields", "path"),
    [
        ("raw-harmony-openai", {}, "/v1/completions"),
        (
            "raw-harmony-vllm",
            {
                "skip_special_tokens": False,
                "spaces_between_special_tokens": False,
                "add_special_tokens": False,
                "stop_token_ids": [200002, 200012],
            },
            "/v1/completions",
        ),
        (
            "raw-harmony-sglang",
            {"skip_special_tokens": False, "no_stop_trim": True, "stop_token_ids": [200002, 200012]},
            "/v1/completions",
        ),
        ("raw-hermes-vllm", {"skip_special_tokens": False, "add_special_tokens": False}, "/v1/completions"),
        ("raw-harmony-llamacpp", {}, "/completion"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_completion_server_is_told_to_keep_control_tokens(
    gateway: str, model: ModelServer, way: str, fields: dict[str, Any], path: str
) -> None:
    got = asked(gateway, model, way)
    assert {name: got.get(name) for name in fields} == fields
    assert model.asked[0].path == path
    assert isinstance(got["prompt"], str)


def test_llamacpp_is_told_which_control_tokens_to_keep(gateway: str, model: ModelServer) -> None:
    got = asked(gateway, model, "raw-harmony-llamacpp")
    assert {"<|channel|>", "<|message|>", "<|call|>", "<|return|>", "<|end|>"} <= set(got["preserved_tokens"])
    assert {"<|im_end|>", "<tool_call>"} <= set(asked(gateway, model, "raw-hermes-llamacpp")["preserved_tokens"])


def test_the_dialects_stops_join_the_clients(gateway: str, model: ModelServer) -> None:
    assert asked(gateway, model, "raw-hermes-vllm", stop="END")["stop"] == ["END", *get_dialect("hermes").stops]
    assert asked(gateway, model, "raw-harmony-vllm")["stop"] == ["<|return|>", "<|call|>"]


def test_a_models_own_fields_are_sent_and_the_clients_win(serve: Served, model: ModelServer) -> None:
    fields = {"temperature": 0.1, "top_k": 5}
    gateway = serve(ModelConfig(name="native", upstream=model.url, fields=fields, headers={"x-team": "blue"}))
    got = asked(gateway, model, "native", temperature=0.9)
    assert (got["temperature"], got["top_k"]) == (0.9, 5)
    assert model.asked[0].headers["x-team"] == "blue"


def test_the_upstreams_key_is_sent_and_not_the_clients(
    serve: Served, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLWRIGHT_TEST_KEY", KEY)
    gateway = serve(ModelConfig(name="keyed", upstream=model.url, api_key_env="CALLWRIGHT_TEST_KEY"))
    model.plays(said("Hi"))
    body = {"model": "keyed", "messages": [QUESTION]}
    reply = request(gateway + CHAT, body, headers={"authorization": "Bearer the-clients"})
    assert model.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert "the-clients" not in str(model.asked[0].headers)
    assert KEY not in f"{reply.text} {reply.headers}"


def test_without_an_upstream_key_the_clients_key_stays_here(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    headers = {"authorization": "Bearer the-clients", "openai-organization": "org-1", "cookie": "a=b"}
    request(gateway + CHAT, {"model": "native", "messages": [QUESTION]}, headers=headers)
    got = {name.lower() for name in model.asked[0].headers}
    assert not got & {"authorization", "openai-organization", "cookie"}


# --- tools and choice ---


def test_a_server_with_tools_gets_them_as_they_are(gateway: str, model: ModelServer) -> None:
    got = asked(gateway, model, "native", tools=TOOLS)
    assert got["tools"] == TOOLS
    assert got.get("tool_choice", "auto") == "auto"
    assert got.get("parallel_tool_calls", True) is True


@pytest.mark.parametrize("choice", ["none", "required", {"type": "function", "function": {"name": "get_weather"}}])
def test_a_server_with_tools_gets_the_choice(gateway: str, model: ModelServer, choice: Any) -> None:
    got = asked(gateway, model, "native", tools=TOOLS, tool_choice=choice)
    assert got["tool_choice"] == choice
    assert got["tools"] == TOOLS


def test_a_server_with_tools_is_told_to_make_one_call(gateway: str, model: ModelServer) -> None:
    assert asked(gateway, model, "native", tools=TOOLS, parallel_tool_calls=False)["parallel_tool_calls"] is False


def test_strict_and_odd_keys_of_a_schema_reach_the_server(gateway: str, model: ModelServer) -> None:
    schema = {
        "type": "object",
        "title": "F",
        "properties": {"x": {"type": "string", "default": "a", "encrypted": True}},
        "required": ["x"],
        "additionalProperties": False,
    }
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema, "strict": True}}]
    assert asked(gateway, model, "native", tools=tools)["tools"] == tools


@pytest.mark.parametrize("way", FEW_WAYS)
@pytest.mark.parametrize("choice", ["none", "auto"])
def test_the_tools_stay_in_the_prompt_whatever_the_choice(
    gateway: str, model: ModelServer, way: str, choice: str
) -> None:
    got = asked(gateway, model, way, tools=TOOLS, tool_choice=choice)
    assert "get_weather" in str(got)
    assert "send_mail" in str(got)


@pytest.mark.parametrize("way", ["prompt-json", "prompt-hermes", "prompt-harmony"])
def test_a_server_without_tools_gets_them_in_the_messages(gateway: str, model: ModelServer, way: str) -> None:
    got = asked(gateway, model, way, tools=TOOLS, messages=HISTORY, parallel_tool_calls=False)
    assert not set(got) & {"tools", "tool_choice", "parallel_tool_calls"}
    assert {message["role"] for message in got["messages"]} <= {"system", "user", "assistant"}
    assert not [message for message in got["messages"] if set(message) != {"role", "content"}]
    assert "get_weather" in got["messages"][0]["content"]
    assert "18 °C, sunny" in got["messages"][-1]["content"]


@pytest.mark.parametrize("mode", ["prompt", "raw"])
def test_the_same_tools_give_the_same_prompt_prefix_whatever_the_choice(
    gateway: str, model: ModelServer, mode: str
) -> None:
    way = "prompt-json" if mode == "prompt" else "raw-harmony-vllm"
    plain = asked(gateway, model, way, tools=TOOLS)
    forced = asked(gateway, model, way, tools=TOOLS, tool_choice="required")
    if mode == "prompt":
        assert forced["messages"][0]["content"].startswith(plain["messages"][0]["content"])
    else:
        assert forced["prompt"].startswith(plain["prompt"])


CLOSED = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.mark.parametrize(
    "given",
    [
        {"type": "json_object"},
        {
            "type": "json_schema",
            "json_schema": {"name": "n", "description": "d", "schema": CLOSED, "strict": True},
        },
    ],
    ids=lambda given: given["type"],
)
@pytest.mark.parametrize("tools", [None, TOOLS], ids=["alone", "with tools"])
def test_a_server_with_tools_gets_the_response_format(
    gateway: str, model: ModelServer, given: dict[str, Any], tools: Any
) -> None:
    model.plays(said("{}"))
    reply = request(
        gateway + CHAT, {"model": "native", "messages": [QUESTION], "response_format": given, "tools": tools}
    )
    assert reply.status == 200, reply.text
    assert model.body["response_format"] == given


@pytest.mark.parametrize("tools", [None, TOOLS], ids=["alone", "with tools"])
@pytest.mark.parametrize(
    "way", ["native", "prompt-json", "prompt-hermes", "prompt-harmony", "raw-harmony-vllm", "raw-hermes-vllm"]
)
def test_the_schema_of_the_answer_reaches_the_model(gateway: str, model: ModelServer, way: str, tools: Any) -> None:
    schema = {"type": "object", "properties": {"zebra": {"type": "string"}}, "required": ["zebra"]}
    given = {"type": "json_schema", "json_schema": {"name": "animal", "schema": schema}}
    assert "zebra" in str(asked(gateway, model, way, response_format=given, tools=tools))


@pytest.mark.parametrize("way", ["raw-harmony-vllm", "prompt-harmony"])
def test_the_effort_of_reasoning_reaches_a_harmony_prompt(gateway: str, model: ModelServer, way: str) -> None:
    assert "Reasoning: high" in str(asked(gateway, model, way, reasoning_effort="high"))


# --- messages ---


def test_a_second_turn_reaches_the_server_as_it_is(gateway: str, model: ModelServer) -> None:
    assert sent(gateway, model, *HISTORY) == HISTORY


@pytest.mark.parametrize(
    "content",
    ["18 °C, sunny", [{"type": "text", "text": "18 °C,"}, {"type": "text", "text": " sunny"}]],
    ids=["string", "parts"],
)
@pytest.mark.parametrize("way", FEW_WAYS)
def test_the_text_parts_of_a_result_are_one_text(gateway: str, model: ModelServer, way: str, content: Any) -> None:
    result = {"role": "tool", "tool_call_id": "call_1", "content": content}
    got = asked(gateway, model, way, tools=TOOLS, messages=[*HISTORY[:2], result])
    assert "18 °C, sunny" in (got.get("prompt") or got["messages"][-1]["content"])


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
def test_the_text_parts_of_a_message_are_one_text(gateway: str, model: ModelServer, role: str) -> None:
    parts = [{"type": "text", "text": "One "}, {"type": "text", "text": "two"}]
    got = sent(gateway, model, {"role": role, "content": parts}, QUESTION)
    assert got[0]["content"] in ("One two", parts)


@pytest.mark.parametrize("content", [None, "", "missing"])
def test_beside_calls_an_assistants_content_may_be_empty(gateway: str, model: ModelServer, content: Any) -> None:
    message: dict[str, Any] = {"role": "assistant", "content": content, "tool_calls": [CALL]}
    if content == "missing":
        del message["content"]
    got = sent(gateway, model, QUESTION, message, HISTORY[2])
    assert got[1]["tool_calls"] == [CALL]
    assert not got[1]["content"]


def test_text_reasoning_and_calls_of_one_message_stay_one_message(gateway: str, model: ModelServer) -> None:
    message = {"role": "assistant", "content": "One moment.", "reasoning_content": "Hm.", "tool_calls": [CALL]}
    got = sent(gateway, model, QUESTION, message, HISTORY[2])
    assert len(got) == 3
    assert got[1]["content"] == "One moment."
    assert got[1]["tool_calls"] == [CALL]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize("way", FEW_WAYS)
def test_reasoning_in_the_history_is_borne(gateway: str, model: ModelServer, way: str, field: str) -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [CALL], field: "The user wants weather."}
    final = {"role": "assistant", "content": TEXT, field: "The tool has answered."}
    got = asked(gateway, model, way, tools=TOOLS, messages=[QUESTION, call, HISTORY[2], final, QUESTION])
    assert TEXT in str(got)
    assert "18 °C, sunny" in str(got)


@pytest.mark.parametrize("id_", ["functions.get_weather:0", "9a8b7c6d5", "", "x" * 64, "call/1 é"])
@pytest.mark.parametrize("way", FEW_WAYS)
def test_calls_and_results_pair_by_any_id(gateway: str, model: ModelServer, way: str, id_: str) -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": id_}]}
    result = {"role": "tool", "tool_call_id": id_, "content": "18 °C, sunny"}
    got = asked(gateway, model, way, tools=TOOLS, messages=[QUESTION, call, result])
    assert "18 °C, sunny" in str(got)
    if way == "native":
        assert got["messages"][1]["tool_calls"][0]["id"] == got["messages"][2]["tool_call_id"] == id_


def test_results_may_come_in_any_order(gateway: str, model: ModelServer) -> None:
    calls = [{**CALL, "id": "a"}, {**CALL, "id": "b"}]
    results = [{"role": "tool", "tool_call_id": id_, "content": f"result of {id_}"} for id_ in "ba"]
    got = sent(gateway, model, QUESTION, {"role": "assistant", "content": None, "tool_calls": calls}, *results)
    assert got[2:] == results[::-1]  # templates that show no ids take them in the order of the calls


@pytest.mark.parametrize("arguments", ['{"city": "Par', "Paris", "", "[1]", '{"city": NaN}', '"{\\"city\\": 1}"'])
@pytest.mark.parametrize("way", ["native", "prompt-json", "prompt-hermes", "raw-hermes-vllm", "raw-harmony-vllm"])
def test_broken_arguments_in_the_history_fail_nothing(
    gateway: str, model: ModelServer, way: str, arguments: str
) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    history = [QUESTION, {"role": "assistant", "content": None, "tool_calls": [call]}, HISTORY[2]]
    got = asked(gateway, model, way, tools=TOOLS, messages=history)
    if way != "native":
        return
    shown = got["messages"][1]
    if "tool_calls" in shown:
        assert isinstance(json.loads(shown["tool_calls"][0]["function"]["arguments"]), dict)
    else:
        assert shown["content"].endswith(arguments)
        assert got["messages"][2]["role"] == "user"


def test_system_messages_reach_the_server_where_they_stand(gateway: str, model: ModelServer) -> None:
    late = {"role": "system", "content": "Now be brief."}
    got = sent(gateway, model, {"role": "system", "content": "Be kind."}, QUESTION, late)
    assert [message["content"] for message in got] == ["Be kind.", QUESTION["content"], "Now be brief."]
    assert [message["role"] for message in got] == ["system", "user", "system"]


@pytest.mark.parametrize("way", FEW_WAYS)
def test_a_developer_message_instructs_like_a_system_message(gateway: str, model: ModelServer, way: str) -> None:
    messages = [{"role": "developer", "content": "Be kind."}, QUESTION, {"role": "developer", "content": "Be brief."}]
    got = str(asked(gateway, model, way, messages=messages))
    assert got.index("Be kind.") < got.index(QUESTION["content"]) < got.index("Be brief.")


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}


@pytest.mark.parametrize("way", ["native", "prompt-json"])
def test_other_parts_of_a_user_reach_a_chat_server_as_they_are(gateway: str, model: ModelServer, way: str) -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        IMAGE,
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "file", "file": {"file_id": "f"}},
    ]
    got = asked(gateway, model, way, tools=TOOLS, messages=[{"role": "user", "content": parts}])
    assert got["messages"][-1]["content"] == parts


def test_other_parts_cannot_be_put_into_a_raw_prompt(gateway: str, model: ModelServer) -> None:
    body = {"model": "raw-hermes-vllm", "messages": [{"role": "user", "content": [IMAGE]}]}
    reply = request(gateway + CHAT, body)
    assert reply.status == 400
    assert reply.error["type"] == "invalid_request_error"
    assert reply.error["param"].startswith("messages")
    assert "image_url" in reply.error["message"]
    assert model.asked == []


# --- the API before tools ---

FUNCTIONS = [tool["function"] for tool in TOOLS]


def test_functions_reach_the_server_as_tools(gateway: str, model: ModelServer) -> None:
    got = asked(gateway, model, "native", functions=FUNCTIONS)
    assert got["tools"] == TOOLS
    assert got["parallel_tool_calls"] is False
    assert not set(got) & {"functions", "function_call"}


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ("none", "none"),
        ("auto", "auto"),
        ({"name": "get_weather"}, {"type": "function", "function": {"name": "get_weather"}}),
    ],
    ids=["none", "auto", "named"],
)
def test_the_old_choice_means_the_new_one(gateway: str, model: ModelServer, given: Any, choice: Any) -> None:
    got = asked(gateway, model, "native", functions=FUNCTIONS, function_call=given)
    assert got.get("tool_choice", "auto") == choice


@pytest.mark.parametrize("field", ["functions", "tools"])
def test_an_old_call_and_its_result_are_paired(gateway: str, model: ModelServer, field: str) -> None:
    old = {"name": "get_weather", "arguments": ARGUMENTS}
    messages = [
        QUESTION,
        {"role": "assistant", "content": None, "function_call": old},
        {"role": "function", "name": "get_weather", "content": "18 °C, sunny"},
        {"role": "assistant", "content": None, "function_call": old},
        {"role": "function", "name": "get_weather", "content": "19 °C"},
    ]
    offered = {"functions": FUNCTIONS} if field == "functions" else {"tools": TOOLS}
    got = asked(gateway, model, "native", messages=messages, **offered)["messages"]
    assert [message["role"] for message in got] == ["user", "assistant", "tool", "assistant", "tool"]
    first, second = ((got[at]["tool_calls"][0], got[at + 1]) for at in (1, 3))
    for call, result in (first, second):
        assert call["function"] == old
        assert call["id"]
        assert call["id"] == result["tool_call_id"]
    assert first[0]["id"] != second[0]["id"]
    assert (first[1]["content"], second[1]["content"]) == ("18 °C, sunny", "19 °C")
