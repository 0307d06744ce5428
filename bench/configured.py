"""What budgets, prices, fallbacks and policies cost a request that none of them changes, as a ratio of CPU time.

    .venv/bin/python bench/configured.py [--rounds 7] [--seconds 4]

Two gateways with a key and a store run side by side and are asked in turn: one has nothing else, the other has a price,
budgets of its model and its key, a fallback, a policy of another key, and watches its file. The time is that of the
gateway's process, its work once a second for the store included; the median of the rounds counts.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import fake_model
from fake_model import asked
from gateways import MODES, callwright
from load import load, posted, until_it_answers
from loading import HOST, cpu_s, free_port, run, started

_CONNECTIONS = 8
_WARM_S = 2.0
_KEY = f"[[keys]]\nname = 'k'\nsha256 = '{sha256(b'sk-x').hexdigest()}'\n"
_BUDGET = "budget = {cost_per_day = 1e6}\n"
_MODEL = f"price = {{input = 3.0, output = 15.0}}\nfallback = ['other']\n{_BUDGET}"
_POLICY = "[[policies]]\nkeys = ['nobody']\naction = 'deny'\n"


def _configs(folder: Path, upstream: str, mode: str) -> Iterator[Path]:
    """The files of the two gateways."""
    callwright(folder, upstream, mode)
    text = (folder / f"{mode}.toml").read_text()
    other = f"[[models]]\nname = 'other'\nupstream = '{upstream}'\n"
    for name, whole in (
        ("plain", f"{text}{_KEY}"),
        ("configured", f"server.watch = true\n{text}{_MODEL}{other}{_KEY}{_BUDGET}{_POLICY}"),
    ):
        path = folder / f"{name}.toml"
        path.write_text(whole.replace("'none'", f"'sqlite:///{folder}/{name}.db'"))
        yield path


def _measured(folder: Path, upstream: str, mode: str, rounds: int, seconds: float) -> list[float]:
    """Microseconds of a request: of the plain gateway, and of the other."""
    request = posted("chat", asked("chat", 5, 0, stream=False))
    with ExitStack() as stack:
        running = []
        for path in _configs(folder, upstream, mode):
            port = free_port()
            program = str(Path(sys.executable).with_name("callwright"))
            command = [program, "serve", "--config", str(path), "--port", str(port)]
            process, _ = stack.enter_context(started(command, port))
            until_it_answers(port, request)
            run(load(port, request, _CONNECTIONS, _WARM_S))
            running.append((port, process.pid))
        found: list[list[float]] = [[] for _ in running]
        for number in range(rounds * len(running)):
            port, pid = running[number % len(running)]
            before = cpu_s(pid)
            came = run(load(port, request, _CONNECTIONS, seconds))
            found[number % len(running)].append((cpu_s(pid) - before) / came.answers * 1e6)
    return [median(one) for one in found]


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--seconds", type=float, default=4.0, help="of load in each round")
    given = options.parse_args()
    port = free_port()
    print(f"{'':8}{'plain us':>10}{'configured us':>15}{'ratio':>8}")
    with started([sys.executable, fake_model.__file__, "--port", str(port)], port):
        for mode in MODES:
            with TemporaryDirectory() as folder:
                plain, configured = _measured(
                    Path(folder), f"http://{HOST}:{port}/v1", mode, given.rounds, given.seconds
                )
            print(f"{mode:8}{plain:10.0f}{configured:15.0f}{configured / plain:8.3f}")


if __name__ == "__main__":
    main()
