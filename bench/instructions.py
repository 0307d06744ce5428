"""The instructions that a request takes, as valgrind's callgrind counts them: nearly the same on every machine, and
however busy it is.

    python bench/instructions.py [--tools 5] [--calls 0] [--seconds 10] [--without "server.log_level = 'error'"]

One gateway at a time runs under callgrind, some fifty times slower than by itself; it is warm when the count begins.
`--without` adds lines to the configuration of ours, to see what a part costs that they turn off. What the kernel does
is not in it. valgrind is needed.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import fake_model
from fake_model import asked
from gateways import MODES, Gateway, callwright, gateways
from load import load, posted, until_it_answers
from loading import HOST, free_port, run, started

_WARM_S = 8.0  # without a count, and with one
_CONNECTIONS = 8
_TOTALS = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)


def _control(pid: int, *options: str) -> None:
    subprocess.run(["callgrind_control", *options, str(pid)], check=True, capture_output=True)


def counted(gateway: Gateway, request: bytes, seconds: float, folder: Path) -> float:
    """Instructions of a request. What callgrind writes goes into the folder."""
    port, out = free_port(), folder / f"callgrind-{len(list(folder.iterdir()))}"
    under = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
    with started([*under, *gateway.command(port)], port, gateway.environment) as (process, _):
        until_it_answers(port, request)
        run(load(port, request, _CONNECTIONS, _WARM_S))
        _control(process.pid, "--instr=on")
        run(load(port, request, _CONNECTIONS, _WARM_S))
        _control(process.pid, "--zero")
        came = run(load(port, request, _CONNECTIONS, seconds))
        _control(process.pid, "--dump")
    totals = _TOTALS.search(out.with_name(f"{out.name}.1").read_text())
    assert totals is not None
    return int(totals[1]) / came.answers


def _print(found: Sequence[tuple[str, float]]) -> None:
    print(f"{'':22}{'instructions':>14}{'x bare':>8}")
    for name, count in found:
        print(f"{name:22}{count:14,.0f}{count / found[0][1]:8.2f}")


def main() -> None:
    """Count and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tools", type=int, default=5, help="that each request offers")
    options.add_argument("--calls", type=int, default=0, help="that each request has in its history, with outputs")
    options.add_argument("--seconds", type=float, default=10.0, help="of load that is counted")
    options.add_argument("--without", default="", metavar="LINES", help="added to the configuration of ours")
    given = options.parse_args()
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not installed")
    request = posted("chat", asked("chat", given.tools, given.calls, stream=False))
    port = free_port()
    with TemporaryDirectory() as name, started([sys.executable, fake_model.__file__, "--port", str(port)], port):
        folder, upstream = Path(name), f"http://{HOST}:{port}/v1"
        each = {"bare": gateways(folder, upstream, None, None, None)["bare"]}
        for mode in MODES:
            each[f"callwright {mode}"] = callwright(folder, upstream, mode)
            path = folder / f"{mode}.toml"
            path.write_text(f"{given.without}\n{path.read_text()}")
        _print([(name, counted(one, request, given.seconds, folder)) for name, one in each.items()])


if __name__ == "__main__":
    main()
