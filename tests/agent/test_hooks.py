"""Hooks before and after model and tools: what they see, what they change, and how they end a run."""

import asyncio
from typing import Any

import msgspec
import pytest

from callwright import Agent, EndRun, Failed, Hooks, RequestError, Result, Retry, run_sync, stream, tool
from callwright.agent.events import CallReady, RunEnded, ToolEnded
from callwright.conversation import Conversation, Message, TextPart
from callwright.upstreams.simulated.scripted import ScriptedUpstream
from tests.support.scripted_agents import check_history, scripted

RUN: list[str] = []


@tool
def weigh(thing: str) -> str:
    """Weigh a thing."""
    RUN.append(thing)
    return f"{thing}: 5 kg"


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RUN.clear()


def hooked(*answers: Any, **hooks: Any) -> tuple[Agent[Any], ScriptedUpstream]:
    model, upstream = scripted(*(answers or ([("weigh", {"thing": "stone"})], "Five.")))
    return Agent(model=model, tools=[weigh], hooks=[Hooks(**hooks)]), upstream


def in_both_ways(hook: Any) -> list[Any]:
    """The hook, and the same as an async function."""

    async def later(value: Any, context: Any) -> Any:
        return hook(value, context)

    return [hook, later]


def raising(error: Exception) -> Any:
    def hook(value: Any, context: Any) -> None:
        raise error

    return hook


# --- the model ---


def shorter(conversation: Conversation, context: Any) -> Conversation:
    return msgspec.structs.replace(conversation, items=(Message("user", (TextPart("Changed."),)),))


@pytest.mark.parametrize("hook", in_both_ways(shorter), ids=["sync", "async"])
def test_what_the_model_is_asked_may_be_changed_and_the_history_keeps_what_was_said(hook: Any) -> None:
    agent, upstream = hooked("Hi", before_model=hook)
    result = run_sync(agent, "As it was.")
    assert upstream.asked[0].messages == [{"role": "user", "content": "Changed."}]
    assert result.to_messages()[0]["content"] == "As it was."


def test_what_the_model_answers_may_be_changed() -> None:
    agent, _ = hooked(
        "My number is 12345.",
        after_model=lambda turn, _: msgspec.structs.replace(turn, content=turn.content.replace("12345", "…")),
    )
    result = run_sync(agent, "Go")
    assert (result.text, result.output) == ("My number is ….", "My number is ….")


# --- the tools ---


def to_iron(call: CallReady, context: Any) -> Any:
    return {"thing": f"iron {call.arguments['thing']}"}


@pytest.mark.parametrize("hook", in_both_ways(to_iron), ids=["sync", "async"])
def test_arguments_may_be_changed(hook: Any) -> None:
    agent, _ = hooked(before_tool=hook)
    assert run_sync(agent, "Go").calls[0].text == "iron stone: 5 kg"


REFUSED: dict[str, tuple[Exception, str, str]] = {
    "failed": (Failed("Not that one."), "failed", "Not that one."),
    "retry": (Retry("Take another."), "retry", "Make the call again, changed: Take another."),
    "an error of the hook": (KeyError("x"), "failed", "The tool failed."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_call_that_a_hook_refuses_does_not_run(case: str) -> None:
    error, status, text = REFUSED[case]
    agent, _ = hooked(before_tool=raising(error))
    result = run_sync(agent, "Go")
    assert [(one.status, one.text) for one in result.calls] == [(status, text)]
    assert RUN == []
    check_history(result.to_messages())


def test_a_hook_may_answer_in_the_place_of_the_tool() -> None:
    agent, _ = hooked(before_tool=lambda call, context: Result(f"{context.tool} was asked before", data=5))
    (ended,) = run_sync(agent, "Go").calls
    assert (ended.text, ended.value, RUN) == ("weigh was asked before", 5, [])


def test_arguments_of_a_hook_are_checked() -> None:
    agent, _ = hooked(before_tool=lambda call, context: {"thng": 5})
    (ended,) = run_sync(agent, "Go").calls
    assert (ended.status, RUN) == ("failed", [])
    assert isinstance(ended.exception, RequestError)


def test_what_the_model_reads_of_a_result_may_be_changed() -> None:
    def in_pounds(ended: ToolEnded, context: Any) -> ToolEnded:
        return msgspec.structs.replace(ended, text=ended.text.replace("5 kg", "11 lb"))

    agent, upstream = hooked(after_tool=in_pounds)
    run_sync(agent, "Go")
    last: Any = upstream.asked[1].messages
    assert last[-1]["content"] == "stone: 11 lb"


# --- the answer ---


def test_an_answer_may_be_sent_back_and_changed() -> None:
    def polite(value: str, context: Any) -> str:
        if "please" not in value:
            raise Retry("Say please.")
        return value.upper()

    agent, upstream = hooked("Go away.", "Go away, please.", after_output=polite)
    result = run_sync(agent, "Go")
    assert (result.output, result.text) == ("GO AWAY, PLEASE.", "Go away, please.")
    told: Any = upstream.asked[1].messages
    assert "Say please" in told[-1]["content"]
    check_history(result.to_messages())


# --- the end ---

PLACES = ("before_model", "after_model", "before_tool", "after_tool", "after_output")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_guardrail_ends_the_run_with_a_history_that_can_go_on(place: str, streamed: bool) -> None:
    agent, _ = hooked(**{place: raising(EndRun("Not with me."))})

    async def last() -> Any:
        return [event async for event in stream(agent, "Go")][-1]

    if streamed:
        ended = asyncio.run(last())
        assert isinstance(ended, RunEnded)
        result = ended.result
    else:
        result = run_sync(agent, "Go")
    assert (result.stop, result.detail) == ("stopped", "Not with me.")
    check_history(result.to_messages())
    assert (RUN == []) == (place in ("before_model", "after_model", "before_tool"))


def test_a_tool_may_end_the_run() -> None:
    @tool
    def give_up() -> None:
        """Give up."""
        raise EndRun("It is over.")

    model, _ = scripted([("give_up", {})])
    result = run_sync(Agent(model=model, tools=[give_up]), "Go")
    assert (result.stop, result.detail) == ("stopped", "It is over.")
    check_history(result.to_messages())


def test_hooks_come_one_after_the_other() -> None:
    seen: list[str] = []

    def hook(name: str) -> Hooks:
        return Hooks(before_model=lambda _, __: seen.append(name), after_model=lambda _, __: seen.append(f"{name}!"))

    model, _ = scripted("Hi")
    run_sync(Agent(model=model, hooks=[hook("a"), hook("b")]), "Go")
    assert seen == ["a", "b", "a!", "b!"]


def test_an_error_of_a_hook_of_the_model_is_the_programs() -> None:
    agent, _ = hooked("Hi", before_model=raising(KeyError("x")))
    with pytest.raises(KeyError):
        run_sync(agent, "Go")


# A hook that gives something else than what it was given, and what it is told.
OTHERS = {"before_model": "Conversation", "after_model": "Turn", "after_tool": "ToolEnded"}


@pytest.mark.parametrize("name", OTHERS)
def test_what_a_hook_may_not_return_is_told_and_the_run_has_its_end(name: str) -> None:
    agent, _ = hooked(**{name: lambda value, context: "redacted"})
    results: list[Any] = []
    with pytest.raises(RequestError, match=rf"Hooks\({name}=…\): expected a {OTHERS[name]} or None, got str"):
        run_sync(agent, "Weigh it", on_end=results.append)
    (result,) = results
    assert result.stop == "failed"
    check_history(result.to_messages())
