"""Budgets that several gateways in processes of their own count together."""

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from typing import Final

import pytest

from callwright.gateway.access.keys import hash_of
from tests.support.http_client import CHAT, request
from tests.support.outputs import QUESTION
from tests.support.processes import gateway
from tests.support.waiting import until

pytest_plugins = ["tests.support.databases"]
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]
KEYS: Final = {name: f"cw-{name}-" + "k" * 40 for name in ("anna", "root")}
OPERATOR: Final = {"authorization": f"Bearer {KEYS['root']}"}
THREADS: Final = 3  # of clients, for each gateway
BODY: Final = {"model": "simulated", "messages": [QUESTION], "max_tokens": 30}


class Gateways:
    """Four processes with one store and a budget of one key. `answered`: the time of each answer, by process."""

    def __init__(self, started: Sequence[tuple[str, Popen[bytes]]]) -> None:
        self.urls = [url for url, _ in started]
        self.processes = [process for _, process in started]
        self.answered: list[list[float]] = [[] for _ in started]

    def ask(self, number: int) -> int:
        """One request; its status, 0 if the gateway is gone."""
        try:
            reply = request(self.urls[number] + CHAT, BODY, headers={"authorization": f"Bearer {KEYS['anna']}"})
        except (OSError, AssertionError, IndexError, ValueError):  # cut anywhere
            return 0
        if reply.status == 200:
            self.answered[number].append(time.monotonic())
        return reply.status

    def hammer(self, most: int) -> list[int]:
        """Ask all of them until they refuse, or as often as this; the last statuses."""

        def client(number: int) -> int:
            status = 200
            for _ in range(most):
                if (status := self.ask(number)) != 200:
                    break
            return status

        with ThreadPoolExecutor(THREADS * len(self.urls)) as threads:
            return list(threads.map(client, [*range(len(self.urls))] * THREADS))

    def counted(self, *, without: int | None = None) -> tuple[int, int]:
        """Requests and tokens in the store, once each of them has reported."""
        rows = []
        for number, url in enumerate(self.urls):
            if number != without:
                rows = request(f"{url}/ui/api/spend", method="GET", headers=OPERATOR).json["rows"]
        return sum(row["requests"] for row in rows), sum(row["input_tokens"] + row["output_tokens"] for row in rows)


@pytest.fixture
def limit(request: pytest.FixtureRequest) -> int:
    """The tokens per day of the key."""
    assert isinstance(request.param, int)
    return request.param


@pytest.fixture
def gateways(kept_url: str, limit: int, tmp_path: Path) -> Iterator[Gateways]:
    config = tmp_path / "callwright.toml"
    config.write_text(
        '[server]\nlog_level = "error"\n'  # nothing reads their logs
        f'[store]\nurl = "{kept_url}"\n'
        f'[[keys]]\nname = "anna"\nsha256 = "{hash_of(KEYS["anna"])}"\nbudget = {{tokens_per_day = {limit}}}\n'
        f'[[keys]]\nname = "root"\nsha256 = "{hash_of(KEYS["root"])}"\noperator = true\n'
        '[[models]]\nname = "simulated"\nupstream = "simulated"\nprice = {input = 1.0, output = 2.0}\n'
    )
    with ExitStack() as stack:
        yield Gateways([stack.enter_context(gateway("--config", str(config))) for _ in range(4)])


@pytest.mark.parametrize("limit", [400, pytest.param(1_500, marks=pytest.mark.slow)], indirect=True)
def test_four_processes_exceed_a_budget_by_less_than_a_request(gateways: Gateways, limit: int) -> None:
    assert set(gateways.hammer(most=1_000)) == {429}
    requests, tokens = gateways.counted()
    assert requests == sum(map(len, gateways.answered))
    assert limit <= tokens < limit + tokens / requests


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1_000_000], indirect=True)
def test_a_killed_process_loses_a_second_of_usage_and_no_other_does(gateways: Gateways) -> None:
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(gateways.hammer, 200)
        until(lambda: len(gateways.answered[0]) >= 50)
        killed_s = time.monotonic()
        gateways.processes[0].send_signal(signal.SIGKILL)
        running.result()
    requests, _ = gateways.counted(without=0)
    others = sum(map(len, gateways.answered[1:]))
    own = gateways.answered[0]
    assert others == 3 * THREADS * 200
    assert others + sum(at < killed_s - 3 for at in own) <= requests <= others + len(own) + THREADS
