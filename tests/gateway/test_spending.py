"""Prices and budgets: costs of requests, where they are counted, and refusals at a limit."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from callwright.errors import ConfigError, RequestError
from callwright.events import Usage
from callwright.gateway.access.keys import hash_of
from callwright.gateway.app import create_app
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig, RecordConfig, StoreConfig
from callwright.gateway.config.spending import BudgetConfig, PriceConfig, TeamConfig
from callwright.gateway.spending.budgets import budgets_of
from callwright.gateway.spending.ledger import Ledger
from callwright.gateway.spending.prices import Price
from callwright.gateway.store.spending import Spending
from callwright.gateway.store.store import Store, StoreError
from tests.support.http_client import CHAT, Live, Reply, request
from tests.support.outputs import ARGUMENTS, QUESTION, TOOLS
from tests.support.servers import USAGE, Answer, Asked, Gateway, ModelServer, call_deltas, chat, said, whole
from tests.support.store_helpers import Database
from tests.support.waiting import PATIENCE_S, until

pytest_plugins = ["tests.support.databases"]
KEYS: Final = {name: f"cw-{name}-" + "k" * 40 for name in ("anna", "ben", "cleo", "root")}
NOON: Final = datetime(2026, 11, 29, 12, tzinfo=UTC)
PRICE: Final = PriceConfig(input=3.0, output=15.0, cached_input=0.3)


def key(name: str, **more: Any) -> KeyConfig:
    return KeyConfig(name=name, sha256=hash_of(KEYS[name]), **more)


def model(name: str, url: str, **more: Any) -> ModelConfig:
    return ModelConfig(name=name, upstream=url, mode="native", **more)


def ask(
    url: str, name: str, model: str = "served", path: str = CHAT, *, wish: Mapping[str, str] = {}, **more: Any
) -> Reply:
    body: dict[str, Any] = {"model": model, "messages": [QUESTION], "max_tokens": 20, **more}
    if path == "/v1/responses":
        body = {"model": model, "input": "Hi", "max_output_tokens": 20, **more}
    return request(url + path, body, headers={"authorization": f"Bearer {KEYS[name]}", **wish} if name else {})


# --- prices ---


@pytest.mark.parametrize(
    ("price", "usage", "cost"),
    [
        ({"input": 3.0, "output": 15.0}, (1_000, 100, 0), 4_500),
        ({"input": 3.0, "output": 15.0, "cached_input": 0.3}, (1_000, 100, 900), 300 + 270 + 1_500),
        ({"input": 3.0}, (1_000, 100, 900), 3_000),
        ({"input": 0.1, "output": 0.7}, (1, 1, 0), 1),  # a part of a millionth counts as one
        ({"input": 0.1, "output": 0.7}, (10, 0, 0), 1),  # 0.1 has no exact float
        ({"input": 0.15}, (2_000_000_000, 0, 0), 300_000_000),
        ({"input": 3.0, "output": 15.0}, (0, 0, 0), 0),
        ({"input": 0.0, "output": 0.0}, (1_000, 100, 0), 0),
    ],
)
def test_a_cost_is_exact_to_the_millionth(price: dict[str, float], usage: tuple[int, int, int], cost: int) -> None:
    assert Price(PriceConfig(**price)).cost(Usage(*usage)) == cost


# --- the ledger ---


class Peer:
    """One of several processes. Its `time` is set by the test."""

    def __init__(self, url: str, config: Config) -> None:
        self.store = Store(url)
        self.time = NOON
        self.ledger = Ledger(self.store, lambda: self.time.timestamp())
        self.ledger.change([*budgets_of(config)])

    async def turn(self, who: str, tokens: int, wish: int | None = None, model: str = "served") -> None:
        """A request that uses these tokens and a millionth for each; its estimate is the same, if not given."""
        wishes = dict.fromkeys(self.ledger.meters_of(who, model), tokens if wish is None else wish)
        await self.ledger.admit(wishes)
        self.ledger.add(who, model, Usage(prompt_tokens=tokens), tokens, wishes)


@asynccontextmanager
async def peers(url: str, config: Config, count: int = 1) -> AsyncIterator[Sequence[Peer]]:
    async with AsyncExitStack() as opened:
        made = [Peer(url, config) for _ in range(count)]
        for peer in made:
            await peer.store.open()
            opened.push_async_callback(peer.store.close)
        yield made


def budgeted(**limits: Any) -> Config:
    """Anna and Ben are a team, Cleo is not; the same limits for Anna, for the team, and for a model."""
    budget = BudgetConfig(**limits)
    return Config(
        keys=(key("anna", team="research"), key("ben", team="research"), key("cleo")),
        teams=(TeamConfig(name="research", budget=budget),),
        models=(model("served", "http://127.0.0.1/v1", price=PRICE),),
    )


TURNS: Final = st.lists(
    st.tuples(
        st.sampled_from(("", "anna", "ben")),
        st.sampled_from(("small", "large")),
        st.integers(0, 40),  # days later
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.booleans(),  # whether it is reported before the next
        st.integers(0, 1),  # by which process
    ),
    max_size=12,
)


@given(turns=TURNS)
def test_any_turns_sum_up_by_key_day_and_model(turns: list[tuple[Any, ...]]) -> None:
    async def story() -> None:
        expected: dict[tuple[str, str, str], list[int]] = {}
        async with peers("sqlite://", Config()) as (one,):
            other = Ledger(one.store, lambda: one.time.timestamp())
            for who, which, days, given, cached, written, reports, process in sorted(turns, key=lambda turn: turn[2]):
                one.time = NOON + timedelta(days=days)
                usage = Usage(given, written, min(given, cached))
                cost = Price(PRICE).cost(usage)
                ledger = (one.ledger, other)[process]
                ledger.add(who, which, usage, cost)
                if reports:
                    assert await ledger.report()
                sums = expected.setdefault((who, one.time.date().isoformat(), which), [0] * 5)
                for place, amount in enumerate((1, given, written, usage.cached_tokens, cost)):
                    sums[place] += amount
            await other.report()
            found = await one.ledger.spending((NOON - timedelta(days=1)).date(), None)
            assert found == [
                Spending(*known, *sums)
                for known, sums in sorted(
                    expected.items(), key=lambda row: (-date_number(row[0][1]), row[0][0], row[0][2])
                )
            ]
            annas = await one.ledger.spending((NOON - timedelta(days=1)).date(), "anna")
            assert annas == [row for row in found if row.key == "anna"]

    asyncio.run(story())


def date_number(day: str) -> int:
    return int(day.replace("-", ""))


@pytest.mark.parametrize("limits", [{"tokens_per_day": 100}, {"cost_per_day": 0.0001}])
def test_a_budget_is_used_up_by_keys_of_the_team_and_no_other(kept_url: str, limits: dict[str, Any]) -> None:
    async def story() -> None:
        async with peers(kept_url, budgeted(**limits), 2) as (one, other):
            await one.turn("anna", 60)
            for _ in range(2):  # the second time nothing is granted in advance
                await one.ledger.report()
            await other.turn("ben", 50, wish=40)
            await other.ledger.report()
            for peer, who in ((one, "anna"), (other, "ben"), (other, "anna")):
                with pytest.raises(
                    RequestError, match="the budget of the team 'research' per day is used up"
                ) as refused:
                    await peer.turn(who, 1)
                assert (refused.value.status, refused.value.type, refused.value.code) == (
                    429,
                    "insufficient_quota",
                    "insufficient_quota",
                )
                assert refused.value.headers == {"retry-after": str(12 * 3_600), "x-should-retry": "false"}
            await one.turn("cleo", 500)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("period", "last", "message"),
    [
        ("day", datetime(2026, 11, 29, 23, 59, 59, tzinfo=UTC), "2026-11-30 00:00 UTC"),
        ("month", datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC), "2026-12-01 00:00 UTC"),
        ("month", datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC), "2027-01-01 00:00 UTC"),
        ("month", datetime(2028, 2, 29, 23, 59, 59, tzinfo=UTC), "2028-03-01 00:00 UTC"),
    ],
)
def test_a_budget_is_reset_when_its_period_ends(period: str, last: datetime, message: str) -> None:
    async def story() -> None:
        async with peers("sqlite://", budgeted(**{f"tokens_per_{period}": 100})) as (one,):
            one.time = last - timedelta(hours=20)
            await one.turn("anna", 100)
            one.time = last
            with pytest.raises(RequestError, match=re.escape(f"It is reset at {message}")) as refused:
                await one.turn("anna", 1)
            assert refused.value.headers["retry-after"] == "1"
            one.time = last + timedelta(seconds=1)
            await one.turn("anna", 100)
            await one.ledger.report()
            with pytest.raises(RequestError, match="Limit 100 tokens, used 100 tokens"):
                await one.turn("anna", 1)

    asyncio.run(story())


def test_a_budget_of_a_month_is_the_sum_of_its_days() -> None:
    async def story() -> None:
        async with peers("sqlite://", budgeted(tokens_per_month=100)) as (one,):
            for day in range(5):
                one.time = NOON.replace(day=1) + timedelta(days=day)
                await one.turn("anna", 20)
                await one.ledger.report()
            with pytest.raises(RequestError, match="used 100 tokens"):
                await one.turn("anna", 1)

    asyncio.run(story())


async def hammered(peer: Peer, tokens: int, wish: int) -> int:
    """Requests one after another until one is refused; how many passed."""
    passed = 0
    with suppress(RequestError):
        while True:
            wishes = dict.fromkeys(peer.ledger.meters_of("anna", "served"), wish)
            await peer.ledger.admit(wishes)
            await asyncio.sleep(0)
            peer.ledger.add("anna", "served", Usage(prompt_tokens=tokens), tokens, wishes)
            passed += 1
    return passed


@pytest.mark.parametrize(("limit", "tokens", "wish"), [(1_000, 10, 10), (1_000, 10, 90), (50, 10, 70), (3_000, 7, 9)])
def test_processes_together_exceed_a_budget_by_one_request_at_most(
    kept_url: str, limit: int, tokens: int, wish: int
) -> None:
    async def story() -> None:
        async with peers(kept_url, budgeted(tokens_per_day=limit), 4) as processes:
            tasks = [asyncio.create_task(peer.ledger.run()) for peer in processes]
            counts = await asyncio.gather(*(hammered(peer, tokens, wish) for peer in processes for _ in range(5)))
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for peer in processes:
                await peer.ledger.close()
            (row,) = await processes[0].store.spending.rows("2026-01-01", None)
            assert (row.requests, row.input_tokens) == (sum(counts), sum(counts) * tokens)
            assert limit <= row.input_tokens < limit + tokens

    asyncio.run(story())


def test_far_below_the_limit_no_request_asks_the_store(kept_url: str) -> None:
    async def story() -> None:
        asked: list[str] = []
        store = Store(kept_url, told=lambda operation, *_, **__: asked.append(operation))
        await store.open()
        ledger = Ledger(store)
        ledger.change([*budgets_of(budgeted(tokens_per_day=1_000_000))])
        for _ in range(100):
            wishes = dict.fromkeys(ledger.meters_of("anna", "served"), 100)
            await ledger.admit(wishes)
            ledger.add("anna", "served", Usage(prompt_tokens=100), 100, wishes)
        assert asked == ["settle"]
        await store.close()

    asyncio.run(story())


def test_a_batch_that_is_sent_again_counts_once(kept_url: str) -> None:
    async def story() -> None:
        store = Store(kept_url)
        await store.open()
        row = Spending("anna", "2026-11-29", "served", 1, 10, 5, 0, 7)
        for _ in range(3):
            await store.spending.settle("process", 1, [row], [], {})
        await store.spending.settle("process", 2, [row], [], {})
        await store.spending.settle("other", 1, [row], [], {})
        three = Spending("anna", "2026-11-29", "served", 3, 30, 15, 0, 21)
        assert await store.spending.rows("2026-11-01", None) == [three]
        await store.close()

    asyncio.run(story())


@pytest.mark.postgres
def test_while_the_store_is_down_each_process_counts_for_itself(
    postgres: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(postgres(), postgres())

    async def story() -> None:
        async with peers(database.url, budgeted(tokens_per_day=100), 2) as (one, other):
            await one.turn("anna", 40)
            await one.ledger.report()
            await other.turn("ben", 1)
            database.close()
            assert not await other.ledger.report()
            await other.turn("ben", 30)
            await other.turn("ben", 30)
            with pytest.raises(RequestError, match="used 101 tokens"):
                await other.turn("ben", 1)
            with pytest.raises(StoreError):
                await other.ledger.spending(NOON.date(), None)
            database.open()
            assert await other.ledger.report()
            assert await other.ledger.report()
            with pytest.raises(RequestError):
                await one.turn("anna", 10)  # more than it was granted before
            rows = await one.store.spending.rows("2026-11-01", None)
            assert {row.key: row.input_tokens for row in rows} == {"anna": 40, "ben": 61}

    asyncio.run(story())
    messages = [record.message.partition(",")[0] for record in caplog.records if "budgets" in record.message]
    assert messages == ["budgets cannot be counted together", "budgets are counted together again"]


# --- over HTTP ---

EMBEDDED: Final = whole({"object": "list", "data": [], "usage": {"prompt_tokens": 100, "total_tokens": 100}})
# Of a turn with the usual counts of the model server, 11 in and 7 out.
TURN: Final = 11 * 3 + 7 * 15
WIRES: Final = (CHAT, "/v1/responses", "/v1/messages")


class Spent:
    """A gateway with prices over one model server, and the costs that it reports in each place."""

    def __init__(self, server: ModelServer, folder: Path, **config: Any) -> None:
        dear = model("dear", server.url, price=PriceConfig(input=30.0, output=150.0))
        config = {
            "models": (model("served", server.url, price=PRICE, fallback=("dear",)), dear, model("free", server.url)),
            "keys": (key("anna"), key("ben"), key("root", operator=True)),
            "store": StoreConfig(url=f"sqlite:///{folder}/store.db"),
            "record": RecordConfig(dir=str(folder / "records")),
            **config,
        }
        self.folder = folder
        self.gateway = Gateway(Config(**config))
        self.url = self.gateway.url

    def page(self, name: str = "root", query: str = "") -> Any:
        reply = request(
            f"{self.url}/ui/api/spend{query}", method="GET", headers={"authorization": f"Bearer {KEYS[name]}"}
        )
        assert reply.status == 200, reply.text
        return reply.json

    def rows(self, name: str = "root") -> dict[tuple[str, str], tuple[int, ...]]:
        """Requests, tokens in, out and cached, and the cost of each key and model, on the page."""
        fields = ("requests", "input_tokens", "output_tokens", "cached_tokens", "cost")
        return {(row["key"], row["model"]): tuple(row[field] for field in fields) for row in self.page(name)["rows"]}

    def costs(self) -> dict[tuple[str, str], int]:
        """The same costs in the metrics."""
        text = request(f"{self.url}/metrics", method="GET", headers={"authorization": f"Bearer {KEYS['root']}"}).text
        samples = [one for each in text_string_to_metric_families(text) for one in each.samples]
        found = [one for one in samples if one.name == "callwright_cost_total"]
        return {(one.labels["key"], one.labels["model"]): round(one.value * 1_000_000) for one in found}

    def recorded(self) -> list[int | None]:
        """The costs of the recorded turns, after the gateway has ended."""
        lines = [
            line for path in sorted((self.folder / "records").iterdir()) for line in path.read_bytes().splitlines()
        ]
        return [msgspec.json.decode(line).get("cost") for line in lines]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    server = ModelServer()
    yield server
    server.stop()


@pytest.fixture
def spent(server: ModelServer, tmp_path: Path) -> Iterator[Spent]:
    spent = Spent(server, tmp_path)
    yield spent
    spent.gateway.stop()


def cost_of(reply: Reply) -> int:
    """The cost that a whole answer states, in millionths."""
    units, _, parts = reply.headers["x-callwright-cost"].partition(".")
    assert len(parts) == 6
    return int(units) * 1_000_000 + int(parts)


def costs_of(asked: Sequence[Asked]) -> dict[tuple[str, str], int]:
    """What these requests to the model server cost Anna."""
    found = Counter(one.body["model"] for one in asked)
    return {("anna", name): number * TURN * {"served": 1, "dear": 10}[name] for name, number in found.items()}


@pytest.mark.parametrize("path", WIRES)
def test_a_cost_is_in_the_header_the_metrics_the_records_and_on_the_page(
    server: ModelServer, tmp_path: Path, path: str
) -> None:
    spent = Spent(server, tmp_path)
    server.plays(*(said("Hi") for _ in range(4)))
    replies = [ask(spent.url, name, path=path) for name in ("anna", "anna", "ben")]
    assert [cost_of(reply) for reply in replies] == [TURN] * 3
    assert [reply.json["usage"]["cost"] for reply in replies] == [TURN / 1_000_000] * 3
    free = ask(spent.url, "anna", "free", path=path)
    assert (free.status, "x-callwright-cost" in free.headers) == (200, False)
    assert "cost" not in free.json["usage"]
    assert spent.rows() == {
        ("anna", "free"): (1, 11, 7, 0, 0),
        ("anna", "served"): (2, 22, 14, 0, 2 * TURN),
        ("ben", "served"): (1, 11, 7, 0, TURN),
    }
    assert spent.rows("ben") == {("ben", "served"): (1, 11, 7, 0, TURN)}
    assert spent.costs() == {("anna", "served"): 2 * TURN, ("ben", "served"): TURN}
    spent.gateway.stop()
    assert spent.recorded() == [TURN, TURN, TURN, None]


@pytest.mark.parametrize("path", WIRES)
def test_a_stream_costs_the_same_and_has_no_header(server: ModelServer, spent: Spent, path: str) -> None:
    server.plays(said("Hi"))
    more: dict[str, Any] = {"stream_options": {"include_usage": True}} if path == CHAT else {}
    reply = ask(spent.url, "anna", path=path, stream=True, **more)
    assert (reply.status, "x-callwright-cost" in reply.headers) == (200, False)
    assert re.findall(r'"cost":([0-9.e-]+)', reply.text) == ["0.000138"]
    assert spent.rows() == {("anna", "served"): (1, 11, 7, 0, TURN)}


def test_retries_and_the_fallback_count_each_at_its_own_price(server: ModelServer, spent: Spent) -> None:
    bad = [chat(*call_deltas("get_weather", '{"x": 1}'), finish="tool_calls") for _ in range(3)]
    server.plays(*bad, chat(*call_deltas("get_weather", ARGUMENTS), finish="tool_calls"))
    reply = ask(spent.url, "anna", tools=[TOOLS[0]], tool_choice="required")
    assert (reply.status, len(server.asked)) == (200, 4)
    assert reply.headers["x-callwright-fallback"].startswith("dear;")
    expected = costs_of(server.asked)
    assert min(expected.values()) > 0
    assert cost_of(reply) == sum(expected.values())
    assert spent.costs() == expected
    assert {known: row[-1] for known, row in spent.rows().items()} == expected


def test_a_turn_that_fails_after_its_counts_is_counted(server: ModelServer, spent: Spent) -> None:
    server.plays(*(said("Hi") for _ in range(9)))
    reply = ask(spent.url, "anna", tools=[TOOLS[0]], tool_choice="required")
    assert reply.status == 502, reply.text
    expected = costs_of(server.asked)
    assert cost_of(reply) == sum(expected.values())
    assert spent.costs() == expected


def test_a_stream_whose_client_left_after_the_counts_is_counted(server: ModelServer, spent: Spent) -> None:
    gate = server.gate()
    *steps, last = said("Hi").steps
    server.plays(Answer((*steps, gate, last)))
    body = {"model": "served", "messages": [QUESTION], "stream": True}
    headers = {"authorization": f"Bearer {KEYS['anna']}"}
    with Live(spent.url + CHAT, json.dumps(body).encode(), headers=headers) as live:
        next(live.pieces())
        gate.wait_until_reached()
    server.wait_until_left()
    gate.open()
    until(lambda: spent.rows() == {("anna", "served"): (1, 11, 7, 0, TURN)})


@pytest.mark.parametrize(("stream", "pieces"), [(False, 0), (True, 0), (True, 4)], ids=["whole", "silent", "begun"])
@pytest.mark.parametrize("path", [*WIRES, "/v1/completions"])
def test_a_client_that_leaves_before_the_counts_is_counted_by_estimate(
    server: ModelServer, spent: Spent, path: str, stream: bool, pieces: int
) -> None:
    gate = server.gate()
    steps = said("Hi", " Anna", " and", " Ben").steps
    server.plays(Answer((*steps[:pieces], gate, *steps[pieces:])))
    asked: dict[str, Any] = {"model": "served", "stream": stream}
    asked |= {"input": "hello " * 40} if path == "/v1/responses" else {"prompt": "hello " * 40}
    if path not in ("/v1/responses", "/v1/completions"):
        asked = {"model": "served", "stream": stream, "max_tokens": 50}
        asked["messages"] = [{"role": "user", "content": "hello " * 40}]
    if path == "/v1/messages":  # which may begin the answer
        asked["messages"] = [QUESTION, {"role": "assistant", "content": "hello" * 48}]
    headers = {"authorization": f"Bearer {KEYS['anna']}"}
    with Live(spent.url + path, json.dumps(asked).encode(), headers=headers):
        gate.wait_until_reached()
    server.wait_until_left()
    gate.open()
    until(lambda: spent.rows())
    ((key_and_model, row),) = spent.rows().items()
    requests, given, written, cached, cost = row
    assert (key_and_model, requests, cached) == (("anna", "served"), 1, 0)
    assert 60 <= given < 120
    assert written == 0 if pieces == 0 else 0 < written <= pieces
    assert cost == given * 3 + written * 15


def test_forwarded_requests_have_a_cost(server: ModelServer, spent: Spent) -> None:
    server.plays(EMBEDDED)
    body = {"model": "served", "input": "some text"}
    reply = request(f"{spent.url}/v1/embeddings", body, headers={"authorization": f"Bearer {KEYS['anna']}"})
    assert cost_of(reply) == 300
    assert spent.rows() == {("anna", "served"): (1, 100, 0, 0, 300)}


def test_requests_without_keys_count_under_an_empty_name(server: ModelServer, tmp_path: Path) -> None:
    gateway = Gateway(Config(models=(model("served", server.url, price=PRICE),)))
    try:
        server.plays(said("Hi"))
        assert cost_of(ask(gateway.url, "")) == TURN
        page = request(f"{gateway.url}/ui/api/spend", method="GET").json
        assert [(row["key"], row["cost"]) for row in page["rows"]] == [("", TURN)]
        assert page["budgets"] == []
    finally:
        gateway.stop()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", WIRES)
def test_who_has_used_up_a_budget_is_refused_in_the_words_of_the_api(
    server: ModelServer, tmp_path: Path, path: str, stream: bool
) -> None:
    budget = BudgetConfig(cost_per_month=0.000138)
    spent = Spent(server, tmp_path, keys=(key("anna", budget=budget), key("ben"), key("root", operator=True)))
    server.plays(said("Hi"), said("Hi"), said("Hi"))
    assert ask(spent.url, "anna", path=path).status == 200
    reply = ask(spent.url, "anna", path=path, stream=stream)
    assert reply.status == 429
    error = reply.json["error"]
    words = (
        r"You exceeded your current quota: the budget of the key 'anna' per month is used up\. Limit 0\.000138 USD, "
    )
    words += r"used 0\.000138 USD\. It is reset at \d{4}-\d\d-01 00:00 UTC\."
    assert re.match(words, error["message"]), error["message"]
    assert 0 < int(reply.headers["retry-after"]) <= 31 * 86_400
    assert reply.headers["x-should-retry"] == "false"
    if path == "/v1/messages":
        assert (reply.json["type"], error["type"]) == ("error", "rate_limit_error")
    else:
        assert reply.error == error
        assert (error["type"], error["code"]) == ("insufficient_quota", "insufficient_quota")
    assert ask(spent.url, "ben", path=path).status == 200
    assert ask(spent.url, "anna", "free", path=path).status == 200  # it costs nothing
    metrics = request(f"{spent.url}/metrics", method="GET", headers={"authorization": f"Bearer {KEYS['root']}"}).text
    assert 'callwright_refused_total{reason="budget"} 1.0' in metrics
    (shown,) = spent.page("anna")["budgets"]
    assert (shown["limit"], shown["used"], shown["owner"], shown["period"]) == (TURN, TURN, "key", "month")
    assert spent.page("ben")["budgets"] == []
    spent.gateway.stop()


BUDGETS: Final[dict[str, dict[str, Any]]] = {
    "of the key": {"keys": (key("anna", budget=BudgetConfig(tokens_per_day=18)),)},
    "of its team": {
        "keys": (key("anna", team="all"),),
        "teams": (TeamConfig(name="all", budget=BudgetConfig(cost_per_day=0.000138)),),
    },
    "of the model": {"keys": (key("anna"),)},
}


def turn_by_websocket(url: str, name: str, more: Mapping[str, str]) -> dict[str, Any]:
    """The first event that ends a turn, or refuses it."""
    connect = pytest.importorskip("websockets.sync.client").connect
    headers = {"authorization": f"Bearer {KEYS[name]}", **more}
    with connect(f"{url.replace('http', 'ws')}/v1/responses", additional_headers=headers) as connection:
        connection.send(json.dumps({"type": "response.create", "model": "served", "input": "hi"}))
        while True:
            event: dict[str, Any] = json.loads(connection.recv(PATIENCE_S))
            if event["type"] in ("response.completed", "response.failed", "error"):
                return event


@pytest.mark.parametrize("falls_back", ["", "yes", "refused"], ids=["alone", "with a fallback", "switched off"])
@pytest.mark.parametrize("title", BUDGETS)
def test_over_a_budget_nothing_is_queued_and_no_turn_begins(
    server: ModelServer, tmp_path: Path, title: str, falls_back: str
) -> None:
    own = {"budget": BudgetConfig(tokens_per_day=18)} if title == "of the model" else {}
    fallback = {"fallback": ("free",)} if falls_back else {}
    models = (model("served", server.url, price=PRICE, **own, **fallback), model("free", server.url))
    spent = Spent(server, tmp_path, models=models, **BUDGETS[title])
    server.plays(*(said("Hi") for _ in range(4)))
    assert ask(spent.url, "anna", path="/v1/responses").status == 200
    server.asked.clear()
    wish = {"x-callwright-fallback": "none"} if falls_back == "refused" else {}
    queued = ask(spent.url, "anna", path="/v1/responses", wish=wish, background=True)
    event = turn_by_websocket(spent.url, "anna", wish)
    if falls_back == "yes" and title != "of the key":  # the other model costs nothing, but has tokens
        assert (queued.status, event["type"]) == (200, "response.completed")
    else:
        assert (queued.status, queued.error["code"]) == (429, "insufficient_quota")
        assert int(queued.headers["retry-after"]) > 0
        assert (event["type"], event["status"], event["error"]["code"]) == ("error", 429, "insufficient_quota")
        assert int(event["headers"]["retry-after"]) > 0
        assert server.asked == []
    spent.gateway.stop()


def test_the_usage_of_other_gateways_counts_before_anything_is_queued(server: ModelServer, tmp_path: Path) -> None:
    config = {"keys": (key("anna", budget=BudgetConfig(tokens_per_day=18)),)}
    models = (model("served", server.url, price=PRICE),)
    first = Spent(server, tmp_path, models=models, **config)
    server.plays(said("Hi"))
    assert ask(first.url, "anna", path="/v1/responses").status == 200
    first.gateway.stop()
    second = Spent(server, tmp_path, models=models, **config)
    assert ask(second.url, "anna", path="/v1/responses", background=True).status == 429
    second.gateway.stop()


def test_the_budget_of_a_model_leads_to_its_fallback(server: ModelServer, tmp_path: Path) -> None:
    models = (
        model("served", server.url, budget=BudgetConfig(tokens_per_day=18), fallback=("free",)),
        model("free", server.url),
    )
    spent = Spent(server, tmp_path, models=models)
    server.plays(said("Hi"), said("Hi"))
    assert "x-callwright-fallback" not in ask(spent.url, "anna").headers
    assert ask(spent.url, "ben").headers["x-callwright-fallback"] == "free; reason=insufficient_quota"
    spent.gateway.stop()


def test_a_request_waits_while_another_may_need_the_rest(server: ModelServer, tmp_path: Path) -> None:
    keys = (key("anna", budget=BudgetConfig(tokens_per_day=100)), key("root", operator=True))
    spent = Spent(server, tmp_path, keys=keys)
    gate = server.gate()
    first = said("Hi")
    server.plays(Answer((gate, *first.steps)), said("Hi"))
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(ask, spent.url, "anna", max_tokens=80)
        gate.wait_until_reached()
        other = threads.submit(ask, spent.url, "anna", max_tokens=60)
        operations = 'callwright_store_operations_total{operation="settle",outcome="ok"}'
        headers = {"authorization": f"Bearer {KEYS['root']}"}
        text = ""

        def has_looked_again() -> bool:
            nonlocal text
            text = request(f"{spent.url}/metrics", method="GET", headers=headers).text
            return float(text.split(operations)[1].split()[0]) > 3

        until(has_looked_again)
        assert len(server.asked) == 1
        gate.open()
        assert (one.result().status, other.result().status) == (200, 200)
    spent.gateway.stop()


@pytest.mark.parametrize(
    ("query", "told"), [("?days=0", "got '0'"), ("?days=401", "got '401'"), ("?days=x", "got 'x'")]
)
def test_the_page_refuses_a_wrong_number_of_days(spent: Spent, query: str, told: str) -> None:
    headers = {"authorization": f"Bearer {KEYS['root']}"}
    reply = request(f"{spent.url}/ui/api/spend{query}", method="GET", headers=headers)
    assert (reply.status, reply.error["param"]) == (400, "days")
    assert f"Expected a number from 1 to 400, {told}" in reply.error["message"]


# --- the configuration ---

BUDGET: Final = BudgetConfig(tokens_per_day=1)
MONEY: Final = BudgetConfig(cost_per_day=1)
FREE: Final = model("free", "http://127.0.0.1/v1")
PAID: Final = model("paid", "http://127.0.0.1/v1", price=PRICE)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"keys": (key("anna", team="reserch"),), "teams": ()}, "no team is called 'reserch'. There are none"),
        (
            {
                "keys": (key("anna", team="reserch"), key("ben", team="research")),
                "teams": (TeamConfig(name="research", budget=BUDGET),),
            },
            "Key 'anna': no team is called 'reserch'. Did you mean 'research'?",
        ),
        (
            {"keys": (key("anna", team="a"),), "teams": (TeamConfig(name="a", budget=BUDGET),) * 2},
            "Two teams have the name 'a'",
        ),
        (
            {"keys": (key("anna", budget=BudgetConfig()),)},
            "Key 'anna': the budget has no limit. Give one of cost_per_day",
        ),
        ({"keys": (key("anna", budget=BudgetConfig(cost_per_day=1)),)}, "Key 'anna': a budget of money needs prices"),
        (
            {"models": (FREE, PAID), "keys": (key("anna", models=("free",), budget=MONEY),)},
            "Key 'anna': a budget of money needs prices",
        ),
        (
            {
                "models": (FREE, PAID),
                "keys": (key("anna", models=("free",), team="a"), key("ben")),
                "teams": (TeamConfig(name="a", budget=MONEY),),
            },
            "Team 'a': a budget of money needs prices",
        ),
        (
            {"models": (msgspec.structs.replace(PAID, price=PriceConfig(input=0), budget=MONEY),)},
            "Model 'paid': a budget of money needs prices",
        ),
        (
            {"models": (msgspec.structs.replace(PAID, price=PriceConfig(input=3, output=1e-9)),)},
            "Model 'paid': price.output: expected 0 or at least 0.000001, got 1e-09",
        ),
        (
            {"keys": (key("anna", budget=BudgetConfig(tokens_per_day=11, tokens_per_month=10)),)},
            "Key 'anna': budget: expected tokens_per_day of at most tokens_per_month = 10, got 11",
        ),
        (
            {"models": (FREE, PAID), "keys": (key("anna", budget=BudgetConfig(cost_per_day=2, cost_per_month=1)),)},
            "Key 'anna': budget: expected cost_per_day of at most cost_per_month = 1, got 2",
        ),
        (
            {"keys": (key("anna", budget=BUDGET),), "store": StoreConfig(url="none")},
            "a budget needs a store that counts what was spent, got url = 'none'. Name a file or a database",
        ),
    ],
)
def test_a_budget_that_could_never_work_is_refused(config: Mapping[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        create_app(Config(**{"models": (FREE,), **config}))


def test_without_prices_and_budgets_nothing_counts(server: ModelServer, tmp_path: Path) -> None:
    gateway = Gateway(Config(models=(model("served", server.url),)))
    try:
        server.plays(said("Hi"))
        assert "x-callwright-cost" not in ask(gateway.url, "").headers
        reply = request(f"{gateway.url}/ui/api/spend", method="GET")
        assert (reply.status, reply.error["code"]) == (404, "no_spending")
        assert "settle" not in request(f"{gateway.url}/metrics", method="GET").text
    finally:
        gateway.stop()


def test_usage_is_kept_if_the_limits_change(kept_url: str) -> None:
    """Also that of a request which runs meanwhile, and for a team whose budget is new."""
    server = ModelServer()
    used = USAGE["total_tokens"]

    def config(limit: int, **more: Any) -> Config:
        budget = BudgetConfig(tokens_per_day=limit)
        served = model("served", server.url, price=more.pop("price", None))
        keys = (key("anna", budget=budget, team="research" if more else None), key("ben"))
        return Config(store=StoreConfig(url=kept_url), keys=keys, models=(served,), **more)

    gateway = Gateway(config(10 * used))
    try:
        gate = server.gate()
        steps = said("Hi", " Anna.").steps
        server.plays(said("Hi"), Answer((*steps[:2], gate, *steps[2:])), *[said("Hi")] * 9)
        assert ask(gateway.url, "anna").status == 200
        body = json.dumps({"model": "served", "messages": [QUESTION], "stream": True}).encode()
        live = Live(gateway.url + CHAT, body, headers={"authorization": f"Bearer {KEYS['anna']}"})
        gate.wait_until_reached()
        gateway.change(config(20 * used, price=PRICE))
        gate.open()
        assert b"[DONE]" in b"".join(live.pieces())
        live.close()
        assert ask(gateway.url, "anna").headers["x-callwright-cost"]
        gateway.change(config(3 * used))
        refused = ask(gateway.url, "anna")
        assert (refused.status, refused.error["code"]) == (429, "insufficient_quota")
        assert f"used {3 * used} tokens" in refused.error["message"]
        gateway.change(
            config(10 * used, teams=(TeamConfig(name="research", budget=BudgetConfig(tokens_per_day=used)),))
        )
        assert "the budget of the team 'research'" in ask(gateway.url, "anna").error["message"]
        assert ask(gateway.url, "ben").status == 200
    finally:
        gateway.stop()
        server.stop()
