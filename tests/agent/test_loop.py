"""The loop by itself: what it asks for, when it ends and why, and that no end leaves a call without its output."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import Agent, Grammar, Limits, RequestError, Turn, tool
from callwright.agent.commands import Approve, AskModel, CheckOutput, Compact, Instruct, Interrupt, RunCalls, Step
from callwright.agent.events import ApprovalNeeded, CallReady, Retried, RunEnded, RunEvent, RunResult, Status, ToolEnded
from callwright.agent.loop import Loop
from callwright.agent.results import write_result
from callwright.agent.state import State, with_outputs
from callwright.conversation import Call, CallOutput, Conversation, Message, NamedTool, TextPart
from callwright.events import FinishReason, Usage
from callwright.openai_format.messages import read_messages
from callwright.tolerant_json.codec import encode
from tests.support.examples import examples
from tests.support.scripted_agents import check_history

# A turn: a text, or calls by name and arguments (JSON text or an object), or the turn itself.
Answer: TypeAlias = str | list[tuple[str, Any]] | Turn
COST = Usage(prompt_tokens=10, completion_tokens=5)


def get_weather(city: str, unit: str = "c") -> str:
    """Weather."""
    return f"{city}: 14 {unit}"


def get_horoscope(sign: str) -> str:
    """Horoscope."""
    return f"{sign}: good"


@tool(approve=True)
def send_email(to: str) -> str:
    """Send an email."""
    return f"sent to {to}"


@tool(grammar=Grammar("regex", "[0-9]+"))
def run_code(code: str) -> str:
    """Run code."""
    return code


@tool(repeatable=True)
def poll() -> str:
    """Look again."""
    return "not yet"


TOOLS = (get_weather, get_horoscope, send_email, run_code, poll)
OSLO = ("get_weather", {"city": "Oslo"})
PARIS = ("get_weather", {"city": "Paris"})
EMAIL = ("send_email", {"to": "a@b.c"})


def turn(answer: Answer) -> Turn:
    if isinstance(answer, Turn):
        return answer
    if isinstance(answer, str):
        return Turn(answer, None, (), "stop")
    written = [(name, one if isinstance(one, str) else json.dumps(one)) for name, one in answer]
    made = tuple(Call(name, text, kind="custom" if name == "run_code" else "function") for name, text in written)
    return Turn(None, "Hm.", made, "tool_calls")


def cut(finish: FinishReason, content: str | None = None) -> Turn:
    """A turn whose call was cut off."""
    return Turn(content, None, (Call("get_weather", '{"city": "Os', complete=False),), finish)


class Played:
    """A loop with a script for the model, and outcomes for tools: each runs, unless a status is given for its name."""

    def __init__(
        self,
        *answers: Answer,
        statuses: Mapping[str, Status] | None = None,
        state: State | None = None,
        decisions: Mapping[str, Any] | None = None,
        **how: Any,
    ) -> None:
        agent = Agent(model="simulated", tools=TOOLS, **how)
        state = state or State(read_messages([{"role": "user", "content": "Hi"}]))
        self._answers = iter(answers)
        self._statuses = statuses or {}
        self.asked: list[Conversation] = []
        self.ran: list[str] = []
        self.events: list[RunEvent] = []
        self.loop = Loop(agent, state, decisions)

    def reply(self, step: Step) -> Any:
        match step:
            case AskModel(conversation):
                self.asked.append(conversation)
                return turn(next(self._answers)), COST
            case Approve(made):
                return {call.ready.index for call in made if call.tool.options.approve}
            case RunCalls(made):
                return [self._ended(call) for call in made]
            case Instruct() | CheckOutput() | Compact():
                raise AssertionError("nothing here is computed")
        self.events.append(step)
        return None

    def _ended(self, call: Any) -> ToolEnded:
        ready = call.ready
        status = self._statuses.get(ready.name, "ok")
        self.ran.append(f"{ready.name} {' '.join(map(str, call.values.values()))}".strip())
        text = write_result(call.tool.invoke(call.values), 1000).text if status == "ok" else f"it was {status}"
        error = ValueError() if status in ("retry", "failed") else None
        return ToolEnded(ready.index, ready.id, ready.name, status, text, exception=error)

    def run(self) -> RunResult:
        steps = self.loop.steps()
        step = next(steps)
        while not isinstance(step, RunEnded):
            step = steps.send(self.reply(step))
        assert list(steps) == []
        return step.result


FOREVER: list[Answer] = [[("get_weather", {"city": str(number)})] for number in range(100)]
SAME: list[Answer] = [[OSLO]] * 100

# What the model answers, options, why the run ends, the tools that ran, and words of the last output.
ENDS: dict[str, tuple[Sequence[Answer], dict[str, Any], str, list[str], str]] = {
    "text": (["Hello"], {}, "completed", [], ""),
    "one call": ([[OSLO], "14"], {}, "completed", ["get_weather Oslo"], "Oslo: 14 c"),
    "several calls": (
        [[OSLO, PARIS, ("get_horoscope", {"sign": "Leo"})], "14"],
        {},
        "completed",
        ["get_weather Oslo", "get_weather Paris", "get_horoscope Leo"],
        "Leo: good",
    ),
    "a custom tool": ([[("run_code", "42")], "42"], {}, "completed", ["run_code 42"], "42"),
    "turns": (FOREVER, {"limits": Limits(turns=2)}, "turns", ["get_weather 0", "get_weather 1"], "1: 14 c"),
    "calls, all or none": (
        [[OSLO], [PARIS, ("get_weather", {"city": "Rome"})]],
        {"limits": Limits(calls=2)},
        "calls",
        ["get_weather Oslo"],
        "This call was not run.",
    ),
    "tokens": (FOREVER, {"limits": Limits(tokens=30)}, "tokens", ["get_weather 0", "get_weather 1"], "1: 14 c"),
    "the same call": (SAME, {}, "repeated", ["get_weather Oslo"] * 2, "This call was not run."),
    "the same call in another order of keys": (
        [[("get_weather", '{"city":"a","unit":"c"}')], [("get_weather", '{"unit": "c", "city": "a"}')]],
        {"limits": Limits(repeats=2)},
        "repeated",
        ["get_weather a c"],
        "This call was not run.",
    ),
    "the same calls in turn": (
        [[OSLO], [PARIS], [OSLO], [PARIS], [OSLO]],
        {},
        "repeated",
        ["get_weather Oslo", "get_weather Paris"] * 2,
        "This call was not run.",
    ),
    "the same call at once is one": ([[OSLO] * 5, "14"], {}, "completed", ["get_weather Oslo"] * 5, "Oslo: 14 c"),
    "a call that may be repeated": ([[("poll", {})]] * 5 + ["Done"], {}, "completed", ["poll"] * 5, "not yet"),
    "no end to repeats": (
        [[OSLO]] * 9 + ["14"],
        {"limits": Limits(repeats=None)},
        "completed",
        ["get_weather Oslo"] * 9,
        "",
    ),
    "the same fault twice": ([[("get_weather", {})]] * 9, {}, "failed", [], '"city" is a required property'),
    "faults without end": (
        [[("get_weather", {"town": str(number)})] for number in range(9)],
        {},
        "failed",
        [],
        "('town' was unexpected)",
    ),
    "a fault that is mended": (
        [[("get_weather", {})], [OSLO], [("get_weather", {})], [PARIS], "14"],
        {},
        "completed",
        ["get_weather Oslo", "get_weather Paris"],
        "Paris: 14 c",
    ),
    "silence": ([""] * 9, {}, "failed", [], ""),
    "silence, then an answer": (["", " \n", "Hi"], {}, "completed", [], ""),
    "a call that is cut, then whole": (
        [cut("stop"), [OSLO], "14"],
        {},
        "completed",
        ["get_weather Oslo"],
        "Oslo: 14 c",
    ),
    "cut off in a call": ([cut("length")], {}, "tokens", [], ""),
    "cut off in the text": ([Turn("It is", None, (), "length")], {}, "tokens", [], ""),
    "filtered": ([Turn(None, None, (), "content_filter")], {}, "failed", [], ""),
}


@pytest.mark.parametrize("case", ENDS)
def test_a_run_ends_for_a_reason(case: str) -> None:
    answers, how, stop, ran, output = ENDS[case]
    played = Played(*answers, **how)
    result = played.run()
    assert (result.stop, played.ran) == (stop, ran)
    assert bool(result.detail) == (stop != "completed")
    assert result.usage == Usage(10 * len(played.asked), 5 * len(played.asked))
    assert result.turns == len(played.asked)
    outputs = [item.text for item in result.items if isinstance(item, CallOutput)]
    assert output in (outputs or [""])[-1]
    check_history(result.to_messages())


# The call, and words that the model must read of it.
WRONG: dict[str, tuple[tuple[str, Any], tuple[str, ...]]] = {
    "an unknown tool": (
        ("get_whether", {}),
        ("No tool is called 'get_whether'. The nearest are: get_weather, get_horoscope, send_email.",),
    ),
    "no JSON": (("get_weather", "{city"), ("not valid JSON",)),
    "no object": (("get_weather", "[1]"), ("$", "object", "list")),
    "a missing argument": (("get_weather", {}), ("$", '"city"', "required")),
    "an argument of another type": (("get_weather", {"city": 5}), ("$.city", "5", '"string"')),
    "an unknown argument": (("get_weather", {"city": "a", "when": 1}), ("'when'", "unexpected")),
    "a value of 10 MB": (("get_weather", {"city": ["x" * 10_000_000]}), ("$.city", '"string"', "left out")),
    "an input that is not of the grammar": (("run_code", "4a"), ("line 1, column 2", 'got "a"')),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_call_that_does_not_hold_is_told_and_the_others_run(case: str) -> None:
    call, words = WRONG[case]
    played = Played([call, OSLO], "14")
    result = played.run()
    assert played.ran == ["get_weather Oslo"]
    wrong, good = [item.text for item in result.items if isinstance(item, CallOutput)]
    assert wrong.startswith("Error: this call was not run. ")
    assert not [word for word in words if word not in wrong], wrong
    assert len(wrong) < 800
    assert good == "Oslo: 14 c"
    assert [event.id for event in played.events if isinstance(event, Retried)] == ["call_0"]
    assert [event.id for event in played.events if isinstance(event, CallReady)] == ["call_1"]
    check_history(result.to_messages())


# Statuses of the tools, the limits, and how many turns there are before the run ends.
BREAKS: dict[str, tuple[Mapping[str, Status], Limits, int, str]] = {
    "failures in a row": ({"get_weather": "failed"}, Limits(failures=3), 3, "failed"),
    "time-outs too": ({"get_weather": "timeout"}, Limits(failures=3), 3, "failed"),
    "retries of one tool": ({"get_weather": "retry"}, Limits(retries_per_tool=4), 5, "failed"),
    "no retries": ({"get_weather": "retry"}, Limits(retries_per_tool=0), 1, "failed"),
    "no end to failures": ({"get_weather": "failed"}, Limits(failures=None, turns=9), 9, "turns"),
}


@pytest.mark.parametrize("case", BREAKS)
def test_a_run_ends_when_nothing_works(case: str) -> None:
    statuses, limits, turns, stop = BREAKS[case]
    result = Played(*SAME, statuses=statuses, limits=limits).run()
    assert (result.turns, result.stop) == (turns, stop)
    check_history(result.to_messages())


def test_failures_beside_a_success_break_nothing() -> None:
    answers: list[Answer] = [[OSLO, ("get_horoscope", {"sign": str(number)})] for number in range(9)]
    result = Played(*answers, "Done", statuses={"get_weather": "failed"}).run()
    assert result.stop == "completed"


# --- what the model is asked ---


@pytest.mark.parametrize(
    ("choice", "first"),
    [
        ("required", "required"),
        ("get_weather", NamedTool("get_weather")),
        ({"type": "function", "function": {"name": "get_weather"}}, NamedTool("get_weather")),
    ],
)
def test_a_forced_choice_is_released_by_the_first_call(choice: Any, first: object) -> None:
    played = Played([OSLO], [PARIS], "14", tool_choice=choice)
    played.run()
    assert [conversation.tool_choice for conversation in played.asked] == [first, "auto", "auto"]


def test_a_set_of_allowed_tools_stays() -> None:
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_weather"}] * 2}
    played = Played(
        [OSLO], "14", tool_choice={**allowed, "tools": [*allowed["tools"], {"type": "function", "name": "poll"}]}
    )
    played.run()
    assert [(one.tool_choice, one.allowed_tools) for one in played.asked] == [
        ("required", ("get_weather", "poll")),
        ("auto", ("get_weather", "poll")),
    ]


def test_the_prompt_grows_at_its_end_only() -> None:
    played = Played([OSLO], [PARIS], [("get_weather", "{")], "14", instructions="Be kind.")
    result = played.run()
    for before, after in zip(played.asked, played.asked[1:], strict=False):
        assert after.items[: len(before.items)] == before.items
        assert after.tools == before.tools
    assert played.asked[0].items[0] == Message("system", (TextPart("Be kind."),))
    assert result.items[0] == Message("user", (TextPart("Hi"),))


def test_words_that_urge_an_answer_stay_in_no_history() -> None:
    played = Played("", "", "Hi")
    result = played.run()
    assert [len(conversation.items) for conversation in played.asked] == [1, 2, 2]
    assert result.to_messages() == [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi"}]


def test_ids_are_given_once() -> None:
    same = Turn(None, None, (Call("poll", "{}", "a"), Call("poll", "{}", "a")), "tool_calls")
    result = Played(same, same, "Done").run()
    assert [item.id for item in result.items if isinstance(item, Call)] == ["a", "call_1", "call_2", "call_3"]
    check_history(result.to_messages())


def test_an_id_of_a_server_is_never_that_of_a_nested_call() -> None:
    result = Played(Turn(None, None, (Call("poll", "{}", "call/1"),), "tool_calls"), "Done").run()
    assert [item.id for item in result.items if isinstance(item, Call)] == ["call_0"]


# --- approvals ---


def waiting(*answers: Answer, **how: Any) -> RunResult:
    result = Played(*answers, **how).run()
    assert result.stop == "pending"
    return result


def test_a_turn_waits_as_a_whole() -> None:
    played = Played([OSLO, EMAIL])
    result = played.run()
    assert (result.stop, played.ran) == ("pending", [])
    assert [event.name for event in played.events if isinstance(event, ApprovalNeeded)] == ["send_email"]
    assert result.pending is not None
    assert result.pending["calls"] == [{"id": "call_1", "name": "send_email", "arguments": {"to": "a@b.c"}}]


def test_a_call_that_does_not_hold_is_not_asked_about() -> None:
    assert Played([("send_email", {})], "Sorry").run().stop == "completed"


# The decisions, the tools that ran, and the output of the email.
DECISIONS: dict[str, tuple[Mapping[str, Any], list[str], str]] = {
    "yes": ({"call_1": True}, ["get_weather Oslo", "send_email a@b.c"], "sent to a@b.c"),
    "no": ({"call_1": False}, ["get_weather Oslo"], "The user did not approve this call; it was not run."),
    "no answer is a no": ({}, ["get_weather Oslo"], "The user did not approve this call; it was not run."),
    "words": ({"call_1": "Not to him!"}, ["get_weather Oslo"], "Not to him!"),
    "other arguments": (
        {"call_1": {"arguments": {"to": "x@y.z"}}},
        ["get_weather Oslo", "send_email x@y.z"],
        'The user changed the arguments to {"to":"x@y.z"}\nsent to x@y.z',
    ),
    "always": ({"call_1": {"always": True}}, ["get_weather Oslo", "send_email a@b.c"], "sent to a@b.c"),
}


@pytest.mark.parametrize("case", DECISIONS)
def test_a_person_decides(case: str) -> None:
    decisions, ran, output = DECISIONS[case]
    pending = json.loads(json.dumps(waiting([OSLO, EMAIL]).pending))
    played = Played("Done", state=State.from_pending(pending), decisions=decisions)
    result = played.run()
    assert (result.stop, result.text, played.ran) == ("completed", "Done", ran)
    assert [item.text for item in result.items if isinstance(item, CallOutput)] == ["Oslo: 14 c", output]
    assert (result.turns, result.usage) == (2, Usage(20, 10))  # the turn before is counted
    check_history(result.to_messages())


def test_a_tool_that_may_always_run_is_not_asked_about_again() -> None:
    pending = waiting([EMAIL]).pending
    assert pending is not None
    decisions = {"call_0": {"always": True}}
    other = ("send_email", {"to": "x@y.z"})
    played = Played([other], "Done", state=State.from_pending(pending), decisions=decisions)
    assert (played.run().stop, played.ran) == ("completed", ["send_email a@b.c", "send_email x@y.z"])


def test_a_decision_counts_for_its_turn_only() -> None:
    pending = waiting([EMAIL]).pending
    played = Played([("send_email", {"to": "x@y.z"})], state=State.from_pending(pending), decisions={"call_0": True})
    assert (played.run().stop, played.ran) == ("pending", ["send_email a@b.c"])


# A decision that is none, and words of the error.
NO_DECISIONS: dict[str, tuple[Mapping[str, Any], str, tuple[str, ...]]] = {
    "of another call": ({"call_7": True}, "decisions.call_7", ("'call_7'",)),
    "a number": ({"call_0": 1}, "decisions.call_0", ("True, False", "int")),
    "always, or not": ({"call_0": {"always": False}}, "decisions.call_0", ("True, False", "always")),
    "an empty object": ({"call_0": {}}, "decisions.call_0", ("arguments",)),
    "an unknown word": ({"call_0": {"args": {}}}, "decisions.call_0", ("arguments",)),
    "arguments that do not fit": (
        {"call_0": {"arguments": {"to": 5}}},
        "decisions.call_0.arguments",
        ("$.to", "string"),
    ),
    "arguments that are none": ({"call_0": {"arguments": "x@y.z"}}, "decisions.call_0", ("arguments", "x@y.z")),
    "a list": ([], "decisions", ("{'call_0': True}", "list")),  # type: ignore[dict-item]
    "a word": ("yes", "decisions", ("{'call_0': True}", "str")),  # type: ignore[dict-item]
    "yes to all": (True, "decisions", ("{'call_0': True}", "bool")),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("case", NO_DECISIONS)
def test_a_decision_that_is_none_is_the_callers_mistake(case: str) -> None:
    decisions, param, words = NO_DECISIONS[case]
    state = State.from_pending(waiting([EMAIL]).pending)
    with pytest.raises(RequestError) as raised:
        Played(state=state, decisions=decisions)
    assert raised.value.param == param
    assert not [word for word in words if word not in raised.value.message], raised.value.message


@pytest.mark.parametrize("given", [None, {}, {"version": 2, "calls": [], "messages": [], "counts": {}}, {"version": 1}])
def test_what_is_no_pending_run_is_the_callers_mistake(given: object) -> None:
    with pytest.raises(RequestError):
        State.from_pending(given)


# --- the end before its time ---

LONG: list[Answer] = [[OSLO, ("get_weather", {})], [PARIS], "14"]


def interrupted(at: int, answers: Sequence[Answer], make: Callable[[Step], Interrupt]) -> RunResult | None:
    """The result of a run that is interrupted at a step; None when it is over before."""
    played = Played(*answers)
    steps = played.loop.steps()
    step = next(steps)
    for _ in range(at):
        if isinstance(step, RunEnded):
            return None
        step = steps.send(played.reply(step))
    if isinstance(step, RunEnded):
        return None
    step = steps.throw(make(step))
    assert isinstance(step, RunEnded)
    assert list(steps) == []
    return step.result


def with_nothing(_: Step) -> Interrupt:
    return Interrupt("cancelled", "it was cancelled")


def with_a_part(step: Step) -> Interrupt:
    """What there is when a command was half done."""
    if isinstance(step, AskModel):
        calls = (Call("get_weather", '{"city": "Rome"}', "call_0"), Call("get_weather", '{"ci', complete=False))
        return Interrupt("seconds", "too long", turn=Turn("It is", "Hm.", calls, "stop"))
    if isinstance(step, RunCalls):
        first = step.calls[0].ready
        return Interrupt("seconds", "too long", ended=[ToolEnded(first.index, first.id, first.name, "ok", "14")])
    return Interrupt("seconds", "too long")


def every_point(answers: Sequence[Answer], make: Callable[[Step], Interrupt]) -> Iterator[RunResult]:
    for at in range(100):
        result = interrupted(at, answers, make)
        if result is None:
            assert at > 5
            return
        yield result


@pytest.mark.parametrize("make", [with_nothing, with_a_part])
@pytest.mark.parametrize("answers", [LONG, [[OSLO, EMAIL]], ["", [OSLO] * 3, "Hi"]], ids=["calls", "waits", "nudged"])
def test_whenever_it_ends_each_call_has_one_output(
    answers: Sequence[Answer], make: Callable[[Step], Interrupt]
) -> None:
    for result in every_point(answers, make):
        check_history(result.to_messages())
        assert result.stop == make(AskModel(Conversation())).stop
        assert result.pending is None


CALLS = st.sampled_from([OSLO, PARIS, EMAIL, ("get_weather", {}), ("nope", {}), ("run_code", "4a"), ("poll", "{")])
TURNS = st.one_of(
    st.sampled_from(["Hello", "", cut("length"), cut("stop", "It is")]), st.lists(CALLS, min_size=1, max_size=4)
)
OUTCOMES: list[Status] = ["ok", "ok", "retry", "failed", "timeout"]
STATUSES = st.sampled_from(OUTCOMES)


@examples(300)
@given(data=st.data(), answers=st.lists(TURNS, min_size=1, max_size=6), at=st.integers(0, 40), half=st.booleans())
def test_whatever_happens_the_history_goes_on(data: st.DataObject, answers: list[Answer], at: int, half: bool) -> None:
    statuses = {name: data.draw(STATUSES) for name in ("get_weather", "poll", "send_email")}
    played = Played(*answers, *["The end."] * 9, statuses=statuses)
    steps = played.loop.steps()
    step = next(steps)
    number = 0
    while not isinstance(step, RunEnded):
        is_here = number == at
        step = steps.throw((with_a_part if half else with_nothing)(step)) if is_here else steps.send(played.reply(step))
        assert isinstance(step, RunEnded) or not is_here
        number += 1
    result = step.result
    messages = result.to_messages()
    if result.stop == "pending":
        result = Played("No.", state=State.from_pending(result.pending), decisions={}).run()
        assert result.to_messages()[: len(messages)] == messages
    check_history(result.to_messages())


def test_a_part_of_a_text_is_kept_and_marked() -> None:
    result = interrupted(0, ["Hello"], with_a_part)
    assert result is not None
    _, _, message, call, output = result.items
    assert message == Message("assistant", (TextPart("It is\n\n[interrupted]"),))
    assert isinstance(call, Call)
    assert output == CallOutput("call_0", (TextPart("This call was not run."),))
    assert result.text == "It is"


def test_reasoning_alone_is_no_message() -> None:
    result = interrupted(0, ["Hello"], lambda _: Interrupt("cancelled", "", turn=Turn(None, "Hm.", (), "stop")))
    assert result is not None
    assert [type(item) for item in result.items] == [Message]


def test_open_calls_of_any_history_are_closed() -> None:
    user = Message("user", (TextPart("Hi"),))
    a, b, c = (Call("poll", "{}", id_) for id_ in "abc")
    output = CallOutput("a", (TextPart("1"),))
    closed = with_outputs([user, a, b, output, c, user], {"c": "3"})
    texts = [item.text if isinstance(item, CallOutput) else item for item in closed]
    assert texts == [user, a, b, "1", "This call was not run.", c, "3", user]


def test_the_same_run_gives_the_same_history() -> None:
    first, second = (Played(*LONG).run().to_messages() for _ in range(2))
    assert encode(first) == encode(second)
