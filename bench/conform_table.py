"""`callwright conform` against what can be installed here: a table, and each check that does not hold, as a page.

    scripts/conform-table                    the installed ones; those of others in environments of their own
    scripts/conform-table --only SERVER      one of them; without --results the page is printed

Servers run one after the other. A gateway has the scripted model of `callwright conform --serve-model`; a model server
has SmolLM2, a small trained model, and so has Callwright before it. The page that it writes has the steps for vLLM and
the reason why `transformers serve` has no row.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from callwright.conform.check import STATUSES, Target
from callwright.conform.model_server import MODEL
from callwright.conform.run import CHECKS, Result, asker_for, choose_checks, run
from callwright.errors import CallwrightError
from callwright.eval.wires import WIRES
from gateways import Gateway, litellm_proxy, smg_router
from loading import HOST, free_port, started
from tests.support.tiny_llama import smollm2

PAGE: Final = Path(__file__).parents[1] / "docs" / "contributing" / "conformance.md"
BEGIN: Final = "<!-- written by scripts/conform-table -->\n"
END: Final = "<!-- end -->\n"
KEY: Final = "CONFORM_TABLE_KEY"
MOST_S: Final = 1_200
LOADING_S: Final = 180
# With the suite's 512, a small model that does not find the end takes 20 s for an answer on one core, and four requests
# run in parallel: they wait for each other longer than the suite does.
MAX_TOKENS: Final = 96
# The settings of Callwright before a model server.
FRONTS: Final = {
    "llama.cpp": ("server = 'llamacpp'", "mode = 'raw'", "dialect = 'hermes'"),
    "vLLM": ("server = 'vllm'", "mode = 'raw'", "dialect = 'hermes'"),
}
COMMAND: Final = str(Path(sys.executable).with_name("callwright"))


class Outcome(Struct, frozen=True):
    """The report on a server, or the reason for its absence. `how`: in words, with the version."""

    name: str
    how: str
    results: Sequence[dict[str, Any]] = ()
    why_not: str = ""


class Server(NamedTuple):
    """A model server: its command, by the port, the name of its model, and variables of its environment."""

    command: Callable[[int], list[str]]
    model: str
    environment: Mapping[str, str] = MappingProxyType({"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"})


def version_of(python: str, package: str) -> str:
    """The version of a package in the environment of a Python; empty if it is not there."""
    code = f"from importlib.metadata import version; print(version('{package}'))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return found.stdout.strip()


def conform(url: str, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start the command."""
    command = [COMMAND, "conform", url, "--json", str(folder / "report.json"), *arguments]
    environment = {**os.environ, KEY: "sk-x"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def report(name: str, how: str, process: subprocess.Popen[bytes], folder: Path) -> Outcome:
    """Wait for the command, and read its report."""
    try:
        _, output = process.communicate(timeout=MOST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return Outcome(name, how, why_not=f"not finished in {MOST_S} s")
    file = folder / "report.json"
    if not file.exists():
        return Outcome(name, how, why_not=output.decode().strip().splitlines()[-1])
    return Outcome(name, how, json.loads(file.read_text())["results"])


def checked(name: str, how: str, target: Target) -> Outcome:
    """Run the checks of all APIs against a server."""

    async def check() -> list[Result]:
        async with asyncio.timeout(MOST_S), asker_for(target.url, None, 4 * len(CHECKS)) as asker:
            return await run(target, choose_checks(WIRES), asker, lambda _: None)

    try:
        return Outcome(name, how, msgspec.to_builtins(asyncio.run(check())))
    except TimeoutError:
        return Outcome(name, how, why_not=f"not finished in {MOST_S} s")
    except CallwrightError as error:
        return Outcome(name, how, why_not=str(error))


def before_scripted(name: str, how: str, make: Any, folder: Path, model: str = MODEL) -> Outcome:
    """A gateway before the scripted model, which starts first: some gateways ask for its models."""
    port, scripted = free_port(), free_port()
    gateway: Gateway = make(folder, f"http://{HOST}:{scripted}/v1")
    arguments = ("--model", model, "--serve-model", str(scripted), "--key-env", KEY)
    process = conform(f"http://{HOST}:{port}/v1", folder, *arguments)
    time.sleep(3)
    try:
        with started(gateway.command(port), port, gateway.environment, folder / "gateway.log"):
            return report(name, how, process, folder)
    except SystemExit as error:
        process.kill()
        return Outcome(name, how, why_not=str(error))


def ours(folder: Path, upstream: str, model: str, *more: str) -> Gateway:
    """Callwright before a server."""
    path = folder / "ours.toml"
    settings = "\n".join(more)
    path.write_text(f"[[models]]\nname = '{model}'\nupstream = '{upstream}'\n{settings}\n")
    return Gateway(lambda port: [COMMAND, "serve", "--config", str(path), "--port", str(port)])


def litellm(python: str, folder: Path, upstream: str) -> Gateway:
    """LiteLLM before a chat server: it translates the Responses API only if it is told to."""
    gateway = litellm_proxy(python, folder, upstream, MODEL)
    path = folder / "litellm.yaml"
    config = json.loads(path.read_text())
    config["model_list"][0]["litellm_params"]["use_chat_completions_api"] = True
    path.write_text(json.dumps(config))
    return gateway


def wait_until_ready(url: str) -> None:
    """Wait until a server that listens has loaded its model. Raises `SystemExit` after some minutes."""
    ends = time.monotonic() + LOADING_S
    while time.monotonic() < ends:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.2)
    raise SystemExit(f"not ready in {LOADING_S} s: {url}")


def on_smollm2(name: str, how: str, server: Server, front: Sequence[str] | None, folder: Path) -> Outcome:
    """A server with SmolLM2; `front`: with Callwright before it, and its settings."""
    port, entry = free_port(), free_port()
    with ExitStack() as stack:
        try:
            stack.enter_context(started(server.command(port), port, server.environment, folder / "server.log"))
            wait_until_ready(f"http://{HOST}:{port}/health")
            url, model = f"http://{HOST}:{port}/v1", server.model
            if front is not None:
                gateway = ours(folder, url, model, *front)
                stack.enter_context(started(gateway.command(entry), entry))
                url = f"http://{HOST}:{entry}/v1"
            return checked(name, how, Target(url, model, MAX_TOKENS))
        except SystemExit as error:
            return Outcome(name, how, why_not=str(error))


def llamacpp(file: Path) -> Server:
    """llama.cpp's server with one slot."""
    code = (
        "import sys, threading; from pathlib import Path; from tests.support.tiny_llama import Llama; "
        "server = Llama(Path(sys.argv[1]), context=8192, port=int(sys.argv[2])); threading.Event().wait()"
    )
    return Server(lambda port: [sys.executable, "-c", code, str(file), str(port)], "smollm2")


def vllm(python: str, model: Path) -> Server:
    """vLLM on the CPU, with the options that its documentation names for calls of tools."""
    start = [str(Path(python).with_name("vllm")), "serve", str(model), "--host", HOST, "--served-model-name", "smollm2"]
    small = ["--max-model-len", "8192", "--max-num-seqs", "4", "--enforce-eager"]
    calls = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    settings = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    return Server(lambda port: [*start, *small, *calls, "--port", str(port)], "smollm2", settings)


def transformers_serve(python: str, model: Path) -> Server:
    """The server of the package transformers; the model is named by its folder."""
    start = [str(Path(python).with_name("transformers")), "serve", "--host", HOST, "--device", "cpu"]
    return Server(lambda port: [*start, "--port", str(port), str(model)], str(model))


def outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    """Start each server that is chosen and installed, and check it."""
    own = version_of(sys.executable, "callwright")
    litellm_version, smg = (
        version_of(python, package) if python else ""
        for python, package in ((options.litellm, "litellm"), (options.smg, "smg"))
    )
    scripted = {
        "Callwright": (f"{own}, mode native, scripted model", lambda f, url: ours(f, url, MODEL, "mode = 'native'")),
        "LiteLLM": (f"{litellm_version}, scripted model", lambda f, url: litellm(options.litellm, f, url)),
        "SMG": (f"{smg}, scripted model", lambda f, url: smg_router(options.smg, f, url)),
    }
    for name, (how, make) in scripted.items():
        if options.only and name not in options.only:
            continue
        if name != "Callwright" and not {"LiteLLM": litellm_version, "SMG": smg}[name]:
            yield Outcome(name, "", why_not="not installed")
            continue
        with TemporaryDirectory() as folder:
            # SMG serves a server's first model only.
            yield before_scripted(name, how, make, Path(folder), "simulated" if name == "SMG" else MODEL)
    for name, how, server in trained(options):
        for title, version, front in (
            (name, how, None),
            (f"Callwright on {name}", f"{own}, mode raw, Hermes; {how}", FRONTS.get(name)),
        ):
            if (options.only and title not in options.only) or (title != name and front is None):
                continue
            if server is None:
                yield Outcome(title, version, why_not="not installed")
                continue
            with TemporaryDirectory() as folder:
                yield on_smollm2(title, version, server, front, Path(folder))


def trained(options: argparse.Namespace) -> Iterator[tuple[str, str, Server | None]]:
    """The model servers: the name, the version, and how it is started, None if it is not installed."""
    file = smollm2()
    version = f"xllamacpp {version_of(sys.executable, 'xllamacpp')}, SmolLM2-135M-Instruct Q4_1"
    yield "llama.cpp", version, llamacpp(file) if file else None
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "smollm2"
        if file and options.transformers:
            unpack = [options.transformers, str(Path(__file__).with_name("unpack_gguf.py")), str(file), str(folder)]
            subprocess.run(unpack, env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True, check=True)
        for name, package, python, start in (
            ("vLLM", "vllm-cpu", options.vllm, vllm),
            ("transformers serve", "transformers", options.transformers, transformers_serve),
        ):
            version = f"{version_of(python, package)} on the CPU, SmolLM2-135M-Instruct" if python else ""
            yield name, version, start(python, folder) if python and folder.exists() else None


def page(found: Sequence[Outcome]) -> Iterator[str]:
    """The table, and what does not hold."""
    yield f"Measured on {datetime.now(UTC):%d %B %Y}.\n\n"
    yield f"| server | version | API | {' | '.join(STATUSES)} |\n"
    yield f"|---|---|---|{'---:|' * len(STATUSES)}\n"
    for one in found:
        for wire in WIRES:
            counts = Counter(result["status"] for result in one.results if result["id"].startswith(f"{wire}."))
            if counts:
                numbers = " | ".join(str(counts[status]) for status in STATUSES)
                yield f"| {one.name} | {one.how} | {wire} | {numbers} |\n"
    for one in found:
        if one.why_not:
            yield f"\n{one.name}: {one.why_not}.\n"
            continue
        yield f"\n### {one.name}\n\n"
        odd = [result for result in one.results if result["status"] == "does not"]
        if not odd:
            yield "Nothing that does not hold.\n"
            continue
        yield "| id | | expected |\n|---|---|---|\n"
        groups: dict[tuple[str, ...], list[str]] = {}
        for result in odd:
            key = (result["id"], _cell(result["expected"]))
            groups.setdefault(key, []).append(result["variant"])
        for (id_, expected), variants in groups.items():
            yield f"| `{id_}` | {', '.join(variants)} | {expected} |\n"


def _cell(text: str) -> str:
    """A text as code in a table."""
    return f"`{text[:90].replace('`', chr(39)).replace('|', '/')}`" if text else ""


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--litellm", help="the Python of an environment that has LiteLLM's proxy")
    parser.add_argument("--smg", help="the Python of an environment that has SMG")
    parser.add_argument("--vllm", help="the Python of an environment that has vLLM for the CPU")
    parser.add_argument("--transformers", help="the Python of an environment that has transformers, gguf and PyTorch")
    parser.add_argument("--only", action="append", help="this server of the table; more than once for several")
    parser.add_argument("--results", type=Path, help="a folder of results: those in it are in the page, too")
    options = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = options.results or Path(temporary)
        folder.mkdir(exist_ok=True)
        for outcome in outcomes(options):
            counts = Counter(result["status"] for result in outcome.results)
            print(f"{outcome.name}: {outcome.why_not or dict(counts)}", file=sys.stderr)
            (folder / f"{outcome.name}.json").write_bytes(msgspec.json.encode(outcome))
        files = sorted(folder.glob("*.json"))
        text = "".join(page([msgspec.json.decode(file.read_bytes(), type=Outcome) for file in files]))
    if options.only and not options.results:
        print(text)
        return
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
