"""`callwright launch`: how each agent is set up and started, the choices, and the messages."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from callwright.cli import main
from callwright.cli.launch import command as launch_command
from callwright.cli.launch.agents import AGENTS
from callwright.doctor.chat_models import can_chat
from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import KeyConfig, ModelConfig, SearchConfig
from tests.conftest import WAYS, Served
from tests.support.servers import ModelServer

NOWHERE = ("--url", "http://127.0.0.1:9")  # no gateway: the model is taken as it is named
KEY = "the-key-of-a-client"
# Prints its arguments, its environment and the files of the folder HOME_OF_AGENT as one line of JSON.
FAKE = f"""#!{sys.executable}
import json, os, pathlib, sys
home = pathlib.Path(os.environ["HOME_OF_AGENT"])
files = {{path.name: path.read_text() for path in home.rglob("*") if path.is_file()}}
print(json.dumps({{"arguments": sys.argv[1:], "environment": dict(os.environ), "files": files}}))
sys.exit(7)
"""
# Logs in first: this one succeeds.
FAKE_LOGIN = FAKE.replace("sys.exit(7)", "sys.exit(0 if sys.argv[1] == 'auth' else 7)")


def run(*arguments: str, **variables: str) -> Result:
    return CliRunner(env=variables).invoke(main, ["launch", *arguments])


def printed(agent: str, *arguments: str, **variables: str) -> str:
    result = run(agent, "--print", *arguments, **variables)
    assert result.exit_code == 0, result.output
    assert not result.stderr
    return result.stdout


def fails(*arguments: str, **variables: str) -> str:
    result = run(*arguments, **variables)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with a program for each agent."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for agent in AGENTS.values():
        program = folder / agent.program
        program.write_text(FAKE_LOGIN if agent.program == "cline" else FAKE)
        program.chmod(0o755)
    return folder


def environment(home: Path, programs: Path, **more: str) -> dict[str, str]:
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME_OF_AGENT": str(home), **more}


def started(agent: str, home: Path, programs: Path, *arguments: str) -> list[dict[str, Any]]:
    """The lines that the agent printed, one for each time that it ran."""
    command = [sys.executable, "-m", "callwright", "launch", agent, "--home", str(home), *arguments]
    given = environment(home, programs, MY_KEY=KEY, ANTHROPIC_API_KEY="of Anthropic")
    done = subprocess.run(command, env=given, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 7, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def sourced(script: str, home: Path, programs: Path) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """The environment and the files after a shell has read a script, and the words of the command that it names."""
    (home.parent / "agent.sh").write_text(script)
    given = environment(home, programs, MY_KEY=KEY, ANTHROPIC_API_KEY="of Anthropic")
    given.pop("CALLWRIGHT_KEY", None)
    done = subprocess.run(
        ["/bin/sh", "-euc", ". ./agent.sh >/dev/null; env -0"],
        cwd=home.parent,
        env=given,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    variables = dict(one.split("=", 1) for one in done.stdout.split("\0") if one)
    files = {path.name: path.read_text() for path in home.rglob("*") if path.is_file()}
    return variables, files, shlex.split(script.splitlines()[-1].removeprefix("# Then start it: "))


# Agents that have no setting for the window on their command line or in a file.
NO_WINDOW = ("cline", "aider", "mini", "gptme")
NAMES = ["local-model", "org/model:7b-q4", "a 'b' \"$HOME\" \\c `d`", "ünï 模型"]


@pytest.mark.processes
@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_is_started_with_its_setup(tmp_path: Path, programs: Path, agent: str) -> None:
    """The model, the gateway and the key reach it, by the environment, files or arguments, and no other key does."""
    home = tmp_path / "home"
    options = ("--model", "local-model", *NOWHERE, "--key-env", "MY_KEY")
    *logins, ran = started(agent, home, programs, *options, "--", "-p", "--model", "say hi")
    assert ran["arguments"][-3:] == ["-p", "--model", "say hi"]
    told = json.dumps([ran, logins])
    assert "local-model" in told
    assert "http://127.0.0.1:9" in told
    assert KEY in [value for name, value in ran["environment"].items() if name != "MY_KEY"]
    assert KEY not in json.dumps(ran["files"])
    assert bool(logins) == (agent == "cline")
    assert all(KEY in one["arguments"] for one in logins)
    if agent == "claude":
        assert "ANTHROPIC_API_KEY" not in ran["environment"]


@pytest.mark.processes
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("agent", AGENTS)
def test_a_shell_that_reads_the_script_has_the_same_setup(
    tmp_path: Path, programs: Path, agent: str, name: str
) -> None:
    written, read = tmp_path / "written", tmp_path / "read"
    options = ("--model", name, *NOWHERE, "--key-env", "MY_KEY")
    ran = started(agent, written, programs, *options)[-1]
    script = printed(agent, *options, "--home", str(read), MY_KEY=KEY)
    assert KEY not in script
    variables, files, words = sourced(script, read, programs)
    same = json.dumps([ran["files"], ran["arguments"]]).replace(str(written), str(read))
    assert json.loads(same) == [files, words[1:]]
    assert words[0] == AGENTS[agent].program
    ours = {key: value for key, value in ran["environment"].items() if os.environ.get(key) != value}
    assert {key: value.replace(str(written), str(read)) for key, value in ours.items() if key != "HOME_OF_AGENT"} == {
        key: variables[key] for key in ours if key != "HOME_OF_AGENT"
    }


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9", "http://127.0.0.1:9/", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1/"]
)
def test_the_url_may_have_its_v1_or_not(agent: str, url: str) -> None:
    assert printed(agent, "--model", "m", "--url", url) == printed(agent, "--model", "m", *NOWHERE)


@pytest.mark.parametrize("agent", [name for name in AGENTS if name not in NO_WINDOW])
@pytest.mark.parametrize(
    ("listed", "given", "window"), [(40_960, None, 40_960), (40_960, 16_384, 16_384), (None, None, 32_768)]
)
def test_the_window_is_the_gateways_unless_another_is_given(
    serve: Served, agent: str, listed: int | None, given: int | None, window: int
) -> None:
    url = serve(ModelConfig(name="boat", upstream="simulated", mode="native", context_length=listed))
    more = ["--context-window", str(given)] if given else []
    told = {"claude": window // 4, "vibe": window * 3 // 4}.get(agent, window)
    for named in ([], ["--model", "boat"]):
        result = run(agent, "--print", "--url", url, *named, *more)
        assert result.exit_code == 0, result.output
        assert str(told) in result.stdout


# --- the model ---


def test_the_first_model_is_taken_where_nobody_can_choose(simulated: str) -> None:
    assert f"export ANTHROPIC_MODEL={next(iter(WAYS))}\n" in printed("claude", "--url", simulated)


def test_a_model_that_cannot_chat_is_never_chosen(serve: Served, model: ModelServer) -> None:
    url = serve(ModelConfig(name="*", upstream=model.url))
    model.names = ("nomic-embed-text:latest", "bge-reranker-v2-m3", "qwen3:8b", "whisper-1")
    assert "export ANTHROPIC_MODEL=qwen3:8b\n" in printed("claude", "--url", url)
    told = fails("claude", "--print", "--url", url, "--model", "nomic-embed-text:latest")
    assert "'nomic-embed-text:latest' cannot chat" in told
    assert "Models that can: qwen3:8b." in told
    model.names = ("nomic-embed-text:latest",)
    assert "None of the models" in fails("claude", "--print", "--url", url)


def test_a_model_that_is_not_listed_is_warned_of(simulated: str) -> None:
    first = next(iter(WAYS))
    result = run("codex", "--print", "--url", simulated, "--model", f"{first}x")
    assert result.exit_code == 0
    assert f"does not list '{first}x'. Did you mean '{first}'?" in result.stderr
    assert f'model = "{first}x"' in result.stdout


@pytest.mark.parametrize(
    ("name", "declared", "expected"),
    [
        ("qwen3:8b", {}, True),
        ("openai/gpt-oss-120b", {}, True),
        ("Qwen/Qwen3-Embedding-8B", {}, False),
        ("mxbai-embed-large", {}, False),
        ("BAAI/bge-m3", {}, False),
        ("intfloat/e5-large-v2", {}, False),
        ("jina-reranker-v2", {}, False),
        ("openai/whisper-large-v3", {}, False),
        ("kokoro-tts", {}, False),
        ("all-minilm:33m", {}, False),
        ("text-embedding-ada-002", {}, False),
        ("fluxion-7b", {}, True),
        ("barking-dog", {}, True),
        ("embed-me", {"type": "llm"}, True),
        ("anything", {"type": "embeddings"}, False),
        ("anything", {"capabilities": ["embedding"]}, False),
        ("anything", {"capabilities": ["completion", "tools"]}, True),
        ("anything", {"type": "model"}, True),
        ("anything", {"type": 3, "capabilities": {"x": 1}}, True),
    ],
)
def test_models_that_chat_are_told_from_others(name: str, declared: dict[str, Any], expected: bool) -> None:
    assert can_chat(name, declared) == expected


def test_a_gateway_with_keys_is_asked_with_the_one_that_is_named(serve: Served, model: ModelServer) -> None:
    url = serve(ModelConfig(name="mine", upstream=model.url), keys=(KeyConfig(name="me", sha256=hash_of(KEY)),))
    assert "export ANTHROPIC_MODEL=mine\n" in printed("claude", "--url", url, "--key-env", "MY_KEY", MY_KEY=KEY)
    assert "answered 401: it asks for a key" in fails("claude", "--print", "--url", url)
    wrong = fails("claude", "--print", "--url", url, "--key-env", "MY_KEY", MY_KEY="other")
    assert "answered 401: it does not know that key" in wrong
    assert "other" not in wrong


# --- choosing in a terminal ---


def test_a_terminal_is_asked_for_the_agent_and_the_model(simulated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_command, "is_terminal", lambda _: True)
    monkeypatch.setattr(shutil, "which", lambda program: program if program == "codex" else None)
    result = CliRunner().invoke(main, ["launch", "--print", "--url", simulated], input="1\n2\n")
    assert result.exit_code == 0, result.output
    assert "  1  Codex\n  2  Claude Code  (not installed)\n" in result.stderr
    assert tomllib.loads(file_of(result.stdout, "config.toml"))["model"] == list(WAYS)[1]


def test_without_a_terminal_nothing_is_asked() -> None:
    told = fails("--print", *NOWHERE)
    assert "Which agent? `callwright launch claude`" in told
    assert all(name in told for name in AGENTS)


# --- what each agent gets ---


def file_of(script: str, name: str) -> str:
    """A file in a printed script."""
    found = re.search(rf"^cat > \S*/{re.escape(name)} <<'(\w+)'\n(.*?\n)\1\n", script, re.MULTILINE | re.DOTALL)
    assert found, script
    return found[2]


NAMED = ("--model", "local-model", *NOWHERE)


def exported(*arguments: str) -> dict[str, str]:
    result = run("claude", "--print", *arguments)
    lines = [line[7:] for line in result.stdout.splitlines() if line.startswith("export ")]
    return {name: shlex.split(value)[0] for name, _, value in (line.partition("=") for line in lines)}


def test_claude_code_knows_one_model_by_all_its_names() -> None:
    assert exported(*NAMED) == {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ANTHROPIC_AUTH_TOKEN": "any",
        "ANTHROPIC_MODEL": "local-model",
        **{f"ANTHROPIC_DEFAULT_{alias}_MODEL": "local-model" for alias in ("OPUS", "SONNET", "HAIKU", "FABLE")},
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": "41672",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8192",
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


# The window that Claude Code is given, less the 13,000 tokens and the answer (up to 20,000) that it leaves free: there
# it summarizes. Such a request is that long, has 1,600 tokens of instructions, and wants an answer.
@pytest.mark.parametrize(
    ("window", "told", "output"),
    [(8_192, 20_168, 2_048), (32_768, 41_672, 8_192), (65_536, 70_344, 16_384), (200_000, 200_000, 32_000)],
)
def test_claude_code_summarizes_before_the_window_is_full(window: int, told: int, output: int) -> None:
    given = exported(*NAMED, "--context-window", str(window))
    assert given["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == str(told)
    assert given["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == str(output)
    begins = told - 13_000 - min(output, 20_000)
    assert window / 2 < begins < window - 2_600


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--context-window", "24576"), "take about 12000 of 24576 tokens, and 3360 are left for work"),
        (("--context-window", "8192"), "and 0 are left for work: it would summarize again and again. Try a larger"),
        (("--model", "claude-local"), "ignores --context-window for names that begin with 'claude-'"),
        ((), None),
        (("--context-window", "8192", "--simple"), None),
        (("--context-window", "200000"), None),
    ],
)
def test_claude_code_in_a_small_window_is_warned_of(arguments: tuple[str, ...], words: str | None) -> None:
    warnings = run("claude", "--print", *NAMED, *arguments).stderr
    assert words in warnings if words else not warnings
    assert ("--simple" in warnings) == ("--context-window" in arguments and words is not None)


def codex_models(*arguments: str) -> list[dict[str, Any]]:
    models: list[dict[str, Any]] = json.loads(file_of(printed("codex", *arguments), "callwright-models.json"))["models"]
    return models


@pytest.mark.parametrize(("tokens", "output"), [("8192", 1_024), ("32768", 4_096), ("131072", 10_000)])
def test_codex_gets_a_catalogue_with_the_tools_that_the_gateway_has(tokens: str, output: int) -> None:
    (model,) = codex_models(*NAMED, "--context-window", tokens)
    assert (model["slug"], model["context_window"]) == ("local-model", int(tokens))
    assert model["truncation_policy"] == {"mode": "tokens", "limit": output}
    assert (model["apply_patch_tool_type"], model["supports_search_tool"]) == ("freeform", True)
    assert model["input_modalities"] == ["text"]
    assert codex_models(*NAMED, "--images")[0]["input_modalities"] == ["text", "image"]
    *lines, last = model["base_instructions"].partition("*** Begin Patch\n")[2].splitlines()
    assert last == "*** End Patch"
    assert all(line[:1] in (" ", "+", "-", "@") or line.startswith("*** ") for line in lines)


def test_codex_and_opencode_get_all_models_that_chat(serve: Served, model: ModelServer) -> None:
    url = serve(ModelConfig(name="*", upstream=model.url))
    model.names = ("embedder-large", "one", "two")
    assert [described["slug"] for described in codex_models("--url", url, "--model", "two")] == ["two", "one"]
    told = json.loads(file_of(printed("opencode", "--url", url), "opencode.json"))
    assert told["model"] == told["small_model"] == "callwright/one"
    assert list(told["provider"]["callwright"]["models"]) == ["one", "two"]


@pytest.mark.parametrize(("search", "told"), [(None, "disabled"), (SearchConfig(url="http://127.0.0.1:9"), "live")])
def test_codex_searches_where_the_gateway_does(serve: Served, search: SearchConfig | None, told: str) -> None:
    url = serve(ModelConfig(name="m", upstream="simulated"), search=search)
    for arguments in (("--url", url), ("--url", url, "--model", "m")):
        assert tomllib.loads(file_of(printed("codex", *arguments), "config.toml"))["web_search"] == told
    assert tomllib.loads(file_of(printed("codex", *NAMED), "config.toml"))["web_search"] == "disabled"


# --- files ---


@pytest.mark.processes
def test_files_of_the_user_are_not_overwritten(tmp_path: Path, programs: Path) -> None:
    (tmp_path / "config.toml").write_text("mine")
    path = environment(tmp_path, programs)["PATH"]
    told = fails("codex", *NAMED, "--home", str(tmp_path), PATH=path)
    assert f"{tmp_path / 'config.toml'} exists, and not by `callwright launch`. Choose another --home." in told
    assert (tmp_path / "config.toml").read_text() == "mine"
    (tmp_path / "file").write_text("")
    assert f"Cannot write into {tmp_path / 'file/home'}" in fails(
        "codex", *NAMED, "--home", str(tmp_path / "file/home"), PATH=path
    )


@pytest.mark.processes
def test_earlier_files_are_replaced(tmp_path: Path, programs: Path) -> None:
    started("codex", tmp_path / "home", programs, "--model", "other", *NOWHERE)
    ran = started("codex", tmp_path / "home", programs, *NAMED)[-1]
    assert tomllib.loads(ran["files"]["config.toml"])["model"] == "local-model"


# --- mistakes ---


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_that_is_not_installed_is_named_with_its_installation(agent: str) -> None:
    told = fails(agent, *NAMED, PATH="/nowhere")
    assert f"{AGENTS[agent].shown} is not installed" in told
    assert AGENTS[agent].install in told


BAD = {
    "no scheme": (
        (*NAMED, "--url", "127.0.0.1:8642"),
        "--url '127.0.0.1:8642': expected a URL such as http://127.0.0.1:8642",
    ),
    "a control character": ((*NAMED, "--url", "http://a\n"), "expected a URL"),
    "an open bracket": ((*NAMED, "--url", "http://[::1"), "expected a URL"),
    "a model": ((*NAMED, "--url", "smollm2"), "Serve it with `callwright serve smollm2`"),
    "an empty model": (("--model", "", *NOWHERE), "--model: expected the name of a model, got ''"),
    "a model of two lines": (("--model", "a\nb", *NOWHERE), "--model: expected the name of a model"),
    "no variable": ((*NAMED, "--key-env", "a key"), "--key-env: expected the name of an environment variable"),
    "no gateway": (NOWHERE, "Start it with `callwright serve`, or name the model with --model."),
    "images": ((*NAMED, "--images"), "--images: Claude Code has no such setting; codex, opencode, pi, kilo can"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_named(case: str) -> None:
    arguments, words = BAD[case]
    assert words in fails("claude", "--print", *arguments)


def test_an_agent_that_nobody_knows_is_named() -> None:
    assert "'claud' is not an agent that is known here. Did you mean 'claude'?" in fails("claud", "--print")


def test_what_is_not_a_gateway_is_named(serve: Served, model: ModelServer) -> None:
    url = serve(ModelConfig(name="m", upstream=model.url))
    assert "answered 404: is that a gateway?" in fails("claude", "--print", "--url", f"{url}/elsewhere")


def test_the_help_names_every_agent() -> None:
    help_ = run("--help").stdout
    assert all(re.search(rf"\b{name}\b", help_) for name in AGENTS)
