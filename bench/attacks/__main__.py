"""What attacks cost the gateway, and whether that is more than they may.

    python -m bench.attacks [NAME …] [--source PATH] [--list]

Each attack has a gateway of its own (`callwright serve`, in a process), on loopback, and goes on for some seconds at
most. Beside it another client sends a small request every 20 ms (`watch.py`), and the gateway's memory is looked at.
Printed are the longest wait of the other client, the growth of the gateway's memory, how many requests of others
failed, and what the attacker was answered. The status is 1 if anything is more than the attack may cost. `NAME` is an
attack, or a module of them; `--source` runs against another tree of this project, for a comparison.
"""

import argparse
import importlib
import json
import os
import pkgutil
import resource
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from loading import HOST, free_port, memory_mb, started

from . import __path__ as _folders
from .attack import Attack, Cost, Target

__all__ = ["main"]

_ROOT: Final = Path(__file__).resolve().parents[2]
_NO_ATTACKS: Final = ("__main__", "attack", "watch")
_LOOKED_EVERY_S: Final = 0.05
_WATCHED_FIRST_S: Final = 0.5
_DESCRIPTORS: Final = 16_384
_USUAL_DESCRIPTORS: Final = 1_024  # which a gateway finds when it starts


def _attacks() -> Iterator[tuple[str, Attack]]:
    """All of them, each with its module's name."""
    for found in sorted(pkgutil.iter_modules(_folders), key=lambda module: module.name):
        if found.name not in _NO_ATTACKS:
            module = importlib.import_module(f".{found.name}", __package__)
            yield from ((found.name, attack) for attack in module.ATTACKS)


def _words(config: str, upstream: int, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of `callwright serve`. `config` is the text of a callwright.toml, in which `{upstream}`
    stands for the model server's URL; or what is typed behind the command, with variables before it.
    """
    url = f"http://{HOST}:{upstream}/v1"
    store = ["--store", f"sqlite:///{folder}/responses.db"]
    if "\n" in config:
        path = folder / "callwright.toml"
        path.write_text(config.replace("{upstream}", url), encoding="utf-8")
        return ["--config", str(path), *store], {}
    words = shlex.split(config.replace("{upstream}", url))
    environment: dict[str, str] = {}
    while words and not words[0].startswith("-"):
        name, _, environment[name] = words.pop(0).partition("=")
    if upstream and "--upstream" not in words:
        words += ["--upstream", url]
    return [*words, *store], environment


def _allow(descriptors: int) -> None:
    """So many files may be open, in this process and those that it starts."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = descriptors if hard == resource.RLIM_INFINITY else min(hard, descriptors)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@contextmanager
def _looking(pid: int) -> Iterator[list[float]]:
    """The memory of a process in MB, before and at its most."""
    found = [memory_mb(pid)] * 2
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOKED_EVERY_S):
            found[1] = max(found[1], memory_mb(pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _run(attack: Attack, source: Path) -> Cost:
    with TemporaryDirectory() as name, ExitStack() as stack:
        upstream = 0
        if attack.upstream is not None:
            upstream, end = attack.upstream()
            stack.callback(end)
        words, environment = _words(attack.config, upstream, Path(name))
        port = free_port()
        command = [sys.executable, "-m", "callwright", "serve", *words, "--port", str(port)]
        environment = {"PYTHONPATH": str(source / "src"), **environment}
        log = Path(name) / "gateway.log"
        _allow(_USUAL_DESCRIPTORS)
        process, _ = stack.enter_context(started(command, port, environment, log))
        _allow(_DESCRIPTORS)
        watching = subprocess.Popen(
            [sys.executable, "-m", "bench.attacks.watch", str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            env={**os.environ, **environment},
        )
        stack.callback(watching.kill)
        assert watching.stdout is not None
        watching.stdout.readline()
        threading.Event().wait(_WATCHED_FIRST_S)  # what is made at the first request is there
        with _looking(process.pid) as memory:
            cost = attack.run(Target(port, process.pid, upstream))
            told = json.loads(watching.communicate()[0])
        if process.poll() is not None:
            return Cost(told["longest_ms"], 0, told["failed"], f"the gateway ended with status {process.returncode}")
        return Cost(
            max(cost.stall_ms, told["longest_ms"]),
            max(cost.rss_mb, memory[1] - memory[0]),
            max(cost.failed, told["failed"]),
            cost.answered,
        )


def _gives(cost: Cost, most: Cost) -> bool:
    return cost.stall_ms > most.stall_ms or cost.rss_mb > most.rss_mb or cost.failed > most.failed


def _chosen(names: list[str]) -> list[Attack]:
    every = list(_attacks())
    known = {name for module, attack in every for name in (module, attack.name)}
    if unknown := sorted(set(names) - known):
        raise SystemExit(f"no attack is called {', '.join(unknown)}. There are: {', '.join(sorted(known))}")
    return [attack for module, attack in every if not names or {module, attack.name} & set(names)]


def main() -> int:
    """Run attacks and print what they cost; say with the status whether one costs too much."""
    options = argparse.ArgumentParser(
        prog="python -m bench.attacks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--source", type=Path, default=_ROOT, help="the tree whose gateway is attacked")
    options.add_argument("--list", action="store_true", help="say what there is, and attack nothing")
    given = options.parse_args()
    chosen = _chosen(given.names)
    if given.list:
        print("\n".join(f"{attack.name:34} {attack.about}" for attack in chosen))
        return 0
    print(f"{'attack':34} {'stall ms':>9} {'RSS MB':>8} {'errors':>7}   {'allowed':18} what came of it")
    gave = 0
    for attack in chosen:
        cost, allowed = _run(attack, given.source.resolve()), attack.most
        gives = _gives(cost, allowed)
        gave += gives
        figures = f"{cost.stall_ms:9,.0f} {cost.rss_mb:8,.0f} {cost.failed:7,}"
        may = f"{allowed.stall_ms:,.0f} / {allowed.rss_mb:,.0f} / {allowed.failed}"
        print(f"{attack.name:34} {figures}   {may:18} {cost.answered}{'  GIVES' if gives else ''}", flush=True)
    print(f"{len(chosen)} attacks, {gave} give")
    return int(gave > 0)


if __name__ == "__main__":
    sys.exit(main())
