"""An answer in the form that the request asks for, over HTTP: told to the server, checked, mended, asked for again."""

import json
from typing import Any

import pytest

from callwright.conversation import ResponseFormat
from callwright.gateway.config.config import ModelConfig
from callwright.turn.structured import StructuredAnswer
from tests.conftest import Served, scripted_models
from tests.support.http_client import CHAT, ask, assembled, request
from tests.support.outputs import QUESTION, TOOLS, block, spoken
from tests.support.servers import Answer, ModelServer, chat, said

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
WAYS = ("native", "prompt-json", "prompt-hermes", "raw-hermes-openai", "raw-hermes-vllm", "raw-harmony-vllm")
ways = pytest.mark.parametrize("way", WAYS)
SIGHT = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "height": {"type": "integer"}},
    "required": ["place", "height"],
    "additionalProperties": False,
}
GOOD = '{"place": "Eiffel Tower", "height": 330}'
HALF = '{"place": "Eiffel Tower", "height": 33'


def form(*, strict: bool | None = True) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "sight", "strict": strict, "schema": SIGHT}}


STRICT: dict[str, Any] = {"response_format": form()}
OBJECT: dict[str, Any] = {"response_format": {"type": "json_object"}}


@pytest.fixture
def patient(serve: Served, model: ModelServer) -> str:
    """A gateway that asks again."""
    return serve(*scripted_models(model.url, retries=2))


def body(way: str, **fields: Any) -> dict[str, Any]:
    return {"model": way, "messages": [QUESTION], **fields}


def answers(way: str, *texts: str) -> list[Answer]:
    """A text that is the answer, as the model of this way writes it."""
    if "harmony" in way:
        return [spoken(way, f"<|channel|>final<|message|>{text}<|return|>") for text in texts]
    return [said(text) if way == "native" else spoken(way, text) for text in texts]


@both
@ways
@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{GOOD}\n```",
        f"Here it is:\n\n{GOOD}\n\nDo you need more?",
        "{'place': 'Eiffel Tower', 'height': 330,}",
        '{"place": "Eiffel Tower", "height": "330"}',
    ],
    ids=["a fence", "prose", "quotes and commas", "a wrong type"],
)
def test_what_can_be_mended_costs_no_request(
    patient: str, model: ModelServer, way: str, text: str, stream: bool
) -> None:
    if stream and "vllm" in way and text.startswith("{"):
        pytest.skip("what the server has been told and begins right streams")
    model.plays(*answers(way, text))
    answer = ask(patient, body(way, **STRICT), stream=stream)
    assert json.loads(answer.message["content"]) == json.loads(GOOD)
    assert answer.finish_reason == "stop"
    assert len(model.asked) == 1


@both
@ways
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("It is 330 m high.", "not valid JSON"),
        (HALF, "not valid JSON"),
        ('{"place": "Eiffel Tower"}', '"height" is a required property'),
        ('{"place": "Eiffel Tower", "height": "high"}', "$.height"),
    ],
    ids=["prose", "half", "a part", "another type"],
)
def test_what_cannot_is_asked_for_again(
    patient: str, model: ModelServer, way: str, text: str, told: str, stream: bool
) -> None:
    if stream and "vllm" in way and text.startswith("{"):
        pytest.skip("what the server has been told and begins right streams")
    model.plays(*answers(way, text, GOOD))
    answer = ask(patient, body(way, **STRICT), stream=stream)
    assert answer.message["content"] == GOOD
    assert len(model.asked) == 2
    assert told in json.dumps(model.asked[1].body).replace("\\", "").replace('\\"', '"')
    assert answer.usage is not None
    assert answer.usage["completion_tokens"] == 14


@both
@ways
def test_an_answer_without_the_form_never_leaves(patient: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(*answers(way, "No.", "Still no.", "Never."))
    reply = request(patient + CHAT, body(way, **STRICT, stream=stream))
    assert (reply.status, reply.error["code"]) == (502, "upstream_unmet")
    assert "No valid answer in the requested form in 3 attempts" in reply.error["message"]
    assert reply.headers["x-should-retry"] == "false"


@both
@ways
def test_a_valid_answer_goes_out_as_it_was_written(patient: str, model: ModelServer, way: str, stream: bool) -> None:
    text = '{ "place":"Eiffel Tower",\n "height": 330}'
    model.plays(*answers(way, text))
    answer = ask(patient, body(way, **STRICT), stream=stream)
    assert answer.message["content"] == text
    assert len(model.asked) == 1


@both
@ways
def test_any_object_is_held_as_well(patient: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(*answers(way, "Sure!", '```\n{"a": [1]}\n```'))
    answer = ask(patient, body(way, **OBJECT), stream=stream)
    assert answer.message["content"] == '{"a": [1]}'
    assert len(model.asked) == 2


@both
def test_an_answer_that_stands_in_the_reasoning_is_taken_and_named(
    patient: str, model: ModelServer, stream: bool
) -> None:
    model.plays(chat({"reasoning_content": GOOD, "content": ""}))
    reply = request(patient + CHAT, body("native", **STRICT, stream=stream))
    said_ = assembled(reply.events).message if stream else reply.json["choices"][0]["message"]
    assert said_["content"] == GOOD
    assert reply.problems == {"answer_repaired": 1}
    assert len(model.asked) == 1


@both
def test_words_around_an_answer_in_the_reasoning_are_asked_about(
    patient: str, model: ModelServer, stream: bool
) -> None:
    model.plays(chat({"reasoning_content": f"Maybe {GOOD}", "content": ""}), said(GOOD))
    assert ask(patient, body("native", **STRICT), stream=stream).message["content"] == GOOD
    assert len(model.asked) == 2


@both
@pytest.mark.parametrize("way", WAYS[:4])  # what a server holds to a form has gone out
def test_a_name_with_two_values_is_asked_about(patient: str, model: ModelServer, way: str, stream: bool) -> None:
    twice = '{"place": "Big Ben", "place": "Eiffel Tower", "height": 330}'
    model.plays(*answers(way, twice, GOOD))
    assert ask(patient, body(way, **STRICT), stream=stream).message["content"] == GOOD
    assert len(model.asked) == 2


@both
@pytest.mark.parametrize("server", ["vllm", "sglang", "llamacpp", "ollama", "lmstudio", "openai"])
def test_a_form_beside_tools_goes_to_a_server_that_calls_nevertheless(
    serve: Served, model: ModelServer, server: Any, stream: bool
) -> None:
    gateway = serve(ModelConfig(name="native", upstream=model.url, server=server, retries=2))
    model.plays(said("It is high."), said(GOOD))
    assert ask(gateway, body("native", **STRICT, tools=TOOLS), stream=stream).message["content"] == GOOD
    assert [("response_format" in asked_.body) for asked_ in model.asked] == [server == "openai"] * 2
    assert ("Answer format" in str(model.asked[0].body["messages"])) == (server != "openai")
    model.plays(said(GOOD))
    ask(gateway, body("native", **STRICT, tools=TOOLS, tool_choice="none"), stream=stream)
    assert "response_format" in model.body


@both
def test_without_strict_the_text_goes_out_and_is_named(patient: str, model: ModelServer, stream: bool) -> None:
    model.plays(said("It is 330 m high."))
    reply = request(patient + CHAT, body("native", response_format=form(strict=False), stream=stream))
    assert reply.status == 200
    assert reply.problems == {"invalid_answer": 1}
    assert "330 m high" in reply.text


@both
@pytest.mark.parametrize("way", ["native", "raw-hermes-vllm", "raw-hermes-openai"])
def test_a_call_is_still_a_call(patient: str, model: ModelServer, way: str, stream: bool) -> None:
    text = block("get_weather", '{"city": "Oslo"}')
    call = chat({"tool_calls": [_call()]}, finish="tool_calls") if way == "native" else spoken(way, text)
    model.plays(call)
    answer = ask(patient, body(way, **STRICT, tools=TOOLS), stream=stream)
    assert answer.calls == [("get_weather", {"city": "Oslo"})]
    assert answer.finish_reason == "tool_calls"
    model.plays(*answers(way, "Hm.", GOOD))
    answer = ask(patient, body(way, **STRICT, tools=TOOLS), stream=stream)
    assert answer.message["content"] == GOOD
    assert len(model.asked) == 2


def _call() -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    return {"index": 0, "id": "call_up_0", "type": "function", "function": function}


@both
def test_what_the_limit_has_cut_is_neither_mended_nor_asked_for_again(
    patient: str, model: ModelServer, stream: bool
) -> None:
    model.plays(said(HALF, finish="length"))
    answer = ask(patient, body("native", **STRICT), stream=stream)
    assert (answer.message["content"], answer.finish_reason) == (HALF, "length")
    assert len(model.asked) == 1


@both
def test_a_refusal_is_an_answer(patient: str, model: ModelServer, stream: bool) -> None:
    model.plays(chat({"refusal": "I cannot help with that."}))
    assert ask(patient, body("native", **STRICT), stream=stream).message["refusal"] == "I cannot help with that."


# --- what servers are told ---


@pytest.mark.parametrize("way", ["raw-hermes-vllm", "raw-harmony-vllm", "raw-hermes-sglang", "raw-hermes-llamacpp"])
@pytest.mark.parametrize("fields", [STRICT, OBJECT], ids=["schema", "object"])
@pytest.mark.parametrize("tools", [None, TOOLS], ids=["alone", "with tools"])
def test_a_raw_prompt_comes_with_the_constraint(
    patient: str, model: ModelServer, way: str, fields: dict[str, Any], tools: Any
) -> None:
    flavour = way.rpartition("-")[2]
    text = GOOD if "harmony" not in way else f"<|channel|>final<|message|>{GOOD}<|return|>"
    model.plays(spoken(way, text))
    assert ask(patient, body(way, **fields, tools=tools), stream=False).message["content"] == GOOD
    sent = model.body
    told = {"vllm": "structured_outputs", "sglang": "response_format", "llamacpp": "grammar"}[flavour]
    assert told in sent
    if fields is STRICT:
        assert "height" in json.dumps(sent[told])
    if tools:
        assert "get_weather" in json.dumps(sent[told])


def test_harmony_is_told_what_any_object_is(patient: str, model: ModelServer) -> None:
    model.plays(spoken("raw-harmony-vllm", f"<|channel|>final<|message|>{GOOD}<|return|>"))
    ask(patient, body("raw-harmony-vllm", **OBJECT), stream=False)
    assert "# Response Formats" in model.body["prompt"]


def test_an_answer_that_the_server_holds_streams(serve: Served, model: ModelServer) -> None:
    """The first piece is there before the server has said the last."""
    gateway = serve(ModelConfig(name="held", upstream=model.url, server="vllm"))
    model.plays(said('{"place": "Eiffel', ' Tower", "height": 330}'))
    reply = request(gateway + CHAT, body("held", **STRICT, stream=True))
    texts = [choice["delta"].get("content") for event in reply.events for choice in event["choices"]]
    assert [text for text in texts if text] == ['{"place": "Eiffel', ' Tower", "height": 330}']


def test_a_stream_that_did_not_keep_the_form_ends_in_an_error(serve: Served, model: ModelServer) -> None:
    gateway = serve(ModelConfig(name="held", upstream=model.url, server="vllm"))
    model.plays(said('{"place": "Eiffel', ' Tower"}'))
    options = {"stream": True, "stream_options": {"include_usage": True}}
    *events, last = request(gateway + CHAT, body("held", **STRICT, **options)).events
    assert last["error"]["code"] == "upstream_unmet"
    assert events[-1]["usage"]["total_tokens"] == 18
    assert not [choice for event in events for choice in event["choices"] if choice["finish_reason"]]


@both
def test_a_schema_that_is_missing_is_named(patient: str, model: ModelServer, stream: bool) -> None:
    given = {"type": "json_schema", "json_schema": {"name": "n"}}
    reply = request(patient + CHAT, body("native", response_format=given, stream=stream))
    assert reply.status == 400
    assert reply.error["param"] == "response_format.json_schema.schema"


# --- what is mended, and what is not ---

PLAIN: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "sunny",
        "null",
        '{"a": "x',
        '{"a": "x"',
        '{"b": {"a": "x"}, "c',
        'First {"a": "x"}, no, {"a": "y"}.',
        '[{"a": "x"}, {"a": "y"}]',
    ],
)
@pytest.mark.parametrize("schema", [PLAIN, None], ids=["a schema", "any object"])
def test_nothing_is_guessed(text: str, schema: dict[str, Any] | None) -> None:
    form_ = ResponseFormat("json_schema" if schema else "json_object", schema=schema, strict=True)
    judged = StructuredAnswer(form_).judge(text)
    assert judged.text is None
    assert judged.problem is not None
    assert judged.problem.kind == "invalid_answer"


def test_the_words_of_the_model_stay_in_the_problem() -> None:
    text = 'Here:\n```json\n{"a": "x"}\n```'
    judged = StructuredAnswer(ResponseFormat("json_schema", schema=PLAIN, strict=True)).judge(text)
    assert judged.text == '{"a": "x"}'
    assert judged.problem is not None
    assert (judged.problem.kind, judged.problem.text) == ("answer_repaired", text)
