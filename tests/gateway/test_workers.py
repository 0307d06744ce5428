"""`callwright serve --workers`: real processes behind one port, that are killed, told to end and left alone."""

import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from callwright.cli import main
from callwright.errors import ConfigError
from callwright.gateway.access.key_counters import KeyCounters
from callwright.gateway.access.keys import Keys, hash_of
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig, ServerConfig, StoreConfig
from callwright.gateway.process.shared_folder import hold, shared_folder
from callwright.gateway.process.workers import check_workers, serve_by_workers, share_of
from callwright.settings.bounds import Bounds
from tests.support.forgetful_clients import ChatTask
from tests.support.http_client import CHAT, Live, request
from tests.support.outputs import QUESTION
from tests.support.processes import gateway
from tests.support.responses_client import RESPONSES
from tests.support.servers import HOST, Answer, ModelServer, said
from tests.support.turns import shown, wrote
from tests.support.waiting import PATIENCE_S, until

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform == "win32", reason="there are no workers on Windows"),
]
proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no /proc")
COUNT = 2
KEY = "cw-anna-" + "a" * 40
BODY: dict[str, Any] = {"model": "any", "messages": [QUESTION], "stream": True}


def options(folder: Path, model: ModelServer, more: str = "") -> tuple[str, ...]:
    config = folder / "callwright.toml"
    config.write_text(
        f'[server]\nworkers = {COUNT}\n[store]\nurl = "sqlite:///{folder}/kept.db"\n'
        f'[[models]]\nname = "*"\nupstream = "{model.url}"\nmode = "native"\n{more}'
    )
    return "--config", str(config)


def workers_of(pid: int) -> set[int]:
    """The processes below one that serve."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(child) for child in children if b"spawn_main" in command(int(child))}


def command(pid: int) -> bytes:
    """Empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def answers(url: str) -> bool:
    try:
        return request(f"{url}/healthz", method="GET").status == 200
    except OSError:
        return False


def requests_counted(url: str) -> float:
    lines = request(f"{url}/metrics", method="GET").text.splitlines()
    return sum(float(line.split()[1]) for line in lines if "requests_total{" in line and CHAT in line)


@proc
def test_what_one_keeps_of_a_turn_another_puts_back(model: ModelServer, tmp_path: Path) -> None:
    requests = 16  # on new connections, which the workers share by chance
    model.plays(wrote("native", calls=[("turn_valve", {"valve": 4})], thought="It rains."), *[said("Done.")] * requests)
    with gateway(*options(tmp_path, model)) as (url, process):
        until(lambda: len(workers_of(process.pid)) == COUNT)
        task = ChatTask(url, "any")
        task.ask()
        body = task.body()
        for number in range(requests):
            assert request(f"{url}{CHAT}", body).status == 200
            assert "It rains." in shown(model.asked[-1].body), number
            assert "It rains." not in json.dumps(body)


@proc
def test_they_share_the_store_and_the_numbers_and_one_that_dies_is_started_again(
    model: ModelServer, tmp_path: Path
) -> None:
    with gateway(*options(tmp_path, model)) as (url, process):
        until(lambda: len(workers_of(process.pid)) == COUNT)
        model.plays(*(said(f"{number}") for number in range(20)))
        previous = None
        for number in range(10):  # each over a connection of its own
            asked = {"model": "any", "input": "Hi", "previous_response_id": previous}
            reply = request(url + RESPONSES, asked)
            assert reply.json["output"][0]["content"][0]["text"] == f"{number}"
            previous = reply.json["id"]
        for _ in range(5):
            assert request(url + CHAT, BODY).status == 200
        until(lambda: requests_counted(url) == 5)  # one is counted when it has left
        before = workers_of(process.pid)
        os.kill(min(before), signal.SIGKILL)
        until(lambda: len(workers_of(process.pid) - before) == 1 and len(workers_of(process.pid)) == COUNT)
        assert all(request(f"{url}{RESPONSES}/{previous}", method="GET").status == 200 for _ in range(10))
        assert requests_counted(url) == 5
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


@proc
@pytest.mark.parametrize("signals", [(signal.SIGTERM,), (signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM)])
def test_all_of_them_drain(model: ModelServer, tmp_path: Path, signals: tuple[signal.Signals, ...]) -> None:
    count = 8
    gates = [model.gate() for _ in range(count)]
    halves = said("Both", " halves.").steps
    model.plays(*(Answer((*halves[:2], gate, *halves[2:])) for gate in gates))
    with gateway(*options(tmp_path, model)) as (url, process):
        streams = [Live(url + CHAT, json.dumps(BODY).encode()) for _ in range(count)]
        for gate in gates:
            gate.wait_until_reached()
        for sign in signals:
            process.send_signal(sign)
            until(lambda: not answers(url))
        if len(signals) == 1:
            for gate in gates:
                gate.open()
        for live in streams:
            text = b"".join(live.pieces())
            assert (b" halves." in text) is (len(signals) == 1)
            assert (b"upstream_stopped" in text) is (len(signals) == 2)
            live.close()
        assert process.wait(PATIENCE_S) == 0
    for gate in gates:
        gate.open()


@proc
def test_they_end_with_a_parent_that_is_killed(model: ModelServer, tmp_path: Path) -> None:
    with gateway(*options(tmp_path, model)) as (url, process):
        until(lambda: len(workers_of(process.pid)) == COUNT and answers(url))
        workers = workers_of(process.pid)
        process.kill()
        process.wait()
        until(lambda: not any(map(command, workers)))
        with pytest.raises(ConnectionRefusedError):
            request(f"{url}/healthz", method="GET")


def test_the_limits_of_a_key_count_for_all_of_them(model: ModelServer, tmp_path: Path) -> None:
    key = f'[[keys]]\nname = "anna"\nsha256 = "{hash_of(KEY)}"\nrequests_per_minute = 6\n'
    model.plays(*(said("Hi") for _ in range(12)))
    with gateway(*options(tmp_path, model, key)) as (url, _):
        headers = {"authorization": f"Bearer {KEY}"}
        statuses = [request(url + CHAT, BODY, headers=headers).status for _ in range(12)]
    assert statuses[:6] == [200] * 6
    assert set(statuses[6:8]) == {429}  # later ones come when there is one more


def test_a_ledger_of_several_processes_is_one(tmp_path: Path) -> None:
    keys = (KeyConfig(name="a", sha256=hash_of("a"), requests_per_minute=2),)
    ledgers = [KeyCounters(["a"], 2, tmp_path / "ledger") for _ in range(2)]
    one, other = (Keys(keys, clock=lambda: 1_000.0, counters=ledger).caller("Bearer a") for ledger in ledgers)
    asyncio.run(one.begin())
    assert other.headers()["x-ratelimit-remaining-requests"] == "1"
    asyncio.run(other.begin())
    assert one.headers()["x-ratelimit-remaining-requests"] == "0"


def test_a_worker_that_cannot_start_ends_all(caplog: pytest.LogCaptureFixture) -> None:
    config = Config(
        server=ServerConfig(workers=2, metrics=False, log_level="error"),
        store=StoreConfig(url="none"),
        models=(ModelConfig(name="m", upstream="simulated"),),
    )
    listeners = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]  # on which nothing can listen
    with pytest.raises(SystemExit) as ended:  # which closes them
        serve_by_workers(config, listeners)
    assert ended.value.code == 1
    assert "a worker could not start" in caplog.text


def test_no_two_gateways_share_a_port(model: ModelServer, tmp_path: Path) -> None:
    with gateway(*options(tmp_path, model)) as (url, _):
        port = url.rpartition(":")[2]
        for workers in ("1", "2"):
            result = CliRunner().invoke(main, ["serve", "--port", port, "--workers", workers, "--store", "none"])
            assert result.exit_code == 2
            assert f"Cannot listen on {HOST}:{port}" in result.output


# --- what they cannot share, and what they share out ---

SIMULATED = ModelConfig(name="m", upstream="simulated")
FILE = StoreConfig(url="sqlite:///kept.db")
WRONG: dict[str, tuple[Config, str]] = {
    "no store": (Config(models=(SIMULATED,)), "cannot share a store in memory"),
    "a store in memory": (Config(models=(SIMULATED,), store=StoreConfig(url="sqlite://")), "Name a file"),
    "a model in a file": (
        Config(models=(ModelConfig(name="m", upstream="m.gguf"),), store=FILE),
        "m.gguf would be loaded 3 times",
    ),
    "fewer requests than workers": (
        Config(models=(ModelConfig(name="m", upstream="simulated", max_requests=2),), store=FILE),
        "max_requests = 2 cannot be shared by 3 workers",
    ),
}


@pytest.mark.parametrize("title", WRONG)
def test_what_several_cannot_serve_is_refused(title: str) -> None:
    config, words = WRONG[title]
    check_workers(config)
    with pytest.raises(ConfigError, match=words):
        check_workers(msgspec.structs.replace(config, server=ServerConfig(workers=3)))


def test_requests_are_shared_out() -> None:
    limited = ModelConfig(name="n", upstream="simulated", max_requests=8)
    config = Config(server=ServerConfig(workers=3, max_requests=10), store=FILE, models=(SIMULATED, limited))
    shares = [share_of(config, number) for number in range(3)]
    assert [share.server.max_requests for share in shares] == [4, 4, 4]
    assert [[model.max_requests for model in share.models] for share in shares] == [[None, 3], [None, 3], [None, 2]]


@pytest.mark.parametrize("bound", ["max_bodies_bytes", "max_connections"])
def test_what_a_process_counts_for_itself_is_shared_out(bound: str) -> None:
    config = Config(server=ServerConfig(workers=3), store=FILE, models=(SIMULATED,), limits=Bounds(**{bound: 10}))
    assert [getattr(share_of(config, number).limits, bound) for number in range(3)] == [4, 4, 4]


def test_the_folder_of_a_killed_gateway_is_erased_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, used, strange = (tmp_path / f"callwright-{name}" for name in ("left", "used", "strange"))
    for folder in (left, used, strange):
        folder.mkdir()
    hold(left).close()  # as the system does for a process that ends
    (left / "metrics").mkdir()
    with hold(used), shared_folder() as own:
        assert own.is_dir()
        assert not left.exists()
        assert used.exists()
        assert strange.exists()  # nobody has said that it is ours
    assert not own.exists()
