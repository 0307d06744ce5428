"""A gateway whose terminal is closed: it ends in order, unless it was started to outlive it."""

import json
import os
import pty
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.gateway.test_reload import ANNA, BEN, asked, chat, halves
from tests.gateway.test_reload_processes import COUNTS, File, heard
from tests.support.http_client import CHAT, Live
from tests.support.processes import CALLWRIGHT, served
from tests.support.servers import HOST, ModelServer, said
from tests.support.waiting import PATIENCE_S, until

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(shutil.which("setsid") is None, reason="there is no setsid"),
    pytest.mark.skipif(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, reason="SIGHUP is ignored, as nohup does"),
]
IN_TERMINAL: Final = ("setsid", "--ctty")
# How it is started, whether it outlives the terminal.
WAYS: Final[dict[str, tuple[tuple[str, ...], bool]]] = {
    "in a terminal": (IN_TERMINAL, False),
    "with nohup": ((*IN_TERMINAL, "nohup"), True),
    "without a terminal": (("setsid",), True),
}


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal; the first closes it."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGHUP,))  # as for a shell that a user starts: it is inherited
    ends = pty.openpty()
    yield ends
    for end in ends:
        with suppress(OSError):
            os.close(end)


def streamed(url: str, model: ModelServer) -> tuple[Any, Live]:
    """A stream that waits in its middle."""
    gate = model.gate()
    model.plays(halves(gate), *(said("Hi") for _ in range(20)))
    headers = {"authorization": f"Bearer {ANNA}"}
    live = Live(url + CHAT, json.dumps({**chat(), "stream": True}).encode(), headers=headers)
    gate.wait_until_reached()
    return gate, live


@COUNTS
@pytest.mark.parametrize("way", WAYS)
def test_a_gateway_ends_with_its_terminal_or_outlives_it(
    model: ModelServer, tmp_path: Path, terminal: tuple[int, int], way: str, workers: int
) -> None:
    file = File(tmp_path, model, f"workers = {workers}")
    file.write("a", keys={"anna": ANNA})
    how, outlives = WAYS[way]
    command = (*how, CALLWRIGHT, "serve", "--port", "0", "--config", str(file.path))
    with served(*command, stdin=terminal[1]) as (url, process):
        file.write("a", keys={"anna": ANNA, "ben": BEN})
        process.send_signal(signal.SIGHUP)  # the terminal is there: so it reads its file
        assert b"[[keys]] ben: added" in heard(process, b"[[keys]] ben: added")
        gate, live = streamed(url, model)
        for end in terminal:
            os.close(end)
        if outlives:
            file.write("b", keys={"ben": BEN})
            process.send_signal(signal.SIGHUP)
            until(lambda: asked(url, BEN, chat("b")).status == 200)
        else:
            heard(process, b"requests in progress: 1")
        gate.open()
        with live:
            text = b"".join(live.pieces())
            assert b" halves." in text
            assert b"[DONE]" in text
        if outlives:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


@COUNTS
@pytest.mark.parametrize("place", ["", "&"], ids=["foreground", "background"])
def test_a_job_of_a_shell_ends_with_the_terminal(
    model: ModelServer, tmp_path: Path, terminal: tuple[int, int], place: str, workers: int
) -> None:
    file = File(tmp_path, model, f"workers = {workers}")
    file.write("a", keys={"anna": ANNA})
    said_file, log = tmp_path / "said", tmp_path / "log"
    command = shlex.join([CALLWRIGHT, "serve", "--port", "0", "--config", str(file.path)])
    shell = subprocess.Popen(
        [*IN_TERMINAL, "bash", "--norc", "-i"], stdin=terminal[1], stdout=terminal[1], stderr=terminal[1]
    )
    os.write(terminal[0], f"{command} > {said_file} 2> {log} {place}\n".encode())
    until(lambda: said_file.exists() and "OPENAI_BASE_URL" in said_file.read_text())
    url = said_file.read_text().partition(" at ")[2].split("/v1")[0]
    gate, live = streamed(url, model)
    for end in terminal:
        os.close(end)
    until(lambda: "requests in progress: 1" in log.read_text())
    gate.open()
    with live:
        assert b"[DONE]" in b"".join(live.pieces())
    port = int(url.rpartition(":")[2])

    def is_closed() -> bool:
        with socket.socket() as one:
            return one.connect_ex((HOST, port)) != 0

    until(is_closed)
    assert "Traceback" not in log.read_text()
    shell.kill()
    shell.wait()
