"""What `serve --record` writes, and what `callwright replay` reads of it again."""

import json
import logging
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from callwright.cli import main
from callwright.gateway.config.config import Config, ModelConfig, RecordConfig
from callwright.gateway.observability import recorder
from callwright.gateway.observability.redaction import without_keys
from callwright.upstreams.simulated.faults import FAULTS
from tests.conftest import KEY, WAYS
from tests.support.http_client import CHAT, Live, request
from tests.support.outputs import QUESTION, TOOLS, block
from tests.support.responses_client import FUNCTIONS, RESPONSES
from tests.support.servers import Answer, Gateway, ModelServer, chunk, completion, said, sse
from tests.support.waiting import until

Recording = Callable[..., str]
PATCH = {"type": "grammar", "syntax": "lark", "definition": 'start: "on" | "off"'}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "turns"


@pytest.fixture
def record(folder: Path) -> Iterator[tuple[Recording, Callable[[], list[Any]]]]:
    """Starts a gateway that records, and stops it to answer what it has recorded."""
    started: list[Gateway] = []

    def begin(*models: ModelConfig, **limits: int) -> str:
        started.append(Gateway(Config(record=RecordConfig(dir=str(folder), **limits), models=models)))
        return started[-1].url

    def end() -> list[Any]:
        while started:
            started.pop().stop()
        return [json.loads(line) for path in sorted(folder.glob("*")) for line in path.read_text().splitlines()]

    yield begin, end
    end()


def replay(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


def asked(url: str, model: str, **fields: Any) -> int:
    return request(url + CHAT, {"model": model, "messages": [QUESTION], "tools": TOOLS, **fields}).status


def simulated(faults: str = "") -> list[ModelConfig]:
    return [ModelConfig(name=way, upstream="simulated", faults=faults, retries=1, **how) for way, how in WAYS.items()]


def test_a_record_holds_the_turn_from_the_request_to_the_problems(
    record: Any, folder: Path, model: ModelServer
) -> None:
    begin, end = record
    url = begin(
        ModelConfig(name="m", upstream=model.url, mode="raw", dialect="hermes", retries=1, aliases=[["depot", "town"]])
    )
    outputs = [block("get_weather", '{"town": 7}'), block("get_weather", "{'city': 'Rome'}")]
    model.plays(*map(completion, outputs))
    reply = request(
        url + CHAT, {"model": "m", "messages": [QUESTION], "tools": TOOLS}, headers={"x-client-request-id": "t-1"}
    )
    (made,) = end()
    assert made["request_id"] == reply.headers["x-request-id"]
    assert made["client_request_id"] == "t-1"
    assert made["request"] == {"model": "m", "messages": [QUESTION], "tools": TOOLS}
    first, second = made["attempts"]
    assert (first["mode"], first["dialect"], made["finish_reason"]) == ("raw", "hermes", "tool_calls")
    assert made["usage"]["prompt_tokens"] == 22
    assert [problem["kind"] for problem in made["problems"]] == ["json_repaired", "call_retried"]
    assert "Paris?" in first["prompt"]
    assert "was not run" in second["prompt"]
    sent = ["".join(delta.get("text", "") for _, delta in attempt["deltas"]) for attempt in made["attempts"]]
    assert sent == outputs
    times = [at for attempt in made["attempts"] for at, _ in attempt["deltas"]]
    assert times == sorted(times)
    assert times[-1] <= made["seconds"]
    assert [event["kind"] for event in first["events"] if event["type"] == "Problem"] == ["invalid_arguments"]
    assert made["aliases"] == [["depot", "town"]]


@pytest.mark.parametrize("fault", ["", *(name for name in FAULTS if name != "silent")])  # which has no end
def test_what_is_recorded_reads_the_same_again(record: Any, folder: Path, fault: str) -> None:
    begin, end = record
    url = begin(*simulated(fault))
    named = {"type": "function", "function": {"name": "send_mail"}}
    tools = [{"type": "custom", "name": "switch", "format": PATCH}, *FUNCTIONS]
    for way in WAYS:
        asked(url, way)
        asked(url, way, stream=True, tool_choice=named)
        request(
            url + RESPONSES,
            {
                "model": way,
                "input": "Switch it on",
                "tools": tools,
                "tool_choice": "required",
            },
        )
    turns = end()
    assert len(turns) == 3 * len(WAYS)
    result = replay(*folder.glob("*"))
    assert result.exit_code == 0, result.output
    outputs = sum(len(turn["attempts"]) for turn in turns)
    assert result.output == f"{len(turns)} turns, {outputs} outputs, 0 read differently\n"


def changed(folder: Path, change: Callable[[Any], None]) -> Path:
    """The file of a record, in which something was other then."""
    (path,) = folder.glob("*")
    turn = json.loads(path.read_text())
    change(turn)
    path.write_text(json.dumps(turn) + "\n")
    return path


def test_what_is_read_differently_is_shown(record: Any, folder: Path, model: ModelServer) -> None:
    begin, end = record
    url = begin(ModelConfig(name="m", upstream=model.url, mode="raw", dialect="hermes"))
    model.plays(completion(block("get_weather", "{'city': 'Rome'}")))
    asked(url, "m")
    end()

    def without_the_problem(turn: Any) -> None:
        events = turn["attempts"][0]["events"]
        turn["attempts"][0]["events"] = [event for event in events if event["type"] != "Problem"]

    path = changed(folder, without_the_problem)
    result = replay(path, "--diff")
    assert result.exit_code == 1
    assert f"{path}:1, output 1: m req_" in result.output
    assert ": problems\n" in result.output
    assert '  +      "kind": "json_repaired",' in result.output
    assert result.output.endswith("1 turn, 1 output, 1 read differently\n")
    told, counts = map(json.loads, replay(path, "--json").output.splitlines())
    assert told["differing"] == ["problems"]
    assert told["then"]["problems"] == []
    assert [problem["kind"] for problem in told["now"]["problems"]] == ["json_repaired"]
    assert counts == {"turns": 1, "outputs": 1, "differing": 1, "skipped": 0}


def test_an_output_can_be_read_as_another_dialect(record: Any, folder: Path, model: ModelServer) -> None:
    begin, end = record
    url = begin(ModelConfig(name="m", upstream=model.url, mode="raw", dialect="hermes"))
    model.plays(completion(block("get_weather", '{"city": "Rome"}')))
    asked(url, "m")
    end()
    (path,) = folder.glob("*")
    result = replay(path, "--dialect", "harmony", "--json")
    assert result.exit_code == 1
    told = json.loads(result.output.splitlines()[0])
    assert told["then"]["calls"][0]["arguments"] == '{"city": "Rome"}'
    assert [problem["kind"] for problem in told["now"]["problems"]] == ["foreign_format"]
    assert told["differing"] == ["problems"]
    assert replay(path, "--dialect", "harmonie").exit_code == 2


def test_what_the_client_left_is_recorded_as_far_as_it_came(record: Any, folder: Path, model: ModelServer) -> None:
    begin, end = record
    url = begin(ModelConfig(name="m", upstream=model.url))
    gate = model.gate()
    model.plays(Answer((*sse(chunk({"role": "assistant", "content": "Hi"})), gate, "silence")))
    body = json.dumps({"model": "m", "stream": True, "messages": [QUESTION]}).encode()
    with Live(url + CHAT, body) as live:
        next(live.pieces())
    gate.open()
    model.wait_until_left()
    (made,) = end()
    assert made["attempts"][0]["ended"] == "left"
    assert replay(*folder.glob("*")).exit_code == 0


def test_no_key_is_recorded_and_only_the_owner_may_read(
    record: Any, folder: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPSTREAM_KEY", KEY)
    begin, end = record
    url = begin(
        ModelConfig(name="m", upstream=model.url.replace("//", "//user:hunter2@"), fields={"api_key": KEY}),
        ModelConfig(name="n", upstream=model.url, api_key_env="UPSTREAM_KEY", headers={"x-tenant": "hunter2"}),
    )
    model.plays(said("Hi"), said("Hi"))
    for name in "mn":
        headers = {"authorization": f"Bearer {KEY}", "cookie": "hunter2"}
        body = {"model": name, "messages": [QUESTION], "api_key": KEY}
        assert request(url + CHAT, body, headers=headers).status == 200
    assert len(end()) == 2
    (path,) = folder.glob("*")
    assert KEY not in path.read_text()
    assert "hunter2" not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_keys_of_a_request_and_its_tools_go_but_parameters_of_that_name_stay() -> None:
    function = {"name": "f", "parameters": {"type": "object", "properties": {"headers": {"type": "string"}}}}
    tools = [{"type": "mcp", "server_url": "http://x", "headers": {"a": KEY}, "authorization": KEY}, function]
    kept = [{"type": "mcp", "server_url": "http://x"}, function]
    assert without_keys({"model": "m", "API_KEY": KEY, "tools": tools}) == {"model": "m", "tools": kept}


@pytest.mark.parametrize("name", ["x-api-key", "client_secret", "Authorization", "access_token", "extra_headers"])
def test_what_is_named_like_a_key_goes_at_any_depth(name: str) -> None:
    body = {"model": "m", "max_tokens": 5, "metadata": {"team": "blue", name: KEY}, name: KEY}
    assert without_keys(body) == {"model": "m", "max_tokens": 5, "metadata": {"team": "blue"}}


def test_files_stay_small_and_the_oldest_go(record: Any, folder: Path) -> None:
    begin, end = record
    url = begin(ModelConfig(name="m", upstream="simulated"), max_total_bytes=24_576)
    for _ in range(24):
        assert asked(url, "m") == 200
    assert end()
    sizes = [path.stat().st_size for path in folder.glob("*")]
    assert len(sizes) > 1
    assert max(sizes) <= 8_192
    assert sum(sizes) <= 24_576


def test_a_file_that_another_process_has_erased_is_not_written_to(record: Any, folder: Path) -> None:
    begin, end = record
    url = begin(ModelConfig(name="m", upstream="simulated"))
    for _ in range(2):
        assert asked(url, "m") == 200
        until(lambda: any(path.stat().st_size for path in folder.glob("*")))
        (found,) = folder.glob("*")
        found.unlink()
    assert asked(url, "m") == 200
    assert len(end()) == 1


def test_a_long_turn_is_recorded_without_what_went_in_or_at_all(
    record: Any, folder: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_MAX_TURN_BYTES", 4_096)
    begin, end = record
    url = begin(ModelConfig(name="m", upstream=model.url))
    model.plays(said("Hi"), said("x" * 5_000))
    long = {"role": "user", "content": "y" * 5_000}
    request(url + CHAT, {"model": "m", "messages": [long]})
    request(url + CHAT, {"model": "m", "messages": [QUESTION]})
    asked_long, told_long = end()
    assert "request" not in asked_long
    assert asked_long["attempts"][0]["deltas"]
    assert told_long["attempts"][0]["is_cut"]
    assert all(len(line) <= 4_096 for path in folder.glob("*") for line in path.read_bytes().splitlines())
    result = replay(*folder.glob("*"))
    assert result.exit_code == 0
    assert result.output == "2 turns, 1 output, 0 read differently, 1 left out because they are not there in full\n"


def test_a_disk_that_fails_fails_no_request(record: Any, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    begin, end = record
    url = begin(ModelConfig(name="m", upstream="simulated"))
    folder.rmdir()
    with caplog.at_level(logging.WARNING):
        assert asked(url, "m") == 200
        assert asked(url, "m") == 200
        end()
    told = [record.getMessage() for record in caplog.records]
    assert told == ["a turn could not be recorded: No such file or directory"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    result = CliRunner().invoke(main, ["serve", "--store", "none", "--record", str(tmp_path)])
    assert result.exit_code == 2
    assert "record: cannot write in the folder" in result.output


def test_a_file_in_the_place_of_the_folder_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "turns").write_text("")
    result = CliRunner().invoke(main, ["serve", "--port", "0", "--store", "none", "--record", str(tmp_path / "turns")])
    assert result.exit_code == 2
    assert "record: cannot make the folder" in result.output


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        ("{}\n", 2, ":1: not a record of a turn"),
        ('{"version": 1', 0, "0 turns, 0 outputs, 0 read differently, 1 left out"),
        ("nonsense\n", 2, "Expected a line that `serve --record` has written."),
    ],
)
def test_a_line_that_is_no_record_is_told(tmp_path: Path, line: str, status: int, words: str) -> None:
    path = tmp_path / "turns.jsonl"
    path.write_text(line)
    result = replay(path)
    assert result.exit_code == status, result.output
    assert words in result.output
