"""A gateway in processes of its own reads its file again, on a signal or when it changes, for all workers."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from callwright.gateway.access.keys import hash_of
from tests.gateway.test_reload import ANNA, BEN, asked, chat, halves
from tests.gateway.test_workers import proc, workers_of
from tests.support.http_client import CHAT, Live, request
from tests.support.processes import gateway
from tests.support.servers import ModelServer, said
from tests.support.waiting import PATIENCE_S, until

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGHUP on Windows"),
]
COUNTS = pytest.mark.parametrize("workers", [1, pytest.param(2, marks=proc)])


class File:
    """A configuration file of a folder: models of the model server, and keys."""

    def __init__(self, folder: Path, model: ModelServer, server: str) -> None:
        self.path = folder / "callwright.toml"
        self._model = model
        self._begin = f'[server]\n{server}\n[store]\nurl = "sqlite:///{folder}/kept.db"\n'

    def write(self, *models: str, keys: dict[str, str], more: str = "") -> None:
        tables = [f'[[models]]\nname = "{name}"\nupstream = "{self._model.url}"\nmode = "native"' for name in models]
        tables += [
            f'[[keys]]\nname = "{name}"\nsha256 = "{hash_of(key)}"\noperator = true' for name, key in keys.items()
        ]
        new = self.path.with_suffix(".new")
        new.write_text("\n".join((self._begin, *tables, more)))
        new.replace(self.path)


def heard(process: subprocess.Popen[bytes], words: bytes) -> bytes:
    """The log since the last time, once these words are there."""
    stderr, found = process.stderr, b""
    assert stderr is not None
    os.set_blocking(stderr.fileno(), False)

    def is_there() -> bool:
        nonlocal found
        found += stderr.read() or b""
        return words in found

    until(is_there)
    return found


def error_shown(url: str) -> Any:
    headers = {"authorization": f"Bearer {ANNA}"}
    return request(f"{url}/ui/api/gateway", method="GET", headers=headers).json["config_error"]


@COUNTS
def test_on_a_signal_streams_continue_and_all_processes_have_the_new_file(
    model: ModelServer, tmp_path: Path, workers: int
) -> None:
    file = File(tmp_path, model, f"workers = {workers}\nport = 1")
    file.write("a", keys={"anna": ANNA})
    with gateway("--config", str(file.path)) as (url, process):
        gates = [model.gate() for _ in range(8)]
        headers = {"authorization": f"Bearer {ANNA}"}
        model.plays(*map(halves, gates), *(said("Hi") for _ in range(40)))
        body = json.dumps({**chat(), "stream": True}).encode()
        streams = [Live(url + CHAT, body, headers=headers) for _ in gates]
        for gate in gates:
            gate.wait_until_reached()
        file.write("b", keys={"ben": BEN})
        process.send_signal(signal.SIGHUP)
        until(lambda: all(asked(url, BEN, chat("b")).status == 200 for _ in range(2 * workers)))
        assert {asked(url, ANNA, chat("b")).status for _ in range(4 * workers)} == {401}
        for gate in gates:
            gate.open()
        for live in streams:
            text = b"".join(live.pieces())
            assert b" halves." in text
            assert b"[DONE]" in text
            live.close()
        assert b"needs a restart" not in heard(process, b"[[models]] b: added")  # --port wins over the file's
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


FALLBACK = '[[models]]\nname = "c"\nupstream = "simulated"\nfallback = ["none"]\n'


@COUNTS
def test_a_wrong_file_is_reported_and_changes_nothing(model: ModelServer, tmp_path: Path, workers: int) -> None:
    file = File(tmp_path, model, f"workers = {workers}")
    file.write("a", keys={"anna": ANNA})
    model.plays(*(said("Hi") for _ in range(10)))
    with gateway("--config", str(file.path)) as (url, process):
        for more, words in (("[[keys", "is not valid TOML"), (FALLBACK, "no other model is called")):
            file.write("b", keys={"ben": BEN}, more=more)
            process.send_signal(signal.SIGHUP)
            assert b"the configuration stays as it was" in heard(process, words.encode())
            until(lambda words=words: words in (error_shown(url) or ""))  # type: ignore[misc]
            assert asked(url, ANNA, chat()).status == 200
        file.write("a", "b", keys={"anna": ANNA})
        process.send_signal(signal.SIGHUP)
        until(lambda: {error_shown(url) for _ in range(4 * workers)} == {None})
        until(lambda: asked(url, ANNA, chat("b")).status == 200)


@COUNTS
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1"])
def test_a_file_whose_new_model_is_the_gateway_itself_is_wrong(
    model: ModelServer, tmp_path: Path, host: str, workers: int
) -> None:
    file = File(tmp_path, model, f"workers = {workers}")
    file.write("a", keys={"anna": ANNA})
    model.plays(*(said("Hi") for _ in range(10)))
    with gateway("--config", str(file.path)) as (url, process):
        own = f"http://{host}:{url.rpartition(':')[2]}/v1"
        down = "http://127.0.0.1:9/v1"
        table = '[[models]]\nname = "b"\nmode = "native"\nupstream = '
        file.write("a", keys={"anna": ANNA}, more=f'{table}["{down}", "{own}"]')
        process.send_signal(signal.SIGHUP)
        words = f"The upstream {own} is this gateway itself"
        assert b"the configuration stays as it was" in heard(process, words.encode())
        until(lambda: words in (error_shown(url) or ""))
        assert asked(url, ANNA, chat("b")).status == 404
        assert asked(url, ANNA, chat()).status == 200
        file.write("a", keys={"anna": ANNA}, more=f'{table}"{down}"')
        process.send_signal(signal.SIGHUP)
        until(lambda: {error_shown(url) for _ in range(4 * workers)} == {None})
        listed = request(f"{url}/v1/models", method="GET", headers={"authorization": f"Bearer {ANNA}"}).json["data"]
        assert [one["id"] for one in listed] == ["a", "b"]


@COUNTS
def test_a_watched_file_is_read_when_it_changes(model: ModelServer, tmp_path: Path, workers: int) -> None:
    file = File(tmp_path, model, f"workers = {workers}\nwatch = true")
    file.write("a", keys={"anna": ANNA})
    model.plays(*(said("Hi") for _ in range(100)))
    with gateway("--config", str(file.path)) as (url, process):
        assert asked(url, BEN, chat()).status == 401
        file.write("a", keys={"anna": ANNA, "ben": BEN})
        until(lambda: asked(url, BEN, chat()).status == 200)
        file.path.unlink()  # which is no file to read
        file.write("a", keys={"ben": BEN})
        until(lambda: asked(url, ANNA, chat()).status == 401)
        assert b"added" in heard(process, b"[[keys]] ben")


@proc
def test_a_worker_that_is_started_again_has_the_present_file_and_the_counts(model: ModelServer, tmp_path: Path) -> None:
    file = File(tmp_path, model, "workers = 2")
    file.write("a", keys={"anna": ANNA})
    model.plays(*(said("Hi") for _ in range(40)))
    with gateway("--config", str(file.path)) as (url, process):
        until(lambda: len(workers_of(process.pid)) == 2)
        file.write("b", keys={"new": "k", "anna": ANNA}, more="requests_per_minute = 5")
        process.send_signal(signal.SIGHUP)
        until(lambda: all(asked(url, ANNA, chat("a")).status == 404 for _ in range(4)))
        before = workers_of(process.pid)
        for worker in before:
            os.kill(worker, signal.SIGHUP)  # which is for the parent
        assert asked(url, ANNA, chat("b")).status == 200
        for worker in before:
            os.kill(worker, signal.SIGKILL)
        until(lambda: len(workers_of(process.pid) - before) == 2)
        statuses: list[int] = []
        while 429 not in statuses:
            statuses.append(asked(url, ANNA, chat("b")).status)
        assert len(statuses) <= 5


@proc
@pytest.mark.skipif(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, reason="SIGHUP is ignored, as nohup does")
def test_options_are_no_file_and_a_gateway_of_options_ends_on_a_signal(tmp_path: Path) -> None:
    with gateway("--upstream", "simulated", "--store", "none") as (_, process):
        process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE_S) == -signal.SIGHUP
