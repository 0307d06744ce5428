"""What the store keeps of items that clients do not send back: whose it is, for how long, and how much of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from callwright.conversation import Call, CallOutput, Conversation, Item, Message, Reasoning, TextPart
from callwright.errors import UpstreamError
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Finished,
    Problem,
    ReasoningDelta,
)
from callwright.gateway.kept_items.keeper import ItemKeeper
from callwright.gateway.store.store import KnownKeys, Store
from callwright.turn.model import Model
from callwright.upstreams.simulated.scripted import ScriptedUpstream
from callwright.wire.server_events import McpEnded, McpStarted, ToolsSearched, TurnEvent, TurnEvents
from tests.support.bounded import bounded
from tests.support.store_helpers import Story, run, sql, with_store

pytest_plugins = ["tests.support.databases"]

HOUR_S = 3_600.0
ASKED = Message("user", (TextPart("Paint the hull."),))
MODEL = Model("m", ScriptedUpstream([]), "m")
THOUGHT = "Two coats, then."


class Clock:
    """Time that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def called(id_: str = "call_1", name: str = "paint", arguments: str = '{"coats": 2}') -> list[TurnEvent]:
    return [CallStarted(0, name, id=id_), ArgumentsDelta(0, arguments), CallEnded(0), Finished("tool_calls")]


async def played(*events: TurnEvent | Exception) -> TurnEvents:
    for event in events:
        if isinstance(event, Exception):
            raise event
        yield [event]


async def wrote(keeper: ItemKeeper, *events: TurnEvent | Exception, model: Model = MODEL) -> list[TurnEvent]:
    """A turn whose calls keep the ids that they have, which nobody else has."""
    taken: list[TurnEvent] = []
    named = [
        CallStarted(event.index, event.name, event.kind) if isinstance(event, CallStarted) else event
        for event in events
    ]
    ids = iter([event.id for event in events if isinstance(event, CallStarted)])
    watched = keeper.watch(played(*named), Conversation((ASKED,)), model, lambda _: str(next(ids)))
    async for batch in watched:
        taken += batch
    return taken


async def wrote_counted(keeper: ItemKeeper, *events: TurnEvent) -> None:
    """A turn of a server that counts its calls, anew in each conversation."""
    async for _ in keeper.watch(played(*events), Conversation((ASKED,)), MODEL, str):
        pass


async def found(keeper: ItemKeeper, *items: Item, model: Model = MODEL) -> list[str]:
    """The reasoning in a history with these items."""
    whole = await keeper.put_back(Conversation((ASKED, *items)), model)
    return [item.text for item in whole.items if isinstance(item, Reasoning)]


CALL = Call("paint", '{"coats": 2}', id="call_1")
TURN = [ReasoningDelta(THOUGHT[:4]), ReasoningDelta(THOUGHT[4:]), ContentDelta("Well."), *called()]


# --- time ---


async def _for_a_while(store: Store) -> None:
    clock = Clock()
    keeper = ItemKeeper(store, clock)
    await wrote(keeper, *TURN)
    clock.now += HOUR_S - 1
    assert await found(keeper, CALL) == [THOUGHT]
    clock.now += HOUR_S - 1  # it was used meanwhile
    assert await found(keeper, CALL) == [THOUGHT]
    clock.now += HOUR_S + 1
    assert await found(keeper, CALL) == []


test_it_is_found_for_an_hour_since_it_was_last_used = with_store(_for_a_while)


def test_what_is_over_is_erased_by_the_next_turn_and_by_and_by(kept_url: str) -> None:
    async def story(store: Store) -> None:
        clock = Clock()
        keeper = ItemKeeper(store, clock)
        for number in range(2):
            await wrote(keeper, ReasoningDelta(THOUGHT), *called(f"call_{number}"))
            clock.now += HOUR_S + 1
        assert len(sql(kept_url, "SELECT body FROM kept_items")) == 1
        forgetting = asyncio.ensure_future(keeper.forget())
        while sql(kept_url, "SELECT body FROM kept_items"):
            await asyncio.sleep(0)
        forgetting.cancel()

    run(kept_url, story)


# --- whose it is ---


async def _of_a_model(store: Store) -> None:
    keeper = ItemKeeper(store)
    await wrote(keeper, *TURN)
    other = Model("other", ScriptedUpstream([]), "m")
    assert await found(keeper, CALL, model=other) == []
    assert await found(keeper, CALL) == [THOUGHT]


test_it_is_of_one_model = with_store(_of_a_model)


def test_another_owner_finds_none_and_mixes_up_none(kept_url: str) -> None:
    who = ["anna"]

    async def story(store: Store) -> None:
        keeper = ItemKeeper(store)
        await wrote(keeper, *TURN)
        who[0] = "ben"
        assert await found(keeper, CALL) == []
        await wrote_counted(keeper, ReasoningDelta("Ben's own."), *called())
        assert await found(keeper, CALL) == ["Ben's own."]
        who[0] = "anna"
        assert await found(keeper, CALL) == [THOUGHT]

    run(kept_url, story, owner=lambda: who[0])


def test_another_gateway_of_the_same_database_finds_it(kept_url: str) -> None:
    kept = asyncio.Event()

    async def here(store: Store) -> None:
        await wrote(ItemKeeper(store), *TURN)
        kept.set()

    async def there(store: Store) -> None:
        await kept.wait()
        assert await found(ItemKeeper(store), CALL) == [THOUGHT]

    run(kept_url, here, there)


# --- what is not there is not looked for again ---


def test_what_this_process_knows_is_not_looked_for(kept_url: str) -> None:
    asked: list[str] = []

    async def story() -> None:
        store = Store(kept_url, told=lambda operation, _, failed: asked.append(operation))
        await store.open()
        keeper = ItemKeeper(store)
        await wrote(keeper, *called("call_ours"))
        asked.clear()
        assert await found(keeper, Call("paint", '{"coats": 2}', id="call_ours")) == []
        assert "find_kept" not in asked, "this process made the call, and knows"
        foreign = Call("paint", '{"coats": 2}', id="call_foreign")
        for _ in range(3):
            assert await found(keeper, foreign) == []
        assert asked.count("find_kept") == 3, "a server may count its calls: another turn may have the same, elsewhere"
        await wrote_counted(keeper, ReasoningDelta(THOUGHT), *called("call_foreign"))
        assert await found(keeper, foreign) == [THOUGHT]
        await store.close()

    asyncio.run(story())


def test_what_is_known_of_keys_is_bounded() -> None:
    known = KnownKeys()
    for number in range(100_000):
        known.add("anna", "m", [f"{number}"], 1.0)
    assert 20_000 < len(known.among("anna", "m", [str(number) for number in range(100_000)])) <= 32_768
    assert known.among("anna", "m", ["99999"]) == {"99999"}
    assert known.among("anna", "m", ["99999"], 1.0) == known.among("ben", "m", ["99999"]) == set()


def test_in_memory_a_call_is_looked_for_once_until_it_is_kept() -> None:
    asked: list[str] = []

    async def story() -> None:
        store = Store("sqlite://", told=lambda operation, _, failed: asked.append(operation))
        await store.open()
        keeper = ItemKeeper(store)
        for _ in range(3):
            assert await found(keeper, CALL) == []
        assert asked.count("find_kept") == 1
        await wrote_counted(keeper, *TURN)
        assert await found(keeper, CALL) == [THOUGHT]
        await store.close()

    asyncio.run(story())


# --- servers that count their calls ---

BARE = called()


def of_two_gateways(kept_url: str, act: Callable[[ItemKeeper, ItemKeeper, Clock], Awaitable[None]]) -> None:
    async def story() -> None:
        here, there, clock = Store(kept_url), Store(kept_url), Clock()
        await here.open()
        await there.open()
        await act(ItemKeeper(here, clock), ItemKeeper(there, clock), clock)
        await here.close()
        await there.close()

    asyncio.run(story())


def test_what_another_gateway_keeps_later_is_found(kept_url: str) -> None:
    async def act(here: ItemKeeper, there: ItemKeeper, _: Clock) -> None:
        assert await found(here, CALL) == []
        await wrote_counted(there, *TURN)
        assert await found(here, CALL) == [THOUGHT]

    of_two_gateways(kept_url, act)


@pytest.mark.parametrize("turns", [(TURN, BARE), (BARE, TURN), (TURN, BARE, TURN), (BARE, TURN, BARE)])
def test_of_turns_that_cannot_be_told_apart_one_without_reasoning_counts(
    kept_url: str, turns: tuple[list[TurnEvent], ...]
) -> None:
    async def act(here: ItemKeeper, there: ItemKeeper, _: Clock) -> None:
        for turn in turns:
            await wrote_counted(here, *turn)
        assert await found(here, CALL) == []
        assert await found(there, CALL) == [], "as after a restart"

    of_two_gateways(kept_url, act)


def test_one_without_reasoning_counts_if_what_the_other_left_was_found(kept_url: str) -> None:
    async def act(here: ItemKeeper, there: ItemKeeper, _: Clock) -> None:
        await wrote_counted(there, *TURN)
        assert await found(here, CALL) == [THOUGHT]
        await wrote_counted(here, *BARE)
        assert await found(there, CALL) == []

    of_two_gateways(kept_url, act)


def test_one_without_reasoning_counts_for_an_hour(kept_url: str) -> None:
    async def act(here: ItemKeeper, there: ItemKeeper, clock: Clock) -> None:
        await wrote_counted(here, *BARE)
        clock.now += HOUR_S + 1
        await wrote_counted(here, *TURN)
        assert await found(here, CALL) == await found(there, CALL) == [THOUGHT]

    of_two_gateways(kept_url, act)


# --- how much ---


async def _the_same_twice(store: Store) -> None:
    keeper = ItemKeeper(store)
    await wrote(keeper, *TURN)
    await wrote(keeper, *TURN)
    assert await found(keeper, CALL) == [THOUGHT]
    await wrote(keeper, ReasoningDelta("Or three."), *called())
    assert await found(keeper, CALL) == []
    await wrote(keeper, *TURN)
    assert await found(keeper, CALL) == []


test_what_comes_twice_and_differs_is_found_no_more = with_store(_the_same_twice)


@pytest.mark.parametrize(
    ("most", "left"),
    [
        ({"MAX_KEPT_REASONING": 10}, range(5, 11)),
        ({"MAX_KEPT_REASONING_BYTES": 1_000}, range(1, 5)),
        ({"MAX_KEPT_REASONING": 1}, range(1, 2)),
    ],
)
def test_what_was_not_used_for_longest_makes_room(most: dict[str, int], left: range) -> None:
    async def story() -> None:
        with bounded(**most):
            store = Store("sqlite://")
        await store.open()
        clock = Clock()
        keeper = ItemKeeper(store, clock)
        calls = [Call("paint", "{}", id=f"call_{number}") for number in range(30)]
        for call in calls:
            clock.now += 1
            await wrote(keeper, ReasoningDelta("y" * 200), *called(call.id, arguments="{}"))
        there = [bool(await found(keeper, call)) for call in calls]
        assert sum(there) in left
        assert there == sorted(there), "an older one was kept, and a younger one was not"
        await store.close()

    asyncio.run(story())


async def _many(store: Store) -> None:
    keeper = ItemKeeper(store)
    items: list[Item] = []
    for number in range(1_100):
        items += [Call("paint", "{}", id=f"call_{number}"), CallOutput(f"call_{number}")]
    await wrote(keeper, ReasoningDelta(THOUGHT), *called("call_1099", arguments="{}"))
    assert await found(keeper, *items) == [THOUGHT]


test_a_history_of_many_calls_is_asked_for_in_parts = with_store(_many)


# --- what of a turn is kept ---

MCP = [McpStarted(0, "mcp_1", "survey"), ArgumentsDelta(0, "{}"), CallEnded(0), McpEnded("dry")]
SURVEY = (Call("survey", "{}", id="mcp_1"), CallOutput("mcp_1", (TextPart("dry"),)))
ROUNDS: dict[str, tuple[list[Any], tuple[Item, ...], list[str]]] = {
    "reasoning in pieces": (TURN, (CALL,), [THOUGHT]),
    "a call alone": (called(), (CALL,), []),
    "blanks": ([ReasoningDelta(" \n"), *called()], (CALL,), []),
    "behind the call, too": (
        [ReasoningDelta("One. "), *called()[:-1], ReasoningDelta("Two."), Finished("tool_calls")],
        (CALL,),
        ["One. Two."],
    ),
    "found late": (
        [
            ContentDelta("It "),
            ContentDelta("dries."),
            Problem("unopened_reasoning", ""),
            ContentDelta("So."),
            *called(),
        ],
        (CALL,),
        ["It dries."],
    ),
    "the first call has no end": ([ReasoningDelta("One."), *called()[:2], Finished("length")], (CALL,), []),
    "a tool that runs here": ([ReasoningDelta("Look."), *MCP, *TURN], (*SURVEY, CALL), ["Look.", THOUGHT]),
    "a tool that runs here, alone": ([ReasoningDelta("Look."), *MCP, Finished("stop")], SURVEY, ["Look."]),
    "a search": ([ReasoningDelta("Find."), ToolsSearched("paint", (), ()), *TURN], (CALL,), [THOUGHT]),
    "a custom tool": (
        [ReasoningDelta("Red."), CallStarted(0, "mix", "custom", id="c"), ArgumentsDelta(0, 'a "b"'), CallEnded(0)],
        (Call("mix", '{"input": "a \\"b\\""}', id="c"),),
        ["Red."],
    ),
}


@pytest.mark.parametrize("turn", ROUNDS)
def test_of_each_round_the_reasoning_is_kept_by_its_first_call(turn: str) -> None:
    events, items, thoughts = ROUNDS[turn]

    async def story(store: Store) -> None:
        keeper = ItemKeeper(store)
        assert await wrote(keeper, *events) == events
        assert await found(keeper, *items) == thoughts

    run("sqlite://", story)


def test_a_turn_that_fails_leaves_nothing() -> None:
    async def story(store: Store) -> None:
        keeper = ItemKeeper(store)
        with pytest.raises(UpstreamError):
            await wrote(keeper, *TURN, UpstreamError("gone", fault="cut", upstream="u"))
        assert await found(keeper, CALL) == []

    run("sqlite://", story)


def failing(what: str) -> Callable[[Store], Any]:
    async def story(store: Store) -> None:
        keeper = ItemKeeper(store)
        if what == "find":
            await wrote(keeper, *TURN)
        await store._database.write(lambda connection: connection.exec_driver_sql("DROP TABLE kept_items") and None)
        if what == "keep":
            assert await wrote(keeper, *TURN) == TURN
        assert await found(keeper, CALL) == []

    return story


@pytest.mark.parametrize("what", ["keep", "find"])
def test_a_store_that_fails_costs_no_answer_and_is_told(what: str, caplog: pytest.LogCaptureFixture) -> None:
    story: Story = failing(what)
    run("sqlite://", story)
    told = " ".join(record.getMessage() for record in caplog.records)
    assert "kept reasoning could not be looked for" in told
    assert ("reasoning could not be kept" in told) == (what == "keep")
    assert THOUGHT not in told
