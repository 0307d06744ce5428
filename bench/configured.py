"""What budgets, prices, fallbacks and policies cost a request that none of them changes, in instructions.

    .venv/bin/python bench/configured.py [--seconds 15]

Two gateways with a key and a store: one has nothing else, the other has a price, budgets of its model and its key, a
fallback, a policy of another key, and watches its file. They are counted as in `instructions.py`. Their work once a
second for the store is left out: under callgrind a second has a fiftieth of the usual requests.
"""

import argparse
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import fake_model
from fake_model import asked
from gateways import MODES, Gateway, callwright
from instructions import counted
from load import posted
from loading import HOST, free_port, started

_START = """
from callwright.cli import main
from callwright.gateway.spending import ledger
ledger._REPORT_EVERY_S = ledger._GRANT_S = 1e6
main()
"""
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


def _started_with(path: Path) -> Gateway:
    return Gateway(lambda port: [sys.executable, "-c", _START, "serve", "--config", str(path), "--port", str(port)])


def main() -> None:
    """Count and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=15.0, help="of load that is counted")
    given = options.parse_args()
    request = posted("chat", asked("chat", 5, 0, stream=False))
    port = free_port()
    print(f"{'':8}{'plain':>12}{'configured':>12}{'ratio':>8}")
    with started([sys.executable, fake_model.__file__, "--port", str(port)], port):
        for mode in MODES:
            with TemporaryDirectory() as name:
                folder = Path(name)
                found = []
                for path in _configs(folder, f"http://{HOST}:{port}/v1", mode):
                    found.append(counted(_started_with(path), request, given.seconds, folder))
            print(f"{mode:8}{found[0]:12,.0f}{found[1]:12,.0f}{found[1] / found[0]:8.3f}", flush=True)


if __name__ == "__main__":
    main()
