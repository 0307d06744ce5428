"""A call that does not hold, over HTTP: the model is told and asked again; what is demanded comes or is an error."""

from typing import Any

import pytest
from msgspec import Struct

import callwright
from tests.conftest import Served, scripted_models
from tests.support.http_client import CHAT, ask, request
from tests.support.outputs import QUESTION, TOOLS, block, spoken
from tests.support.servers import Answer, ModelServer, call_deltas, chat, said


def calls(*made: tuple[str, str]) -> Answer:
    """A chat answer of calls."""
    deltas = [call_deltas(*call, index=index, id_=f"call_up_{index}") for index, call in enumerate(made)]
    return chat(*(delta for each in deltas for delta in each), finish="tool_calls")


both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
GOOD = ("get_weather", '{"city": "Oslo"}')
PARIS = {"city": "Oslo"}
NAMED = {"type": "function", "function": {"name": "get_weather"}}
STRICT = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    }
]


@pytest.fixture
def patient(serve: Served, model: ModelServer) -> str:
    """A gateway that asks again."""
    return serve(*scripted_models(model.url, retries=2))


def body(way: str, **fields: Any) -> dict[str, Any]:
    return {"model": way, "messages": [QUESTION], "tools": TOOLS, **fields}


class Retried(Struct):
    """What is wrong with the first answer, and what the model must read about it."""

    first: Answer
    told: str
    request: dict[str, Any]
    streams: bool = True


CASES = {
    "text where a call is demanded": Retried(
        said("It is sunny."), "Call one of the tools", {"tool_choice": "required"}
    ),
    "text where a tool is named": Retried(said("Sunny!"), "get_weather now", {"tool_choice": NAMED}),
    "a missing argument where a call is demanded": Retried(
        calls(("get_weather", "{}")), '"city" is a required property', {"tool_choice": "required"}
    ),
    "another tool than the named": Retried(
        calls(("send_mail", '{"to": "a@b.c", "text": "x"}')), "get_weather now", {"tool_choice": NAMED}
    ),
    "a strict tool": Retried(calls(("get_weather", '{"city": "Atlantis"}')), "Atlantis", {"tools": STRICT}),
    "a missing argument": Retried(calls(("get_weather", "{}")), '"city" is a required property', {}, streams=False),
    "an unknown tool": Retried(calls(("get_wether2", "{}")), "The tools are: ", {}, streams=False),
    "a call without a name": Retried(calls(("", '{"city": "Oslo"}')), "without a name", {}, streams=False),
    "a call without a name where a call is demanded": Retried(
        calls(("", '{"city": "Oslo"}')), "without a name", {"tool_choice": "required"}
    ),
    "a call without a name among strict tools": Retried(
        calls(("", '{"city": "Oslo"}')), "without a name", {"tools": STRICT}
    ),
    "arguments that are no JSON": Retried(calls(("get_weather", "what?!")), "get_weather", {}, streams=False),
}


@both
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_model_is_told_and_asked_again(patient: str, model: ModelServer, case: Retried, stream: bool) -> None:
    model.plays(case.first, calls(GOOD))
    answer = ask(patient, body("native", **case.request), stream=stream)
    if stream and not case.streams:
        assert len(model.asked) == 1
        return
    assert answer.calls == [("get_weather", PARIS)]
    assert answer.finish_reason == "tool_calls"
    first, second = (asked.body["messages"] for asked in model.asked)
    assert second[: len(first)] == first, "the prefix must stay"
    assert case.told in second[-1]["content"]
    roles = [message["role"] for message in second[len(first) :]]
    assert roles in (["assistant", "tool"], ["assistant", "user"], ["user"])


@both
@pytest.mark.parametrize("way", ["native", "prompt-json", "raw-hermes-vllm", "raw-harmony-vllm"])
def test_a_legal_text_costs_one_request(patient: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(said("Sunny.") if way == "native" else spoken(way, "Sunny."))
    answer = ask(patient, body(way), stream=stream)
    assert (answer.message["content"], answer.finish_reason) == ("Sunny.", "stop")
    assert len(model.asked) == 1


def test_what_does_not_hold_in_text_is_asked_for_again(patient: str, model: ModelServer) -> None:
    model.plays(
        spoken("prompt-json", '{"tool": "get_weather", "arguments": {"town": 5}}'),
        spoken("prompt-json", '```json\n{"tool": "get_weather", "arguments": {"city": "Oslo"}}\n```'),
    )
    answer = ask(patient, body("prompt-json"), stream=False)
    assert answer.calls == [("get_weather", PARIS)]
    assert answer.message["content"] is None
    assert "required" in model.asked[1].body["messages"][-1]["content"]


def test_good_calls_are_kept_and_not_asked_for_again(patient: str, model: ModelServer) -> None:
    model.plays(calls(("get_weather", '{"city": "Rome"}'), ("get_weather", "{}")), calls(GOOD))
    answer = ask(patient, body("native"), stream=False)
    assert [arguments["city"] for _, arguments in answer.calls] == ["Rome", "Oslo"]
    outputs = [message["content"] for message in model.asked[1].body["messages"] if message["role"] == "tool"]
    assert "accepted" in outputs[0]
    assert outputs[1].startswith("Error: ")


@both
def test_a_demand_that_is_not_met_is_an_error(patient: str, model: ModelServer, stream: bool) -> None:
    model.plays(*(calls(("get_weather", arguments)) for arguments in ("{}", '{"city": [1, 2]}', '{"city": {}}')))
    reply = request(patient + CHAT, body("native", tool_choice="required", stream=stream))
    assert reply.status == 502
    assert reply.error["code"] == "upstream_unmet"
    assert "3 attempts" in reply.error["message"]
    assert reply.headers["x-should-retry"] == "false"
    assert len(model.asked) == 3


def fenced(*arguments: str) -> Answer:
    """Calls in the text of an answer, each in a block of its own."""
    return said("\n".join(f'```json\n{{"tool": "get_weather", "arguments": {each}}}\n```' for each in arguments))


NO_CITY = "the arguments of 'get_weather' do not fit: $: \"city\" is a required property"
# The answer of the model, the choice, and why it is no valid call: what is wrong with a call is said once, and no call
# that was made is called missing.
UNMET: dict[str, tuple[str, Answer, Any, str]] = {
    "text": ("native", said("Sunny."), "required", "the request asks for a call and the model made none"),
    "another tool": (
        *("native", calls(("send_mail", '{"to": "a@b.c", "text": "x"}')), NAMED),
        "the request asks for a call of 'get_weather' and the model made none",
    ),
    "a call in text": ("prompt-json", fenced("{}"), "required", NO_CITY),
    "the same call in text twice": ("prompt-json", fenced("{}", "{}"), "required", NO_CITY),
    "the same call twice": ("native", calls(("get_weather", "{}"), ("get_weather", "{}")), "required", NO_CITY),
    "an unknown tool": ("prompt-json", said('{"tool": "f", "arguments": {}}'), "required", "no tool is called 'f'"),
}


@both
@pytest.mark.parametrize("case", UNMET)
def test_a_demand_that_is_not_met_says_why_once(patient: str, model: ModelServer, case: str, stream: bool) -> None:
    way, answer, choice, why = UNMET[case]
    model.plays(answer, answer)
    reply = request(patient + CHAT, body(way, tool_choice=choice, stream=stream))
    assert reply.error["message"].startswith(f"No valid tool call in 2 attempts: {why}. Try ")


@both
@pytest.mark.parametrize(
    ("way", "answer"),
    [
        ("native", chat(*call_deltas("get_weather", "{}"), finish="length")),
        ("prompt-json", said('```json\n{"tool": "get_weather", "arguments": {}}\n```\n```json\n{"to', finish="length")),
    ],
)
def test_a_whole_call_that_is_invalid_is_no_fault_of_the_limit(
    patient: str, model: ModelServer, way: str, answer: Answer, stream: bool
) -> None:
    """A model that repeats a call does so up to the limit."""
    asked_ = body(way, tool_choice="required")
    model.plays(answer, calls(GOOD) if way == "native" else fenced('{"city": "Oslo"}'))
    assert ask(patient, asked_, stream=stream).calls == [("get_weather", PARIS)]
    model.plays(answer, answer)
    reply = request(patient + CHAT, {**asked_, "stream": stream})
    assert (reply.status, reply.error["code"]) == (502, "upstream_unmet")
    assert f"No valid tool call in 2 attempts: {NO_CITY}" in reply.error["message"]


@both
def test_the_same_mistake_twice_ends_it(patient: str, model: ModelServer, stream: bool) -> None:
    model.plays(*[calls(("get_weather", "{}"))] * 3)
    assert request(patient + CHAT, body("native", tool_choice="required", stream=stream)).status == 502
    assert len(model.asked) == 2


@both
@pytest.mark.parametrize("way", ["native", "prompt-json", "raw-hermes-vllm", "raw-hermes-openai", "raw-harmony-vllm"])
@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
def test_a_demand_that_is_not_met_never_leaves_as_text(
    patient: str, model: ModelServer, way: str, choice: Any, stream: bool
) -> None:
    text = '{"tool_calls" :[ {"name": "get_wea'
    model.plays(*[said(text) if way == "native" else spoken(way, text)] * 3)
    reply = request(patient + CHAT, body(way, tool_choice=choice, stream=stream))
    assert (reply.status, reply.error["code"]) == (502, "upstream_unmet")


@pytest.mark.parametrize("asked", [{}, {"stream_options": {"include_usage": True}}], ids=["", "with usage"])
def test_behind_reasoning_a_demand_that_is_not_met_ends_in_an_error(
    patient: str, model: ModelServer, asked: dict[str, Any]
) -> None:
    model.plays(*[thinking("Hm.", content="No.")] * 3)
    reply = request(patient + CHAT, body("native", tool_choice="required", stream=True, **asked))
    *events, last = reply.events
    assert last["error"]["code"] == "upstream_unmet"
    choices = [choice for event in events for choice in event["choices"]]
    assert "No." not in str(choices)
    assert not [choice for choice in choices if choice["finish_reason"]]
    counted = [event["usage"]["total_tokens"] for event in events if event.get("usage")]
    assert counted == ([36] if asked else [])


def test_words_before_a_demanded_call_go_out_with_it(patient: str, model: ModelServer) -> None:
    model.plays(thinking("Hm.", GOOD, content="Let me see."))
    answer = ask(patient, body("native", tool_choice="required"), stream=True)
    assert (answer.message["content"], answer.calls) == ("Let me see.", [("get_weather", PARIS)])


def test_without_a_demand_a_wrong_call_goes_out_at_last(patient: str, model: ModelServer) -> None:
    model.plays(*[calls(("get_weather", "{}"))] * 3)
    reply = request(patient + CHAT, body("native"))
    assert reply.status == 200
    assert reply.problems == {"call_retried": 1, "invalid_arguments": 1}


@both
def test_what_was_mended_is_said(patient: str, model: ModelServer, stream: bool) -> None:
    model.plays(calls(("get_weather", "{'city': 5}")))
    reply = request(patient + CHAT, body("native", stream=stream))
    assert reply.problems == {"argument_coerced": 1, "json_repaired": 1}
    assert len(model.asked) == 1


def test_a_good_answer_has_nothing_to_say(patient: str, model: ModelServer) -> None:
    model.plays(calls(GOOD))
    assert not request(patient + CHAT, body("native")).problems


def test_the_usage_is_that_of_all_attempts(patient: str, model: ModelServer) -> None:
    model.plays(calls(("get_weather", "{}")), calls(GOOD))
    once = ask(patient, body("native"), stream=False)
    assert once.usage is not None
    model.plays(calls(GOOD))
    single = ask(patient, body("native"), stream=False)
    assert single.usage is not None
    assert once.usage["total_tokens"] == 2 * single.usage["total_tokens"]


def test_a_call_cut_by_the_limit_is_not_asked_for_again(patient: str, model: ModelServer) -> None:
    model.plays(spoken("raw-hermes-vllm", '<tool_call>\n{"name": "get_weather", "arguments": {"ci', finish="length"))
    answer = ask(patient, body("raw-hermes-vllm"), stream=False)
    (call,) = answer.message["tool_calls"]
    assert (answer.finish_reason, call["function"]["arguments"]) == ("length", '{"ci')
    assert len(model.asked) == 1


@both
@pytest.mark.parametrize("asked", [{"tools": STRICT}, {"tool_choice": NAMED}, {"tool_choice": "required"}])
def test_a_call_that_must_hold_does_not_leave_when_it_is_cut(
    patient: str, model: ModelServer, asked: dict[str, Any], stream: bool
) -> None:
    model.plays(chat(*call_deltas("get_weather", '{"city": "Os'), finish="length"))
    answer = ask(patient, body("native", **asked), stream=stream)
    assert answer.finish_reason == "length"
    assert "tool_calls" not in answer.message


BAD = ("get_weather", "{}")


def thinking(text: str, *made: tuple[str, str], content: str = "") -> Answer:
    """An answer with reasoning, content and calls."""
    deltas = [delta for index, call in enumerate(made) for delta in call_deltas(*call, index=index, id_=f"id_{index}")]
    said_deltas = [{"content": content}] if content else []
    return chat({"reasoning_content": text}, *said_deltas, *deltas, finish="tool_calls" if made else "stop")


@both
def test_an_answer_behind_a_wrong_call_is_the_answer(patient: str, model: ModelServer, stream: bool) -> None:
    model.plays(thinking("Hm.", ("get_weather", '{"city": "Atlantis"}'), content="Let me see."), said("It is 42."))
    answer = ask(patient, body("native", tools=STRICT), stream=stream)
    assert answer.message["content"] == ("Let me see.\n\nIt is 42." if stream else "It is 42.")
    assert (answer.calls, answer.finish_reason) == ([], "stop")
    assert answer.message["reasoning_content"] == "Hm."


@both
def test_words_and_reasoning_before_a_wrong_call_stay(patient: str, model: ModelServer, stream: bool) -> None:
    model.plays(thinking("Hm.", BAD, content="Let me see."), thinking("Oh.", GOOD, content="Again."))
    answer = ask(patient, body("native", tool_choice="required"), stream=stream)
    assert (answer.message["content"], answer.message["reasoning_content"]) == ("Let me see.", "Hm.")
    assert answer.calls == [("get_weather", PARIS)]


def test_each_call_has_an_id_of_its_own_and_is_made_once(patient: str, model: ModelServer) -> None:
    rome, oslo = ("get_weather", '{"city": "Rome"}'), GOOD
    model.plays(calls(rome, BAD), calls(rome, oslo))
    answer = ask(patient, body("native"), stream=False)
    assert [arguments["city"] for _, arguments in answer.calls] == ["Rome", "Oslo"]
    ids = [call["id"] for call in answer.message["tool_calls"]]
    assert len(set(ids)) == 2


def test_one_call_is_enough_where_one_is_allowed(patient: str, model: ModelServer) -> None:
    model.plays(spoken("raw-hermes-vllm", f"{block(*GOOD)}\n<tool_call>\n{{oops\n</tool_call><|im_end|>"))
    answer = ask(patient, body("raw-hermes-vllm", parallel_tool_calls=False), stream=False)
    assert answer.calls == [("get_weather", PARIS)]
    assert len(model.asked) == 1


@pytest.mark.parametrize("choice", ["none", "auto"])
def test_text_that_is_legal_is_not_asked_for_again(patient: str, model: ModelServer, choice: str) -> None:
    text = 'The config is:\n```json\n{"name": "other", "arguments": {"city": 5}}\n```'
    model.plays(spoken("prompt-json", text))
    answer = ask(patient, body("prompt-json", tool_choice=choice), stream=False)
    assert answer.message["content"] == text
    assert len(model.asked) == 1


def test_text_that_was_no_call_after_all_comes_back(patient: str, model: ModelServer) -> None:
    text = '{"tool": "get_weather", "arguments": {"town": 5}}'
    model.plays(spoken("prompt-json", text), spoken("prompt-json", "That was all."))
    assert ask(patient, body("prompt-json"), stream=False).message["content"] == text


def test_when_the_server_fails_in_the_second_attempt_the_first_counts(patient: str, model: ModelServer) -> None:
    model.plays(calls(BAD), Answer((b"overloaded",), status=500))
    answer = ask(patient, body("native"), stream=False)
    assert answer.calls == [("get_weather", {})]
    model.plays(calls(("get_weather", '{"city": "Rome"}'), BAD), Answer((b"overloaded",), status=500))
    answer = ask(patient, body("native", tool_choice="required"), stream=False)
    assert answer.calls == [("get_weather", {"city": "Rome"})]


@both
def test_reasoning_alone_meets_no_demand(patient: str, model: ModelServer, stream: bool) -> None:
    model.plays(*[thinking("Hm.")] * 3)
    reply = request(patient + CHAT, body("native", tool_choice="required", stream=stream))
    assert "upstream_unmet" in reply.text


# --- servers that read calls themselves, or should ---

PRINTED = [
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
    '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
    '{"name": "get_weather", "parameters": {"city": "Oslo"}}',
    'Let me look.\n```json\n{"tool": "get_weather", "arguments": {"city": "Oslo"}}\n```',
]


@both
@pytest.mark.parametrize("text", PRINTED, ids=["hermes", "mistral", "llama", "a fence"])
def test_a_call_that_the_server_prints_is_found(patient: str, model: ModelServer, text: str, stream: bool) -> None:
    model.plays(said(text[:9], text[9:]))
    answer = ask(patient, body("native"), stream=stream)
    assert answer.calls == [("get_weather", PARIS)]
    assert answer.message["content"] == ("Let me look." if text.startswith("Let") else None)


@both
def test_a_call_that_the_server_hands_on_and_prints_is_made_once(
    patient: str, model: ModelServer, stream: bool
) -> None:
    printed = '{"name": "get_weather", "arguments": {"city":"Oslo"}}'
    model.plays(chat({"content": f"So be it.\n{printed}"}, *call_deltas(*GOOD), finish="tool_calls"))
    reply = request(patient + CHAT, body("native", stream=stream))
    assert reply.problems == {"call_repeated": 1}
    model.plays(chat({"content": f"So be it.\n{printed}"}, *call_deltas(*GOOD), finish="tool_calls"))
    answer = ask(patient, body("native"), stream=stream)
    assert answer.calls == [("get_weather", PARIS)]
    assert answer.message["content"] == "So be it."


@both
def test_an_answer_in_json_stays_one(patient: str, model: ModelServer, stream: bool) -> None:
    text = '{"name": "Oslo", "population": 709037}'
    model.plays(said(text[:5], text[5:]))
    answer = ask(patient, body("native"), stream=stream)
    assert (answer.calls, answer.message["content"]) == ([], text)


UNREAD = {
    "a reference that leads nowhere": ({"$ref": "#/$defs/place"}, "'/$defs/place' does not exist"),
    "a pattern that is none": ({"type": "string", "pattern": "(["}, 'is not a "regex"'),
    "a type that is none": ({"type": "strng"}, "strng"),
}


@pytest.mark.parametrize("case", UNREAD)
def test_a_schema_that_nobody_can_read_is_told_with_each_call(case: str) -> None:
    schema, why = UNREAD[case]
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"city": schema}}}}
    text = block("f", '{"city": "Oslo"}')
    turn = callwright.parse(text, dialect="hermes", tools=[tool])
    assert [(call.name, call.arguments) for call in turn.calls] == [("f", '{"city": "Oslo"}')]
    (problem,) = turn.problems
    assert (problem.kind, problem.call) == ("arguments_unchecked", 0)
    assert problem.detail.startswith("the schema of 'f' cannot be read: ")
    assert why in problem.detail


@both
def test_a_call_that_cannot_be_checked_goes_out_and_is_not_asked_for_again(
    patient: str, model: ModelServer, stream: bool
) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/nothing"}}}
    model.plays(calls(("f", '{"a": 1}')))
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    reply = request(patient + CHAT, {**body("native"), "tools": tools, "stream": stream})
    assert '"name":"f"' in reply.text
    assert reply.problems == {"arguments_unchecked": 1}
    assert len(model.asked) == 1
