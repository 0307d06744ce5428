"""`callwright eval`: what it says, writes, compares and chooses; slips told with the way out."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from callwright.cli import main
from callwright.eval.results import Result as ReadResult
from callwright.eval.results import read_results
from callwright.gateway.config.build_models import build_models
from callwright.gateway.config.config import load_config
from callwright.turn.reread import read_record
from tests.support.tiny_gguf import write_model
from tests.support.tiny_llama import HERMES, TinyLlama


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ("eval", *arguments))


def summary(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


SMALL = ("--size", "quick", "--group", "one_tool", "--group", "many_tools")


def test_the_simulated_model_is_measured_and_told_in_a_table(tmp_path: Path) -> None:
    result = run("simulated", *SMALL, "--way", "raw:hermes", "--way", "prompt:json", "--faults", "unknown_tool:0.5")
    assert result.exit_code == 0, result.stderr
    assert "Asking in 2 ways: 16 cases, 16 requests, about " in result.stderr
    for word in ("raw:hermes", "prompt:json", "one_tool", "unknown_tool", "as written", "tokens"):
        assert word in result.stdout
    assert "no significant difference" in result.stdout or "better than" in result.stdout
    page = (tmp_path / "eval-results" / "report.html").read_text()
    assert "<svg" in page
    assert "part-arguments" in page
    for line in (tmp_path / "eval-results" / "turns.jsonl").read_text().splitlines():
        read_record(line)


def test_seeds_repeat_and_what_is_there_is_not_asked_again() -> None:
    one = summary(*SMALL, "--way", "raw:hermes", "--faults", "only_said:0.4", "--out", "one", "--at-once", "1")
    two = summary(*SMALL, "--way", "raw:hermes", "--faults", "only_said:0.4", "--out", "two", "--at-once", "1")
    timed = ("first_s", "seconds")
    assert {k: v for k, v in one["ways"][0].items() if k not in timed} == {
        k: v for k, v in two["ways"][0].items() if k not in timed
    }
    before = Path("one/results.jsonl").read_bytes()
    assert summary(*SMALL, "--way", "raw:hermes", "--faults", "only_said:0.4", "--out", "one") == one
    assert Path("one/results.jsonl").read_bytes() == before


def test_what_it_would_cost_is_said_and_nothing_asked(tmp_path: Path, closed_port: str) -> None:
    result = run(closed_port, "--dry-run", "--size", "quick")
    assert result.exit_code == 0
    assert "40 cases, 40 to" in result.stdout
    assert "10 to 40 short requests" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_two_runs_are_compared_case_by_case() -> None:
    for out, faults in (("well", ""), ("worse", "only_said:1")):
        summary(*SMALL, "--way", "raw:hermes", "--out", out, *(("--faults", faults) if faults else ()))
    result = run("compare", "well", "worse")
    assert result.exit_code == 0, result.stderr
    assert "worse raw:hermes is worse than well raw:hermes by 100.0 points" in result.stdout
    assert "worse now: " in result.stdout
    pair = json.loads(run("compare", "well", "worse", "--json").stdout)["pairs"][0]
    assert (pair["comparison"]["first"], pair["comparison"]["second"]) == (8, 0)


def test_the_best_way_is_written_as_a_configuration_that_works() -> None:
    result = run(*SMALL, "--way", "raw:hermes", "--way", "prompt:json+retries=0")
    assert result.exit_code == 0, result.stderr
    config = load_config(Path("eval-results/callwright.toml"))
    assert [model.name for model in config.models] in (["raw:hermes"], ["prompt:json+retries=0"])
    build_models(config)


@pytest.mark.parametrize(("share", "status"), [("0.9", 0), ("1.0", 0), ("0.99", 0)])
def test_a_share_can_be_demanded(share: str, status: int) -> None:
    assert run(*SMALL, "--way", "raw:hermes", "--fail-under", share).exit_code == status
    low = run(*SMALL, "--way", "raw:hermes", "--faults", "only_said", "--out", "low", "--fail-under", share)
    assert low.exit_code == 1


def test_models_of_a_configuration_are_asked_as_they_are_configured() -> None:
    Path("callwright.toml").write_text(
        '[[models]]\nname = "one"\nupstream = "simulated"\nmode = "raw"\ndialect = "hermes"\n'
        '[[models]]\nname = "two"\nupstream = "simulated"\n'
    )
    assert [way["way"] for way in summary(*SMALL, "--config", "callwright.toml")["ways"]] == ["one", "two"]
    two = summary(*SMALL, "--config", "callwright.toml", "--model", "two", "--out", "other")
    assert [way["way"] for way in two["ways"]] == ["two"]


def test_a_fallback_of_a_configured_model_answers() -> None:
    weak = 'upstream = "simulated"\nfaults = "missing_argument:1"\nretries = 0\n'
    Path("callwright.toml").write_text(
        f'[[models]]\nname = "weak"\n{weak}'
        f'[[models]]\nname = "helped"\n{weak}fallback = ["good"]\n'
        '[[models]]\nname = "good"\nupstream = "simulated"\n'
    )
    demands = ("--size", "quick", "--group", "demands", "--config", "callwright.toml")
    weak_alone, helped, good = summary(*demands)["ways"]
    assert weak_alone["right"] < good["right"] == helped["right"] == 4
    assert helped["problems"]["model_replaced"] == 4 - weak_alone["right"]
    (alone,) = summary(*demands, "--model", "helped", "--out", "other")["ways"]
    assert (alone["way"], alone["right"]) == ("helped", 4)


def test_a_server_is_asked_directly_over_each_of_its_apis(simulated: str) -> None:
    """A gateway's answers are as right over its own wire as when the model is asked here."""
    ways = ("--way", "direct:chat", "--way", "direct:responses", "--way", "direct:messages")
    found = summary(simulated, "--model", "raw-hermes", "--size", "quick", *ways)
    here = summary("--size", "quick", "--way", "raw:hermes", "--out", "here")
    by_way = {way["way"]: way for way in found["ways"]}
    assert [way["errors"] for way in found["ways"]] == [0, 0, 0]
    rights = {group: of["right"] for group, of in here["ways"][0]["groups"].items()}
    for name in ("direct:chat", "direct:responses"):
        assert by_way[name]["cases"] == 40
        assert {group: of["right"] for group, of in by_way[name]["groups"].items()} == rights
    messages = by_way["direct:messages"]["groups"]
    assert "answers" not in messages  # the API has no words for what most of them ask
    assert messages["one_tool"]["right"] == 4


HORN = {
    "type": "function",
    "function": {
        "name": "sound_horn",
        "parameters": {
            "type": "object",
            "properties": {"tone": {"enum": ["low", "high"]}, "long": {"type": "boolean"}},
            "required": ["tone", "long"],
            "additionalProperties": False,
        },
    },
}


def test_a_call_that_is_demanded_of_random_weights_is_valid_where_a_grammar_holds_it() -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    write_model(Path("tiny.gguf"))
    case = {"tools": [HORN], "tool_choice": "required", "must": {"some": True}}
    said = [[{"role": "user", "content": f"Ship {number} is near."}] for number in range(12)]
    lines = [json.dumps({"id": str(number), "messages": messages, **case}) for number, messages in enumerate(said)]
    Path("horn.jsonl").write_text("\n".join(lines))
    free, held = "raw:hermes+constrain=off+retries=0", "raw:hermes+retries=0"
    arguments = ("--cases", "horn.jsonl", "--way", free, "--way", held, "--field", "max_tokens=200", "--at-once", "1")
    found = {way["way"]: way for way in summary("tiny.gguf", *arguments)["ways"]}
    # A grammar lets a model think first, and some of these think until the limit of tokens cuts them.
    assert found[held]["made"] >= found[held]["right"] > 0
    assert found[held]["invalid"] == 0
    assert (found[free]["right"], found[free]["made"]) == (0, 0)
    assert found[free]["completion_tokens"] > 0


@pytest.mark.processes
def test_llama_cpp_tells_what_its_model_wrote_so_that_one_output_is_read_twice(tmp_path: Path) -> None:
    """Noise is no call for either parser. Where llama.cpp's own answers 500 to it, nothing is known of the output."""
    (tmp_path / "model").mkdir()
    server = TinyLlama(tmp_path / "model", HERMES)
    ways = ("--way", "direct:chat", "--way", "reread:hermes")
    groups = ("--group", "one_tool", "--group", "restraint")
    # Random weights may end within a character; llama.cpp then sends no logprobs (1 of 600 answers). A seed settles it.
    few = ("--size", "quick", *groups, "--field", "max_tokens=24", "--field", "seed=7", "--at-once", "1")
    assert len(summary(server.url, *ways, *few)["ways"]) == 2
    by_case: dict[str, list[ReadResult]] = {}
    for result in read_results(Path("eval-results"))[1]:
        by_case.setdefault(result.case, []).append(result)
    assert len(by_case) == 8
    for theirs, ours in by_case.values():
        assert theirs.error == ours.error
        assert not theirs.error or "answered 500: The model produced output" in theirs.error
        assert (theirs.requests, theirs.completion_tokens) == (ours.requests, ours.completion_tokens)
        assert (theirs.right, theirs.group) == (ours.right, ours.group)
    assert any(theirs.completion_tokens for theirs, _ in by_case.values())


OWN = """
tools_file = "tools.json"

[[cases]]
id = "rain"
messages = [{role = "user", content = "Measure the rain in Tarnsea."}]
must.calls = [{name = "measure_rain", arguments = {place = {"$words" = "tarnsea"}}}]

[[cases]]
id = "thanks"
messages = [{role = "user", content = "Thank you!"}]
must.calls = []
"""
RAIN = {
    "type": "function",
    "function": {
        "name": "measure_rain",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}


def test_cases_of_ones_own_are_asked_instead() -> None:
    Path("tools.json").write_text(json.dumps([RAIN]))
    Path("own.toml").write_text(OWN)
    (way,) = summary("--cases", "own.toml", "--way", "raw:hermes")["ways"]
    assert (way["cases"], way["right"]) == (2, 2)


def test_recorded_turns_become_cases_in_which_the_same_calls_are_right(tmp_path: Path) -> None:
    Path("tools.json").write_text(json.dumps([RAIN]))
    Path("own.toml").write_text(OWN.replace("tarnsea", "elsewhere"))  # so that it fails, and is kept
    summary("--cases", "own.toml", "--way", "raw:hermes")
    os.rename("eval-results/turns.jsonl", "recorded.jsonl")
    (way,) = summary("--cases", "recorded.jsonl", "--way", "prompt:json", "--out", "again")["ways"]
    assert (way["cases"], way["right"], way["wanted"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no cases|cases"),
        ("cases = 3", "cases"),
        ('[[cases]]\nid = "a"\nmessages = []\nmust = {}', "case 'a': must is empty"),
        ('[[cases]]\nid = "a"\nmessages = []\nmust.calls = []', "messages"),
        ('[[cases]]\nid = "a"\nmessage = []\nmust.calls = []', "Did you mean 'messages'"),
        (
            '[[cases]]\nid = "a"\nmessages = [{role = "user", content = "x"}]\nmust.calls = [{name = "b"}]',
            "the tool 'b'",
        ),
        (
            '[[cases]]\nid = "a"\nmessages = [{role = "user", content = "x"}]\nmust.text = {"$hass" = "x"}',
            r"Did you mean '\$has'",
        ),
        ("[[cases", "is not valid TOML"),
    ],
)
def test_a_file_of_cases_that_cannot_be_says_where(text: str, told: str) -> None:
    Path("own.toml").write_text(text)
    result = run("--cases", "own.toml")
    assert result.exit_code == 2
    assert_matches(told, result.stderr)


def assert_matches(pattern: str, text: str) -> None:
    assert re.search(pattern, text), text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--way", "promt:hermes"), "Did you mean 'prompt'"),
        (("--way", "raw"), "needs a dialect"),
        (("--way", "raw:hermess"), "hermes"),
        (("--way", "native:hermes"), "leave out 'hermes'"),
        (("--way", "direct:chat"), "Give its URL"),
        (("--way", "raw:hermes+thinking"), "NAME=VALUE"),
        (("--way", "raw:hermes+stream=maybe"), "expected on or off"),
        (("--faults", "nope"), "Unknown fault"),
        (("http://localhost:1", "--faults", "all"), "simulated"),
        (("compare", "a"), "two folders"),
        (("compare", "a", "b"), "Cannot read"),
        (("a", "b"), "Expected one server"),
        (("ftp://x",), "expected a URL"),
        (("--config", "none.toml"), "Cannot read"),
    ],
)
def test_slips_are_told_with_what_was_meant(arguments: tuple[str, ...], told: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.stdout
    assert_matches(told, result.stderr)


def test_a_server_that_is_not_there_says_so_before_anything_is_written(closed_port: str, tmp_path: Path) -> None:
    result = run(closed_port, "--size", "quick")
    assert result.exit_code == 2
    assert "callwright doctor" in result.stderr
    assert list(tmp_path.iterdir()) == []
