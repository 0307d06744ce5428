"""Starts real servers with random weights, runs the tests against them, counts demanded calls, and writes the table.

    python -m tests.servers.run [--calls 200] [--no-table] NAME …

`scripts/real-servers` makes the environments and calls this. A server's environment is `.venv-NAME`, but for llama.cpp,
which is a wheel in the project's own.
"""

import argparse
import asyncio
import contextlib
import datetime
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.servers.demanded import KINDS, Kind, ask_many
from tests.servers.real import NAMES, VARIABLE, WAYS, Real, configuration
from tests.support.paths import ROOT
from tests.support.servers import Gateway
from tests.support.tiny_gguf import chat_template

PAGE: Final = ROOT / "docs" / "contributing" / "real-servers.md"
_BEGIN: Final = "<!-- written by scripts/real-servers -->\n"
_END: Final = "<!-- end -->\n"
_START_S: Final = 240.0
_CONTROL: Final = ("<|im_end|>", "<|im_start|>", "<|endoftext|>")
_MARKS: Final = ("<tool_call>", "</tool_call>", "<think>", "</think>", "<tools>", "</tools>")
_PLUGIN: Final = "vllm-plugin"  # the same server with our parser in it
_SHOWN: Final = {"llamacpp": "llama.cpp", "vllm": "vLLM", "transformers": "transformers serve"}


def main() -> None:
    """Run what the command line names; the exit status is that of the tests."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all without one")
    options.add_argument("--calls", type=int, default=200, help="demanded calls for each row of the table")
    options.add_argument("--no-tests", action="store_true", help="only count")
    given = options.parse_args()
    names = given.names or list(NAMES)
    if unknown := [name for name in names if name not in NAMES]:
        options.error(f"unknown: {', '.join(unknown)}")
    status, rows = 0, []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="callwright-") as folder, serving(name, Path(folder)) as real:
            if not given.no_tests:
                told = {name: {"url": real.url, "model": real.model, "version": real.version}}
                status |= tests({VARIABLE: json.dumps(told)})
            rows += counted(real, given.calls)
        if name == "vllm":
            with tempfile.TemporaryDirectory(prefix="callwright-") as folder, serving(_PLUGIN, Path(folder)) as real:
                rows.append((real, "no gateway, our parser in it", direct(real, given.calls)))
    write_table(rows)
    sys.exit(status)


def tests(environment: Mapping[str, str]) -> int:
    """The exit status of the tests."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "tests/servers"]
    return subprocess.run(command, env={**os.environ, **environment}, cwd=ROOT, check=False).returncode


# --- servers ---


@contextlib.contextmanager
def serving(name: str, folder: Path) -> Iterator[Real]:
    """The server, started, until the end of the block."""
    port = _free_port()
    command, environment = _command(name, folder, port)
    log = folder / "log.txt"
    print(f"Starting {name} …", flush=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, cwd=ROOT, stdout=out, stderr=out, start_new_session=True
        )
    try:
        url = _wait(name, process, log, port)
        model = str(folder / "model") if name == "transformers" else "tiny"
        yield Real(name, url, model, _version(name))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _command(name: str, folder: Path, port: int) -> tuple[list[str], dict[str, str]]:
    own = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "cache"), "HOME": str(folder), "DO_NOT_TRACK": "1"}
    if name == "llamacpp":
        return [sys.executable, "-m", "tests.servers.llamacpp", str(folder)], {}
    kind = name.partition("-")[0]
    binaries = environment_of(kind) / "bin"
    (folder / "template.jinja").write_text(chat_template("hermes"))
    writer = [str(binaries / "python"), str(Path(__file__).with_name("tiny_checkpoint.py")), str(folder / "model")]
    marks = ["--template", str(folder / "template.jinja"), "--control", *_CONTROL, "--marks", *_MARKS]
    subprocess.run([*writer, *marks], check=True, capture_output=True, env={**os.environ, **own})
    where = ["--host", "127.0.0.1", "--port", str(port)]
    if name == "transformers":
        return [str(binaries / "transformers"), "serve", str(folder / "model"), "--device", "cpu", *where], own
    plugin = ["--tool-parser-plugin", "callwright.vllm_plugin", "--tool-call-parser", "callwright_hermes"]
    command = [str(binaries / "vllm"), "serve", str(folder / "model"), "--served-model-name", "tiny", *where]
    command += ["--enforce-eager", "--dtype", "float32", "--max-model-len", "4096", "--max-num-seqs", "8"]
    command += ["--enable-auto-tool-choice"]
    command += plugin if name == _PLUGIN else ["--tool-call-parser", "hermes"]
    return command, {**own, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}


def environment_of(kind: str) -> Path:
    """Where the server's packages are: CALLWRIGHT_VLLM_ENV and its like, else `.venv-NAME`."""
    return Path(os.environ.get(f"CALLWRIGHT_{kind.upper()}_ENV") or ROOT / f".venv-{kind}")


def _wait(name: str, process: subprocess.Popen[bytes], log: Path, port: int) -> str:
    """Wait until it answers; its base URL."""
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        url = f"http://127.0.0.1:{port}/v1"
        if name == "llamacpp":
            found = re.search(r"http://[\d.:]+/v1", log.read_text(errors="replace"))
            url = found[0] if found else ""
        if url and _answers(url):
            return url
        time.sleep(0.5)
    raise SystemExit(f"{name} did not start:\n{log.read_text(errors='replace')[-4000:]}")


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/models", timeout=5).close()
    except urllib.error.HTTPError:  # the server of transformers cannot list its models
        return True
    except OSError:
        return False
    return True


def _version(name: str) -> str:
    kind = name.partition("-")[0]
    package = {"llamacpp": "xllamacpp", "vllm": "vllm"}.get(kind, kind)
    python = sys.executable if kind == "llamacpp" else str(environment_of(kind) / "bin" / "python")
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


# --- demanded calls ---


def counted(real: Real, calls: int) -> list[tuple[Real, str, Counter[Kind]]]:
    """What came of the demanded calls: of the server alone, and of the gateway before it in each mode."""
    rows = [(real, "no gateway", direct(real, calls))]
    gateway = Gateway(configuration(real))
    try:
        for way in WAYS[real.name]:
            print(f"{real.name}, {way}: demanded calls …", flush=True)
            rows.append((real, way, asyncio.run(ask_many(f"{gateway.url}/v1", way, calls, limit=real.limit))))
    finally:
        gateway.stop()
    return rows


def direct(real: Real, calls: int) -> Counter[Kind]:
    """The same of the server itself."""
    print(f"{real.name} alone: demanded calls …", flush=True)
    return asyncio.run(ask_many(real.url, real.model, calls, limit=real.limit))


def write_table(rows: list[tuple[Real, str, Counter[Kind]]]) -> None:
    """Print the table and put it into the page; rows of servers that were not run stay as they are."""
    today = datetime.datetime.now(datetime.UTC).date()
    made: dict[str, list[str]] = {}
    for real, way, kinds in rows:
        shown = _SHOWN[real.name.partition("-")[0]]
        cells = [shown, real.version, way, str(kinds.total()), *(str(kinds[kind]) for kind in KINDS), str(today)]
        made.setdefault(shown, []).append(f"| {' | '.join(cells)} |\n")
    page = PAGE.read_text()
    before, _, rest = page.partition(_BEGIN)
    old, _, after = rest.partition(_END)
    names = ("server", "version", "asked", "calls", *KINDS, "run")
    head = f"| {' | '.join(names)} |\n|---|---|---|{'---:|' * (len(KINDS) + 1)}---|\n"
    kept = [line for line in old.splitlines(keepends=True)[2:] if line.split("|")[1].strip() not in made]
    by_server: dict[str, list[str]] = {}
    for line in (*kept, *(line for lines in made.values() for line in lines)):
        by_server.setdefault(line.split("|")[1].strip(), []).append(line)
    lines = [line for shown in _SHOWN.values() for line in by_server.get(shown, ())]
    table = head + "".join(lines)
    print(table)
    PAGE.write_text(before + _BEGIN + table + _END + after)


if __name__ == "__main__":
    main()
