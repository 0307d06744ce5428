"""The programs of `docs/contributing/agent-programs.md`: ours run, and the page shows them unchanged."""

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from callwright import run_sync
from callwright.events import Usage
from tests.support.paths import ROOT
from tests.support.program_model import answer_to
from tests.support.programs import PROGRAMS, follow, held_stream, model_server
from tests.support.scripted_agents import agent
from tests.support.snippets import blocks_of

OURS = ROOT / "examples" / "programs"
THEIRS = ROOT / "bench" / "programs"
PAGE = (ROOT / "docs" / "contributing" / "agent-programs.md").read_text(encoding="utf-8")
SECTIONS = dict(zip(*[iter(re.split(r"^## (.*)\n", PAGE, flags=re.MULTILINE)[1:])] * 2, strict=True))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with model_server() as (address, _):
        yield address


@pytest.mark.processes
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_the_page_says(name: str, url: str, tmp_path: Path) -> None:
    if name == "mcp_tools":
        pytest.importorskip("mcp.client", reason="mcp is not installed")
    follow(PROGRAMS[name], [sys.executable, "-W", "error", str(OURS / f"{name}.py")], tmp_path, url)


@pytest.mark.processes
def test_the_first_words_are_printed_before_the_last_are_there(tmp_path: Path) -> None:
    printed = held_stream([sys.executable, str(OURS / "streaming.py")], tmp_path)
    assert printed == PROGRAMS["streaming"].courses[0][0].prints


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_page_shows_a_program_as_it_is(name: str) -> None:
    section = SECTIONS[name.replace("_", " ").capitalize().replace("Mcp", "MCP")]
    (shown,) = [block.text for block in blocks_of(section) if block.language == "python"]
    program = (OURS / f"{name}.py").read_text(encoding="utf-8")
    assert shown in program
    assert shown.startswith(("import ", "from ", "@", "def ", "class ", "agent = "))
    for framework in sorted(path.name for path in THEIRS.iterdir()):
        assert f"](../../bench/programs/{framework}/{name}.py)" in section
    assert f"](../../examples/programs/{name}.py)" in section


def test_every_framework_has_every_program_and_its_pins() -> None:
    wanted = sorted(f"{name}.py" for name in PROGRAMS)
    assert sorted(path.name for path in OURS.glob("*.py")) == wanted
    for framework in THEIRS.iterdir():
        assert sorted(path.name for path in framework.glob("*.py")) == wanted
        pins = (framework / "requirements.txt").read_text(encoding="utf-8").splitlines()
        assert not [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.]+", pin)]


@pytest.mark.parametrize("path", sorted(THEIRS.rglob("*.py")), ids=lambda path: os.path.relpath(path, THEIRS))
def test_programs_of_others_are_for_the_same_thing(path: Path) -> None:
    ours, theirs = (ast.parse(one.read_text(encoding="utf-8")) for one in (OURS / path.name, path))
    assert ast.get_docstring(ours) == ast.get_docstring(theirs)
    assert arguments_of(ours) == arguments_of(theirs)


def arguments_of(program: ast.Module) -> list[str]:
    (main,) = [one for one in program.body if isinstance(one, ast.AsyncFunctionDef) and one.name == "main"]
    return [one.arg for one in main.args.args]


@pytest.mark.parametrize("outputs", [[], ["call_0", "call_1"]])
def test_the_model_of_the_programs_wants_one_output_for_each_call(outputs: list[str]) -> None:
    call = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [call]}]
    history += [{"role": "tool", "tool_call_id": id_, "content": "x"} for id_ in outputs]
    with pytest.raises(ValueError, match=r"call"):
        answer_to({"messages": [*history, {"role": "user", "content": "And now?"}]})


def test_the_tokens_of_a_run_have_a_sum() -> None:
    assert Usage(7, 3, cached_tokens=2, reasoning_tokens=1).plus(Usage(1, 1)).total_tokens == 12
    assert run_sync(agent("Hello."), "Hi").usage.total_tokens == 0
