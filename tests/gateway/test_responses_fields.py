"""Fields of the Responses API that change what the model is shown: tools, outputs that come late, reasoning, audio."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.http_client import CHAT, request
from tests.support.outputs import played
from tests.support.responses_client import RESPONSES, fetch, respond
from tests.support.servers import ModelServer, calling, chat, said

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
COUNT = {"type": "function", "name": "count_words", "description": "Counts.", "parameters": NUMBER, "strict": True}
JOB = {**COUNT, "name": "start_job", "async": True}
NOTE = {"type": "custom", "name": "note", "async": True}
RUNNING = "This call is still running. Its output will follow."


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(id_: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id_, "name": "start_job", "arguments": '{"n":1}', **fields}


def output(id_: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id_, "output": text, **fields}


def shown(model: ModelServer) -> list[Any]:
    return list(model.asked[-1].body["messages"])


def ask(gateway: str, given: Any, **fields: Any) -> Any:
    return respond(gateway, stream=False, **{"model": "native", "input": given, **fields})


# --- tools ---


def test_the_model_is_told_what_a_tool_answers(gateway: str, model: ModelServer) -> None:
    tool = {**COUNT, "output_schema": NUMBER}
    model.plays(said("Hi"), played("raw-harmony-vllm", "text"))
    ask(gateway, "Hi", tools=[tool])
    told = model.body["tools"][0]["function"]
    assert told["description"].startswith("Counts.\n\nIt answers JSON by this schema: {")
    assert '"required":["n"]' in told["description"]
    assert set(told) == {"name", "description", "parameters", "strict"}
    ask(gateway, "Hi", tools=[tool], model="raw-harmony-vllm")
    assert "}) => {\nn: number,\n};" in model.asked[-1].body["prompt"].replace("// ", "")
    assert "It answers JSON" not in model.asked[-1].body["prompt"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ('{"n": 3}', None),
        ('{"n": "three"}', '$.n: "three" is not of type "integer"'),
        ("three", "it is not valid JSON"),
        ([{"type": "input_text", "text": '{"n": 3}'}], None),
    ],
)
def test_an_output_that_is_not_what_its_tool_answers_is_told(
    gateway: str, model: ModelServer, given: Any, why: str | None
) -> None:
    model.plays(said("Hi"))
    items = [user("q"), {**call("c"), "name": "count_words"}, output("c", given)]
    ask(gateway, items, tools=[{**COUNT, "output_schema": NUMBER}])
    text = given if isinstance(given, str) else given[0]["text"]
    told = "" if why is None else f"\n\n(This output is not what the tool says that it answers: {why}.)"
    assert shown(model)[-1]["content"] == text + told


@pytest.mark.parametrize(("schema", "is_told"), [({"type": "string"}, False), ({"enum": ["four"]}, True)])
def test_a_text_needs_no_quotation_marks(
    gateway: str, model: ModelServer, schema: Mapping[str, Any], is_told: bool
) -> None:
    model.plays(said("Hi"))
    items = [user("q"), {**call("c"), "name": "count_words"}, output("c", "three words")]
    ask(gateway, items, tools=[{**COUNT, "output_schema": schema}])
    assert ("This output is not" in shown(model)[-1]["content"]) == is_told


@pytest.mark.parametrize(
    "tool",
    [COUNT, NOTE, {"type": "shell"}, {"type": "apply_patch"}],
    ids=lambda tool: str(tool["type"]),
)
def test_a_tool_that_only_programs_may_call_is_not_shown(
    gateway: str, model: ModelServer, tool: Mapping[str, Any]
) -> None:
    model.plays(said("Hi"), said("Hi"))
    ask(gateway, "Hi", tools=[{**tool, "allowed_callers": ["programmatic"]}])
    ask(gateway, "Hi", tools=[{**tool, "allowed_callers": ["programmatic", "direct"]}])
    assert ["tools" in asked.body for asked in model.asked] == [False, True]


def test_the_skills_of_a_local_shell_are_shown(gateway: str, model: ModelServer) -> None:
    skills = [{"name": "invoices", "description": "Writes invoices.", "path": "/skills/invoices"}]
    model.plays(said("Hi"))
    ask(gateway, "Hi", tools=[{"type": "shell", "environment": {"type": "local", "skills": skills}}])
    told = model.body["tools"][0]["function"]["description"]
    assert told.endswith("- invoices (/skills/invoices): Writes invoices.")
    assert "read the SKILL.md" in told


@pytest.mark.parametrize(
    ("environment", "param"),
    [
        ({"type": "local", "skills": [{"name": "a", "path": "/a"}]}, "tools[0].environment.skills[0].description"),
        ({"type": "local", "skills": "all"}, "tools[0].environment.skills"),
        ({"type": "container_auto", "skills": []}, "tools[0].environment.type"),
    ],
)
def test_skills_that_cannot_be_shown_are_refused(gateway: str, environment: Any, param: str) -> None:
    body = {"model": "native", "input": "Hi", "tools": [{"type": "shell", "environment": environment}]}
    reply = request(gateway + RESPONSES, body)
    assert (reply.status, reply.error["param"]) == (400, param)


def test_an_input_by_a_grammar_is_held_to_it_in_chat(gateway: str, model: ModelServer) -> None:
    grammar = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-z]+-[0-9]+"}}
    tool = {"type": "custom", "custom": {"name": "tag", "description": "Tags.", "format": grammar}}
    body = {"model": "native", "messages": [user("Tag")], "tools": [tool]}
    model.plays(calling("tag", '{"input": "v-1"}'))
    (made,) = request(gateway + CHAT, body).json["choices"][0]["message"]["tool_calls"]
    assert (made["type"], made["custom"]) == ("custom", {"name": "tag", "input": "v-1"})
    model.plays(calling("tag", '{"input": "V 1"}'))
    reply = request(gateway + CHAT, body)
    assert (reply.status, reply.error["code"]) == (502, "upstream_unmet")


# --- calls that are answered later ---


@pytest.mark.parametrize("said_by", ["item", "tool"])
@pytest.mark.parametrize("kind", ["function", "custom"])
def test_an_async_call_is_answered_later_and_more_than_once(
    gateway: str, model: ModelServer, said_by: str, kind: str
) -> None:
    marked = {"async": True} if said_by == "item" else {}
    if kind == "function":
        tool, made, words = JOB, call("c", **marked), 'start_job({"n":1})'
        answers = [output("c", text) for text in ("half", "done")]
    else:
        tool = NOTE
        made = {"type": "custom_tool_call", "call_id": "c", "name": "note", "input": "x", **marked}
        answers = [{"type": "custom_tool_call_output", "call_id": "c", "output": text} for text in ("half", "done")]
        words = 'note({"input":"x"})'
    model.plays(said("Hi"))
    items = [user("q"), made, user("And?"), answers[0], {"role": "assistant", "content": "Half."}, answers[1]]
    ask(gateway, items, tools=[tool] if said_by == "tool" else None)
    messages = shown(model)
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "user",
        "assistant",
        "user",
    ]
    assert messages[2]["content"] == RUNNING
    assert messages[4]["content"] == f"The output of the call {words}:\nhalf"
    assert messages[6]["content"] == f"The output of the call {words}:\ndone"


def test_an_async_call_that_is_answered_at_once_is_a_call_like_others(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    ask(gateway, [user("q"), call("c"), output("c", "done"), output("c", "more"), user("r")], tools=[JOB])
    assert [message["role"] for message in shown(model)] == ["user", "assistant", "tool", "user", "user"]
    assert shown(model)[2]["content"] == "done"
    assert shown(model)[3]["content"].endswith("more")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_call_of_an_async_tool_says_so_and_its_output_may_come_turns_later(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    model.plays(calling("start_job", '{"n": 1}'), said("Started."), said("Done."))
    first = respond(gateway, stream=stream, model="native", input="Start", tools=[JOB])
    (made,) = first["output"]
    assert made["async"] is True
    second = ask(gateway, "And?", previous_response_id=first["id"])  # the tool is not offered any more
    assert shown(model)[2]["content"] == RUNNING
    ask(gateway, [output(made["call_id"], "42")], previous_response_id=second["id"])
    assert shown(model)[:5] == [*shown_before(shown(model))]
    assert shown(model)[-1] == user('The output of the call start_job({"n": 1}):\n42')


def shown_before(messages: list[Any]) -> list[Any]:
    """What stood in the prompt before the late output came: nothing of it has changed."""
    begin, answered = messages[:4], messages[4]
    assert [message["role"] for message in begin] == ["user", "assistant", "tool", "user"]
    assert answered == {"role": "assistant", "content": "Started."}
    return [*begin, answered]


def test_a_call_that_is_not_async_still_needs_its_output(gateway: str, model: ModelServer) -> None:
    body = {"model": "native", "input": [user("q"), call("c"), user("And?")], "tools": [{**JOB, "async": False}]}
    reply = request(gateway + RESPONSES, body)
    assert (reply.status, reply.error["message"]) == (400, "No tool output found for function call c.")


def test_an_output_that_nobody_called_for_is_told_by_the_tools_name(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    ask(gateway, [user("q"), {"type": "function_call_output", "name": "inbox", "output": "1 new"}])
    assert shown(model)[-1] == user("An output of the tool inbox, which nobody called:\n1 new")
    reply = request(
        gateway + RESPONSES, {"model": "native", "input": [{"type": "function_call_output", "output": "1"}]}
    )
    assert (reply.status, reply.error["param"]) == (400, "input[0].call_id")


# --- reasoning, media, states ---


def test_the_old_name_of_the_summary_means_the_same(gateway: str, model: ModelServer) -> None:
    model.plays(chat({"reasoning_content": "Hm."}, {"content": "Hi"}))
    response = ask(gateway, "Hi", reasoning={"generate_summary": "auto"})
    assert response["output"][0]["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert response["reasoning"]["summary"] == "auto"


@pytest.mark.parametrize(("context", "is_kept"), [("all_turns", True), ("auto", False), (None, False)])
def test_reasoning_of_all_turns_is_kept_where_that_is_wanted(
    gateway: str, model: ModelServer, context: str | None, is_kept: bool
) -> None:
    model.plays(played("raw-harmony-vllm", "text"))
    thought = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Quite so."}]}
    items = [user("q"), thought, {"role": "assistant", "content": "a"}, user("r")]
    ask(gateway, items, model="raw-harmony-vllm", reasoning={"context": context})
    assert ("Quite so." in model.body["prompt"]) is is_kept


def test_audio_goes_to_a_chat_server_as_it_is_and_into_no_raw_prompt(gateway: str, model: ModelServer) -> None:
    part = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    model.plays(said("Hi"))
    given = [{"role": "user", "content": [part]}]
    ask(gateway, given)
    assert shown(model) == [{"role": "user", "content": [part]}]
    reply = request(gateway + RESPONSES, {"model": "raw-harmony-vllm", "input": given})
    assert (reply.status, reply.error["param"]) == (400, "input[0].content[0]")


def test_items_that_are_listed_have_a_state_as_openais_have(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    items = [
        user("q"),
        {**call("c"), "name": "count_words"},
        output("c", "1"),
        {"type": "custom_tool_call", "call_id": "d", "name": "note", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "d", "output": "1", "status": "incomplete"},
        {"type": "reasoning", "summary": []},
    ]
    response = ask(gateway, items)
    listed = fetch(f"{gateway}{RESPONSES}/{response['id']}/input_items?order=asc")[1]["data"]
    assert [item.get("status") for item in listed] == [*["completed"] * 4, "incomplete", None]
    conversation = request(f"{gateway}/v1/conversations", {"items": items[:3]}).json["id"]
    kept = fetch(f"{gateway}/v1/conversations/{conversation}/items?order=asc")[1]["data"]
    assert [item["status"] for item in kept] == ["completed"] * 3
