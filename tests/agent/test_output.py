"""Answers with a type: each kind of type, each way to it, answers that do not hold, and partial ones."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, NotRequired, TypedDict

import msgspec
import pytest

from callwright import Agent, ConfigError, Limits, RequestError, RunResult, connect, run_sync, stream
from callwright.agent.events import PartialOutput, RunEnded, RunEvent, TextDelta
from callwright.agent.output import FINAL_TOOL, partial_value
from callwright.upstreams.simulated.scripted import ScriptedUpstream
from tests.support.scripted_agents import check_history, scripted
from tests.support.servers import ModelServer, calling, completion, said

DIALECTS = (None, "hermes", "harmony", "json")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Boat:
    name: str
    metres: float
    colour: Colour = Colour.RED


@dataclass
class Crate:
    weight: int

    def __post_init__(self) -> None:
        if self.weight % 2:
            raise ValueError("a crate has an even weight")


class Tree(msgspec.Struct):
    value: int
    children: "list[Tree]" = []


class Place(TypedDict):
    town: str
    zip: NotRequired[str]


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

# The type, JSON that the model answers, and the value.
TYPES: dict[str, tuple[Any, Any, Any]] = {
    "a dataclass": (Boat, {"name": "Elle", "metres": 7, "colour": "blue"}, Boat("Elle", 7.0, Colour.BLUE)),
    "a typed dict": (Place, {"town": "Oslo"}, {"town": "Oslo"}),
    "a struct that holds itself": (Tree, {"value": {"value": 1, "children": [{"value": 2}]}}, Tree(1, [Tree(2)])),
    "one of two classes": (Boat | Crate, {"value": {"weight": 4}}, Crate(4)),
    "a list": (list[Crate], {"value": [{"weight": 2}]}, [Crate(2)]),
    "a number": (int, {"value": 42}, 42),
    "words to choose from": (Literal["yes", "no"], {"value": "no"}, "no"),
    "nothing or something": (int | None, {"value": None}, None),
    "a JSON Schema": (SCHEMA, {"n": 3}, {"n": 3}),
    "a JSON Schema of a list": ({"type": "array", "items": {"type": "integer"}}, {"value": [1, 2]}, [1, 2]),
}


def get_boat(name: str) -> str:
    """Look up a boat."""
    return f"{name}: 7 metres"


def typed(
    output_type: Any, *answers: Any, dialect: str | None = None, **how: Any
) -> tuple[Agent[Any], ScriptedUpstream]:
    model, upstream = scripted(*answers, dialect=dialect)
    return Agent(model=model, output_type=output_type, **how), upstream


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("case", TYPES)
def test_each_kind_of_type_comes_out_of_a_text(case: str, dialect: str | None) -> None:
    output_type, answer, value = TYPES[case]
    agent, _ = typed(output_type, json.dumps(answer), dialect=dialect)
    result = run_sync(agent, "Go")
    assert (result.stop, result.output) == ("completed", value)
    check_history(result.to_messages())


@pytest.mark.parametrize("case", TYPES)
def test_each_kind_of_type_comes_out_of_a_call(case: str) -> None:
    output_type, answer, value = TYPES[case]
    agent, upstream = typed(output_type, [("get_boat", {"name": "Elle"})], [(FINAL_TOOL, answer)], tools=[get_boat])
    result = run_sync(agent, "Go")
    assert (result.stop, result.output) == ("completed", value)
    assert [asked.tool_choice for asked in upstream.asked] == ["required"] * 2
    assert [call.name for call in result.calls] == ["get_boat"]
    assert json.loads(result.text) == answer
    check_history(result.to_messages())


def test_pydantic_models_hold_with_their_own_checks() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")

    def must_be_known(name: str) -> str:
        if name != "Elle":
            raise ValueError("no such boat")
        return name

    checked = pydantic.field_validator("name")(must_be_known)
    Ship = pydantic.create_model("Ship", name=(str, ...), __validators__={"checked": checked})  # noqa: N806
    agent, upstream = typed(Ship, '{"name": "Else"}', '{"name": "Elle"}')
    assert run_sync(agent, "Go").output == Ship(name="Elle")
    last: Any = upstream.asked[1].messages
    assert "no such boat" in last[-1]["content"]
    assert "$.name" in last[-1]["content"]


# --- what is asked of the server ---


def test_a_server_is_told_the_form_and_the_model_reads_it_too(model: ModelServer) -> None:
    model.plays(said('{"name": "Elle", "metres": 7, "colour": "red"}'))
    result = run_sync(Agent(model=connect(model.url, "m"), output_type=Boat), "Go")
    assert result.output == Boat("Elle", 7.0)
    form = model.body["response_format"]["json_schema"]
    assert form["strict"] is True
    assert form["schema"]["required"] == ["name", "metres", "colour"]
    assert json.dumps(form["schema"]) in model.body["messages"][0]["content"]


def test_beside_tools_the_answer_is_a_call(model: ModelServer) -> None:
    model.plays(calling("get_boat", '{"name": "Elle"}'), calling(FINAL_TOOL, '{"weight": 4}'))
    result = run_sync(Agent(model=connect(model.url, "m"), tools=[get_boat], output_type=Crate), "Go")
    assert result.output == Crate(4)
    names = [[tool["function"]["name"] for tool in one.body["tools"]] for one in model.asked]
    assert names == [["get_boat", FINAL_TOOL]] * 2
    assert not [one for one in model.asked if "response_format" in one.body]


def test_a_raw_prompt_has_the_form_beside_the_tools(model: ModelServer) -> None:
    model.plays(completion('{"weight": 4}<|im_end|>'))
    agent = Agent(model=connect(model.url, "m", dialect="hermes", mode="raw"), tools=[get_boat], output_type=Crate)
    assert run_sync(agent, "Go").output == Crate(4)
    assert "fits this schema" in model.body["prompt"]


def test_in_words_only_the_server_gets_no_field(model: ModelServer) -> None:
    model.plays(said('Here it is:\n```json\n{"weight": 4}\n```'))
    agent = Agent(model=connect(model.url, "m"), output_type=Crate, output="text")
    assert run_sync(agent, "Go").output == Crate(4)
    assert "response_format" not in model.body
    assert '"weight"' in model.body["messages"][0]["content"]


def test_a_forced_tool_comes_before_the_answer(model: ModelServer) -> None:
    model.plays(calling("get_boat", '{"name": "Elle"}'), calling(FINAL_TOOL, '{"weight": 4}'))
    agent = Agent(model=connect(model.url, "m"), tools=[get_boat], tool_choice="get_boat", output_type=Crate)
    assert run_sync(agent, "Go").output == Crate(4)
    first, second = (one.body for one in model.asked)
    assert first["tool_choice"] == {"type": "function", "function": {"name": "get_boat"}}
    assert FINAL_TOOL not in json.dumps(first["tools"])
    assert second["tool_choice"] == "required"


# --- answers that do not hold ---

# What the model answers first, and what it is told.
WRONG = {
    "no JSON": ("Four kilos.", "not valid JSON"),
    "another type": ('{"weight": "four"}', "$.weight"),
    "against a check of the class": ('{"weight": 3}', "a crate has an even weight"),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", WRONG)
def test_an_answer_that_does_not_hold_is_asked_for_again(case: str, streamed: bool) -> None:
    wrong, words = WRONG[case]
    agent, upstream = typed(Crate, wrong, '{"weight": 4}')
    result = asyncio.run(streamed_result(agent)) if streamed else run_sync(agent, "Go")
    assert result.output == Crate(4)
    told: Any = upstream.asked[1].messages
    assert [message["role"] for message in told[-2:]] == ["assistant", "user"]
    assert words in told[-1]["content"]
    assert wrong not in json.dumps(result.to_messages())
    check_history(result.to_messages())


def test_a_call_whose_value_does_not_hold_is_asked_for_again_and_others_of_its_turn_run() -> None:
    agent, upstream = typed(
        Crate,
        [(FINAL_TOOL, {"weight": 3}), ("get_boat", {"name": "Elle"})],
        [(FINAL_TOOL, {"weight": 4}), ("get_boat", {"name": "Ella"})],
        tools=[get_boat],
    )
    result = run_sync(agent, "Go")
    assert result.output == Crate(4)
    assert [(call.status, call.text) for call in result.calls] == [
        ("ok", "Elle: 7 metres"),
        ("not_run", "This call was not run."),
    ]
    last: Any = upstream.asked[1].messages
    assert "even weight" in last[-1]["content"]
    check_history(result.to_messages())


def test_what_never_holds_is_a_failure_and_no_output() -> None:
    agent, _ = typed(Crate, *["never"] * 3, limits=Limits(retries_per_tool=2))
    result = run_sync(agent, "Go")
    assert (result.stop, result.maybe_output) == ("failed", None)
    assert "not valid JSON" in result.detail
    with pytest.raises(RequestError, match="has no output: it ended with 'failed'"):
        _ = result.output


def test_without_a_type_the_output_is_the_text() -> None:
    agent, _ = typed(str, "Hi")
    assert run_sync(agent, "Go").output == "Hi"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a type without a form": ({"output_type": object.__init__}, "no form in JSON"),
    "an unknown way": ({"output_type": int, "output": "grammar"}, "'schema'"),
    "a tool with the name of the answer": ({"tools": [lambda: None]}, "cannot be called"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_told_when_the_agent_is_made(case: str) -> None:
    how, words = REFUSED[case]
    with pytest.raises((RequestError, ConfigError), match=re.escape(words)):
        Agent(model="simulated", **how)


# --- while it streams ---


async def events_of(agent: Agent[Any]) -> list[RunEvent]:
    events: AsyncGenerator[RunEvent, None] = stream(agent, "Go")
    return [event async for event in events]


async def streamed_result(agent: Agent[Any]) -> RunResult[Any]:
    last = (await events_of(agent))[-1]
    assert isinstance(last, RunEnded)
    return last.result


def test_partial_values_grow_to_the_output(model: ModelServer) -> None:
    written = '{"value": [{"weight": 2}, {"weight": 40}]}'
    model.plays(said(*written))
    events = asyncio.run(events_of(Agent(model=connect(model.url, "m"), output_type=list[Crate])))
    partial = [event for event in events if isinstance(event, PartialOutput)]
    assert "".join(event.text for event in partial) == written
    values = [event.value for event in partial]
    assert {"weight": 2} in values[len('{"value": [{"weight": 2}') - 1]
    assert values[-1] == [{"weight": 2}, {"weight": 40}]
    grown = [len(value) for value in values if value is not None]
    assert grown == sorted(grown)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == written


def test_an_answer_by_call_is_shown_as_the_answer_and_not_as_a_call() -> None:
    agent, _ = typed(Crate, [(FINAL_TOOL, {"weight": 4})], tools=[get_boat])
    events = asyncio.run(events_of(agent))
    assert [event.value for event in events if isinstance(event, PartialOutput)][-1] == {"weight": 4}
    assert FINAL_TOOL not in "".join(map(repr, events[:-1]))


@pytest.mark.parametrize("value", [{"a": [1, {"b": "x"}], "c": None}, [True, "é", -1.5]])
def test_every_begin_of_an_answer_has_a_partial_value(value: Any) -> None:
    written = json.dumps(value)
    assert partial_value(written) == value
    for end in range(1, len(written)):
        assert isinstance(partial_value(written[:end]), type(value))


# --- computed instructions ---


@pytest.mark.parametrize("is_async", [False, True])
def test_instructions_may_be_computed_once_for_each_run(is_async: bool) -> None:
    asked: list[str] = []

    def told(context: Any) -> str:
        asked.append(context.items[-1].text)
        return f"You serve {context.hidden['user']}."

    async def told_later(context: Any) -> str:
        return told(context)

    model, upstream = scripted([("get_boat", {"name": "Elle"})], "Done.")
    agent = Agent(model=model, tools=[get_boat], instructions=told_later if is_async else told)
    run_sync(agent, "Go", hidden={"user": "Anna"})
    assert asked == ["Go"]
    heads: Any = [one.messages for one in upstream.asked]
    assert [head[0] for head in heads] == [{"role": "system", "content": "You serve Anna."}] * 2


def test_instructions_that_are_no_text_are_refused() -> None:
    model, _ = scripted("Hi")
    with pytest.raises(RequestError, match="gave int"):
        run_sync(Agent(model=model, instructions=lambda: 5), "Go")
    with pytest.raises(RequestError, match="got int"):
        Agent(model=model, instructions=5)  # type: ignore[call-overload]
