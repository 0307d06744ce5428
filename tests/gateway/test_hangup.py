"""SIGHUP while a gateway starts: at each stage, of each of its processes, which send it to themselves."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Final

import pytest

from callwright.gateway.config.config import load_config
from callwright.gateway.process.reload import ConfigFile
from callwright.gateway.process.workers import _signals
from tests.gateway.test_reload import ANNA, BEN, asked, chat
from tests.gateway.test_reload_processes import File, heard
from tests.gateway.test_workers import proc, workers_of
from tests.support.processes import served
from tests.support.servers import ModelServer, said
from tests.support.waiting import PATIENCE_S, until

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGHUP on Windows"),
]
CALLWRIGHT: Final = str(Path(sys.executable).parent / "callwright")
# Python imports this before anything else. The stage is the import of a module.
HANGUP: Final = """
import os, signal, sys

class Hangup:
    def find_spec(self, name, path=None, target=None):
        if name == {stage!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGHUP)

if ("spawn_main" in " ".join(sys.orig_argv)) is {of_workers}:
    sys.meta_path.insert(0, Hangup())
"""
# What happens at the stage, with so many workers.
STAGES: Final = {
    "the command is loaded": ("callwright.cli.serve", 1),
    "its modules are loaded": ("callwright.turn.model", 2),
    "the application is loaded": ("callwright.gateway.app", 1),
    "the loop is chosen": ("uvicorn.loops.auto", 1),
    "the first worker starts": ("multiprocessing.popen_spawn_posix", 2),
}
OF_WORKERS: Final = {
    "the first module": "callwright",
    "their own module": "callwright.gateway.process.workers",
    "the loop is chosen": "uvicorn.loops.auto",
}


def environment(folder: Path, stage: str, *, of_workers: bool = False) -> dict[str, str]:
    (folder / "sitecustomize.py").write_text(HANGUP.format(stage=stage, of_workers=of_workers))
    return {**os.environ, "PYTHONPATH": str(folder)}


@pytest.mark.parametrize(("stage", "workers"), STAGES.values(), ids=STAGES)
def test_a_gateway_that_starts_keeps_a_hangup_and_then_reads_its_file(
    model: ModelServer, tmp_path: Path, stage: str, workers: int
) -> None:
    file = File(tmp_path, model, f"workers = {workers}\nport = 0")
    file.write("a", keys={"anna": ANNA})
    command = (CALLWRIGHT, "serve", "--config", str(file.path))
    with served(*command, env=environment(tmp_path, stage)) as (url, process):
        assert b"nothing changed" in heard(process, b"configuration:")
        file.write("a", keys={"ben": BEN})
        process.send_signal(signal.SIGHUP)
        model.plays(*(said("Hi") for _ in range(40)))
        until(lambda: all(asked(url, BEN, chat()).status == 200 for _ in range(2 * workers)))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


@proc
@pytest.mark.parametrize("stage", OF_WORKERS.values(), ids=OF_WORKERS)
def test_a_worker_that_starts_leaves_a_hangup_to_its_parent(model: ModelServer, tmp_path: Path, stage: str) -> None:
    file = File(tmp_path, model, "workers = 2\nport = 0")
    file.write("a", keys={"anna": ANNA})
    command = (CALLWRIGHT, "serve", "--config", str(file.path))
    with served(*command, env=environment(tmp_path, stage, of_workers=True)) as (_, process):
        assert len(workers_of(process.pid)) == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None
        assert b"ended (" not in process.stderr.read()


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_parent_of_workers_wakes_for_a_signal_that_does_not_interrupt_its_wait(
    tmp_path: Path, model: ModelServer, sign: signal.Signals
) -> None:
    """As one that arrives just before the wait: here, in another thread."""
    file = File(tmp_path, model, "port = 0")
    file.write("a", keys={"anna": ANNA})
    with _signals(ConfigFile(file.path, partial(load_config, file.path))) as told, ThreadPoolExecutor(1) as others:
        others.submit(lambda: signal.pthread_kill(threading.get_ident(), sign))
        assert wait([told], PATIENCE_S) == [told]
        assert told.recv(2) == bytes((sign,))


@pytest.mark.skipif(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, reason="SIGHUP is ignored, as nohup does")
def test_without_a_file_a_hangup_ends_it(tmp_path: Path) -> None:
    command = (CALLWRIGHT, "serve", "--upstream", "simulated", "--port", "0", "--store", "none")
    process = subprocess.run(
        command, env=environment(tmp_path, "callwright.cli.serve"), timeout=PATIENCE_S, check=False
    )
    assert process.returncode == -signal.SIGHUP
