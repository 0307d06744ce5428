"""Several servers of one model: which one is asked, and which one instead when it fails."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from callwright.conversation import Conversation, Message, TextPart
from callwright.errors import RequestError, UpstreamError
from callwright.gateway.config.config import ModelConfig
from callwright.turn.streams import each
from callwright.upstreams.base import Deltas, FinishDelta, GenerationRequest, HandedAnswers, TextDelta
from callwright.upstreams.pool import Pool
from callwright.upstreams.timings import RequestTimings
from tests.conftest import Served
from tests.support.http_client import CHAT, ask, request
from tests.support.outputs import QUESTION
from tests.support.servers import Answer, ModelServer, call_deltas, chunk, said, sse, whole

BODY: dict[str, Any] = {"model": "pool", "messages": [QUESTION]}
_numbers = count(1)
BUSY = whole({"error": {"message": "Busy."}}, 503)


@pytest.fixture(scope="module")
def _other() -> Iterator[ModelServer]:
    server = ModelServer()
    yield server
    server.stop()


@pytest.fixture
def other(_other: ModelServer) -> ModelServer:
    """A second model server."""
    _other.plays()
    return _other


def pool(serve: Served, *urls: str) -> str:
    """A gateway before these servers that has asked none of them yet; the first one is asked first."""
    return serve(
        ModelConfig(name="pool", upstream=[*urls], model="served", connect_timeout_s=next(_numbers), balance="least")
    )


# --- over HTTP ---


def test_each_server_gets_its_share(serve: Served, model: ModelServer, other: ModelServer) -> None:
    url = pool(serve, model.url, other.url)
    for server in (model, other):
        server.plays(said("Hi"), said("Hi"))
    for _ in range(4):
        assert ask(url, BODY, stream=True).message["content"] == "Hi"
    assert (len(model.asked), len(other.asked)) == (2, 2)


FAILURES: dict[str, Answer] = {
    "502": whole("<h1>Bad Gateway</h1>", 502, "text/html"),
    "503": BUSY,
    "429": whole({"error": {"message": "Slow down."}}, 429),
    "a reset": Answer(("reset",)),
    "a reset behind the head": Answer((b": hello\n\n", "reset")),
    "an end behind the head": Answer((b": hello\n\n", "cut")),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_a_failure_before_the_first_byte_is_not_told(
    serve: Served, model: ModelServer, other: ModelServer, failure: Answer, stream: bool
) -> None:
    url = pool(serve, model.url, other.url)
    model.plays(failure)
    other.plays(said("Hi"))
    assert ask(url, BODY, stream=stream).message["content"] == "Hi"
    assert (len(model.asked), len(other.asked)) == (1, 1)


def test_a_server_that_is_down_is_not_noticed(serve: Served, model: ModelServer, closed_port: str) -> None:
    url = pool(serve, closed_port, model.url)
    model.plays(*(said("Hi") for _ in range(6)))
    for number in range(6):
        assert ask(url, BODY, stream=number % 2 == 0).message["content"] == "Hi"


def test_when_none_is_left_the_error_is_the_last_ones(serve: Served, model: ModelServer, other: ModelServer) -> None:
    url = pool(serve, model.url, other.url)
    model.plays(BUSY)
    other.plays(BUSY)
    reply = request(url + CHAT, BODY)
    assert (reply.status, reply.error["code"]) == (502, "upstream_status")
    assert reply.error["message"].startswith("The upstream at http://")
    assert "503: Busy" in reply.error["message"]
    assert (len(model.asked), len(other.asked)) == (1, 1)


@pytest.mark.parametrize("status", [400, 500], ids=str)
def test_what_another_server_would_not_do_better_is_told(
    serve: Served, model: ModelServer, other: ModelServer, status: int
) -> None:
    url = pool(serve, model.url, other.url)
    model.plays(whole({"error": {"message": "No."}}, status))
    assert request(url + CHAT, BODY).status == (400 if status == 400 else 502)
    assert (len(model.asked), len(other.asked)) == (1, 0)


@pytest.mark.parametrize(
    "begun",
    [{"content": "It is"}, {"reasoning": "Hm"}, call_deltas("get_weather", '{"ci')[0]],
    ids=["text", "reasoning", "a call"],
)
def test_an_answer_that_has_begun_is_not_begun_again(
    serve: Served, model: ModelServer, other: ModelServer, begun: dict[str, Any]
) -> None:
    url = pool(serve, model.url, other.url)
    model.plays(Answer((*sse(chunk(begun)), "cut")))
    reply = request(url + CHAT, BODY)
    assert (reply.status, reply.error["code"]) == (502, "upstream_cut")
    assert (len(model.asked), len(other.asked)) == (1, 0)


# --- health, with a clock of the test's own ---


class Server:
    """An upstream that does what it is told next; `None`: it answers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fails: UpstreamError | RequestError | None = None
        self.lists: UpstreamError | None = None
        self.asked = 0
        self.hold: asyncio.Event | None = None

    async def stream(self, _: GenerationRequest) -> Deltas:
        self.asked += 1
        if self.fails is not None:
            raise self.fails
        yield [TextDelta(self.name)]
        if self.hold is not None:
            await self.hold.wait()
        yield [FinishDelta("stop")]

    def hand_on(self, generation: GenerationRequest, path: str) -> HandedAnswers:
        raise NotImplementedError

    async def open(self) -> None:
        pass

    def window(self, model: str) -> int | None:
        return None

    async def models(self) -> list[str]:
        if self.lists is not None:
            raise self.lists
        return [self.name]

    async def close(self) -> None:
        self.asked = -1


ASKED = GenerationRequest("m", Conversation())


def down(name: str = "a") -> UpstreamError:
    return UpstreamError(f"{name} is down", fault="unreachable", upstream=name)


async def who(pool: Pool) -> str:
    async with aclosing(each(pool.stream(ASKED))) as deltas:
        return "".join([delta.text async for delta in deltas if isinstance(delta, TextDelta)])


async def settle() -> None:
    """Let the probes run."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_server_that_fails_again_and_again_rests_and_is_tried_before_it_is_trusted() -> None:
    async def story() -> None:
        now = [0.0]
        a, b = Server("a"), Server("b")
        pool = Pool([a, b], lambda: now[0])
        a.fails = a.lists = down()
        assert [await who(pool) for _ in range(20)] == ["b"] * 20
        assert a.asked == 3
        now[0] = 2.1  # it has rested, but does not list its models
        assert await who(pool) == "b"
        await settle()
        assert [await who(pool) for _ in range(5)] == ["b"] * 5
        assert a.asked == 3
        now[0] = 4.2  # the rest is twice as long now
        a.lists = None
        assert await who(pool) == "b"
        await settle()
        assert [await who(pool) for _ in range(5)] == ["b"] * 5
        now[0] = 6.2
        assert await who(pool) == "b"
        await settle()
        assert [await who(pool) for _ in range(5)] == ["b"] * 5  # it lists them, and fails again
        assert a.asked == 4
        now[0] = 100.0
        a.fails = None
        assert await who(pool) == "b"
        await settle()
        assert await who(pool) == "a"
        assert sorted([await who(pool) for _ in range(4)]) == ["a", "a", "b", "b"]
        await pool.close()
        assert (a.asked, b.asked) == (-1, -1)

    asyncio.run(story())


def test_one_request_at_a_time_tries_a_server_that_has_rested() -> None:
    async def story() -> None:
        now = [0.0]
        a, b = Server("a"), Server("b")
        pool = Pool([a, b], lambda: now[0])
        a.fails = down()
        for _ in range(6):
            await who(pool)
        now[0], a.fails, a.hold = 10.0, None, asyncio.Event()
        assert await who(pool) == "b"
        await settle()
        trial = asyncio.create_task(who(pool))
        await settle()
        assert [await who(pool) for _ in range(3)] == ["b"] * 3
        a.hold.set()
        assert await trial == "a"
        await pool.close()

    asyncio.run(story())


def test_the_one_with_the_fewest_requests_is_asked() -> None:
    async def story() -> None:
        a, b = Server("a"), Server("b")
        pool = Pool([a, b])
        a.hold = asyncio.Event()
        first = asyncio.create_task(who(pool))
        await settle()
        assert [await who(pool) for _ in range(3)] == ["b"] * 3
        a.hold.set()
        assert await first == "a"
        await pool.close()

    asyncio.run(story())


def test_when_all_of_them_rest_they_are_asked_all_the_same() -> None:
    async def story() -> None:
        a, b = Server("a"), Server("b")
        pool = Pool([a, b], lambda: 0.0)
        a.fails, b.fails = down("a"), down("b")
        for _ in range(10):
            with pytest.raises(UpstreamError, match="is down"):
                await who(pool)
        a.fails = None
        assert await who(pool) == "a"
        await pool.close()

    asyncio.run(story())


def test_a_request_that_is_at_fault_itself_says_nothing_of_the_server() -> None:
    async def story() -> None:
        a = Server("a")
        pool = Pool([a, Server("b")])
        a.fails = RequestError("Too long.")
        refused = 0
        for _ in range(10):
            try:
                await who(pool)
            except RequestError:
                refused += 1
        assert refused == a.asked == 5
        await pool.close()

    asyncio.run(story())


def test_what_is_listed_is_what_any_of_them_lists() -> None:
    async def story() -> None:
        a, b = Server("a"), Server("b")
        pool = Pool([a, b])
        a.lists = down()
        assert await pool.models() == ["b"]
        b.lists = down()
        with pytest.raises(UpstreamError):
            await pool.models()
        assert pool.name == "a, b"
        await pool.close()

    asyncio.run(story())


# --- who has the beginning of a conversation in its cache ---


def conversation(first: str, *more: str, system: str = "Be brief.", **fields: Any) -> GenerationRequest:
    """What is asked for when a user has said this, the model has answered, and so on."""
    said = [Message("system", (TextPart(system),)), Message("user", (TextPart(first),))]
    said += [Message("user" if number % 2 else "assistant", (TextPart(text),)) for number, text in enumerate(more)]
    return GenerationRequest("m", Conversation(items=tuple(said)), fields=fields)


async def served(pool: Pool, generation: GenerationRequest) -> str:
    async with aclosing(each(pool.stream(generation))) as deltas:
        return "".join([delta.text async for delta in deltas if isinstance(delta, TextDelta)])


NAMES = ["http://a:8000/v1", "http://b:8000/v1", "http://c:8000/v1"]
TALKS = [f"What is {number} times {number}?" for number in range(60)]


def test_a_conversation_stays_at_one_server_whichever_gateway_it_comes_to() -> None:
    async def story() -> None:
        one, other = (Pool([Server(name) for name in names]) for names in (NAMES, NAMES[::-1]))
        homes = [await served(one, conversation(first)) for first in TALKS]
        assert [await served(other, conversation(first, "It is that.", "And then?")) for first in TALKS] == homes
        assert all(homes.count(name) > len(TALKS) / 6 for name in NAMES)
        await one.close()
        await other.close()

    asyncio.run(story())


def test_a_server_more_moves_only_the_conversations_that_it_takes() -> None:
    async def story() -> None:
        few, many = (Pool([Server(name) for name in names]) for names in (NAMES, [*NAMES, "http://d:8000/v1"]))
        before = [await served(few, conversation(first)) for first in TALKS]
        after = [await served(many, conversation(first)) for first in TALKS]
        moved = [home for old, home in zip(before, after, strict=True) if old != home]
        assert set(moved) == {"http://d:8000/v1"}
        assert len(moved) < len(TALKS) / 2
        await few.close()
        await many.close()

    asyncio.run(story())


def test_requests_of_one_session_go_to_one_server() -> None:
    async def story() -> None:
        pool = Pool([Server(name) for name in NAMES])
        talks = [conversation(first) for first in TALKS]
        asked = [replace(one, conversation=replace(one.conversation, session_id="s-7")) for one in talks]
        assert len({await served(pool, one) for one in asked}) == 1
        assert len({await served(pool, one) for one in talks}) > 1
        await pool.close()

    asyncio.run(story())


def test_requests_with_the_same_cache_key_go_to_one_server() -> None:
    async def story() -> None:
        pool = Pool([Server(name) for name in NAMES])
        asked = [conversation(first, prompt_cache_key="thread-7") for first in TALKS]
        assert len({await served(pool, one) for one in asked}) == 1
        await pool.close()

    asyncio.run(story())


def test_a_server_with_much_more_to_do_than_the_others_is_passed_over() -> None:
    async def story() -> None:
        servers = {name: Server(name) for name in NAMES}
        pool = Pool([*servers.values()])
        home = servers[await served(pool, conversation("Hi"))]
        home.hold = asyncio.Event()
        running = [asyncio.create_task(served(pool, conversation("Hi"))) for _ in range(2)]
        await settle()
        states = {state.name: state.in_flight for state in pool.states()}
        assert states[home.name] == 1  # the second one has gone elsewhere
        home.hold.set()
        assert [await task for task in running].count(home.name) == 1
        assert await served(pool, conversation("Hi")) == home.name
        await pool.close()

    asyncio.run(story())


def test_a_server_that_fails_gives_its_conversations_to_the_others() -> None:
    async def story() -> None:
        servers = {name: Server(name) for name in NAMES}
        pool = Pool([*servers.values()], lambda: 0.0)
        home = servers[await served(pool, conversation("Hi"))]
        home.fails = down(home.name)
        asked = conversation("Hi")
        asked = replace(asked, timings=RequestTimings())
        assert await served(pool, asked) != home.name
        assert asked.timings is not None
        assert asked.timings.servers == 2
        assert len({await served(pool, conversation("Hi")) for _ in range(9)}) == 1
        assert {state.name for state in pool.states() if not state.is_well} == {home.name}
        await pool.close()

    asyncio.run(story())


def test_over_http_a_conversation_stays_where_it_began(serve: Served, model: ModelServer, other: ModelServer) -> None:
    url = serve(ModelConfig(name="pool", upstream=[model.url, other.url], model="served"))
    for server in (model, other):
        server.plays(*(said("Hi") for _ in range(4)))
    for _ in range(4):
        assert ask(url, BODY, stream=True).message["content"] == "Hi"
    assert sorted((len(model.asked), len(other.asked))) == [0, 4]
