"""Agents that work together: as tools of each other, and by handing the conversation over."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

import pytest

from callwright import (
    Agent,
    Context,
    Hidden,
    Hooks,
    Limits,
    RequestError,
    Result,
    Retry,
    RunResult,
    resume,
    run_sync,
    stream,
    tool,
)
from callwright.agent.events import ApprovalNeeded, HandedOver, NestedEvent, RunEvent, TextDelta, ToolEnded
from callwright.events import Usage
from callwright.upstreams.base import FinishDelta, ToolCallDelta
from tests.support.scripted_agents import check_history, scripted


@tool
def count_bricks(wall: str) -> int:
    """Count the bricks of a wall."""
    return len(wall)


@tool(approve=True)
def tear_down(wall: str) -> str:
    """Tear a wall down."""
    return f"{wall} is down"


def mason(*answers: Any, **how: Any) -> Agent[Any]:
    model, _ = scripted(*answers)
    how = {"name": "mason", "description": "Knows walls.", "tools": [count_bricks, tear_down], **how}
    return Agent(model=model, **how)


def asks(agent: Agent[Any], *answers: Any, **how: Any) -> Agent[Any]:
    """An agent that has another one as its tool."""
    model, _ = scripted(*answers)
    return Agent(model=model, tools=[agent.as_tool(), *how.pop("tools", ())], **how)


def used(model: Any) -> Any:
    """The same model, which says that each answer took ten tokens."""
    upstream = model.upstream
    played = upstream.stream

    async def stream(generation: Any) -> Any:
        async for batch in played(generation):
            yield batch
        yield [Usage(7, 3)]

    upstream.stream = stream
    return model


REQUEST = ("mason", {"request": "How many bricks?"})


# --- an agent as a tool ---


def test_a_call_is_a_run_whose_answer_the_model_reads() -> None:
    inner = mason([("count_bricks", {"wall": "north"})], "Five.")
    result = run_sync(asks(inner, [REQUEST], "It has five."), "How many bricks has the wall?")
    assert (result.stop, result.text) == ("completed", "It has five.")
    (ended,) = result.calls
    assert (ended.status, ended.text) == ("ok", "Five.")
    check_history(result.to_messages())


def test_the_model_is_told_what_the_agent_is_for() -> None:
    definition = mason().as_tool().definition
    assert (definition.name, definition.description) == ("mason", "Knows walls.")
    assert definition.parameters is not None
    assert list(definition.parameters["properties"]) == ["request"]
    with pytest.raises(RequestError, match="needs a name and a description"):
        Agent(model="simulated").as_tool()


def test_an_agent_with_a_type_gives_its_value_as_json() -> None:
    inner = mason('{"value": [1, 2]}', tools=[], output_type=list[int])
    result = run_sync(asks(inner, [REQUEST], "Done."), "Go")
    assert (result.calls[0].value, result.calls[0].text) == ([1, 2], "[1,2]")


def test_what_is_used_within_counts() -> None:
    inner = mason([("count_bricks", {"wall": "north"})], "Five.")
    used(inner.model)
    outer = asks(inner, [REQUEST], "It has five.")
    used(outer.model)
    result = run_sync(outer, "Go")
    assert result.usage == Usage(28, 12)
    assert result.turns == 4


LIMITS = {
    "turns": (Limits(turns=2), "turns"),
    "calls": (Limits(calls=1), "calls"),
    "tokens": (Limits(tokens=15), "tokens"),
}


@pytest.mark.parametrize("case", LIMITS)
def test_the_limits_of_the_run_hold_within(case: str) -> None:
    limits, stop = LIMITS[case]
    inner = mason([("count_bricks", {"wall": "north"})], [("count_bricks", {"wall": "south"})], "Ten.")
    used(inner.model)
    outer = asks(inner, [REQUEST], "It has five.", limits=limits)
    used(outer.model)
    result = run_sync(outer, "Go")
    (ended,) = result.calls
    assert (ended.status, f"({stop})" in ended.text) == ("failed", True), ended.text
    check_history(result.to_messages())


def events_of(agent: Agent[Any], *given: Any, **how: Any) -> list[RunEvent]:
    async def collected() -> list[RunEvent]:
        return [event async for event in stream(agent, *given, **how)]

    return asyncio.run(collected())


def test_its_events_are_events_of_the_run() -> None:
    inner = mason([("count_bricks", {"wall": "north"})], "Five.")
    events = events_of(asks(inner, [REQUEST], "It has five."), "Go")
    nested = [event for event in events if isinstance(event, NestedEvent)]
    assert {(event.id, event.name) for event in nested} == {("call_0", "mason")}
    assert [event.event.text for event in nested if isinstance(event.event, TextDelta)] == ["Five."]
    assert [event.event.name for event in nested if isinstance(event.event, ToolEnded)] == ["count_bricks"]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["It has five."]


# What a person says, and what becomes of it.
DECIDED: dict[str, tuple[Any, str]] = {
    "yes": (True, "north is down"),
    "no": (False, "The user did not approve this call; it was not run."),
    "with words": ("Leave it.", "Leave it."),
    "with other arguments": ({"arguments": {"wall": "south"}}, "south is down"),
}


@pytest.mark.parametrize("case", DECIDED)
def test_a_person_decides_on_calls_within_and_the_state_is_plain_json(case: str) -> None:
    decision, words = DECIDED[case]
    others: list[str] = []

    @tool
    def note(text: str) -> str:
        """Note something."""
        others.append(text)
        return "noted"

    first = asks(mason([("tear_down", {"wall": "north"})]), [REQUEST, ("note", {"text": "a wall"})], tools=[note])
    waiting = run_sync(first, "Tear it down")
    assert (waiting.stop, others) == ("pending", ["a wall"])
    pending = json.loads(json.dumps(waiting.pending))
    (call,) = pending["calls"]
    assert (call["id"], call["name"], call["arguments"]) == ("call_0/call_0", "tear_down", {"wall": "north"})
    inner = mason("So it is.")
    second = asks(inner, "All done.", tools=[note])
    result = run_sync(second, pending, decisions={call["id"]: decision})
    assert (result.stop, result.text, others) == ("completed", "All done.", ["a wall"])
    outputs = {one["tool_call_id"]: one["content"] for one in result.to_messages() if one["role"] == "tool"}
    assert outputs == {"call_0": "So it is.", "call_1": "noted"}
    asked: Any = inner.model
    told = [one["content"] for one in asked.upstream.asked[-1].messages if one["role"] == "tool"]
    assert words in told[0]
    check_history(result.to_messages())


def test_the_question_to_the_person_is_an_event() -> None:
    outer = asks(mason([("tear_down", {"wall": "north"})]), [REQUEST])
    (asked,) = [event for event in events_of(outer, "Go") if isinstance(event, ApprovalNeeded)]
    assert (asked.id, asked.name, asked.arguments) == ("call_0/call_0", "tear_down", {"wall": "north"})


def test_a_decision_on_a_call_that_does_not_wait_is_told() -> None:
    outer = asks(mason([("tear_down", {"wall": "north"})]), [REQUEST])
    waiting = run_sync(outer, "Go")
    for other in ("call_9/call_0", "call_0/call_1", "call_0"):
        with pytest.raises(RequestError, match=f"{other}' waits for a decision. Those that wait: 'call_0/call_0'"):
            asyncio.run(resume(outer, waiting, {other: True}))
    with pytest.raises(RequestError, match="Expected True, False"):
        asyncio.run(resume(outer, waiting, {"call_0/call_0": 1}))


# Decisions on a call of a nested run that are none, where, and words of the error.
MISTAKEN: dict[str, tuple[Any, str, str]] = {
    "another parameter": ({"arguments": {"wal": "b"}}, "decisions.call_0/call_0.arguments", "'tear_down'"),
    "another type": ({"arguments": {"wall": 5}}, "decisions.call_0/call_0.arguments", r"\$\.wall"),
    "no arguments": ({"arguments": None}, "decisions.call_0/call_0", "arguments"),
    "a text for arguments": ({"arguments": "south"}, "decisions.call_0/call_0", "arguments"),
}


@pytest.mark.parametrize("case", MISTAKEN)
def test_a_decision_that_does_not_fit_a_call_within_is_told_before_anything_runs(case: str) -> None:
    decision, param, words = MISTAKEN[case]
    outer = asks(mason([("tear_down", {"wall": "north"})], "Down."), [REQUEST], "All done.")
    pending = json.loads(json.dumps(run_sync(outer, "Go").pending))
    with pytest.raises(RequestError, match=words) as raised:
        run_sync(outer, pending, decisions={"call_0/call_0": decision})
    assert raised.value.param == param
    result = run_sync(outer, pending, decisions={"call_0/call_0": True})  # it is still there to decide on
    assert (result.stop, result.text) == ("completed", "All done.")


# What a person changes in the call that a nested run waits in: as a tool of one's own, and as an agent that is a tool.
def paying(paid: list[int]) -> Agent[Any]:
    inner = mason([("tear_down", {"wall": "north"})], "Down.")

    @tool(approve=True)
    async def pay(coins: int, ctx: Context) -> str:
        """Pay for it."""
        paid.append(coins)
        await ctx.run(inner, "Go")
        return f"paid {coins}"

    model, _ = scripted([("pay", {"coins": 1000})], "Done.")
    return Agent(model=model, tools=[pay])


def test_what_a_person_changed_holds_when_a_person_is_asked_again_within() -> None:
    paid: list[int] = []
    outer = paying(paid)
    result = run_sync(outer, "Go")
    for decision in ({"arguments": {"coins": 10}}, True):
        pending = json.loads(json.dumps(result.pending))
        result = run_sync(outer, pending, decisions={pending["calls"][0]["id"]: decision})
    assert (paid, result.calls[0].text) == ([10, 10], 'The user changed the arguments to {"coins":10}\npaid 10')


def test_the_model_reads_that_the_request_to_an_agent_was_changed() -> None:
    inner = mason([("tear_down", {"wall": "north"})], "Down.")
    model, _ = scripted([REQUEST], "Done.")
    outer: Agent[Any] = Agent(model=model, tools=[inner.as_tool(approve=True)])
    first = run_sync(outer, "Go")
    second = run_sync(outer, first, decisions={"call_0": {"arguments": {"request": "Tear one down."}}})
    result = run_sync(outer, second, decisions={"call_0/call_0": True})
    assert result.calls[0].text == 'The user changed the arguments to {"request":"Tear one down."}\nDown.'


@pytest.mark.parametrize("outer_id", ["call_1", "call/1", "a/b"])
@pytest.mark.parametrize("inner_id", ["call_1", "call/1", "b/c"])
def test_whatever_ids_a_server_gives_a_yes_is_a_yes(outer_id: str, inner_id: str) -> None:
    def made(id_: str, name: str, arguments: str) -> list[Any]:
        return [ToolCallDelta(0, id_, name, arguments), FinishDelta("tool_calls")]

    inner = mason(made(inner_id, "tear_down", '{"wall": "north"}'), "Down.")
    outer = asks(inner, made(outer_id, "mason", '{"request": "Go"}'), "Done.")
    waiting = run_sync(outer, "Go")
    assert waiting.pending is not None
    (call,) = waiting.pending["calls"]
    run_sync(outer, waiting, decisions={call["id"]: True})
    asked: Any = inner.model
    assert [one["content"] for one in asked.upstream.asked[-1].messages if one["role"] == "tool"] == ["north is down"]


@pytest.mark.parametrize("is_same", [True, False])
def test_always_is_for_one_tool_and_not_for_one_of_the_same_name(is_same: bool) -> None:
    @tool(name="tear_down", approve=True)
    def tear_down_in_earnest(wall: str) -> str:
        """Tear a wall down."""
        return f"{wall} is dust"

    call = ("tear_down", {"wall": "north"})
    other = mason([call], "Done.", name="other", tools=[tear_down if is_same else tear_down_in_earnest])
    first = mason([call], [("transfer_to_other", {})], handoffs=[other])
    waiting = run_sync(first, "Go")
    result = run_sync(first, waiting, decisions={"call_0": {"always": True}})
    assert (result.agent, result.stop) == ("other", "completed" if is_same else "pending")


def test_what_was_used_before_a_person_decided_counts_once() -> None:
    turns = [[("count_bricks", {"wall": "north"})], [("tear_down", {"wall": "north"})], [("tear_down", {"wall": "w"})]]
    inner = mason(*turns, "Down.")
    used(inner.model)
    outer = asks(inner, [REQUEST], "All done.", limits=Limits(turns=6, calls=4, tokens=60))
    used(outer.model)
    result = run_sync(outer, "Go")
    spent = [(result.stop, result.turns, result.usage.total_tokens)]
    while result.pending is not None:
        pending = json.loads(json.dumps(result.pending))
        result = run_sync(outer, pending, decisions={call["id"]: True for call in pending["calls"]})
        spent.append((result.stop, result.turns, result.usage.total_tokens))
    assert spent == [("pending", 3, 30), ("pending", 4, 40), ("completed", 6, 60)]


# Three levels, each with calls of its own: those of the mason, of the builder that asks it, of the owner that asks him.
CALLS_OF_ALL = 3 + 3 + 2


def tearing(torn: list[str], *, approve: bool) -> Any:
    @tool(approve=approve)
    def tear(wall: str) -> str:
        """Tear a wall down."""
        torn.append(wall)
        return wall

    return tear


def owner(tear: Any, most: int | None) -> Agent[Any]:
    count = ("count_bricks", {"wall": "north"})
    turns = [
        [(tear.name, {"wall": "a"})],
        [("count_bricks", {})],
        [(tear.name, {"wall": "b"}), ("count_bricks", {"wall": "c"})],
    ]
    inner = mason(*turns, "Down.", tools=[count_bricks, tear])
    middle = asks(
        inner, [count, REQUEST], [count], "Built.", name="builder", description="Builds.", tools=[count_bricks]
    )
    model, _ = scripted([("builder", {"request": "Go"})], [count], "All done.")
    return Agent(model=model, tools=[middle.as_tool(), count_bricks], limits=Limits(calls=most))


def all_agreed(agent: Agent[Any]) -> RunResult:
    """The end of a run in which a person agrees to all."""
    result = run_sync(agent, "Go")
    while result.pending is not None:
        pending = json.loads(json.dumps(result.pending))
        result = run_sync(agent, pending, decisions={call["id"]: True for call in pending["calls"]})
    return result


@pytest.mark.parametrize("most", [*range(1, CALLS_OF_ALL + 1), None])
def test_a_run_ends_alike_with_approvals_and_without(most: int | None) -> None:
    ends = []
    for approve in (False, True):
        torn: list[str] = []
        result = all_agreed(owner(tearing(torn, approve=approve), most))
        ends.append((result.stop, result.call_count, result.turns, torn))
    assert ends[0] == ends[1]
    if most is None or most == CALLS_OF_ALL:
        assert ends[0] == ("completed", CALLS_OF_ALL, 10, ["a", "b"])


@pytest.mark.parametrize("decision", [True, False])
def test_calls_that_do_not_run_within_count_as_in_a_run_of_its_own(decision: bool) -> None:
    turns = [[("count_bricks", {})], [("tear_down", {"wall": "north"})]]  # the first one does not hold
    alone = mason(*turns, "Done.")
    outer = asks(mason(*turns, "Done."), [REQUEST], "Done.")
    found = []
    for agent in (alone, outer):
        waiting = run_sync(agent, "Go")
        assert waiting.pending is not None
        decisions = {call["id"]: decision for call in waiting.pending["calls"]}
        found.append(run_sync(agent, waiting, decisions=decisions).call_count)
    assert found == ([1, 2] if decision else [0, 1])


def test_an_image_of_the_turn_that_waits_reaches_the_model() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}

    @tool
    def look() -> Result:
        """Look at the wall."""
        return Result(["see", image])

    outer = asks(mason([("tear_down", {"wall": "north"})], "Down."), [REQUEST, ("look", {})], "Done.", tools=[look])
    pending = json.loads(json.dumps(run_sync(outer, "Go").pending))
    result = run_sync(outer, pending, decisions={"call_0/call_0": True})
    parts = [part for one in result.to_messages() if isinstance(one["content"], list) for part in one["content"]]
    assert parts == [{"type": "text", "text": "From look:"}, image]


def test_a_tool_of_ones_own_may_run_an_agent() -> None:
    inner = mason("Five.")

    @tool
    async def ask_twice(wall: str, ctx: Context) -> str:
        """Ask about a wall."""
        result: RunResult = await ctx.run(inner, f"How many bricks has {wall}?")
        return result.text.upper()

    model, _ = scripted([("ask_twice", {"wall": "north"})], "Done.")
    assert run_sync(Agent(model=model, tools=[ask_twice]), "Go").calls[0].text == "FIVE."


def builder(*masons: Agent[Any]) -> Agent[Any]:
    """An agent with a tool that runs these, one after the other."""

    @tool
    async def build(ctx: Context) -> list[Any]:
        """Build it all."""
        return [(await ctx.run(one, "Go")).output for one in masons]

    return asks(mason(name="other"), [("build", {})], "Built.", tools=[build])


def test_runs_of_a_call_that_are_done_are_not_run_again_when_another_one_waited() -> None:
    count = [("count_bricks", {"wall": "north"})]
    one = mason(count, '{"value": [5]}', name="one", output_type=list[int], output="text")
    masons = [one, *(mason([("tear_down", {"wall": wall})], f"{wall} done", name=wall) for wall in ("north", "south"))]
    outer = builder(*masons)
    result, waited = run_sync(outer, "Go"), []
    while result.pending is not None:
        pending = json.loads(json.dumps(result.pending))
        waited += [call["arguments"]["wall"] for call in pending["calls"]]
        result = run_sync(outer, pending, decisions={call["id"]: True for call in pending["calls"]})
    (built,) = result.calls
    assert (waited, built.value) == (["north", "south"], [[5], "north done", "south done"])
    asked: list[Any] = [agent.model for agent in masons]
    assert [len(model.upstream.asked) for model in asked] == [2, 2, 2]
    assert result.turns == 8


@dataclass
class Wall:
    bricks: int
    day: date = date(2026, 1, 2)


# The type of the answer, the answer, what a hook makes of it, and what the tool has of it before and after a pause.
MADE: dict[str, tuple[Any, str, Callable[[Any], Any], Any]] = {
    "no change": (str, "Five.", lambda _: None, "Five."),
    "another text": (str, "Five.", str.upper, "FIVE."),
    "a value for a text": (str, "Five.", len, 5),
    "of the type": (Wall, '{"bricks": 5}', lambda wall: Wall(wall.bricks + 1), Wall(6)),
    "no change of a type": (Wall, '{"bricks": 5, "day": "2026-03-04"}', lambda _: None, Wall(5, date(2026, 3, 4))),
    "of no type": (Wall, '{"bricks": 5}', lambda wall: [wall.bricks], [5]),
    "of a wrapped type": (list[int], '{"value": [1, 2]}', sorted, [1, 2]),
    "of a wrapped type, changed": (list[int], '{"value": [2, 1]}', sorted, [1, 2]),
}


@pytest.mark.parametrize("case", MADE)
def test_the_output_of_a_run_that_is_done_is_given_again_and_no_hook_is_asked_again(case: str) -> None:
    type_, answer, make, output = MADE[case]
    asked: list[Any] = []

    def check(value: Any, _: Any) -> Any:
        asked.append(value)
        if len(asked) % 2:
            raise Retry("Count again.")
        return make(value)

    one = mason(
        answer, answer, name="one", tools=[], output_type=type_, output="text", hooks=[Hooks(after_output=check)]
    )
    seen: list[RunResult] = []
    other = mason([("tear_down", {"wall": "north"})], "Down.", name="other")

    @tool
    async def build(ctx: Context) -> str:
        """Build it all."""
        seen.append(await ctx.run(one, "Go"))
        await ctx.run(other, "Go")
        return "built"

    model, _ = scripted([("build", {})], "Done.")
    result = all_agreed(Agent(model=model, tools=[build]))
    assert (result.stop, result.calls[0].status, len(asked)) == ("completed", "ok", 2)
    first, again = seen
    assert (first.output, again.output) == (output, output)
    assert [first.to_messages(), first.turns, first.usage] == [again.to_messages(), again.turns, again.usage]


def test_what_waits_goes_on_with_the_agent_that_it_waited_in_or_not_at_all() -> None:
    pending = run_sync(builder(mason([("tear_down", {"wall": "north"})])), "Go").pending
    assert pending is not None
    torn = mason("Down.", name="another")
    model, _ = scripted("Done.")
    again = Agent(model=model, tools=[*builder(torn).tools.values()])
    with pytest.raises(RequestError, match=r"one of 'mason' before .* one of 'another' now"):
        run_sync(again, pending, decisions={"call_0/call_0": True})
    left: Any = torn.model
    assert left.upstream.asked == []


async def catches(agent: Agent[Any], ctx: Context) -> str:
    try:
        return str((await ctx.run(agent, "Go")).text)
    except Exception as error:
        return f"no: {error}"


async def catches_all(agent: Agent[Any], ctx: Context) -> str:
    try:
        return str((await ctx.run(agent, "Go")).text)
    except BaseException:  # as a bare except does
        return str((await ctx.run(agent, "Go")).text)


async def in_a_group(agent: Agent[Any], ctx: Context) -> str:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(ctx.run(agent, "Go"))
    return str(task.result().text)


CATCHING = {"catches errors": catches, "catches all": catches_all, "in a group": in_a_group}


def catching(inner: Agent[Any], case: str) -> Agent[Any]:
    """An agent with a tool that runs this one, and catches what that raises."""

    @tool
    async def careful(ctx: Context) -> str:
        """Do it with care."""
        return await CATCHING[case](inner, ctx)

    model, _ = scripted([("careful", {})], "All done.")
    return Agent(model=model, tools=[careful])


@pytest.mark.parametrize("case", CATCHING)
def test_no_tool_can_catch_that_a_person_is_asked(case: str) -> None:
    inner = mason([("tear_down", {"wall": "north"})], "Down.")
    outer = catching(inner, case)
    waiting = run_sync(outer, "Go")
    assert waiting.stop == "pending", waiting.calls
    result = run_sync(outer, json.loads(json.dumps(waiting.pending)), decisions={"call_0/call_0": True})
    assert (result.stop, result.calls[0].text) == ("completed", "Down.")


@tool
def paint(wall: str, colour: Annotated[str, Hidden]) -> str:
    """Paint a wall."""
    return f"{wall} is {colour}"


def test_a_hidden_value_that_an_agent_as_a_tool_needs_is_asked_for_before_the_model_is() -> None:
    middle = asks(mason(tools=[paint]), name="middle", description="Asks masons.")
    model, upstream = scripted([("middle", {"request": "Go"})], "Done.")
    with pytest.raises(RequestError, match="needs a hidden value 'colour'"):
        run_sync(Agent(model=model, tools=[middle.as_tool()]), "Go")
    assert upstream.asked == []


@pytest.mark.parametrize("case", CATCHING)
def test_what_the_program_must_mend_in_a_run_of_a_tool_is_raised(case: str) -> None:
    ended: list[RunResult] = []
    with pytest.raises(RequestError, match="needs a hidden value 'colour'"):
        run_sync(catching(mason(tools=[paint]), case), "Go", on_end=ended.append)
    check_history(ended[0].to_messages())


def test_a_decision_that_does_not_fit_in_a_run_of_a_tool_is_raised_and_can_be_made_again() -> None:
    outer = builder(mason([("tear_down", {"wall": "north"})], "Down."))
    waiting = run_sync(outer, "Go")
    with pytest.raises(RequestError, match="do not fit 'tear_down'"):
        run_sync(outer, waiting, decisions={"call_0/call_0": {"arguments": {"wal": "south"}}})
    result = run_sync(outer, waiting, decisions={"call_0/call_0": {"arguments": {"wall": "south"}}})
    assert (result.stop, result.calls[0].value) == ("completed", ["Down."])


def test_what_a_tool_gives_an_agent_and_is_no_input_is_a_failure_of_the_tool() -> None:
    inner = mason("Five.")

    @tool
    async def ask(ctx: Context) -> str:
        """Ask."""
        return str((await ctx.run(inner, 5)).text)

    model, _ = scripted([("ask", {})], "Done.")
    result = run_sync(Agent(model=model, tools=[ask]), "Go")
    assert (result.stop, result.calls[0].status, result.calls[0].text) == ("completed", "failed", "The tool failed.")


# --- handoffs ---


def test_a_conversation_is_handed_over_with_its_history() -> None:
    smith, mason_model = scripted("Five bricks.")
    other: Agent[Any] = Agent(
        model=smith, name="The Mason", description="Knows walls.", instructions="You are a mason."
    )
    model, upstream = scripted([("transfer_to_The_Mason", {})])
    desk: Agent[Any] = Agent(model=model, name="desk", instructions="You greet.", handoffs=[other])
    result = run_sync(desk, "How many bricks?")
    assert (result.stop, result.text, result.agent) == ("completed", "Five bricks.", "The Mason")
    offered = upstream.asked[0].tools
    assert offered is not None
    assert offered[0]["function"]["description"] == "Hand the conversation to The Mason. Knows walls."
    asked: Any = mason_model.asked[0].messages
    assert [one["role"] for one in asked] == ["system", "user", "assistant", "tool"]
    assert asked[0]["content"] == "You are a mason."
    assert mason_model.asked[0].tools is None
    check_history(result.to_messages())


def test_a_handover_is_told_and_counts_go_on() -> None:
    back_model, _ = scripted([("transfer_to_desk", {})])
    model, _ = scripted([("transfer_to_back", {})], "Here again.")
    desk: Agent[Any] = Agent(model=model, name="desk", limits=Limits(turns=3))
    back: Agent[Any] = Agent(model=back_model, name="back", handoffs=[desk])
    desk.add_handoffs(back)
    events = events_of(desk, "Go")
    assert [event for event in events if isinstance(event, HandedOver)] == [
        HandedOver("desk", "back"),
        HandedOver("back", "desk"),
    ]
    back_model, _ = scripted([("transfer_to_desk", {})])
    model, _ = scripted([("transfer_to_back", {})], "Here again.")
    desk.model, back.model, desk.limits = model, back_model, Limits(turns=2)
    assert run_sync(desk, "Go").stop == "turns"


def test_who_has_the_conversation_still_has_it_when_a_person_has_decided() -> None:
    inner = mason([("tear_down", {"wall": "north"})])
    model, _ = scripted([("transfer_to_mason", {})])
    waiting = run_sync(Agent(model=model, name="desk", handoffs=[inner]), "Go")
    assert waiting.stop == "pending"
    pending = json.loads(json.dumps(waiting.pending))
    model, _ = scripted()
    again: Agent[Any] = Agent(model=model, name="desk", handoffs=[mason("It is down.")])
    result = run_sync(again, pending, decisions={pending["calls"][0]["id"]: True})
    assert (result.text, result.agent) == ("It is down.", "mason")


def test_of_two_handoffs_in_a_turn_the_first_is_made_and_the_other_says_that_it_was_not() -> None:
    masons = [mason("Here I am.", name=name) for name in ("north", "south")]
    model, _ = scripted([("transfer_to_north", {}), ("transfer_to_south", {})])
    result = run_sync(Agent(model=model, handoffs=masons), "Go")
    assert (result.agent, [(one.name, one.status) for one in result.calls]) == (
        "north",
        [("transfer_to_north", "ok"), ("transfer_to_south", "not_run")],
    )
    assert [one["content"] for one in result.to_messages() if one["role"] == "tool"] == [
        "north has the conversation now.",
        "This call was not run. A call before it hands the conversation over, which one agent can have.",
    ]
    check_history(result.to_messages())


def test_each_agent_has_a_name_of_its_own() -> None:
    nameless: Agent[Any] = Agent(model="simulated")
    with pytest.raises(RequestError, match="needs a name"):
        Agent(model="simulated", handoffs=[nameless])
    with pytest.raises(RequestError, match="Two tools are called 'transfer_to_mason'"):
        Agent(model="simulated", handoffs=[mason(), mason()])
    with pytest.raises(RequestError, match=r"called 'mason'\. Give each a name of its own"):
        Agent(model="simulated", handoffs=[mason(name="desk", handoffs=[mason(name="mason", handoffs=[mason()])])])
    far = mason(name="far")
    desk: Agent[Any] = Agent(model="simulated", name="desk", handoffs=[far])
    far.add_handoffs(mason(name="desk"))  # of which the desk hears when it runs
    with pytest.raises(RequestError, match=r"called 'desk'\. Give each a name of its own"):
        run_sync(desk, "Go")


def test_a_run_that_waits_does_not_go_on_with_an_agent_that_it_was_not_in() -> None:
    inner = mason([("tear_down", {"wall": "north"})])
    model, _ = scripted([("transfer_to_mason", {})])
    waiting = run_sync(Agent(model=model, name="desk", handoffs=[inner]), "Go")
    alone: Agent[Any] = Agent(model="simulated", name="desk", tools=[tear_down])
    with pytest.raises(RequestError, match=r"agent 'mason' has this conversation.*'desk'.*same handoffs"):
        run_sync(alone, waiting, decisions={"call_1": True})


# Limits of the first agent, what the second one does, and how its calls end.
HELD: dict[str, tuple[Limits, Any, tuple[str, bool]]] = {
    "time of a tool": (Limits(tool_timeout_s=0.01), "hang", ("timeout", False)),
    "size of a result": (Limits(result_chars=10), "talk", ("ok", True)),
}


@pytest.mark.parametrize("case", HELD)
def test_the_limits_of_the_first_agent_hold_in_the_second(case: str) -> None:
    limits, name, ends = HELD[case]

    @tool
    async def hang() -> None:
        """Never end."""
        await asyncio.Event().wait()

    @tool
    def talk() -> str:
        """Talk much."""
        return "wall " * 100

    second = mason([(name, {})], "Done.", tools=[hang, talk], limits=Limits())
    model, _ = scripted([("transfer_to_mason", {})])
    result = run_sync(Agent(model=model, name="desk", handoffs=[second], limits=limits), "Go")
    assert (result.calls[-1].status, result.calls[-1].is_cut) == ends


@pytest.mark.parametrize("retries", [0, 3])
def test_the_retries_of_the_first_agent_hold_for_the_answer_of_the_second(retries: int) -> None:
    second = mason(*["none"] * 9, tools=[], output_type=list[int], output="text")
    model, _ = scripted([("transfer_to_mason", {})])
    result = run_sync(Agent(model=model, name="desk", handoffs=[second], limits=Limits(retries_per_tool=retries)), "Go")
    assert (result.stop, result.turns) == ("failed", 1 + 1 + retries)
