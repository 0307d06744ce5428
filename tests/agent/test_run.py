"""Whole runs: on the simulated model, on models of several dialects, streamed, cancelled, resumed elsewhere."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pytest

import callwright
from callwright import (
    Agent,
    ConfigError,
    Context,
    Hidden,
    Limits,
    RequestError,
    RunResult,
    UpstreamError,
    resume,
    run_sync,
    stream,
    tool,
)
from callwright.agent.events import CallReady, RunEnded, RunEvent, TextDelta, ToolEnded, ToolStarted, TurnEnded
from callwright.dialects.base import read_options
from callwright.turn.model import SIMULATED, Model
from callwright.upstreams.base import Delta, Deltas, GenerationRequest, HandedAnswers
from callwright.upstreams.base import TextDelta as UpstreamText
from callwright.upstreams.chat import ChatUpstream
from callwright.upstreams.simulated.faults import FAULTS, Faults
from callwright.upstreams.simulated.model import SimulatedUpstream
from callwright.upstreams.simulated.scripted import ScriptedUpstream
from tests.support.paths import ROOT
from tests.support.scripted_agents import agent, calls, check_history, scripted
from tests.support.servers import ModelServer, calling, said
from tests.support.snippets import blocks_of

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
DIALECTS = ("harmony", "hermes", "json", "llama3_json", "pythonic", "qwen3_coder")


def get_weather(city: str) -> str:
    """Weather of a city."""
    return f"14 degrees in {city}"


def get_horoscope(sign: str) -> str:
    """Today's horoscope of a sign.

    Args:
        sign: An astrological sign like Taurus or Aquarius.
    """
    return f"{sign}: Next Tuesday you will befriend a baby otter."


@tool(approve=True)
def send_email(email: str, subject: str) -> str:
    """Send an email."""
    return f"sent to {email}"


TOOLS = (get_weather, get_horoscope, send_email)


async def events_of(events: AsyncGenerator[RunEvent, None]) -> tuple[list[RunEvent], RunResult]:
    found = [event async for event in events]
    last = found[-1]
    assert isinstance(last, RunEnded)
    return found, last.result


# --- on the simulated model ---

# The model, what is asked, the calls that were made, and words of the answer.
ASKED: dict[str, tuple[str, str, list[tuple[str, str]], str]] = {
    "weather in three cities": (
        "simulated-native",
        "What is the weather in Oslo, Paris and Rome?",
        [("get_weather", f"14 degrees in {city}") for city in ("Oslo", "Paris", "Rome")],
        "14 degrees in Rome",
    ),
    "weather in three cities, in Hermes": (
        "simulated-hermes",
        "What is the weather in Oslo, Paris and Rome?",
        [("get_weather", f"14 degrees in {city}") for city in ("Oslo", "Paris", "Rome")],
        "14 degrees in Paris",
    ),
    "weather in prompt mode": (
        "simulated-json",
        "What is the weather in Oslo?",
        [("get_weather", "14 degrees in Oslo")],
        "14 degrees in Oslo",
    ),
    "horoscope": (
        "simulated",
        "What is my horoscope? I am an Aquarius.",
        [("get_horoscope", "Aquarius: Next Tuesday you will befriend a baby otter.")],
        "baby otter",
    ),
    "no tool": ("simulated", "Good morning", [], "You said: Good morning"),
}


@pytest.mark.parametrize("case", ASKED)
def test_the_standard_examples_run(case: str) -> None:
    model, asked, made, words = ASKED[case]
    result = run_sync(Agent(model=model, tools=TOOLS, instructions="Be short."), asked)
    assert result.stop == "completed"
    assert [(call.name, call.text) for call in result.calls] == made
    assert words in result.text
    check_history(result.to_messages())


def test_a_forced_tool_is_called_once_and_then_the_model_answers() -> None:
    result = run_sync(Agent(model="simulated-native", tools=TOOLS, tool_choice="get_weather"), "Good morning")
    assert ([call.name for call in result.calls], result.stop) == (["get_weather"], "completed")


@pytest.mark.processes
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_as_it_stands(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert EXPECTED[path.name] in done.stdout


EXPECTED = {
    "horoscope.py": "(t1).",
    "weather.py": '{"city":"Rome","degrees":24}.',
    "approval.py": "[('me@example.com', 'anna@example.com')]",
    "knowledge.py": "completed after 2 turns",
    "custom_grammar.py": "calculate says: 42.",
    "patch.py": "The sky is blue.",
}


def test_each_example_is_expected() -> None:
    assert [path.name for path in EXAMPLES] == sorted(EXPECTED)


def test_what_the_docs_show_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of((ROOT / "docs" / "agent.md").read_text(encoding="utf-8"))
    programs = [block.text for block in blocks if block.language == "python" and not block.said]
    names: dict[str, Any] = {}
    assert len(programs) > 4
    for program in programs:
        exec(compile(program, "agent.md", "exec"), names)
    assert names["checked"]


# --- in several dialects ---


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_drives_the_loop(dialect: str) -> None:
    model, upstream = scripted(
        [("get_weather", {"city": "Oslo"})], [("get_horoscope", {"sign": "Leo"})], "All is well.", dialect=dialect
    )
    result = run_sync(Agent(model=model, tools=TOOLS), "Tell me all")
    assert (result.stop, result.text) == ("completed", "All is well.")
    assert [call.value for call in result.calls] == [get_weather("Oslo"), get_horoscope("Leo")]
    prompts = [one.prompt.text if one.prompt else "" for one in upstream.asked]
    assert "14 degrees in Oslo" in prompts[1]
    check_history(result.to_messages())


@pytest.mark.parametrize("dialect", [None, *DIALECTS])
def test_streamed_or_not_the_result_is_the_same(dialect: str | None) -> None:
    answers: list[Any] = [[("get_weather", {"city": "Oslo"})], [("get_weather", {"town": 5})], "Done."]
    whole = run_sync(agent(*answers, dialect=dialect, tools=TOOLS), "Go")
    events, streamed = asyncio.run(events_of(stream(agent(*answers, dialect=dialect, tools=TOOLS), "Go")))
    assert streamed.to_messages() == whole.to_messages()
    assert (streamed.stop, streamed.usage, streamed.text) == (whole.stop, whole.usage, whole.text)
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text.endswith(streamed.text)


def test_the_events_of_a_call_come_in_order() -> None:
    made = [("get_weather", {"city": city}) for city in ("Oslo", "Rome")]
    events, _ = asyncio.run(events_of(stream(agent(made, "Done.", tools=TOOLS), "Go")))
    kinds = (TurnEnded, CallReady, ToolStarted, ToolEnded, RunEnded)
    for id_ in ("call_0", "call_1"):
        own = [type(event) for event in events if getattr(event, "id", None) == id_]
        assert own == [CallReady, ToolStarted, ToolEnded]
    others = [type(event) for event in events if isinstance(event, kinds) and not hasattr(event, "id")]
    assert others == [TurnEnded, TurnEnded, RunEnded]


def test_a_custom_tool_runs_its_text() -> None:
    seen: list[str] = []

    @tool(grammar=callwright.Grammar("regex", r"print\([0-9]+\)"))
    def run_python(code: str) -> str:
        """Run Python code."""
        seen.append(code)
        return "42"

    made = [("run_python", {"input": "print(42)"})]
    result = run_sync(agent(made, "42", tools=[run_python]), "Run it")
    assert (seen, result.text) == (["print(42)"], "42")
    check_history(result.to_messages())


# --- event loops ---


def test_a_model_with_a_key_is_used_by_one_run_after_the_other(model: ModelServer) -> None:
    model.plays(said("Hi"), said("Hi again"), said("And again"))
    asked = Model("m", ChatUpstream(model.url, {"authorization": "Bearer sk-mine"}), "m")
    assert [run_sync(Agent(model=asked), "Hello").text for _ in range(3)] == ["Hi", "Hi again", "And again"]
    assert {one.headers["Authorization"] for one in model.asked} == {"Bearer sk-mine"}


# --- fields ---

FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "a slip": ({"temprature": 0}, "Did you mean 'temperature'"),
    "what the agent has itself": ({"tools": []}, "Agent(tools="),
    "the form of the answer": ({"response_format": {"type": "json_object"}}, "output_type"),
    "what a run sets": ({"stream": True}, "leave it out"),
}


@pytest.mark.parametrize("case", FIELDS)
def test_fields_that_would_do_nothing_are_refused(case: str) -> None:
    fields, words = FIELDS[case]
    with pytest.raises(RequestError, match=re.escape(words)) as raised:
        Agent(model="simulated", fields=fields)
    assert raised.value.param == f"fields.{next(iter(fields))}"


def test_fields_of_any_server_go_to_it(model: ModelServer) -> None:
    model.plays(said("Hi"))
    run_sync(Agent(model=f"{model.url}#m", fields={"temperature": 0, "quixotry": 3}), "Hello")
    assert (model.body["temperature"], model.body["quixotry"]) == (0, 3)


# --- going on ---


def test_a_result_is_a_history() -> None:
    first = run_sync(agent([("get_weather", {"city": "Oslo"})], "14", tools=TOOLS), "Oslo?")
    model, upstream = scripted("Warm.")
    again = run_sync(Agent(model=model, tools=TOOLS), "Is that warm?", history=first)
    messages: Any = upstream.asked[0].messages
    assert messages == [*first.to_messages(), {"role": "user", "content": "Is that warm?"}]
    assert again.to_messages()[-1] == {"role": "assistant", "content": "Warm."}


def test_a_run_that_met_its_limit_goes_on() -> None:
    answers: list[Any] = [[("get_weather", {"city": "Oslo"})], "14"]
    model, _ = scripted(*answers)
    first = run_sync(Agent(model=model, tools=TOOLS, limits=Limits(turns=1)), "Oslo?")
    assert first.stop == "turns"
    assert run_sync(Agent(model=model, tools=TOOLS), first).text == "14"


def test_messages_of_a_client_are_mended() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Os'}}
    broken: list[dict[str, Any]] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    result = run_sync(agent("Hello", tools=TOOLS), [*broken, {"role": "user", "content": "Well?"}])
    assert result.text == "Hello"
    check_history(result.to_messages())


# --- approvals, in another process ---

APPROVER = """
import json, sys
import callwright
from tests.support.scripted_agents import scripted
from tests.agent.test_run import TOOLS

pending, decisions = json.load(sys.stdin)
model, _ = scripted("All done.")
result = callwright.run_sync(callwright.Agent(model=model, tools=TOOLS), pending, decisions=decisions)
print(json.dumps([result.stop, result.text, result.to_messages()]))
"""


@pytest.mark.processes
def test_a_run_is_resumed_from_json_in_another_process() -> None:
    made = [("send_email", {"email": "a@b.c", "subject": "Hi"}), ("get_weather", {"city": "Oslo"})]
    first = run_sync(agent(made, tools=TOOLS), "Send it")
    assert first.stop == "pending"
    assert first.pending is not None
    decisions = {call["id"]: True for call in first.pending["calls"]}
    done = subprocess.run(
        [sys.executable, "-c", APPROVER],
        input=json.dumps([first.pending, decisions]),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    stop, text, messages = json.loads(done.stdout)
    assert (stop, text) == ("completed", "All done.")
    assert [one["content"] for one in messages if one["role"] == "tool"] == ["sent to a@b.c", "14 degrees in Oslo"]
    check_history(messages)


def test_a_function_of_the_call_says_whether_to_ask() -> None:
    async def is_far(call: CallReady) -> bool:
        return str(call.arguments["city"]) == "Tokyo"

    made = tool(get_weather, approve=is_far)
    near, far = ([("get_weather", {"city": city})] for city in ("Oslo", "Tokyo"))
    assert run_sync(agent(near, "14", tools=[made]), "Oslo?").stop == "completed"
    result = run_sync(agent(near, far, tools=[made]), "And Tokyo?")
    assert result.stop == "pending"

    async def main() -> RunResult:
        return await resume(agent("Ok.", tools=[made]), result, {"call_1": "too far"})

    assert asyncio.run(main()).calls[-1].text == "too far"


def test_hidden_values_are_not_in_what_waits() -> None:
    secret = "s3cr3t-7f3"

    @tool(approve=True)
    def pay(amount: int, account: Annotated[str, Hidden]) -> str:
        assert account == secret
        return "paid"

    result = run_sync(agent([("pay", {"amount": 5})], tools=[pay]), "Pay", hidden={"account": secret})
    assert secret not in json.dumps(result.pending)
    again = agent("Fine.", tools=[pay])
    with pytest.raises(RequestError, match="account"):
        run_sync(again, result, decisions={"call_0": True})
    done = run_sync(again, result, decisions={"call_0": True}, hidden={"account": secret})
    assert done.calls[0].text == "paid"


def test_a_run_that_waits_goes_on_without_an_answer() -> None:
    made = [("send_email", {"email": "a@b.c", "subject": "Hi"})]
    first = run_sync(agent(made, tools=TOOLS), "Send it")
    result = run_sync(agent("Fine, not then.", tools=TOOLS), "Forget it", history=first)
    assert result.to_messages()[2]["content"] == "This call was not run."
    check_history(result.to_messages())


# --- cancelled ---


class Stalled:
    """Answers a beginning and then waits for ever."""

    name = "stalled"

    def __init__(self, beginning: Sequence[Delta | Exception]) -> None:
        self.beginning = beginning
        self.closed = False

    async def stream(self, generation: GenerationRequest) -> Deltas:
        try:
            for delta in self.beginning:
                assert not isinstance(delta, Exception)
                yield [delta]
            await asyncio.Event().wait()
        finally:
            self.closed = True

    def hand_on(self, generation: GenerationRequest, path: str) -> HandedAnswers:
        raise NotImplementedError

    async def open(self) -> None:
        pass

    def window(self, model: str) -> int | None:
        return None

    async def models(self) -> list[str]:
        return []

    async def close(self) -> None: ...


def stalled(*beginning: Delta | Exception) -> tuple[Model, Stalled]:
    upstream = Stalled(beginning)
    return Model("stalled", upstream, "stalled"), upstream


@pytest.mark.parametrize("how", ["cancel", "seconds", "task", "close"])
def test_a_model_that_stalls_is_left_and_its_part_is_kept(how: str) -> None:
    beginning = calls(("get_weather", {"city": "Oslo"}), ("get_weather", '{"ci'), text="It is", stop=False)
    model, upstream = stalled(*beginning)
    limits = Limits(seconds=0.5 if how == "seconds" else None)
    results: list[RunResult] = []

    async def main() -> None:
        cancel = asyncio.Event()
        one = Agent(model=model, tools=TOOLS, limits=limits)
        events = stream(one, "Oslo?", cancel=cancel, on_end=results.append)

        async def consume() -> None:
            async for event in events:
                if event == TextDelta("It is"):
                    if how == "cancel":
                        cancel.set()
                    elif how == "task":
                        task.cancel()
                    elif how == "close":
                        break
            await events.aclose()

        task = asyncio.create_task(consume())
        done, _ = await asyncio.wait({task}, timeout=30)
        assert done
        assert task.cancelled() == (how == "task")

    asyncio.run(main())
    (result,) = results
    assert result.stop == ("seconds" if how == "seconds" else "cancelled")
    assert upstream.closed
    assert result.to_messages()[1]["content"] == "It is\n\n[interrupted]"
    check_history(result.to_messages())


async def stays(context: Context) -> None:
    """Stays."""
    await asyncio.Event().wait()


LEAVE = threading.Event()


def stays_too() -> None:
    """Stays, in a thread."""
    LEAVE.wait()


@pytest.mark.parametrize("how", ["cancel", "seconds", "task"])
def test_calls_that_run_are_interrupted(how: str) -> None:
    LEAVE.clear()
    made = [("get_weather", {"city": "Oslo"}), ("stays", {}), ("stays_too", {}), ("get_horoscope", {"sign": "Leo"})]
    later = tool(get_horoscope, sequential=True)
    results: list[RunResult] = []

    async def main() -> None:
        cancel = asyncio.Event()
        limits = Limits(seconds=1.0 if how == "seconds" else None)
        one = agent(made, tools=[get_weather, stays, stays_too, later], limits=limits)
        begun = 0

        async def consume() -> None:
            nonlocal begun
            async for event in stream(one, "Go", cancel=cancel, on_end=results.append):
                begun += isinstance(event, ToolStarted)
                ended = isinstance(event, ToolEnded)
                if begun == 3 and ended and how != "seconds":
                    cancel.set() if how == "cancel" else task.cancel()

        task = asyncio.create_task(consume())
        await asyncio.wait({task}, timeout=30)
        assert task.done()

    asyncio.run(main())
    LEAVE.set()
    (result,) = results
    unknown = "Interrupted while it ran; its effect is unknown."
    outputs = [message["content"] for message in result.to_messages() if message["role"] == "tool"]
    assert outputs == ["14 degrees in Oslo", unknown, unknown, "This call was not run."]
    check_history(result.to_messages())


SCRIPT: list[Any] = [
    calls(("get_weather", {"city": "Oslo"}), ("get_weather", {"town": 1}), text="Let me see."),
    [("get_horoscope", {"sign": "Leo"}), ("get_weather", {"city": "Rome"})],
    "Done.",
]


@pytest.mark.parametrize("how", ["task", "close", "cancel"])
def test_at_whatever_event_it_is_cancelled_the_history_goes_on(how: str) -> None:
    def make() -> Agent:
        return agent(*SCRIPT, tools=TOOLS)

    whole, _ = asyncio.run(events_of(stream(make(), "Go")))
    assert len(whole) > 20

    async def until(number: int) -> RunResult:
        results: list[RunResult] = []
        cancel = asyncio.Event()

        async def consume() -> None:
            seen = 0
            events = stream(make(), "Go", cancel=cancel, on_end=results.append)
            async for _ in events:
                seen += 1
                if seen == number:
                    if how == "close":
                        await events.aclose()
                        return
                    if how == "cancel":
                        cancel.set()
                    else:
                        task.cancel()

        task = asyncio.create_task(consume())
        await asyncio.wait({task})
        (result,) = results
        return result

    for number in range(1, len(whole)):
        result = asyncio.run(until(number))
        check_history(result.to_messages())
        assert result.stop in ("cancelled", "completed")


# --- what fails ---


def test_a_server_that_fails_raises_and_the_history_is_there() -> None:
    error = UpstreamError("down", fault="cut", upstream="scripted")
    beginning: list[Any] = [UpstreamText("It "), error]
    results: list[RunResult] = []
    model, _ = scripted([("get_weather", {"city": "Oslo"})], beginning)
    seen: list[RunEvent] = []

    async def main() -> None:
        async for event in stream(Agent(model=model, tools=TOOLS), "Oslo?", on_end=results.append):
            seen.append(event)

    with pytest.raises(UpstreamError):
        asyncio.run(main())
    (result,) = results
    assert seen[-1] == RunEnded(result)
    assert (result.stop, result.detail) == ("failed", "down")
    assert result.to_messages()[-1]["content"] == "It \n\n[interrupted]"
    check_history(result.to_messages())


@pytest.mark.parametrize("way", SIMULATED)
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_goes_wrong_a_run_ends_with_a_history_that_goes_on(fault: str, way: str) -> None:
    mode, dialect = SIMULATED[way]
    model = Model(way, SimulatedUpstream(Faults({fault: 1.0})), way, mode=mode, dialect=dialect)
    limits = Limits(turns=5, seconds=0.2 if fault == "silent" else 30)
    results: list[RunResult] = []
    with suppress(UpstreamError):
        run_sync(Agent(model=model, tools=TOOLS, limits=limits), "What is the weather in Oslo?", on_end=results.append)
    (result,) = results
    assert result.stop in ("completed", "failed", "repeated", "turns", "seconds")
    assert bool(result.detail) == (result.stop != "completed")
    check_history(result.to_messages())


def test_a_demand_that_the_model_does_not_meet_is_a_result() -> None:
    result = run_sync(agent("No.", tools=TOOLS, tool_choice="required"), "Go")
    assert result.stop == "failed"
    assert "call" in result.detail


def test_an_approval_function_that_fails_runs_nothing() -> None:
    results: list[RunResult] = []

    def breaks(_: CallReady) -> bool:
        raise LookupError

    made = tool(get_weather, approve=breaks)
    with pytest.raises(LookupError):
        run_sync(agent([("get_weather", {"city": "Oslo"})], tools=[made]), "Oslo?", on_end=results.append)
    assert results[0].to_messages()[2]["content"] == "This call was not run."


# What makes an agent or a run, the error, and words of it.
MISTAKES: dict[str, tuple[Callable[[], object], type[Exception], tuple[str, ...]]] = {
    "an unknown model": (lambda: Agent(model="gpt"), ConfigError, ("'gpt'", "'simulated'", "#name")),
    "a URL without a name": (lambda: Agent(model="http://x/v1"), ConfigError, ("#name",)),
    "a tool that is none": (lambda: Agent(model="simulated", tools=["f"]), RequestError, ("str",)),  # type: ignore[list-item]
    "two tools of one name": (
        lambda: Agent(model="simulated", tools=[get_weather] * 2),
        RequestError,
        ("'get_weather'",),
    ),
    "an unknown choice": (
        lambda: Agent(model="simulated", tools=TOOLS, tool_choice="get_wether"),
        RequestError,
        ("get_wether",),
    ),
    "a forced choice without tools": (
        lambda: Agent(model="simulated", tool_choice="required"),
        RequestError,
        ("tools",),
    ),
    "a limit of nothing": (
        lambda: Agent(model="simulated", limits=Limits(turns=0)),
        ConfigError,
        ("limits.turns", "0"),
    ),
    "a limit that is no limit": (
        lambda: Agent(model="simulated", limits=Limits(turns=None)),  # type: ignore[arg-type]
        ConfigError,
        ("limits.turns", "expected `int`, got `null`"),
    ),
    "a limit in words": (
        lambda: Agent(model="simulated", limits=Limits(seconds="5")),  # type: ignore[arg-type]
        ConfigError,
        ("limits.seconds", "`str`"),
    ),
    "seconds that are no number": (
        lambda: Agent(model="simulated", limits=Limits(seconds=float("nan"))),
        ConfigError,
        ("limits.seconds", "nan"),
    ),
    "limits that are none": (
        lambda: Agent(model="simulated", limits={"turns": 3}),  # type: ignore[call-overload]
        ConfigError,
        ("Limits(…)", "dict"),
    ),
    "one tool for a list": (
        lambda: Agent(model="simulated", tools=get_weather),  # type: ignore[call-overload]
        RequestError,
        ("a list of functions", "tools=[…]"),
    ),
    "one agent for a list": (
        lambda: Agent(model="simulated", handoffs=agent()),  # type: ignore[call-overload]
        RequestError,
        ("a list of agents", "handoffs=[…]"),
    ),
    "one set of hooks for a list": (
        lambda: Agent(model="simulated", hooks=callwright.Hooks()),  # type: ignore[call-overload]
        RequestError,
        ("a list of Hooks", "hooks=[…]"),
    ),
    "a function for hooks": (
        lambda: Agent(model="simulated", hooks=[get_weather]),  # type: ignore[list-item]
        RequestError,
        ("expected Hooks", "function"),
    ),
    "an unknown way with errors": (
        lambda: Agent(model="simulated", on_error="ignore"),  # type: ignore[call-overload]
        RequestError,
        ("'tell'", "'ignore'"),
    ),
    "no say in approvals": (lambda: tool(get_weather, approve=None), RequestError, ("approve", "None")),  # type: ignore[call-overload]
    "no time for a tool": (lambda: tool(get_weather, timeout_s=0), RequestError, ("timeout_s", "more than 0")),
    "time in words": (lambda: tool(get_weather, timeout_s="5"), RequestError, ("timeout_s", "'5'")),  # type: ignore[call-overload]
    "a result of less than nothing": (lambda: tool(get_weather, result_chars=-5), RequestError, ("result_chars", "-5")),
    "an input that is none": (lambda: run_sync(agent(), 5), RequestError, ("int",)),  # type: ignore[arg-type]
    "messages that are none": (lambda: run_sync(agent(), [{"role": "x", "content": ""}]), RequestError, ("'x'",)),
    "nothing to decide on": (
        lambda: run_sync(agent(), run_sync(agent("Hi"), "Hi"), decisions={}),
        RequestError,
        ("does not wait",),
    ),
}


def takes(x: int) -> str:
    """Take a number."""
    return str(x)


async def later(error: Exception) -> str:
    return "failed"


# What is given to make something: the parameter, values that are none, and words of the error.
WRONG_OF_AGENT: dict[str, tuple[tuple[Any, ...], str]] = {
    "name": ((5, None, b"x", ["a"]), "expected a text"),
    "description": ((5, None, ["a"]), "expected a text"),
    "model": ((["simulated"], 5, None, {}), "'simulated'"),
    "parallel_tool_calls": (("yes", 5, None), "True or False"),
    "tool_choice": ((None, 5, ["auto"]), "'auto'"),
    "instructions": ((5, None, lambda a, b: "x", lambda *, q: "x"), "takes the RunContext or nothing"),
    "on_error": ((5, lambda: "x", lambda a, b: "x", later), "a function of the exception that gives a text"),
    "fields": ((5, "x", ["a"], {5: 1}, {"temperature": object()}), r"Agent\(fields=…\)"),
    "tools": (([5], [None], {"takes": takes}, 5), r"expected (functions, or|a list)"),
    "handoffs": (([5], [Agent]), "expected agents"),
}
WRONG_OF_TOOL: dict[str, tuple[tuple[Any, ...], str]] = {
    "name": ((5, "", "a b"), r"(expected a text, got int: 5|Give it a name)"),
    "description": ((5, ["a"]), "expected a text"),
    "parameters": (([], "x", {"type": "nope"}, {"type": "object", "properties": []}), "(a JSON Schema|Invalid schema)"),
    "strict": (("yes", 1), "True or False"),
    "custom": (("yes", None), "True or False"),
    "deferred": (("no", None), "True or False"),
    "repeatable": ((1,), "True or False"),
    "sequential": (("no",), "True or False"),
    "approve": ((5, "yes", lambda a, b: True, max), "a function of the call"),
}
WRONG_OF_HOOKS: dict[str, tuple[tuple[Any, ...], str]] = {
    name: ((5, "x", lambda one: None, lambda one, *, two: None), "a function of two arguments, or None")
    for name in ("before_model", "after_model", "before_tool", "after_tool", "after_output")
}
WRONG = [
    (make, name, value, words)
    for make, table in (
        (partial(Agent, model="simulated"), WRONG_OF_AGENT),
        (partial(tool, takes), WRONG_OF_TOOL),
        (callwright.Hooks, WRONG_OF_HOOKS),
    )
    for name, (values, words) in table.items()
    for value in values
]


@pytest.mark.parametrize(("make", "name", "value", "words"), WRONG)
def test_what_is_of_a_wrong_kind_is_told_when_it_is_given(
    make: Callable[..., object], name: str, value: Any, words: str
) -> None:
    with pytest.raises((RequestError, ConfigError), match=words) as raised:
        make(**{name: value})
    if isinstance(raised.value, RequestError):
        assert re.split(r"[.\[]", str(raised.value.param))[0] == name


def test_an_agent_among_the_tools_is_told_how_it_is_one() -> None:
    for given in (Agent, agent()):
        with pytest.raises(RequestError, match=r"agent\.as_tool\(\), or handoffs=\[agent\]"):
            Agent(model="simulated", tools=[given])  # type: ignore[list-item]


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_of_the_caller_is_told(case: str) -> None:
    mistake, kind, words = MISTAKES[case]
    with pytest.raises(kind) as raised:
        mistake()
    assert not [word for word in words if word not in str(raised.value)], str(raised.value)


def test_run_sync_works_inside_an_event_loop() -> None:
    async def main() -> RunResult:
        return run_sync(agent("Hi"), "Hi")

    assert asyncio.run(main()).text == "Hi"


@pytest.mark.processes
def test_the_package_brings_no_event_loop_until_it_is_used() -> None:
    code = "import sys, callwright; assert 'asyncio' not in sys.modules; "
    code += "callwright.Agent; assert 'httptools' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_chat_endpoint_is_asked(model: ModelServer) -> None:
    model.plays(calling("get_weather", '{"city": "Oslo"}'), said("14"))
    result = run_sync(Agent(model=f"{model.url}#served", tools=[get_weather], fields={"temperature": 0}), "Oslo?")
    assert (result.text, result.usage.prompt_tokens) == ("14", 22)
    assert [(one.body["model"], one.body["temperature"]) for one in model.asked] == [("served", 0)] * 2
    messages = model.asked[1].body["messages"]
    assert messages == result.to_messages()[:3]
    assert messages[2] == {"role": "tool", "tool_call_id": "call_up_0", "content": "14 degrees in Oslo"}


# --- results where a server has nothing for them ---


@pytest.mark.parametrize(("way", "begin"), [("user", "[Tool Results]"), ("harmony", "<|start|>functions.get_weather")])
def test_both_plain_ways_of_results_drive_the_loop(way: str, begin: str) -> None:
    call = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>'
    upstream = ScriptedUpstream([call, "<|channel|>final<|message|>Cold.<|return|>"])
    options = read_options("harmony", {"tool_results": way})
    model = Model("m", upstream, "m", mode="prompt", dialect="harmony", options=options)
    result = run_sync(Agent(model=model, tools=TOOLS), "Weather in Oslo?")
    assert (result.stop, result.text) == ("completed", "Cold.")
    messages = upstream.asked[1].messages
    assert messages is not None
    assert "14 degrees in Oslo" in messages[-1]["content"]
    assert (messages[-1]["role"], messages[-1]["content"].startswith(begin)) == ("user", True)
