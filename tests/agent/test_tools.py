"""Running tools: what the model reads of a result or a failure, time-outs that hold, order, hidden arguments."""

import asyncio
import contextvars
import functools
import gc
import json
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple, assert_type

import msgspec
import pytest

import callwright
from callwright import (
    Agent,
    Context,
    Failed,
    From,
    Hidden,
    Limits,
    RequestError,
    Result,
    Retry,
    RunResult,
    run,
    run_sync,
)
from callwright.agent import threads
from callwright.agent.events import CallReady, RunEvent, ToolEnded, ToolProgress, ToolStarted
from callwright.agent.results import write_result
from callwright.agent.tools import tool
from callwright.conversation import MediaPart
from tests.support.scripted_agents import agent, calls, check_history, scripted

SECRET = "s3cr3t-7f3"
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


@dataclass
class Row:
    name: str
    day: date


class Pair(NamedTuple):
    a: int
    b: int


class Struct(msgspec.Struct, rename="camel"):
    is_good: bool


class Modelled:
    """What a pydantic model can do."""

    def model_dump(self, mode: str) -> dict[str, Any]:
        return {"mode": mode}


class Worded:
    def __str__(self) -> str:
        return "in words"


# What a tool returns, and what the model reads.
RESULTS: dict[str, tuple[Any, str]] = {
    "text as it is": (' "a"\n', ' "a"\n'),
    "nothing": (None, "done"),
    "number": (1.50, "1.5"),
    "boolean": (True, "true"),
    "dict": ({"ä": [1, None]}, '{"ä":[1,null]}'),
    "dict with numbers as keys": ({1: "a"}, '{"1":"a"}'),
    "list": (["a", {"b": 1}], '["a",{"b":1}]'),
    "set": ({5}, "[5]"),
    "dataclass": ([Row("x", date(2026, 1, 15))], '[{"name":"x","day":"2026-01-15"}]'),
    "named tuple": (Pair(1, 2), "[1,2]"),
    "struct": (Struct(True), '{"isGood":true}'),
    "model": (Modelled(), '{"mode":"json"}'),
    "decimal": (Decimal("1.10"), '"1.10"'),
    "path": (Path("a/b"), '"a/b"'),
    "anything with words": ({"it": Worded()}, '{"it":"in words"}'),
    "bytes that are text": (b"gr\xc3\xbcn", "grün"),
    "other bytes": (b"\x89PNG\r\n\x00", "binary data, 7 bytes"),
    "half of a surrogate pair": ("a\ud800b", "a�b"),
    "not a number": (float("nan"), "null"),
    "result in words": (Result("in words", data={"a": 1}), "in words"),
    "result with data only": (Result(data={"a": 1}, app=SECRET), '{"a":1}'),
    "result with nothing": (Result(), "done"),
    "result in parts": (Result(["see", {"type": "text", "text": "this"}, IMAGE]), "see\nthis\n[image below]"),
}


@pytest.mark.parametrize("case", RESULTS)
def test_a_result_is_written_for_the_model(case: str) -> None:
    value, text = RESULTS[case]
    output = write_result(value, 1000)
    assert (output.text, output.is_cut) == (text, False)
    assert output.media == ((MediaPart(IMAGE),) if "below" in text else ())


def around(value: Any) -> Any:
    value.append(value)
    return value


FORMLESS: dict[str, Any] = {
    "an object": object(),
    "an object inside": {"a": [object()]},
    "a class": Worded,
    "a list in itself": {"a": around([])},
    "a value for the content": Result({"a": 1}),  # type: ignore[arg-type]
    "values for the parts": Result([{"id": 1}]),
    "bytes for the content": Result(b"abc"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", FORMLESS)
def test_a_result_without_a_form_is_none(case: str) -> None:
    with pytest.raises(TypeError):
        write_result(FORMLESS[case], 1000)


def test_a_long_text_keeps_its_head_and_tail() -> None:
    output = write_result("a" * 5_000_000 + "b" * 5_000_000, 60_000)
    assert output.is_cut
    assert output.text.startswith("a" * 40_000 + "\n[… 9,940,000 of 10,000,000 characters left out here.")
    assert output.text.endswith("]\n" + "b" * 20_000)


def test_a_long_list_is_cut_between_items() -> None:
    output = write_result([{"n": number} for number in range(10_000)], 1000)
    items = json.loads(output.text)
    assert output.is_cut
    assert items[0] == {"n": 0}
    assert items[-1] == {"n": 9999}
    (note,) = [item for item in items if isinstance(item, str)]
    assert note.startswith(f"… {10_000 - len(items) + 1:,} of 10,000 items left out here")
    assert len(output.text) < 1200


def test_a_list_of_one_long_item_is_cut_as_text() -> None:
    output = write_result(["a" * 5000], 300)
    assert output.is_cut
    assert len(output.text) < 400


# --- outcomes ---


def ends(
    function: Callable[..., Any], arguments: dict[str, Any] | None = None, **how: Any
) -> tuple[ToolEnded, RunResult]:
    """What comes of one call of a tool, and the run around it."""
    made = callwright.tool(function)
    result = run_sync(agent([(made.name, arguments or {})], "Fine.", tools=[made], **how), "Do it")
    check_history(result.to_messages())
    (ended,) = result.calls
    assert result.to_messages()[2]["content"] == ended.text
    return ended, result


def raises(error: BaseException) -> Callable[[], None]:
    def it() -> None:
        raise error

    return it


def raises_later(error: BaseException) -> Callable[[], Awaitable[None]]:
    async def it() -> None:
        raise error

    return it


# What a tool raises, the outcome, and what the model reads.
FAILURES: dict[str, tuple[BaseException, str, str]] = {
    "failed": (Failed("no such user"), "failed", "no such user"),
    "retry": (Retry("try Oslo"), "retry", "Make the call again, changed: try Oslo"),
    "an exception": (ValueError(f"user {SECRET}"), "failed", "The tool failed."),
    "an end of iteration": (StopIteration(5), "failed", "The tool failed."),
    "an end of the process": (SystemExit(1), "failed", "The tool failed."),
    "a cancellation of its own": (asyncio.CancelledError(), "failed", "The tool failed."),
    "a time-out of its own": (TimeoutError("slow"), "failed", "The tool failed."),
}


@pytest.mark.parametrize("make", [raises, raises_later], ids=["sync", "async"])
@pytest.mark.parametrize("case", FAILURES)
def test_what_a_tool_raises_is_an_outcome(
    case: str, make: Callable[[BaseException], Callable[[], Any]], caplog: pytest.LogCaptureFixture
) -> None:
    error, status, text = FAILURES[case]
    with caplog.at_level(logging.DEBUG):
        ended, result = ends(make(error))
    assert (ended.status, ended.text) == (status, text)
    assert ended.exception is not None
    assert (result.stop, result.text) == ("completed", "Fine.")
    assert SECRET not in caplog.text
    assert SECRET not in json.dumps(result.to_messages())


@pytest.mark.parametrize("case", FORMLESS)
def test_a_value_without_a_form_is_a_failure(case: str) -> None:
    def it() -> Any:
        return FORMLESS[case]

    ended, _ = ends(it)
    assert (ended.status, ended.text) == ("failed", "The tool failed.")


def test_an_exception_can_be_told_in_words() -> None:
    ended, _ = ends(raises(KeyError("a")), on_error=lambda error: f"failed with {type(error).__name__}")
    assert (ended.status, ended.text) == ("failed", "failed with KeyError")


def breaks_itself(error: Exception) -> str:
    raise ZeroDivisionError


@pytest.mark.parametrize("how", [breaks_itself, lambda _: None, lambda _: 5], ids=["raises", "None", "a number"])
def test_words_for_an_exception_that_are_none_leave_it_as_it_was(how: Any, caplog: pytest.LogCaptureFixture) -> None:
    ended, result = ends(raises(KeyError("a")), on_error=how)
    assert (ended.status, ended.text, type(ended.exception)) == ("failed", "The tool failed.", KeyError)
    assert result.stop == "completed"
    assert "on_error" in caplog.text


@pytest.mark.parametrize("kind", [dict, list])
def test_a_type_that_does_not_tell_what_it_takes_fills_a_parameter(kind: type) -> None:
    @callwright.tool
    def fill(made: Annotated[Any, From(kind)]) -> str:
        """Fill."""
        return repr(made)

    model, _ = scripted([("fill", {})], "Fine.")
    assert run_sync(Agent(model=model, tools=[fill]), "Go").calls[0].text == repr(kind())


def test_an_exception_can_end_the_run_with_a_history_that_goes_on() -> None:
    results: list[RunResult] = []
    never = asyncio.Event()

    async def waits() -> None:
        await never.wait()

    def breaks() -> None:
        raise KeyError("a")

    model = agent([("waits", {}), ("breaks", {})], tools=[waits, breaks], on_error="raise")
    with pytest.raises(KeyError):
        run_sync(model, "Do it", on_end=results.append)
    (result,) = results
    check_history(result.to_messages())
    assert [call.status for call in result.calls] == ["interrupted", "failed"]
    assert result.stop == "failed"


def test_what_the_model_reads_is_cut_and_the_program_has_it_all() -> None:
    def it() -> str:
        return "x" * 10_000_000

    ended, _ = ends(it, limits=Limits(result_chars=100))
    assert ended.is_cut
    assert len(ended.text) < 250
    assert ended.value == "x" * 10_000_000


def test_images_follow_behind_all_outputs() -> None:
    def draw() -> Result:
        return Result(["A chart", IMAGE], app=5)

    result = run_sync(agent([("draw", {}), ("draw", {})], "Nice.", tools=[draw]), "Draw")
    roles = [message["role"] for message in result.to_messages()]
    assert roles == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert result.to_messages()[4]["content"] == [
        {"type": "text", "text": "From draw:"},
        IMAGE,
        {"type": "text", "text": "From draw:"},
        IMAGE,
    ]
    assert [call.app for call in result.calls] == [5, 5]


# --- time-outs ---


def test_a_sync_tool_that_hangs_is_left_behind() -> None:
    never = threading.Event()
    begun = threading.Event()

    def it() -> None:
        begun.set()
        never.wait()

    before = set(threads._left)
    ended, result = ends(it, limits=Limits(tool_timeout_s=0.02))
    assert begun.wait(10)
    assert (ended.status, ended.text) == ("timeout", "No answer within 0.02 s; it may still have taken effect.")
    assert result.stop == "completed"
    (left,) = threads._left - before
    assert threads.threads_left() > 0
    never.set()
    left.join()
    assert left not in threads._left


def test_no_call_begins_when_too_many_were_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "MAX_LEFT", 0)
    ended, _ = ends(raises(AssertionError("it must not run")))
    assert isinstance(ended.exception, threads.TooManyLeftError)


def test_a_tool_that_swallows_its_cancellation_is_left_behind() -> None:
    swallowed = 0

    async def it() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                swallowed += 1
                if swallowed == 3:  # so that nothing is left when the tests end
                    raise

    ended, result = ends(it, limits=Limits(tool_timeout_s=0.02))
    assert (ended.status, result.stop) == ("timeout", "completed")
    assert swallowed == 1  # and the end of the event loop did not wait for it


def test_a_time_out_of_one_tool_counts_for_it_alone() -> None:
    @callwright.tool(timeout_s=0.02)
    async def slow() -> None:
        await asyncio.Event().wait()

    async def quick() -> str:
        return "quick"

    result = run_sync(agent([("slow", {}), ("quick", {})], "Fine.", tools=[slow, quick]), "Do it")
    assert [(call.name, call.status) for call in result.calls] == [("slow", "timeout"), ("quick", "ok")]


# --- side by side ---


class Crowd:
    """Counts who is there at the same time; each stays until all of `wanted` have come, or nobody else can."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.now = 0
        self.most = 0
        self.full = asyncio.Event()

    async def enter(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now >= self.wanted:
            self.full.set()
        await self.full.wait()
        self.now -= 1


@pytest.mark.parametrize("parallel", [1, 8, 200])
def test_calls_run_side_by_side_up_to_a_cap_and_answer_in_order(parallel: int) -> None:
    async def main() -> tuple[RunResult, Crowd]:
        crowd = Crowd(parallel)

        @callwright.tool(repeatable=True)
        async def work(number: int) -> int:
            await crowd.enter()
            for _ in range(number % 7):  # some take more turns of the event loop
                await asyncio.sleep(0)
            return number

        many = [("work", {"number": number}) for number in range(200)]
        limits = Limits(calls=200, parallel=parallel)
        return await run(agent(many, "Fine.", tools=[work], limits=limits), "Work"), crowd

    result, crowd = asyncio.run(main())
    assert crowd.most == parallel
    assert [call.value for call in result.calls] == list(range(200))
    check_history(result.to_messages())


def test_sync_tools_run_side_by_side_too() -> None:
    barrier = threading.Barrier(4)

    def meet(number: int) -> int:
        barrier.wait(10)
        return number

    result = run_sync(agent([("meet", {"number": n}) for n in range(4)], "Met.", tools=[meet]), "Meet")
    assert [call.text for call in result.calls] == ["0", "1", "2", "3"]


def test_a_sequential_tool_runs_alone() -> None:
    order: list[str] = []

    async def read(number: int) -> None:
        order.append(f"read {number}")
        await asyncio.sleep(0)
        order.append(f"end {number}")

    @callwright.tool(sequential=True)
    def write(number: int) -> None:
        order.append(f"write {number}")

    made = [("read", {"number": 1}), ("write", {"number": 2}), ("write", {"number": 3}), ("read", {"number": 4})]
    run_sync(agent(made, "Fine.", tools=[read, write]), "Do it")
    assert order == ["read 1", "end 1", "write 2", "write 3", "read 4", "end 4"]


def test_one_that_fails_stops_no_other() -> None:
    def fails() -> None:
        raise ValueError

    async def works() -> str:
        await asyncio.sleep(0)
        return "worked"

    result = run_sync(agent([("fails", {}), ("works", {})], "Fine.", tools=[fails, works]), "Do it")
    assert [call.status for call in result.calls] == ["failed", "ok"]


# --- forms of functions ---

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def sees_the_context() -> str:
    return VARIABLE.get()


def positional(a: int, b: int = 2, /, c: int = 3, *, d: int = 4, **rest: int) -> list[int]:
    return [a, b, c, d, *rest.values()]


async def later(value: int) -> int:
    return value + 1


def hands_on(value: int) -> Awaitable[int]:
    return later(value)


class Adder:
    """Adds."""

    def __init__(self, more: int) -> None:
        self.more = more

    async def __call__(self, value: int) -> int:
        return value + self.more

    def add(self, value: int) -> int:
        return value + self.more


def generates(count: int) -> Iterator[str]:
    for number in range(count):
        yield f"step {number}"


def generates_and_returns() -> Generator[str, None, str]:
    yield "step 0"
    return "the end"


async def generates_later(count: int) -> AsyncIterator[str]:
    for number in range(count):
        yield f"step {number}"


async def gives_a_generator(count: int) -> Iterator[str]:
    return generates(count)


async def gives_an_async_generator(count: int) -> AsyncIterator[str]:
    return generates_later(count)


async def gives_what_is_awaited(value: int) -> Awaitable[int]:
    return later(value)


# The function, the arguments, the value, and what was said on the way.
FORMS: dict[str, tuple[Callable[..., Any], dict[str, Any], Any, list[str]]] = {
    "positional only": (positional, {"a": 1, "c": 5}, [1, 2, 5, 4], []),
    "all there are": (positional, {"a": 1, "b": 0, "c": 5, "d": 6, "e": 7}, [1, 0, 5, 6, 7], []),
    "async": (later, {"value": 1}, 2, []),
    "what comes back is awaited": (hands_on, {"value": 1}, 2, []),
    "a partial": (functools.partial(positional, d=9), {"a": 1}, [1, 2, 3, 9], []),
    "a callable object": (Adder(5), {"value": 1}, 6, []),
    "a bound method": (Adder(7).add, {"value": 1}, 8, []),
    "a generator": (generates, {"count": 3}, "step 2", ["step 0", "step 1"]),
    "an empty generator": (generates, {"count": 0}, None, []),
    "a generator that returns": (generates_and_returns, {}, "the end", []),
    "an async generator": (generates_later, {"count": 2}, "step 1", ["step 0"]),
    "a generator that comes later": (gives_a_generator, {"count": 3}, "step 2", ["step 0", "step 1"]),
    "an async generator that comes later": (gives_an_async_generator, {"count": 2}, "step 1", ["step 0"]),
    "what comes later is awaited": (gives_what_is_awaited, {"value": 1}, 2, []),
    "a schema of its own": (
        callwright.tool(lambda **given: given, name="it", parameters={"type": "object", "properties": {"a-b": {}}}),
        {"a-b": 1},
        {"a-b": 1},
        [],
    ),
}


@pytest.mark.parametrize("case", FORMS)
def test_a_function_of_any_form_is_called(case: str) -> None:
    function, arguments, value, progress = FORMS[case]
    made = function if isinstance(function, type(callwright.tool(later))) else callwright.tool(function, name="it")
    said: list[RunEvent] = []

    async def main() -> RunResult:
        events = callwright.stream(agent([(made.name, arguments)], "Fine.", tools=[made]), "Do it")
        async for event in events:
            said.append(event)
        return said[-1].result  # type: ignore[union-attr]

    (ended,) = asyncio.run(main()).calls
    assert (ended.status, ended.value) == ("ok", value)
    assert [event.value for event in said if isinstance(event, ToolProgress)] == progress
    kinds = [type(event) for event in said if isinstance(event, ToolStarted | ToolProgress | ToolEnded)]
    assert kinds == [ToolStarted, *[ToolProgress] * len(progress), ToolEnded]


def test_a_tool_is_still_the_function() -> None:
    assert callwright.tool(positional)(1, d=0) == [1, 2, 3, 0]
    assert callwright.tool(name="other")(positional).name == "other"


def test_context_variables_reach_the_thread() -> None:
    VARIABLE.set("set")
    ended, _ = ends(sees_the_context)
    assert ended.value == "set"


# --- what the program knows ---


def test_hidden_arguments_are_filled_and_told_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []

    def by_call(context: Context) -> str:
        assert "user" in context.hidden
        return f"{context.tool} {context.call_id}"

    async def tenant() -> str:
        return "acme"

    def goes(call: CallReady) -> bool:
        seen.append(call)
        return False

    @callwright.tool(approve=goes)
    def search(
        query: str,
        user: Annotated[str, Hidden],
        ctx: Context,
        tenant: Annotated[str, From(tenant)],
        who: Annotated[str, From(by_call)],
        note: Annotated[str, Hidden()] = "none",
    ) -> str:
        """Search.

        Args:
            user: The user's name.
        """
        seen.append((query, user, tenant, who, note, ctx.turn, ctx.attempt, len(ctx.items), repr(ctx)))
        if query == "bad":
            raise ValueError(user)
        return "found"

    model, upstream = scripted(
        [("search", {"query": "bad"})],
        [("search", {"query": "x", "user": "root"})],
        [("search", {"query": "y"})],
        "Fine.",
    )
    events: list[RunEvent] = []

    async def main() -> None:
        async for event in callwright.stream(
            Agent(model=model, tools=[search]), "Find", hidden={"user": lambda: SECRET}
        ):
            events.append(event)

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
    ran = [one for one in seen if isinstance(one, tuple)]
    assert [one[:2] for one in ran] == [("bad", SECRET), ("y", SECRET)]
    assert ran[0][2:] == ("acme", "search call_0", "none", 1, 0, 2, "Context(tool='search', call_id='call_0')")
    assert ran[1][2:] == ("acme", "search call_2", "none", 3, 1, 6, "Context(tool='search', call_id='call_2')")
    told = json.dumps([generation.messages for generation in upstream.asked]) + json.dumps(upstream.asked[0].tools)
    assert "'user' was unexpected" in told
    for text in (told, caplog.text, str([event for event in events if not isinstance(event, ToolEnded)][:-1])):
        assert SECRET not in text
    assert '"user"' not in json.dumps(upstream.asked[0].tools)


def test_a_hidden_value_that_is_missing_is_told_before_the_model_is_asked() -> None:
    def search(query: str, user: Annotated[str, Hidden]) -> None: ...

    model, upstream = scripted("Hi")
    with pytest.raises(RequestError) as raised:
        run_sync(Agent(model=model, tools=[search]), "Hi", hidden={"usr": 1})
    assert raised.value.param == "hidden.user"
    assert "'search'" in raised.value.message
    assert upstream.asked == []


def test_progress_behind_the_end_is_nobodys() -> None:
    kept: list[Context] = []

    def it(ctx: Context) -> str:
        kept.append(ctx)
        ctx.progress("half")
        return "whole"

    ended, _ = ends(it)
    assert ended.value == "whole"
    assert kept[0].is_over
    kept[0].progress("late")


def test_calls_of_one_turn_count_once_against_a_retry() -> None:
    def pick(city: str) -> str:
        raise Retry("no")

    made = calls(("pick", {"city": "a"}), ("pick", {"city": "b"}), ("pick", {"city": "c"}))
    result = run_sync(agent(made, "Fine.", tools=[pick], limits=Limits(retries_per_tool=1)), "Pick")
    assert result.stop == "completed"


# --- what type checkers know ---


def test_type_checkers_know_the_function_of_a_tool_and_the_type_of_an_answer() -> None:
    """mypy looks at this: an ignored error that is none would be one."""

    @tool
    def double(number: int, *, times: int = 1) -> float:
        """Double a number."""
        return float(number * 2**times)

    assert_type(double(2, times=2), float)
    with pytest.raises(TypeError):
        double("two", 3)  # type: ignore[arg-type, call-arg]

    @tool(name="other")
    async def later(path: Path) -> bytes:
        """Read a file."""
        return path.read_bytes()

    assert_type(later(Path("x")), Coroutine[Any, Any, bytes]).close()
    answer = callwright.run_sync(callwright.Agent(model="simulated", output_type=int), "The number 5")
    assert_type(answer.output, int)
    assert isinstance(answer.output, int)


def test_a_tool_that_raises_as_the_run_is_cancelled_leaves_no_traceback_behind() -> None:
    complaints: list[dict[str, Any]] = []

    async def main() -> None:
        @callwright.tool
        async def breaks() -> None:
            """Break, in the moment in which the run is cancelled."""
            task.cancel()
            raise ValueError(SECRET)

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        task = loop.create_task(callwright.run(agent([("breaks", {})], tools=[breaks]), "Go"))
        with pytest.raises(asyncio.CancelledError):
            await task
        gc.collect()

    asyncio.run(main())
    assert complaints == []
