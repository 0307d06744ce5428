"""Several servers of one model: which one is asked, and which one instead when it fails."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from itertools import count
from typing import Any

import pytest

from tests.asking import CHAT, ask, request
from tests.conftest import Served
from tests.outputs import QUESTION
from tests.servers import Answer, ModelServer, call_deltas, chunk, said, sse, whole
from toolwright.batches import each
from toolwright.conversation import Conversation
from toolwright.errors import RequestError, UpstreamError
from toolwright.gateway.config import ModelConfig
from toolwright.upstreams.base import Deltas, Generation, Stopped, TextDelta
from toolwright.upstreams.pool import Pool

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
    return serve(ModelConfig(name="pool", upstream=[*urls], model="served", connect_timeout_s=next(_numbers)))


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
    model.plays(Answer((*sse(chunk(begun)), "reset")))
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

    async def stream(self, _: Generation) -> Deltas:
        self.asked += 1
        if self.fails is not None:
            raise self.fails
        yield [TextDelta(self.name)]
        if self.hold is not None:
            await self.hold.wait()
        yield [Stopped("stop")]

    async def open(self) -> None:
        pass

    async def models(self) -> list[str]:
        if self.lists is not None:
            raise self.lists
        return [self.name]

    async def close(self) -> None:
        self.asked = -1


ASKED = Generation("m", Conversation())


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
