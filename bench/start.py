"""What it takes to start: the library, the command, and the gateway until it answers; and what an idle gateway holds.

    python bench/start.py [--rounds 5]

`callwright serve` is started with its defaults, a simulated model, a store in a new folder and the pages on; it is
ready with its first 200 on `/healthz`, and a second later its memory is read: all that is resident, and the part of it
that is not mapped from files. The least of all rounds counts, of each figure. Byte code is compiled beforehand, as an
installer does.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from loading import HOST, cpu_s, free_port, started

COMMAND: Final = str(Path(sys.executable).with_name("callwright"))
COMMANDS: Final = {
    "Python alone": [sys.executable, "-c", "pass"],
    "the library, imported": [sys.executable, "-c", "import callwright"],
    "the command, its help": [COMMAND, "--help"],
}
_IDLE_S: Final = 1.0


class Took(NamedTuple):
    """Seconds, and MB of an idle gateway."""

    wall_s: float
    cpu_s: float
    resident_mb: float = 0.0
    own_mb: float = 0.0

    def least(self, other: "Took") -> "Took":
        """Of each figure."""
        return Took(*map(min, self, other))


def _command(command: list[str], environment: Mapping[str, str]) -> Took:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=dict(environment), stdout=subprocess.DEVNULL, check=True)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _serve(environment: Mapping[str, str]) -> Took:
    port = free_port()
    began = time.perf_counter()
    with (
        TemporaryDirectory() as state,
        started([COMMAND, "serve", "--port", str(port)], port, {**environment, "XDG_STATE_HOME": state}) as (
            process,
            _,
        ),
    ):
        while not _is_well(port):
            time.sleep(0.01)
        took, cpu = time.perf_counter() - began, cpu_s(process.pid)
        time.sleep(_IDLE_S)
        status = Path(f"/proc/{process.pid}/status").read_text()
    resident, own = (int(found[1]) / 1000 for found in (_line("VmRSS", status), _line("RssAnon", status)))
    return Took(took, cpu, resident, own)


def _line(name: str, status: str) -> re.Match[str]:
    found = re.search(rf"{name}:\s+(\d+) kB", status)
    assert found is not None
    return found


def _is_well(port: int) -> bool:
    connection = HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    found: dict[str, Took] = {}
    with TemporaryDirectory() as compiled:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        _serve(environment)
        for number in range(given.rounds + 1):
            took = {name: _command(command, environment) for name, command in COMMANDS.items()}
            took["the gateway, ready"] = _serve(environment)
            if number:  # the first compiles
                found = {name: one.least(found.get(name, one)) for name, one in took.items()}
    print(f"{'':22}{'wall ms':>9}{'CPU ms':>9}{'MB':>7}{'own MB':>9}")
    for name, one in found.items():
        memory = f"{one.resident_mb:7.1f}{one.own_mb:9.1f}" if one.resident_mb else ""
        print(f"{name:22}{one.wall_s * 1000:9.0f}{one.cpu_s * 1000:9.0f}{memory}")


if __name__ == "__main__":
    main()
