"""Sessions: conversations that go on over runs and processes, on SQLite and PostgreSQL."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from callwright import (
    Agent,
    ConfigError,
    RequestError,
    RunResult,
    Session,
    SessionError,
    UpstreamError,
    resume,
    run,
    run_sync,
    stream,
    tool,
)
from callwright.agent.events import Compacted, RunEnded
from callwright.agent.state import INTERRUPTED
from callwright.conversation import Message
from callwright.database.transactions import StoreError
from callwright.turn.model import Model
from callwright.upstreams.simulated.scripted import ScriptedUpstream
from tests.support.scripted_agents import agent, check_history, scripted
from tests.support.servers import Answer, ModelServer, calling, said
from tests.support.store_helpers import sql
from tests.support.waiting import PATIENCE_S

pytest_plugins = ["tests.support.databases"]
WEATHER = ("get_weather", {"city": "Oslo"})


def get_weather(city: str) -> str:
    """Weather of a city."""
    return f"14 degrees in {city}"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def kept(session: Session) -> list[dict[str, Any]]:
    return asyncio.run(session.get_items())


def texts(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Who says what; of a turn with calls the tools."""
    return [
        f"{one['role']}: {one['content'] or ' '.join(call['function']['name'] for call in one['tool_calls'])}"
        for one in messages
    ]


# --- runs ---


def test_each_run_goes_on_with_what_was_said(kept_url: str) -> None:
    model, upstream = scripted([WEATHER], "14.", "Warm.", "Yes.")
    weather = Agent(model=model, tools=[get_weather], instructions="Be brief.")
    first = run_sync(weather, "How is Oslo?", session=Session("alice", kept_url))
    run_sync(weather, "Is that warm?", session=Session("alice", kept_url))
    run_sync(weather, "Really?", session=Session("bob", kept_url))
    assert texts(kept(Session("alice", kept_url))) == [
        "user: How is Oslo?",
        "assistant: get_weather",
        "tool: 14 degrees in Oslo",
        "assistant: 14.",
        "user: Is that warm?",
        "assistant: Warm.",
    ]
    assert kept(Session("alice", kept_url))[:4] == first.to_messages()
    assert texts(kept(Session("bob", kept_url))) == ["user: Really?", "assistant: Yes."]
    asked = [item.text for item in upstream.asked[2].conversation.items if isinstance(item, Message)]
    assert asked == ["Be brief.", "How is Oslo?", "14.", "Is that warm?"]


def test_within_async_with_its_connections_are_kept(kept_url: str) -> None:
    async def talk() -> None:
        echo = agent(*(f"A{n}" for n in range(20)))
        async with Session("alice", kept_url) as session:
            for n in range(10):
                await run(echo, f"Q{n}", session=session)
                async with aclosing(stream(echo, f"Q{n}", session=session)) as events:
                    *_, last = [event async for event in events]
                assert isinstance(last, RunEnded)
                assert len(await session.get_items()) == 4 * (n + 1)  # kept before it is said

    asyncio.run(talk())


def test_items_are_read_added_and_taken_out_as_in_the_agents_sdk(kept_url: str) -> None:
    async def story() -> None:
        session = Session("a name of any form: ä/☃ " + "x" * 300, kept_url)
        assert (await session.get_items(), await session.pop_item()) == ([], None)
        given = [user("One"), assistant("Two"), user("Thr\0ee")]
        await session.add_items(given)
        assert await session.get_items() == given
        assert [await session.get_items(limit) for limit in (2, 0, 9)] == [given[1:], [], given]
        assert await session.pop_item() == given[2]
        assert await session.get_items() == given[:2]
        with pytest.raises(RequestError, match="Supported values"):
            await session.add_items([{"role": "nobody", "content": "?"}])
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items(given[:1])
        assert await session.get_items() == given[:1]

    asyncio.run(story())


@pytest.mark.parametrize("failure", ["upstream", "cancelled"])
def test_what_a_run_leaves_that_does_not_come_to_its_end_goes_on(kept_url: str, failure: str) -> None:
    session = Session("alice", kept_url)
    if failure == "upstream":
        error = UpstreamError("It is down.", fault="unreachable", upstream="test")
        broken = agent([WEATHER], [error], tools=[get_weather])
        with pytest.raises(UpstreamError, match="down"):
            run_sync(broken, "How is Oslo?", session=session)
        assert texts(kept(session)) == ["user: How is Oslo?", "assistant: get_weather", "tool: 14 degrees in Oslo"]
    else:
        results: list[RunResult] = []

        async def cancelled() -> None:
            begun = asyncio.Event()

            async def wait() -> None:
                """Wait."""
                begun.set()
                await asyncio.Event().wait()

            waiting = agent([("wait", {})], tools=[wait])
            task = asyncio.create_task(run(waiting, "Wait.", session=session, on_end=results.append))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancelled())
        assert kept(session) == results[0].to_messages()
        assert texts(kept(session)) == ["user: Wait.", "assistant: wait", f"tool: {INTERRUPTED}"]
    check_history(kept(session))
    assert run_sync(agent("Sunny."), "And now?", session=session).text == "Sunny."
    check_history(kept(session))


def test_a_run_that_waits_for_a_person_is_kept_when_it_goes_on(kept_url: str) -> None:
    @tool(approve=True)
    def delete_file(path: str) -> str:
        """Delete a file."""
        return f"deleted {path}"

    session = Session("alice", kept_url)
    made = ("delete_file", {"path": "notes"})
    run_sync(agent("Hello."), "Hi.", session=session)
    waiting = run_sync(agent([made], tools=[delete_file]), "Delete it.", session=session)
    assert texts(kept(session)) == ["user: Hi.", "assistant: Hello.", "user: Delete it."]
    pending = json.loads(json.dumps(waiting.pending))
    decisions = {call["id"]: True for call in pending["calls"]}
    done = asyncio.run(resume(agent("Done.", tools=[delete_file]), pending, decisions, session=session))
    assert done.text == "Done."
    assert kept(session) == done.to_messages()
    assert texts(kept(session))[2:] == [
        "user: Delete it.",
        "assistant: delete_file",
        "tool: deleted notes",
        "assistant: Done.",
    ]
    with pytest.raises(SessionError, match="has changed") as caught:
        run_sync(agent("Again."), pending, decisions=decisions, session=session)
    assert caught.value.code == "session_changed"
    assert run_sync(agent("Fine."), "And?", session=session).text == "Fine."


def test_what_cannot_be_is_refused_before_the_model_is_asked(kept_url: str) -> None:
    session = Session("alice", kept_url)
    before = run_sync(agent("Hello."), "Hi.")
    with pytest.raises(RequestError, match="history of its own"):
        run_sync(agent(), "Hi.", history=before, session=session)
    with pytest.raises(RequestError, match="what is new"):
        run_sync(agent(), before, session=session)
    with pytest.raises(RequestError, match="needs a name"):
        Session("", kept_url)
    with pytest.raises(ConfigError, match="Name a file"):
        Session("alice", "sqlite://")
    with pytest.raises(ConfigError, match="expected sqlite"):
        run_sync(agent(), "Hi.", session=Session("alice", "agent.db"))


# --- how long it may be ---


def test_what_is_old_is_summed_up_by_the_model_when_it_is_too_long(kept_url: str) -> None:
    long, summary = "x" * 4_000, "They talked about x."
    session = Session("alice", kept_url, compact_threshold=500)
    asyncio.run(session.add_items([user(long), assistant("a")]))
    model, upstream = scripted(summary, [WEATHER], "14.")
    events: list[Any] = []

    async def talk() -> None:
        weather = Agent(model=model, tools=[get_weather], instructions="Be brief.")
        async with aclosing(stream(weather, "How is Oslo?", session=session)) as run:
            events.extend([event async for event in run])

    asyncio.run(talk())
    assert [event for event in events if isinstance(event, Compacted)] == [Compacted(summary, 2)]
    assert events[-1].result.text == "14."
    assert long in str(upstream.asked[0].conversation)
    assert long not in str(upstream.asked[1].conversation)
    first, *rest = kept(session)
    assert (first["role"], summary in first["content"]) == ("user", True)
    assert texts(rest) == [
        "user: How is Oslo?",
        "assistant: get_weather",
        "tool: 14 degrees in Oslo",
        "assistant: 14.",
    ]
    assert kept(session) == events[-1].result.to_messages()


def test_it_is_summed_up_in_the_middle_of_a_run_too(kept_url: str) -> None:
    def read() -> str:
        """Read."""
        return "x" * 4_000

    session = Session("alice", kept_url, compact_threshold=500)
    model, upstream = scripted([("read", {})], "They read x.", [("read", {})], "They read x twice.", "Done.")
    reader = Agent(model=model, tools=[read])
    asyncio.run(session.add_items([user("Hi."), assistant("Hello.")]))
    result = run_sync(reader, "Read it, twice.", session=session)
    assert (result.text, len(upstream.asked)) == ("Done.", 5)
    assert kept(session) == result.to_messages()
    check_history(kept(session))


class _Windowed(ScriptedUpstream):
    """A server with a window, which it tells when it is asked for its models."""

    def __init__(self, answers: Sequence[str]) -> None:
        super().__init__(answers)
        self.listed = 0

    def window(self, model: str) -> int | None:
        return 1_000 if self.listed else None

    async def models(self) -> list[str]:
        self.listed += 1
        return ["m"]


def test_without_a_threshold_it_is_four_fifths_of_the_models_window(kept_url: str) -> None:
    upstream = _Windowed(["One.", "They talked.", "Two."])
    windowed = Agent(model=Model("m", upstream, "m"))
    session = Session("alice", kept_url)
    run_sync(windowed, "x" * 3_000, session=session)
    assert len(kept(session)) == 2
    run_sync(windowed, "y" * 300, session=session)
    assert (len(upstream.asked), upstream.listed) == (3, 1)
    assert texts(kept(session))[1:] == [f"user: {'y' * 300}", "assistant: Two."]


def test_it_holds_so_many_bytes_and_no_more(kept_url: str) -> None:
    session = Session("alice", kept_url, max_bytes=2_000)
    asyncio.run(session.add_items([user("x" * 900)]))
    with pytest.raises(SessionError, match="full") as caught:
        asyncio.run(session.add_items([user("y" * 1_200)]))
    assert caught.value.code == "session_full"
    with pytest.raises(SessionError, match="full"):
        run_sync(agent("never"), "y" * 1_200, session=session)
    assert kept(session) == [user("x" * 900)]
    asyncio.run(session.add_items([assistant("z" * 700)]))
    run_sync(agent("They talked.", "Fine."), "Go on.", session=session)  # with few tokens, but hardly any room
    assert texts(kept(session))[1:] == ["user: Go on.", "assistant: Fine."]
    assert sql(kept_url, "SELECT size FROM sessions") == [
        (sum(len(json.dumps(m, separators=(",", ":"))) for m in kept(session)),)
    ]


# --- at the same time ---


class _Gated:
    """A tool that waits until it is let go, and says that it runs."""

    def __init__(self) -> None:
        self.runs, self.go = asyncio.Event(), asyncio.Event()

    def agent(self) -> Agent:
        async def wait() -> str:
            """Wait."""
            self.runs.set()
            await self.go.wait()
            return "waited"

        return agent([("wait", {})], "Waited.", tools=[wait])


def test_a_second_run_at_the_same_time_is_refused_or_waits(kept_url: str) -> None:
    async def story() -> None:
        gated = _Gated()
        first = asyncio.create_task(run(gated.agent(), "First.", session=Session("alice", kept_url)))
        await gated.runs.wait()
        model, upstream = scripted("never")
        other = Session("alice", kept_url)
        for change in (
            run(Agent(model=model), "Second.", session=other),
            other.add_items([user("!")]),
            other.pop_item(),
            other.clear_session(),
        ):
            with pytest.raises(SessionError, match="busy") as caught:
                await change
            assert (caught.value.code, caught.value.status) == ("session_busy", 409)
        assert not upstream.asked
        assert texts(await other.get_items()) == ["user: First.", "assistant: wait"]
        patient = Session("alice", kept_url, wait_s=PATIENCE_S)
        second = asyncio.create_task(run(agent("Second answer."), "Second.", session=patient))
        gated.go.set()
        await first
        await second
        assert texts(await other.get_items()) == [
            "user: First.",
            "assistant: wait",
            "tool: waited",
            "assistant: Waited.",
            "user: Second.",
            "assistant: Second answer.",
        ]

    asyncio.run(story())


def test_a_run_that_has_lost_its_session_says_so_and_adds_nothing(kept_url: str) -> None:
    async def story() -> None:
        gated = _Gated()
        first = asyncio.create_task(run(gated.agent(), "First.", session=Session("alice", kept_url)))
        await gated.runs.wait()
        sql(kept_url, "UPDATE sessions SET seen_at = 1")  # as if its process had stood still for long
        await run(agent("Second answer."), "Second.", session=Session("alice", kept_url))
        gated.go.set()
        with pytest.raises(SessionError, match="was lost") as caught:
            await first
        assert caught.value.code == "session_lost"

    asyncio.run(story())
    assert texts(kept(Session("alice", kept_url))) == [
        "user: First.",
        "assistant: wait",
        f"tool: {INTERRUPTED}",
        "user: Second.",
        "assistant: Second answer.",
    ]


_TALKS = """
import sys
from callwright import Agent, Session, run_sync

url, name, count = sys.argv[1:]
for number in range(int(count)):
    run_sync(Agent(model="simulated-native"), f"{name}{number}", session=Session("all", url, wait_s=60))
"""


@pytest.mark.processes
def test_processes_that_talk_at_once_lose_nothing_and_nothing_stands_between(kept_url: str) -> None:
    names = ("a", "b", "c")
    talking = [subprocess.Popen([sys.executable, "-c", _TALKS, kept_url, name, "6"]) for name in names]
    assert [process.wait(PATIENCE_S) for process in talking] == [0, 0, 0]
    messages = kept(Session("all", kept_url))
    pairs = [(messages[at], messages[at + 1]) for at in range(0, len(messages), 2)]
    assert all((one["role"], other["role"]) == ("user", "assistant") for one, other in pairs)
    assert all(one["content"] in other["content"] for one, other in pairs)
    said = [one["content"] for one, _ in pairs]
    assert sorted(said) == sorted(f"{name}{number}" for name in names for number in range(6))
    for name in names:
        assert [one for one in said if one[0] == name] == [f"{name}{number}" for number in range(6)]


# --- killed ---

_IS_KILLED = """
import sys, time
import callwright

store, url = sys.argv[1:]

@callwright.tool
def transfer(amount: int) -> str:
    "Transfer an amount."
    if amount == 2:
        print("runs", flush=True)
        time.sleep(3600)
    return f"transferred {amount}"

model = callwright.connect(url, "m")
agent = callwright.Agent(model=model, tools=[transfer])
session = callwright.Session("alice", store)
result = callwright.run_sync(agent, "Transfer 1.", session=session)
print("said", flush=True)
callwright.run_sync(agent, "Transfer more.", session=session)
"""


@pytest.mark.processes
@pytest.mark.parametrize("where", ["between two turns", "in a turn of the model", "while a tool runs"])
def test_what_a_killed_process_leaves_goes_on_at_once(
    new_kept_url: Callable[[], str], model: ModelServer, where: str
) -> None:
    store = new_kept_url()
    gate = model.gate()
    silent = Answer((gate,))
    then = {
        "between two turns": [silent],
        "in a turn of the model": [calling("transfer", '{"amount": 3}'), silent],
        "while a tool runs": [calling("transfer", '{"amount": 2}')],
    }
    model.plays(calling("transfer", '{"amount": 1}'), said("Done."), *then[where])
    process = subprocess.Popen([sys.executable, "-c", _IS_KILLED, store, model.url], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"said\n"
    if where == "while a tool runs":
        assert process.stdout.readline() == b"runs\n"
    else:
        gate.wait_until_reached()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    gate.open()
    session = Session("alice", store)
    run_sync(agent("Fine."), "Go on.", session=session)
    check_history(kept(session))
    left = {
        "between two turns": [],
        "in a turn of the model": ["assistant: transfer", "tool: transferred 3"],
        "while a tool runs": ["assistant: transfer", f"tool: {INTERRUPTED}"],
    }
    assert texts(kept(session)) == [
        "user: Transfer 1.",
        "assistant: transfer",
        "tool: transferred 1",
        "assistant: Done.",
        "user: Transfer more.",
        *left[where],
        "user: Go on.",
        "assistant: Fine.",
    ]


def test_a_store_that_fails_in_the_middle_ends_the_run_and_its_result_is_there(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    results: list[RunResult] = []

    def spoil() -> str:
        """Spoil."""
        sql(url, "DROP TABLE session_messages")
        return "spoiled"

    with pytest.raises(StoreError, match="session_messages"):
        run_sync(
            agent([("spoil", {})], "never", tools=[spoil]), "Go.", session=Session("a", url), on_end=results.append
        )
    assert (results[0].stop, results[0].calls[0].text) == ("failed", "spoiled")
    check_history(results[0].to_messages())
