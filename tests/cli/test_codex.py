"""`callwright codex`: what it prints, what it writes, and what it says when it cannot."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from callwright.cli import main
from callwright.gateway.config.config import ModelConfig, SearchConfig
from tests.conftest import WAYS, Served
from tests.support.servers import ModelServer

FILES = ("config.toml", "callwright-models.json")
NOWHERE = ("--url", "http://127.0.0.1:9/v1")  # no gateway: the model is taken as it is named
NAMED = ("--model", "local-model", *NOWHERE)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["codex", *arguments])


def succeeds(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    assert not result.stderr
    return result.stdout


def fails(*arguments: str) -> str:
    """The one line that it says."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert not result.stdout
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def printed(*arguments: str) -> dict[str, str]:
    """The files in what it prints, by name."""
    pieces = re.split(r"^# --- (\S+) ---\n", succeeds(*arguments), flags=re.MULTILINE)
    assert not pieces[0]
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def config(*arguments: str) -> dict[str, Any]:
    return tomllib.loads(printed(*arguments)["config.toml"])


def models(*arguments: str) -> list[dict[str, Any]]:
    described: list[dict[str, Any]] = json.loads(printed(*arguments)["callwright-models.json"])["models"]
    return described


# --- what it prints ---


def test_it_prints_a_configuration_and_a_catalogue() -> None:
    assert tuple(printed(*NAMED)) == FILES
    given = config(*NAMED)
    assert (given["model"], given["model_provider"]) == ("local-model", "callwright")
    assert given["model_catalog_json"] == "callwright-models.json"
    provider = given["model_providers"]["callwright"]
    assert provider["base_url"] == NOWHERE[1]
    assert provider["wire_api"] == "responses"
    assert provider["supports_websockets"] is True


def test_the_catalogue_switches_on_what_the_gateway_can() -> None:
    (model,) = models(*NAMED)
    assert model["slug"] == "local-model"
    assert model["apply_patch_tool_type"] == "freeform"
    assert model["supports_search_tool"] is True
    assert model["input_modalities"] == ["text"]
    assert "*** Begin Patch" in model["base_instructions"]


def test_the_instructions_show_a_patch_that_codex_would_take() -> None:
    (model,) = models(*NAMED)
    patch = model["base_instructions"].partition("*** Begin Patch\n")[2]
    lines = patch.splitlines()
    assert lines[-1] == "*** End Patch"
    assert all(line[:1] in (" ", "+", "-", "@") or line.startswith("*** ") for line in lines)


@pytest.mark.parametrize(
    ("tokens", "output"), [("8192", 1024), ("32768", 4096), ("131072", 10000)], ids=["small", "default", "large"]
)
def test_a_tools_output_leaves_room_in_the_context_window(tokens: str, output: int) -> None:
    (model,) = models(*NAMED, "--context-window", tokens)
    assert model["context_window"] == int(tokens)
    assert model["truncation_policy"] == {"mode": "tokens", "limit": output}


def test_a_model_may_see_images() -> None:
    assert models(*NAMED, "--images")[0]["input_modalities"] == ["text", "image"]


@pytest.mark.parametrize("name", ['a "b" \\c', "org/model:7b-q4", "ünï 模型"])
def test_any_name_can_be_written(name: str) -> None:
    assert config("--model", name, *NOWHERE)["model"] == name
    assert models("--model", name, *NOWHERE)[0]["slug"] == name


def test_the_address_is_written_without_a_slash_at_its_end() -> None:
    url = "https://127.0.0.1:9/llm/v1"
    assert config(*NAMED, "--url", f"{url}/")["model_providers"]["callwright"]["base_url"] == url


@pytest.mark.parametrize(("search", "told"), [(None, "disabled"), (SearchConfig(url="http://127.0.0.1:9"), "live")])
def test_codex_searches_where_the_gateway_does(serve: Served, search: SearchConfig | None, told: str) -> None:
    url = serve(ModelConfig(name="m", upstream="simulated"), search=search) + "/v1"
    assert config("--url", url)["web_search"] == config("--model", "m", "--url", url)["web_search"] == told
    assert config(*NAMED)["web_search"] == "disabled"


# --- without a name the gateway is asked ---


def test_the_gateways_models_are_taken(simulated: str) -> None:
    url = f"{simulated}/v1"
    assert [model["slug"] for model in models("--url", url)] == list(WAYS)
    assert [model["priority"] for model in models("--url", url)] == list(range(1, len(WAYS) + 1))
    assert config("--url", url)["model"] == next(iter(WAYS))


def test_the_models_behind_a_gateway_that_takes_every_name_are_taken(serve: Served, model: ModelServer) -> None:
    url = serve(ModelConfig(name="*", upstream=model.url)) + "/v1"
    model.names = ("one", "two")
    assert [described["slug"] for described in models("--url", url)] == ["one", "two"]


def test_a_model_that_the_gateway_does_not_list_is_warned_of(simulated: str) -> None:
    first = next(iter(WAYS))
    url = simulated + "/v1"
    assert not run("--model", first, "--url", url).stderr
    result = run("--model", f"{first}x", "--url", url)
    assert result.exit_code == 0
    warning = f"Warning: the gateway at {url} does not list '{first}x'. Did you mean '{first}'? It lists: {first}, "
    assert result.stderr.startswith(warning)
    assert tomllib.loads(result.stdout.split("# --- ")[1].partition("\n")[2])["model"] == f"{first}x"


def test_a_gateway_without_models_is_told(serve: Served, model: ModelServer) -> None:
    url = serve(ModelConfig(name="*", upstream=model.url)) + "/v1"
    assert "lists no models. Name one with --model." in fails("--url", url)


def test_a_gateway_that_does_not_answer_is_told(closed_port: str) -> None:
    message = fails("--url", closed_port)
    assert closed_port in message
    assert "Start it with `callwright serve`, or name the model with --model." in message


def test_what_is_no_gateway_is_told(serve: Served, model: ModelServer) -> None:
    url = serve(ModelConfig(name="m", upstream=model.url)) + "/elsewhere/v1"
    assert "/elsewhere/v1/models answered 404: is that a gateway?" in fails("--url", url)


# --- what it writes ---


def test_it_writes_what_it_prints(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "home"
    told = succeeds(*NAMED, "--write", str(folder))
    assert {name: (folder / name).read_text() for name in FILES} == printed(*NAMED)
    assert f"CODEX_HOME={folder} codex" in told


def test_it_writes_over_no_configuration_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("mine")
    assert f"{tmp_path / 'config.toml'}: there already" in fails(*NAMED, "--write", str(tmp_path))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"config.toml": "mine"}


def test_it_writes_over_what_it_has_written_before(tmp_path: Path) -> None:
    succeeds("--model", "other", "--url", NAMED[-1], "--write", str(tmp_path))
    succeeds(*NAMED, "--write", str(tmp_path))
    assert {name: (tmp_path / name).read_text() for name in FILES} == printed(*NAMED)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert f"Cannot write into {tmp_path / 'file' / 'home'}" in fails(*NAMED, "--write", str(tmp_path / "file/home"))


# --- slips ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*NAMED, "--url", "http://127.0.0.1:8642"), "Is it http://127.0.0.1:8642/v1?"),
        ((*NAMED, "--url", "127.0.0.1:8642/v1"), "--url: expected a URL such as http://127.0.0.1:8642/v1"),
        ((*NAMED, "--url", ""), "--url: expected a URL"),
        ((*NAMED, "--url", "http://a\n/v1"), "--url: expected a URL"),
        (("--model", ""), "--model: expected the name of a model, got ''"),
        (("--model", "a\nb"), "--model: expected the name of a model"),
    ],
)
def test_a_slip_is_named(arguments: tuple[str, ...], words: str) -> None:
    assert words in fails(*arguments)


@pytest.mark.parametrize("tokens", ["0", "8191", "many"])
def test_a_context_window_without_room_is_refused(tokens: str) -> None:
    result = run(*NAMED, "--context-window", tokens)
    assert result.exit_code == 2
    assert "--context-window" in result.stderr


def test_its_help_shows_examples_that_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^ +callwright codex (.+)$", succeeds("--help"), re.MULTILINE)
    assert len(examples) == 2
    for example in examples:
        succeeds(*example.split())
    assert sorted(path.name for path in (tmp_path / "codex-home").iterdir()) == sorted(FILES)


@pytest.mark.parametrize("command", ["codex", "claude", "opencode"])
@pytest.mark.parametrize(
    ("listed", "given", "expected"), [(40_960, None, 40_960), (40_960, 16_384, 16_384), (None, None, 32_768)]
)
def test_the_window_is_what_the_gateway_lists(
    serve: Served, command: str, listed: int | None, given: int | None, expected: int
) -> None:
    url = serve(ModelConfig(name="boat", upstream="simulated", mode="native", context_length=listed))
    more = ["--context-window", str(given)] if given else []
    for named in ([], ["--model", "boat"]):
        printed = CliRunner().invoke(main, [command, "--url", f"{url}/v1", *named, *more])
        assert printed.exit_code == 0, printed.output
        told = expected if command != "claude" else f"{expected // 4}"  # an answer may be a quarter of it
        assert str(told) in printed.output
