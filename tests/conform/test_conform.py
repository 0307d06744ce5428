"""`callwright conform`: a right server has no finding, and each check finds the faults planted for it."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from callwright.cli import main
from callwright.conform.check import STATUSES, Check, Target, Variant, request_of
from callwright.conform.checks.faults import DIALECTS, NATIVE, fault_checks, turn_of
from callwright.conform.model_server import MODEL as SCRIPTED
from callwright.conform.model_server import struck_text
from callwright.conform.run import CHECKS, Access, asker_for, choose_checks, id_of, run
from callwright.conform.run import Result as Found
from callwright.dialects.base import get_dialect
from callwright.doctor.client import Reply
from callwright.eval.wires import WIRES, WireName
from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig, ServerConfig, simulated_config
from callwright.tolerant_json.codec import encode
from callwright.upstreams.simulated.faults import FAULTS as SIMULATED_FAULTS
from tests.conform.planted import FAULTS, Fault
from tests.support.page_gateway import free_port
from tests.support.servers import ClosedPort, Gateway, ModelServer, whole

MODEL = "simulated-native"
ALL = choose_checks(WIRES)
OF_MODELS = fault_checks((NATIVE, *DIALECTS))
WITH_FAULTS = choose_checks(WIRES, faults=dict.fromkeys(WIRES, OF_MODELS))
EACH = [(wire, check, variant) for wire, check in WITH_FAULTS for variant in check.variants]
KEY = "sk-anna-0123456789"
# Of checks with several requests: the number of the last one that is answered rightly; the first is whether there is
# such an endpoint.
STEPS_BEFORE = {"history.previous_response": 2, "history.conversation": 3}
FAULT_IDS = [f"{wire}.faults" for wire in WIRES]


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    gateway = Gateway(simulated_config(ServerConfig()))
    yield gateway
    gateway.stop()


@pytest.fixture(scope="module")
def keyed() -> Iterator[Gateway]:
    """A gateway that takes one key, and stores responses."""
    simulated = simulated_config(ServerConfig())
    gateway = Gateway(replace(simulated, keys=(KeyConfig(name="anna", sha256=hash_of(KEY)),)))
    yield gateway
    gateway.stop()


class Recorded:
    """The answers of a right server, by path, request and key. Others are asked for."""

    def __init__(self, url: str) -> None:
        self.target = Target(url, MODEL)
        self._replies: dict[tuple[str, bytes, str], Reply] = {}

    def fetch(self) -> list[Found]:
        """Run all checks."""

        async def fetch() -> list[Found]:
            async with (
                asker_for(self.target.url, KEY, 500) as self._asker,
                asker_for(self.target.url, None, 50) as self._bare,
            ):
                return await run(self.target, ALL, self, lambda _: None, Access(KEY, self))

        return asyncio.run(fetch())

    async def post(self, url: str, body: Mapping[str, Any] | bytes, headers: Mapping[str, str] | None = None) -> Reply:
        key = self._key(url, body, headers)
        if key not in self._replies:
            asker = self._asker if isinstance(body, bytes) else self._bare
            self._replies[key] = await asker.post(url, key[1], headers)
        return self._replies[key]

    def stored(self, url: str, body: Mapping[str, Any] | bytes, headers: Mapping[str, str] | None) -> Reply | None:
        return self._replies.get(self._key(url, body, headers))

    @staticmethod
    def _key(url: str, body: Mapping[str, Any] | bytes, headers: Mapping[str, str] | None) -> tuple[str, bytes, str]:
        if isinstance(body, bytes):
            return url, body, ""
        # Only the requests of a check of keys are not encoded yet.
        given = (headers or {}).items()
        return url, encode(body), f"bare {dict(given)}"

    def reply(self, wire: WireName, check: Check, body: dict[str, Any], variant: Variant) -> Reply:
        path, sent = request_of(check, wire, body, self.target, variant)
        data = sent if isinstance(sent, bytes) else encode(sent)
        return self._replies.get((self.target.url + path, data, ""), Reply(200))


@pytest.fixture(scope="module")
def recorded(keyed: Gateway) -> Recorded:
    recorded = Recorded(f"{keyed.url}/v1")
    odd = [found for found in recorded.fetch() if found.status != "holds"]
    assert not odd, odd
    return recorded


def test_a_right_server_has_no_finding(recorded: Recorded) -> None:
    assert len(EACH) > 250


def test_faults_are_planted_for_each_check() -> None:
    assert {check.name for check in (*CHECKS, *OF_MODELS)} == {*FAULTS}


class Planted:
    """Answers the requests of one check with a fault, others rightly; of a check with several the last."""

    def __init__(self, recorded: Recorded, fault: Fault, wire: WireName, check: Check, variant: Variant) -> None:
        self._recorded, self._fault = recorded, fault
        self._at = (wire, check, variant)
        self._asked = 0
        self._right = Reply(200)

    async def post(self, url: str, body: Mapping[str, Any] | bytes, headers: Mapping[str, str] | None = None) -> Reply:
        wire, check, variant = self._at
        self._asked += 1
        own = [
            encode(sent)
            for _, sent in (request_of(check, wire, ask, self._recorded.target, variant) for ask in check.asks)
        ]
        if self._asked == 1 and body not in own:  # whether there is such an endpoint
            return self._recorded.reply(wire, CHECKS[0], CHECKS[0].asks[0], "whole")
        # After an answer with a fault the next request is another than was recorded.
        self._right = right = self._recorded.stored(url, body, headers) or self._right
        if check.talk is not None and self._asked <= STEPS_BEFORE.get(check.name, 1):
            return right
        if isinstance(self._fault, dict):
            return self._recorded.reply(wire, CHECKS[0], self._fault, variant)
        return self._fault(wire, variant, right)


@pytest.mark.parametrize(("wire", "check", "variant"), EACH, ids=[f"{id_of(w, c)}-{v}" for w, c, v in EACH])
def test_a_check_finds_the_faults_planted_for_it(
    recorded: Recorded, wire: WireName, check: Check, variant: Variant
) -> None:
    for number, fault in enumerate(FAULTS[check.name]):
        planted = Planted(recorded, fault, wire, check, variant)
        one_variant = replace(check, variants=(variant,))
        checks = [(wire, one_variant)]
        (found,) = asyncio.run(run(recorded.target, checks, planted, lambda _: None, Access(KEY, planted)))
        status = found.status
        assert status == "does not", f"fault {number}: {status}"


def conform(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["conform", *arguments])


def test_the_report_as_table_json_and_badge(gateway: Gateway, tmp_path: Path) -> None:
    report, badge = tmp_path / "report.json", tmp_path / "badge.svg"
    result = conform(
        gateway.url, "--api", "chat", "--only", "chat.stream", "--json", str(report), "--badge", str(badge)
    )
    assert result.exit_code == 0, result.output
    value = json.loads(report.read_text())
    assert value["counts"] == {"holds": 6, "does not": 0, "not shown": 0, "not offered": 0}
    assert (value["model"], value["url"]) == ("simulated", f"{gateway.url}/v1")
    for one in value["results"]:
        assert one["id"] in result.output
        assert one["source"].startswith("https://")
    assert "6 of 6" in "".join(ElementTree.fromstring(badge.read_text()).itertext())


def test_an_api_that_is_not_there_is_not_offered(tmp_path: Path) -> None:
    server = ModelServer()
    server.plays(*[whole({"error": {"message": "no such path"}}, 404)] * 3)
    report = tmp_path / "report.json"
    result = conform(server.url, "--model", "m", "--json", str(report))
    asked = len(server.asked)
    server.stop()
    assert (result.exit_code, asked) == (2, 3)
    assert "answers no request of the APIs" in result.output
    assert {one["status"] for one in json.loads(report.read_text())["results"]} == {"not offered"}


def test_errors_of_the_caller(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_KEY", raising=False)
    closed = ClosedPort()
    for arguments, expected, code in (
        ((), "Expected the URL of a server", 2),
        (("localhost:8000",), "expected a URL such as", 2),
        ((gateway.url, "--api", "chat,soap"), "--api chat,soap: expected names out of chat, responses, messages", 2),
        ((gateway.url, "--only", "chat.nothing"), "--only chat.nothing: no check has such an id", 2),
        ((gateway.url, "--key-env", "NO_KEY"), "NO_KEY is not set", 2),
        ((closed.url, "--model", "m"), closed.url, 1),
        ((closed.url,), "Name one with --model", 2),
    ):
        result = conform(*arguments)
        assert (result.exit_code, expected in result.output) == (code, True), result.output
    closed.close()


def test_all_ids_are_listed_without_asking() -> None:
    lines = conform("--list").output.splitlines()
    assert [line.split()[0] for line in lines] == [id_of(wire, check) for wire, check in WITH_FAULTS]


# --- the scripted model ---


@pytest.mark.parametrize("name", [name for name in SIMULATED_FAULTS if name != "silent"])
def test_each_fault_changes_the_answer_of_the_scripted_model(name: str) -> None:
    fault = SIMULATED_FAULTS[name]
    dialect = fault.dialect or "hermes"
    before = get_dialect(dialect).write(turn_of(name))
    # A text has no call to teach, and a server's fault is not in the text.
    assert fault.failure or struck_text(name, dialect) != before


def before_the_scripted_model(*arguments: str, **settings: Any) -> list[dict[str, Any]]:
    """The results of checks of our gateway with the scripted model."""
    port = free_port()
    model = ModelConfig(name="m", upstream=f"http://127.0.0.1:{port}/v1", model=SCRIPTED, **settings)
    gateway = Gateway(Config(models=(model,)))
    try:
        with TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            conform(gateway.url, "--serve-model", str(port), "--json", str(report), *arguments)
            results: list[dict[str, Any]] = json.loads(report.read_text())["results"]
    finally:
        gateway.stop()
    return results


def test_our_gateway_before_the_scripted_model() -> None:
    only = [part for id_ in FAULT_IDS for part in ("--only", id_)]
    results = before_the_scripted_model(*only, mode="native")
    assert len(results) == sum(len(WIRES) * len(check.variants) for check in OF_MODELS)
    assert {result["id"] for result in results if result["status"] != "holds"} == set()


def test_a_gateway_that_passes_all_on_is_found() -> None:
    port = free_port()
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        only = ("--only", "chat.faults", "--api", "chat", "--json", str(report))
        result = conform(f"http://127.0.0.1:{port}/v1", "--model", MODEL, "--serve-model", str(port), *only)
        results = json.loads(report.read_text())["results"]
    assert result.exit_code == 1
    by_status = {status: {one["id"][12:] for one in results if one["status"] == status} for status in STATUSES}
    assert {"string_numbers", "missing_argument", "unknown_tool", "camel_case", "html", "cut_stream"} <= by_status[
        "does not"
    ]
    assert {"single_quotes", "wrong_channel", "extra_brace", "unfenced"} <= by_status["not offered"]
    assert {"none", "error_500", "only_said"} <= by_status["holds"]


def test_a_gateway_that_forwards_nothing(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.cli.conform._PATIENCE_S", 0.2)
    monkeypatch.setattr("callwright.cli.conform._PAUSE_S", 0.05)
    result = conform(gateway.url, "--serve-model", "0")
    assert (result.exit_code, "forwarded no request to the scripted model" in result.output) == (2, True)
    taken = conform(gateway.url, "--serve-model", str(gateway.port))
    assert (taken.exit_code, f"--serve-model {gateway.port}" in taken.output) == (2, True)
