"""Eight programs, each with Callwright, pydantic-ai, openai-agents and LangGraph: lines, CPU, memory, time to import.

    python -m bench.programs [--runs 50] [--rounds 3] [--only two_tools,team] [--frameworks callwright,langgraph]
                             [--folder .venv-programs] [--no-check] [--write]

Ours are those of `examples/programs`, the others stand in `bench/programs`. Each framework gets an environment of its
own in the folder, from `bench/programs/NAME/requirements.txt`, ours from `constraints.txt`. All ask the same scripted
model server on loopback. First each program is run in processes of its own, step by step, and what it prints and leaves
behind is compared; one that does something else ends this with status 1. What a measured run prints is compared, too.

Then it is measured (`bench/program_run.py` says how): the CPU of a run is the lower quartile of its runs, after a
warm-up, in the best of the rounds, in which the frameworks take turns: on a machine that others use, time is only
added. Lines are those with code: no comments, no empty lines, not the docstring of the file. `--write` puts the tables
into `docs/contributing/agent-programs.md`.
"""

import argparse
import hashlib
import io
import json
import os
import statistics
import subprocess
import sys
import tokenize
import venv
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from msgspec import Struct

from tests.support.paths import ROOT
from tests.support.programs import PROGRAMS, Program, environment, follow, held_stream, model_server

OURS: Final = "callwright"
FRAMEWORKS: Final = (OURS, "pydantic_ai", "openai_agents", "langgraph")
SHOWN: Final = {OURS: "Callwright", "pydantic_ai": "pydantic-ai", "openai_agents": "openai-agents"}
PAGE: Final = ROOT / "docs" / "contributing" / "agent-programs.md"
BEGIN, END = "<!-- written by bench/programs.py -->", "<!-- to here -->"
# Programs that start a process in each run, or wait for a time-out.
SLOW: Final = {"mcp_tools": 5, "many_calls": 2}


class Measured(Struct):
    """A program in one framework."""

    lines: int
    import_s: float = float("inf")
    run_s: float = float("inf")
    peak_bytes: int = 0


def main() -> int:
    """Check and measure all of them, and print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=50, help="of each program, in each round")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default=",".join(PROGRAMS), help="programs, with commas")
    options.add_argument("--frameworks", default=",".join(FRAMEWORKS), help="with commas")
    options.add_argument("--folder", type=Path, default=ROOT / ".venv-programs", help="where the environments are")
    options.add_argument("--no-check", action="store_true", help="only measure, where it was checked before")
    options.add_argument("--write", action="store_true", help="put the tables into the page")
    given = options.parse_args()
    programs = [PROGRAMS[name] for name in given.only.split(",")]
    frameworks = [name for name in FRAMEWORKS if name in given.frameworks.split(",")]
    pythons = {name: python_of(name, given.folder) for name in frameworks}
    faults = [] if given.no_check else check(programs, pythons)
    print(*faults, sep="\n", file=sys.stderr)
    if faults:
        return 1
    found = measure(programs, pythons, given.runs, given.rounds)
    tables = "\n".join(table_of(found, frameworks))
    print(tables)
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    return 0


# --- the environments ---


def python_of(framework: str, folder: Path) -> Path:
    """The interpreter of a framework's environment, which is made where it is not there or its pins have changed."""
    if framework == OURS:
        pins = ROOT / "constraints.txt"
        wanted = ["--constraint", str(pins), "--editable", f"{ROOT}[fast,mcp]"]
    else:
        pins = ROOT / "bench" / "programs" / framework / "requirements.txt"
        wanted = ["--requirement", str(pins)]
    own = folder / framework
    python = own / "bin" / "python"
    stamp = own / f".installed-{hashlib.sha256(pins.read_bytes()).hexdigest()[:16]}"
    if not stamp.exists():
        print(f"Making {own} …", file=sys.stderr)
        venv.create(own, with_pip=True, clear=own.exists())
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], check=True)
        stamp.touch()
    return python


def path_of(framework: str, program: str) -> Path:
    """Where a program stands."""
    folder = ROOT / "examples" / "programs" if framework == OURS else ROOT / "bench" / "programs" / framework
    return folder / f"{program}.py"


# --- what they do, and what that costs ---


def check(programs: Sequence[Program], pythons: dict[str, Path]) -> list[str]:
    """What does not come of the programs as it should."""
    faults: list[str] = []
    with TemporaryDirectory() as folder, model_server() as (url, _):
        for framework, python in pythons.items():
            for program in programs:
                command = [str(python), str(path_of(framework, program.name))]
                try:
                    follow(program, command, Path(folder) / framework, url)
                    if program.name == "streaming":
                        assert held_stream(command, Path(folder)) == program.courses[0][0].prints
                except (AssertionError, subprocess.TimeoutExpired) as fault:
                    faults.append(f"{framework}: {fault}")
    return faults


def measure(
    programs: Sequence[Program], pythons: dict[str, Path], runs: int, rounds: int
) -> dict[str, dict[str, Measured]]:
    """By program and framework."""
    found = {
        program.name: {name: Measured(lines_of(path_of(name, program.name))) for name in pythons}
        for program in programs
    }
    with model_server() as (url, _):
        for number in range(rounds):
            for program in programs:
                # Each framework is first in a round once, so none always has the cooler machine.
                names = [*pythons][number % len(pythons) :] + [*pythons][: number % len(pythons)]
                for name in names:
                    took = run(pythons[name], path_of(name, program.name), program, runs, url)
                    kept = found[program.name][name]
                    kept.import_s = min(kept.import_s, took["import_s"])
                    run_s = statistics.quantiles(took["run_s"])[0]
                    kept.run_s = min(kept.run_s, run_s)
                    kept.peak_bytes = max(kept.peak_bytes, took["peak_bytes"])
                    print(f"{program.name} {name}: {run_s * 1000:.2f} ms", file=sys.stderr)
    return found


def run(python: Path, path: Path, program: Program, runs: int, url: str) -> dict[str, Any]:
    """What the first course of a program costs."""
    steps = program.courses[0]
    runs = max(2, runs // SLOW.get(program.name, 1))
    asked = {
        "path": str(path),
        "steps": [step.arguments for step in steps],
        "files": dict(program.files),
        "warmup": max(2, runs // 5),
        "runs": runs,
    }
    done = subprocess.run(
        [python, ROOT / "bench" / "program_run.py"],
        input=json.dumps(asked),
        env=environment(url),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    took: dict[str, Any] = json.loads(done.stdout)
    assert took["printed"] == [step.prints for step in steps], f"{path}: {took['printed']}"
    return took


def lines_of(path: Path) -> int:
    """How many lines of a file have code."""
    nothing = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    code: set[int] = set()
    is_first = True
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type in nothing:
            continue
        if not (is_first and token.type == tokenize.STRING):
            code.update(range(token.start[0], token.end[0] + 1))
        is_first = False
    return len(code)


# --- the tables ---


def table_of(found: dict[str, dict[str, Measured]], frameworks: Sequence[str]) -> list[str]:
    """Lines of Markdown: each program, then what it takes to have one at all."""
    names = [SHOWN.get(name, "LangGraph") for name in frameworks]
    lines = [f"| lines, CPU of a run | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for program, row in found.items():
        cells = []
        for name in frameworks:
            cell = f"{row[name].lines}, {row[name].run_s * 1000:.1f} ms"
            if name != OURS and OURS in row:
                cell += f" (x {row[name].run_s / row[OURS].run_s:.1f})"
            cells.append(cell)
        title = program.replace("_", " ").replace("mcp", "MCP")
        lines.append(f"| [{title}](#{program.replace('_', '-')}) | {' | '.join(cells)} |")
    every = {name: [row[name] for row in found.values()] for name in frameworks}
    first = next(iter(found))
    title = first.replace("_", " ")
    sums = [str(sum(one.lines for one in every[name])) for name in frameworks]
    loads = [f"{found[first][name].import_s:.2f}" for name in frameworks]
    peaks = [f"{found[first][name].peak_bytes / 1e6:.0f}" for name in frameworks]
    most = [f"{max(one.peak_bytes for one in every[name]) / 1e6:.0f}" for name in frameworks]
    return [
        *lines,
        "",
        f"| | {' | '.join(names)} |",
        "|---" * (len(names) + 1) + "|",
        f"| lines of all programs | {' | '.join(sums)} |",
        f"| CPU seconds to import {title} | {' | '.join(loads)} |",
        f"| MB of {title} | {' | '.join(peaks)} |",
        f"| MB of any program, at most | {' | '.join(most)} |",
    ]


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = ""  # each environment has what it needs
    sys.exit(main())
