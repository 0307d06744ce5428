"""A text that may be a call, or may only show one: the model is asked once, and only RUN makes a call of it."""

import json
from typing import Any

import pytest

from callwright.conversation import Call
from callwright.gateway.config.config import ModelConfig
from callwright.turn.candidates import candidate_spans
from tests.conftest import Served
from tests.support.http_client import CHAT, Live, Said, ask, request
from tests.support.outputs import QUESTION, TOOLS, spoken
from tests.support.servers import USAGE, Answer, ModelServer, call_deltas, chat, said, sse

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
WAYS = ("native", "prompt-json", "raw-json-vllm", "raw-hermes-vllm")
ways = pytest.mark.parametrize("way", WAYS)
ARGUMENTS = '{"city":  "Oslo"}'  # two blanks: the bytes that the model wrote
CANDIDATE = f'{{"name": "get_weather", "arguments": {ARGUMENTS}}}'
BEFORE = "So be it."
AMBIGUOUS = f"{BEFORE}\n{CANDIDATE}"


def body(way: str, **fields: Any) -> dict[str, Any]:
    return {"model": way, "messages": [QUESTION], "tools": TOOLS, **fields}


def answers(way: str, *texts: str) -> list[Answer]:
    return [said(text[:4], text[4:]) if way == "native" else spoken(way, text) for text in texts]


def arguments_of(answer: Said) -> str:
    (call,) = answer.message["tool_calls"]
    return str(call["function"]["arguments"])


@both
@ways
@pytest.mark.parametrize("word", ["RUN", " RUN\n"])
def test_run_makes_a_call_of_it(gateway: str, model: ModelServer, way: str, word: str, stream: bool) -> None:
    model.plays(*answers(way, AMBIGUOUS, word))
    answer = ask(gateway, body(way), stream=stream)
    assert arguments_of(answer) == ARGUMENTS
    assert (answer.message["content"].strip(), answer.finish_reason) == (BEFORE, "tool_calls")
    assert answer.usage is not None
    assert answer.usage["total_tokens"] == 2 * USAGE["total_tokens"]
    assert len(model.asked) == 2


@both
@ways
@pytest.mark.parametrize("word", ["SHOWN", "run", "RUN it", "Yes.", "", '{"name": "get_weather", "arguments": {}}'])
def test_anything_else_leaves_it_text(gateway: str, model: ModelServer, way: str, word: str, stream: bool) -> None:
    model.plays(*answers(way, AMBIGUOUS, word))
    answer = ask(gateway, body(way), stream=stream)
    assert (answer.message["content"], answer.finish_reason) == (AMBIGUOUS, "stop")
    assert not answer.calls
    assert len(model.asked) == 2


@both
@ways
def test_what_a_message_shows_is_repeated_and_nobody_asks(
    gateway: str, model: ModelServer, way: str, stream: bool
) -> None:
    model.plays(*answers(way, AMBIGUOUS))
    shows = {"role": "user", "content": f"The log has this line: {CANDIDATE} What is it?"}
    answer = ask(gateway, body(way, messages=[shows]), stream=stream)
    assert (answer.message["content"], answer.finish_reason, answer.calls) == (AMBIGUOUS, "stop", [])
    assert len(model.asked) == 1


@both
@pytest.mark.parametrize("way", ["prompt-json", "raw-json-vllm"])
def test_a_text_that_has_the_form_of_the_answer_is_the_answer(
    gateway: str, model: ModelServer, way: str, stream: bool
) -> None:
    places = {"name": {"type": "string"}, "arguments": {"type": "object"}}
    form = {"name": "record", "strict": True, "schema": {"type": "object", "properties": places, "required": ["name"]}}
    model.plays(*answers(way, CANDIDATE))
    wanted = {"type": "json_schema", "json_schema": {**form, "strict": False}}
    answer = ask(gateway, body(way, response_format=wanted), stream=stream)
    assert (answer.message["content"], answer.finish_reason, answer.calls) == (CANDIDATE, "stop", [])


@both
@ways
def test_a_call_that_is_not_allowed_is_not_asked_about(
    gateway: str, model: ModelServer, way: str, stream: bool
) -> None:
    model.plays(*answers(way, AMBIGUOUS))
    others = [{"type": "function", "function": {"name": "ping"}}]
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": others}}
    answer = ask(gateway, body(way, tools=[*TOOLS, *others], tool_choice=allowed), stream=stream)
    assert (answer.message["content"], answer.finish_reason, answer.calls) == (AMBIGUOUS, "stop", [])
    assert len(model.asked) == 1


@both
@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_reply_that_was_cut_is_not_run(gateway: str, model: ModelServer, finish: str, stream: bool) -> None:
    model.plays(said(AMBIGUOUS), chat({"content": "RUN"}, finish=finish))
    assert not ask(gateway, body("native"), stream=stream).calls


@both
def test_a_reply_with_a_refusal_is_not_run(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(said(AMBIGUOUS), chat({"content": "RUN"}, {"refusal": "No."}))
    assert not ask(gateway, body("native"), stream=stream).calls


@both
@pytest.mark.parametrize("reply", ["RUN {call}", "RUN\n{call}", "{call}RUN"])
def test_a_call_in_the_reply_is_not_run(gateway: str, model: ModelServer, reply: str, stream: bool) -> None:
    call = f"<tool_call>\n{CANDIDATE}\n</tool_call>"
    shown = f"{BEFORE} This is it.\n{call}\nThat is how it looks."
    model.plays(*answers("raw-hermes-vllm", shown, reply.format(call=call)))
    assert not ask(gateway, body("raw-hermes-vllm"), stream=stream).calls
    assert len(model.asked) == 2


@both
@ways
def test_words_around_a_call_that_runs_stay_apart(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(*answers(way, f"{AMBIGUOUS}\nThat is how it looks.", "RUN"))
    answer = ask(gateway, body(way), stream=stream)
    assert answer.message["content"] == f"{BEFORE}\n\nThat is how it looks."
    assert len(answer.calls) == 1


@both
@pytest.mark.parametrize("way", ["prompt-json", "raw-hermes-vllm"])
def test_inline_code_over_several_lines_is_shown(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    text = f"Write `<tool_call>\n{CANDIDATE}\n</tool_call>` for that."
    model.plays(*answers(way, text))
    answer = ask(gateway, body(way), stream=stream)
    assert (answer.message["content"], answer.calls, len(model.asked)) == (text, [], 1)


@both
@pytest.mark.parametrize(
    "failing",
    [
        Answer((b"overloaded",), status=500),
        Answer((*sse("{"), "cut")),
        chat(*call_deltas("get_weather", "{}"), finish="tool_calls"),
    ],
    ids=["an error", "a broken stream", "a call"],
)
def test_a_question_that_fails_leaves_it_text(gateway: str, model: ModelServer, failing: Answer, stream: bool) -> None:
    model.plays(said(AMBIGUOUS), failing)
    reply = request(gateway + CHAT, body("native", stream=stream))
    assert reply.status == 200
    assert reply.problems == {"ambiguous_call": 1}
    assert "get_weather" in reply.text


def test_nobody_waits_for_ever_for_the_reply(serve: Served, model: ModelServer) -> None:
    gateway = serve(ModelConfig(name="short", upstream=model.url, retry_s=0.5))
    model.plays(said(AMBIGUOUS), Answer(("silence",)))
    assert ask(gateway, body("short"), stream=False).message["content"] == AMBIGUOUS
    model.wait_until_left()


@ways
def test_the_question_comes_behind_the_same_prefix(gateway: str, model: ModelServer, way: str) -> None:
    model.plays(*answers(way, AMBIGUOUS, "SHOWN"))
    ask(gateway, body(way, logprobs=None, stop=["END"]), stream=False)
    first, second = (asked.body for asked in model.asked)
    if "messages" in first:
        assert second["messages"][: len(first["messages"])] == first["messages"]
        answer, question = second["messages"][len(first["messages"]) :]
        assert (answer["role"], question["role"]) == ("assistant", "user")
        told = question["content"]
    else:
        assert second["prompt"].startswith(first["prompt"].rstrip())
        told = second["prompt"]
    assert f"Nothing was run. Should this be run now, or was it only shown? {CANDIDATE} Answer RUN or SHOWN." in told
    assert second.get("tools") == first.get("tools")
    if way == "native":
        assert second["tool_choice"] == "none"


@pytest.mark.parametrize("server", ["vllm", "sglang", "llamacpp"])
def test_the_reply_is_held_to_two_words_where_the_server_can(gateway: str, model: ModelServer, server: str) -> None:
    way = f"raw-json-{server}"
    model.plays(*answers(way, AMBIGUOUS, "RUN"))
    assert ask(gateway, body(way), stream=False).calls
    told = {"vllm": "structured_outputs", "sglang": "response_format", "llamacpp": "grammar"}[server]
    assert told not in model.asked[0].body
    grammar = json.dumps(model.asked[1].body[told])
    assert "RUN" in grammar
    assert "SHOWN" in grammar


def test_a_chat_server_is_told_the_words_as_well(serve: Served, model: ModelServer) -> None:
    gateway = serve(ModelConfig(name="known", upstream=model.url, server="vllm"))
    model.plays(said(AMBIGUOUS), said("RUN"))
    assert ask(gateway, body("known"), stream=False).calls
    assert "SHOWN" in json.dumps(model.asked[1].body["structured_outputs"])


@both
@pytest.mark.parametrize(
    "fields",
    [{"tool_choice": "none"}, {"tools": None}, {}],
    ids=["no calls allowed", "no tools", "nothing like a call"],
)
def test_an_answer_without_a_candidate_costs_one_request(
    gateway: str, model: ModelServer, fields: dict[str, Any], stream: bool
) -> None:
    text = AMBIGUOUS if fields else "It is sunny."
    model.plays(said(text))
    assert ask(gateway, body("native", **fields), stream=stream).message["content"] == text
    assert len(model.asked) == 1


@both
def test_a_model_that_may_not_be_asked_is_not(serve: Served, model: ModelServer, stream: bool) -> None:
    gateway = serve(ModelConfig(name="silent", upstream=model.url, ask_ambiguous=False))
    model.plays(said(AMBIGUOUS))
    reply = request(gateway + CHAT, body("silent", stream=stream))
    assert reply.problems == {"ambiguous_call": 1}
    assert len(model.asked) == 1


@both
def test_beside_a_certain_call_nothing_is_asked(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(chat({"content": AMBIGUOUS}, *call_deltas("get_weather", '{"city": "Rome"}'), finish="tool_calls"))
    answer = ask(gateway, body("native"), stream=stream)
    assert [arguments["city"] for _, arguments in answer.calls] == ["Rome"]
    assert len(model.asked) == 1


def test_what_stood_before_streams_before_the_question(gateway: str, model: ModelServer) -> None:
    gate = model.gate()
    reply = said("RUN")
    model.plays(said("One moment. ", f"{BEFORE}\n", CANDIDATE), Answer((gate, *reply.steps)))
    seen = b""
    with Live(gateway + CHAT, json.dumps(body("native", stream=True)).encode()) as live:
        for piece in live.pieces():
            seen += piece
            if b"One moment." in seen and b"get_weather" not in seen:
                gate.wait_until_reached()
                gate.open()
    assert seen.index(b"One moment.") < seen.index(b"get_weather")
    assert b'"finish_reason":"tool_calls"' in seen


def test_it_is_counted_how_often_was_asked_and_what_came_of_it(serve: Served, model: ModelServer) -> None:
    gateway = serve(ModelConfig(name="counted", upstream=model.url))
    model.plays(said(AMBIGUOUS), said("RUN"), said(AMBIGUOUS), said("SHOWN"), said(AMBIGUOUS))
    for _ in range(3):
        ask(gateway, body("counted"), stream=False)
    told = request(f"{gateway}/metrics", method="GET").text
    assert 'callwright_retries_total{model="counted",reason="ambiguous_call"} 3.0' in told
    for outcome in ("run", "shown", "failed"):
        assert f'callwright_ambiguous_calls_total{{model="counted",outcome="{outcome}"}} 1.0' in told


# --- where a candidate stands ---

TWO = f"{CANDIDATE}\n{CANDIDATE.replace('Oslo', 'Rome')}"
XML = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        (AMBIGUOUS, [CANDIDATE]),
        (f"As said:\n```json\n{CANDIDATE}\n```\nShall I?", [f"```json\n{CANDIDATE}\n```"]),
        (f"So:\n<tool_call>\n{CANDIDATE}\n</tool_call>\nWell?", [f"<tool_call>\n{CANDIDATE}\n</tool_call>"]),
        (f"Both:\n```json\n{TWO}\n```\nDone.", [f"```json\n{TWO}\n```", ""]),
        (f"One:\n{CANDIDATE}\nTwo:\n{CANDIDATE}\n", [CANDIDATE, CANDIDATE]),
        (f"So:\n{XML}\nWell?", [XML]),
        ("Nothing at all.", [""]),
    ],
)
def test_a_candidate_is_found_with_its_wrapper(text: str, spans: list[str]) -> None:
    calls = [Call("get_weather", ARGUMENTS), Call("get_weather", ARGUMENTS.replace("Oslo", "Rome"))]
    asked = [calls[0]] * len(spans) if "Two:" in text else calls[: len(spans)]
    assert [text[begin:end] for begin, end in candidate_spans(text, asked)] == spans


def test_the_span_of_a_call_in_a_sentence_ends_with_its_arguments() -> None:
    call = '{"city": "Oslo"}'
    text = f"Never answer assistantcommentary to=functions.get_weather json{call} to a guest.\nThat is all."
    ((begin, end),) = candidate_spans(text, [Call("get_weather", call)])
    assert text[begin:end].endswith(f"get_weather json{call}")
    assert text[end:] == " to a guest.\nThat is all."
