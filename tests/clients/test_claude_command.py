"""The real Claude Code in the environment that `callwright launch claude` gives it, on the simulated model.

`scripts/claude-code` installs it and runs this.
"""

from pathlib import Path

import pytest

from callwright.cli.launch.claude import environment
from callwright.gateway.config.config import ModelConfig
from tests.clients.claude_code import ClaudeCode, Ran, installed
from tests.conftest import WAYS, Served

NOT_HERE = "CALLWRIGHT_CLAUDE_CODE names no Claude Code: scripts/claude-code does"
pytestmark = [pytest.mark.clients, pytest.mark.skipif(installed() is None, reason=NOT_HERE)]

STEPS = [f"seq {number}" for number in (1_500, 1_600, 1_700, 1_800)] + ["echo done"]


@pytest.fixture
def one_by_one(serve: Served) -> str:
    """A simulated model that makes one call at a time."""
    return serve(ModelConfig(name="steps", upstream="simulated", mode="raw", dialect="harmony"))


def started(claude: ClaudeCode, url: str, prompt: str, *, model: str, window: int, simple: bool = False) -> Ran:
    variables = environment(model, url, window, window // 4, simple=simple)
    return claude.run(prompt, model=model, **{one.name: one.value for one in variables})


@pytest.mark.parametrize("way", WAYS)
def test_a_session_reads_edits_and_runs(tmp_path: Path, simulated: str, way: str) -> None:
    claude = ClaudeCode(tmp_path, simulated)
    (claude.work / "notes.txt").write_text("a first line\n")
    prompt = "Replace 'first' by 'new' in notes.txt, then run the command 'cat notes.txt'"
    ran = started(claude, simulated, prompt, model=way, window=32_768)
    assert [name for name, _ in ran.calls] == ["Read", "Edit", "Bash"], ran.stderr
    assert ran.results[-1] == "a new line"
    assert ran.result["result"].endswith("Bash says: a new line.")


@pytest.mark.parametrize(("window", "times"), [(8_192, 2), (65_536, 0)])
def test_a_session_is_summed_up_where_its_window_is_full_and_goes_on(
    tmp_path: Path, one_by_one: str, window: int, times: int
) -> None:
    claude = ClaudeCode(tmp_path, one_by_one)
    prompt = ", then ".join(f"run the command '{step}'" for step in STEPS)
    ran = started(claude, one_by_one, prompt, model="steps", window=window, simple=True)
    assert [arguments["command"] for _, arguments in ran.calls] == STEPS, ran.stderr
    assert ran.result["result"].endswith("Bash says: done.")
    assert sum(event.get("subtype") == "compact_boundary" for event in ran.events) == times
