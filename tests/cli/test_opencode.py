"""`callwright opencode`: what it prints, and what it says when it cannot."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from callwright.cli import main
from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import KeyConfig, ModelConfig
from tests.conftest import WAYS, Served

NOWHERE = ("--url", "http://127.0.0.1:9/v1")  # no gateway: the model is taken as it is named
NAMED = ("--model", "local-model", *NOWHERE)
KEY = "cw-mia-" + "m" * 40


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["opencode", *arguments])


def printed(*arguments: str) -> dict[str, Any]:
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    assert not result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def models(*arguments: str) -> dict[str, Any]:
    return dict(printed(*arguments)["provider"]["callwright"]["models"])


def fails(*arguments: str) -> str:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    return result.stderr


def test_it_prints_a_provider_with_the_model() -> None:
    told = printed(*NAMED)
    assert told["model"] == told["small_model"] == "callwright/local-model"
    provider = told["provider"]["callwright"]
    assert provider["npm"] == "@ai-sdk/openai-compatible"
    assert provider["options"] == {"baseURL": NOWHERE[1], "apiKey": "any"}
    assert provider["models"]["local-model"]["limit"] == {"context": 32768, "output": 8192}


@pytest.mark.parametrize(("tokens", "output"), [("8192", 2048), ("262144", 32000)])
def test_an_answer_has_its_share_of_the_window(tokens: str, output: int) -> None:
    limit = models(*NAMED, "--context-window", tokens)["local-model"]["limit"]
    assert limit == {"context": int(tokens), "output": output}


@pytest.mark.parametrize("name", ['a "b" \\c', "org/model:7b-q4", "ünï 模型"])
def test_any_name_can_be_written(name: str) -> None:
    assert list(models("--model", name, *NOWHERE)) == [name]


def test_images_and_a_key_are_told() -> None:
    told = printed(*NAMED, "--images", "--key-env", "MY_KEY")["provider"]["callwright"]
    assert told["options"]["apiKey"] == "{env:MY_KEY}"
    assert told["models"]["local-model"]["attachment"] is True


def test_the_gateways_models_are_taken_with_their_windows(serve: Served) -> None:
    url = serve(
        ModelConfig(name="wide", upstream="simulated", context_length=131072),
        ModelConfig(name="open", upstream="simulated"),
    )
    found = models("--url", f"{url}/v1")
    assert {name: one["limit"]["context"] for name, one in found.items()} == {"wide": 131072, "open": 32768}
    assert models("--url", f"{url}/v1", "--model", "wide")["wide"]["limit"]["context"] == 131072
    assert models("--url", f"{url}/v1", "--context-window", "9000")["wide"]["limit"]["context"] == 9000
    assert printed("--url", f"{url}/v1")["model"] == "callwright/wide"


def test_a_model_that_is_not_listed_is_warned_of(simulated: str) -> None:
    result = run("--url", f"{simulated}/v1", "--model", "nativ")
    assert result.exit_code == 0
    assert "Did you mean 'native'?" in result.stderr


def test_a_key_is_shown_to_the_gateway(serve: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = (KeyConfig(name="mia", sha256=hash_of(KEY)),)
    url = serve(*(ModelConfig(name=way, upstream="simulated", **how) for way, how in WAYS.items()), keys=keys)
    assert "asks for a key" in fails("--url", f"{url}/v1")
    monkeypatch.setenv("MIAS_KEY", KEY)
    assert list(models("--url", f"{url}/v1", "--key-env", "MIAS_KEY")) == list(WAYS)


BAD = (
    (("--url", "localhost:8642"), "expected a URL"),
    (("--model", "m", "--url", "http://127.0.0.1:8642"), "Is it http://127.0.0.1:8642/v1?"),
    (("--model", "", *NOWHERE), "expected the name of a model"),
    ((*NAMED, "--key-env", "A B"), "environment variable"),
    (NOWHERE, "cannot be asked for its models: Connection refused. Start it"),
)


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_what_cannot_be_is_told(arguments: tuple[str, ...], words: str) -> None:
    assert words in fails(*arguments)
