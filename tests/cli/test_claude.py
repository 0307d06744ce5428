"""`callwright claude`: the environment that it prints, Claude Code as it starts it, and what it says when it cannot."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from callwright.cli import main
from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import KeyConfig, ModelConfig
from tests.conftest import WAYS, Served
from tests.support.servers import ModelServer

NOWHERE = ("--url", "http://127.0.0.1:9")  # no gateway: the model is taken as it is named
NAMED = ("--model", "local-model", *NOWHERE)
KEY = "the-key-of-a-client"


def run(*arguments: str, **variables: str) -> Result:
    return CliRunner(env=variables).invoke(main, ["claude", *arguments])


def succeeds(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    assert not result.stderr
    return result.stdout


def fails(*arguments: str, **variables: str) -> str:
    """The one line that it says."""
    result = run(*arguments, **variables)
    assert result.exit_code == 2
    assert not result.stdout
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def warned(*arguments: str) -> list[str]:
    result = run(*arguments)
    assert result.exit_code == 0
    return result.stderr.splitlines()


def printed(*arguments: str) -> dict[str, str]:
    """The variables that it prints, without a shell between."""
    lines = [line for line in run(*arguments).stdout.splitlines() if line.startswith("export ")]
    return {name: shlex.split(value)[0] for name, _, value in (line[7:].partition("=") for line in lines)}


# --- what it prints ---


def test_it_prints_what_claude_code_needs() -> None:
    assert printed(*NAMED) == {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ANTHROPIC_AUTH_TOKEN": "any",
        "ANTHROPIC_MODEL": "local-model",
        "ANTHROPIC_DEFAULT_OPUS_MODEL": "local-model",
        "ANTHROPIC_DEFAULT_SONNET_MODEL": "local-model",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": "local-model",
        "ANTHROPIC_DEFAULT_FABLE_MODEL": "local-model",
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": "41672",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8192",
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


@pytest.mark.processes
@pytest.mark.parametrize("name", ["a 'b' \"$HOME\" \\c `d`", "org/model:7b-q4", "ünï 模型"])
def test_a_shell_reads_what_it_prints(tmp_path: Path, name: str) -> None:
    (tmp_path / "claude.env").write_text(succeeds("--model", name, *NOWHERE, "--key-env", "MY_KEY", "--simple"))
    done = subprocess.run(
        ["/bin/sh", "-eu", "-c", ". ./claude.env; env"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "MY_KEY": KEY, "ANTHROPIC_API_KEY": "of Anthropic"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    given = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert given["ANTHROPIC_MODEL"] == given["ANTHROPIC_DEFAULT_HAIKU_MODEL"] == name
    assert given["ANTHROPIC_AUTH_TOKEN"] == KEY
    assert given["CLAUDE_CODE_SIMPLE"] == "1"
    assert "ANTHROPIC_API_KEY" not in given


def test_a_key_is_named_and_never_shown() -> None:
    result = run(*NAMED, "--key-env", "MY_KEY", MY_KEY=KEY)
    assert 'export ANTHROPIC_AUTH_TOKEN="$MY_KEY"\n' in result.stdout
    assert KEY not in result.output


@pytest.mark.parametrize("given", ["http://127.0.0.1:9/", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1/"])
def test_the_address_may_have_its_v1_or_not(given: str) -> None:
    assert printed("--model", "m", "--url", given)["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9"


# The window that Claude Code is told, less the 13,000 tokens and the answer (up to 20,000) that it keeps free: there it
# sums up. A request to sum up is that long, has 1,600 tokens of instructions, and wants an answer.
@pytest.mark.parametrize(
    ("window", "told", "output"),
    [(8_192, 20_168, 2_048), (32_768, 41_672, 8_192), (65_536, 70_344, 16_384), (200_000, 200_000, 32_000)],
)
def test_a_session_is_summed_up_before_the_window_is_full(window: int, told: int, output: int) -> None:
    given = printed(*NAMED, "--context-window", str(window))
    assert given["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == str(told)
    assert given["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == str(output)
    begins = told - 13_000 - min(output, 20_000)
    assert begins + 1_600 + 1_000 < window
    assert begins > window / 2


# --- what it warns of ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--context-window", "24576"), "take about 12000 of 24576 tokens, and 3360 are left for work"),
        (("--context-window", "8192"), "and 0 are left for work: it would sum up again and again. Try a larger"),
        (("--model", "claude-local"), "ignores --context-window for names that begin with 'claude-'"),
    ],
)
def test_what_will_not_go_well_is_told(arguments: tuple[str, ...], words: str) -> None:
    (warning,) = warned(*NAMED, *arguments)
    assert warning.startswith("Warning: ")
    assert words in warning
    assert ("--simple" in warning) == ("--simple" not in arguments and "--context-window" in arguments)


@pytest.mark.parametrize("arguments", [(), ("--context-window", "8192", "--simple"), ("--context-window", "200000")])
def test_a_window_with_room_is_not_warned_of(arguments: tuple[str, ...]) -> None:
    assert warned(*NAMED, *arguments) == []


def test_a_model_that_the_gateway_does_not_list_is_warned_of(simulated: str) -> None:
    first = next(iter(WAYS))
    assert warned("--model", first, "--url", simulated) == []
    (warning,) = warned("--model", f"{first}x", "--url", simulated)
    assert f"does not list '{first}x'. Did you mean '{first}'?" in warning


# --- without a name the gateway is asked ---


def test_the_first_model_of_the_gateway_is_taken(simulated: str) -> None:
    assert printed("--url", simulated)["ANTHROPIC_MODEL"] == next(iter(WAYS))


def test_a_gateway_with_keys_is_asked_with_the_one_that_is_named(serve: Served, model: ModelServer) -> None:
    url = serve(ModelConfig(name="mine", upstream=model.url), keys=(KeyConfig(name="me", sha256=hash_of(KEY)),))
    result = run("--url", url, "--key-env", "MY_KEY", MY_KEY=KEY)
    assert "export ANTHROPIC_MODEL=mine\n" in result.stdout
    assert "answered 401: it asks for a key. Name the model with --model." in fails("--url", url)
    wrong = fails("--url", url, "--key-env", "MY_KEY", MY_KEY="other")
    assert "answered 401: it does not know that key." in wrong
    assert "other" not in wrong


def test_a_gateway_that_does_not_answer_is_told(closed_port: str) -> None:
    assert "Start it with `callwright serve`, or name the model with --model." in fails("--url", closed_port)


# --- what it starts ---


@pytest.mark.processes
def test_it_becomes_claude_code(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text('#!/bin/sh\necho "$@"; env; exit 7\n')
    program.chmod(0o755)
    variables = {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "ANTHROPIC_API_KEY": "of Anthropic",
        "MY_KEY": KEY,
    }
    done = subprocess.run(
        [sys.executable, "-m", "callwright", "claude", *NAMED, "--key-env", "MY_KEY", "--start", "--", "-p", "--model"],
        env=variables,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 7, done.stderr
    said, *lines = done.stdout.splitlines()
    assert said == "-p --model"
    assert {"ANTHROPIC_MODEL=local-model", f"ANTHROPIC_AUTH_TOKEN={KEY}"} < {*lines}
    assert not any(line.startswith("ANTHROPIC_API_KEY=") for line in lines)


def test_a_claude_that_is_not_there_is_told() -> None:
    told = fails(*NAMED, "--start", PATH="/nowhere")
    assert "'claude' cannot be started: No such file or directory." in told
    assert "npm install -g @anthropic-ai/claude-code" in told


# --- slips ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*NAMED, "--url", "127.0.0.1:8642"), "--url: expected a URL such as http://127.0.0.1:8642"),
        ((*NAMED, "--url", "http://a\n"), "--url: expected a URL"),
        (("--model", "", *NOWHERE), "--model: expected the name of a model, got ''"),
        ((*NAMED, "--", "-p", "say hi"), "-p 'say hi' is for Claude Code: add --start."),
        ((*NAMED, "--key-env", "a key"), "--key-env: expected the name of an environment variable, got 'a key'"),
        ((*NAMED, "--key-env", "NOT_SET", "--start"), "--key-env: the environment variable NOT_SET is not set"),
    ],
)
def test_a_slip_is_named(arguments: tuple[str, ...], words: str) -> None:
    assert words in fails(*arguments)


def test_its_help_shows_examples_that_work() -> None:
    help_ = succeeds("--help")
    first, second = re.findall(r"^ +callwright claude (.+)$", help_, re.MULTILINE)
    assert "export ANTHROPIC_MODEL=simulated" in succeeds(*first.partition(" > ")[0].split(), *NOWHERE)
    assert "cannot be started" in fails(*NOWHERE, *shlex.split(second), PATH="/nowhere")
