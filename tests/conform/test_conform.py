"""`callwright conform`: a right server has no finding, and each check finds the faults planted for it."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from callwright.cli import main
from callwright.conform.check import HELLO, STATUSES, Check, Target, Variant, request_of
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
from callwright.tolerant_json.codec import NotJsonError, decode, encode
from callwright.upstreams.simulated.faults import FAULTS as SIMULATED_FAULTS
from tests.conform.planted import FAULTS, OF_API, Fault, events_of, walk, with_events
from tests.support.page_gateway import free_port
from tests.support.servers import ClosedPort, Gateway, ModelServer, whole

MODEL = "simulated-native"
ALL = choose_checks(WIRES)
OF_MODELS = fault_checks((NATIVE, *DIALECTS))
WITH_FAULTS = choose_checks(WIRES, faults=dict.fromkeys(WIRES, OF_MODELS))
EACH = [(wire, check, variant) for wire, check in WITH_FAULTS for variant in check.variants]
KEY = "sk-anna-0123456789"
# Of checks with several requests: the number of the last one that is answered rightly.
STEPS_BEFORE = {"history.previous_response": 1, "history.conversation": 2}
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
        # After an answer with a fault the next request is another than was recorded.
        self._right = right = self._recorded.stored(url, body, headers) or self._right
        basis = (
            request_of(CHECKS[0], wire, given, self._recorded.target, variant)[1] for given in (HELLO, *check.given)
        )
        if body in [encode(sent) for sent in basis]:
            return right
        self._asked += 1
        if check.talk is not None and self._asked <= STEPS_BEFORE.get(check.name, 0):
            return right
        if isinstance(self._fault, dict):
            return self._recorded.reply(wire, CHECKS[0], self._fault, variant)
        return self._fault(wire, variant, right)


@pytest.mark.parametrize(("wire", "check", "variant"), EACH, ids=[f"{id_of(w, c)}-{v}" for w, c, v in EACH])
def test_a_check_finds_the_faults_planted_for_it(
    recorded: Recorded, wire: WireName, check: Check, variant: Variant
) -> None:
    for number, fault in enumerate((*FAULTS[check.name], *OF_API[wire].get(check.name, ()))):
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


def test_the_report_on_stdout_is_json_alone(gateway: Gateway) -> None:
    result = conform(gateway.url, "--api", "chat", "--only", "chat.stream.end", "--json", "-")
    assert json.loads(result.stdout)["counts"]["holds"] == 1
    assert "chat.stream.end" in result.stderr


OPENAI_ERROR = {"error": {"message": "no", "type": "invalid_request_error", "param": None, "code": None}}
ANTHROPIC_ERROR = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}


@pytest.mark.parametrize("models", [True, False], ids=["model", "no-model"])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (whole("<html><h1>Welcome</h1></html>", 200, "text/html"), "Is this the base URL"),
        (whole({"status": "ok"}), "Is this the base URL"),
        (whole(OPENAI_ERROR, 404), "Is this the base URL"),
        (whole(OPENAI_ERROR, 401), "with --key-env"),
        (whole(OPENAI_ERROR, 403), "with --key-env"),
        (whole(OPENAI_ERROR, 429), "Wait until its limit"),
        (whole({**ANTHROPIC_ERROR, **OPENAI_ERROR}, 400), "HTTP 400: no. Correct the model with --model"),
        (whole(OPENAI_ERROR, 500), "look into the server's log"),
        (whole(OPENAI_ERROR), 'HTTP 200: {"error"'),
    ],
    ids=["html", "other-json", "404", "401", "403", "429", "400", "500", "error-with-200"],
)
def test_a_server_that_answers_nothing_collects_no_verdict(answer: Any, expected: str, models: bool) -> None:
    server = ModelServer()
    server.names = ("m",)
    server.plays(*[answer] * 6)
    server.names = ("m",) if models else ()
    result = conform(server.url, *(() if models else ("--model", "m")))
    server.stop()
    assert (result.exit_code, expected in result.output) == (2, True), result.output
    assert "chat.answer" not in result.output


class Changed:
    """The answers of a right server, some of them changed."""

    def __init__(self, recorded: Recorded, change: Callable[[dict[str, Any], Reply], Reply]) -> None:
        self._recorded, self._change = recorded, change

    async def post(self, url: str, body: Mapping[str, Any] | bytes, headers: Mapping[str, str] | None = None) -> Reply:
        right = self._recorded.stored(url, body, headers) or Reply(400, {}, encode(OPENAI_ERROR))
        try:
            sent = decode(body if isinstance(body, bytes) else encode(body))
        except NotJsonError:
            return right
        return self._change(sent, right)

    def run(self, *ids: str, access: bool = True) -> dict[tuple[str, Variant], Found]:
        checks = choose_checks(WIRES, ids)
        target = replace(self._recorded.target, secrets=(KEY,))
        found = asyncio.run(run(target, checks, self, lambda _: None, Access(KEY, self) if access else None))
        return {(one.id, one.variant): one for one in found}


def test_a_server_that_never_streams_has_one_finding_for_each_api(recorded: Recorded) -> None:
    def change(sent: dict[str, Any], right: Reply) -> Reply:
        if not sent.get("stream") or right.status >= 400:
            return right
        answer: dict[str, Any] = {"id": "a", "choices": [], "content": [], "output": [], "usage": None}
        return Reply(200, {"content-type": "application/json"}, encode(answer))

    found = Changed(recorded, change).run()
    streamed = {id_: one for (id_, variant), one in found.items() if variant == "streamed"}
    assert {id_ for id_, one in streamed.items() if one.status == "does not"} == {f"{w}.answer.text" for w in WIRES}
    assert {one.status for one in streamed.values()} == {"does not", "not shown"}
    assert {one.expected for one in streamed.values() if one.status == "does not"} == {"a stream of events"}
    assert {one.status for (_, variant), one in found.items() if variant == "whole"} == {"holds"}


def test_a_stream_without_empty_lines_is_told_so(recorded: Recorded) -> None:
    def change(sent: dict[str, Any], right: Reply) -> Reply:
        return replace(right, body=right.body.replace(b"\n\n", b"\n")) if sent.get("stream") else right

    found = Changed(recorded, change).run("chat.answer.text")
    assert found["chat.answer.text", "streamed"].expected == "an empty line after each event"


def test_a_server_that_refuses_all_tools_is_not_praised_for_it(recorded: Recorded) -> None:
    """Its errors are those of a right server."""

    def change(sent: dict[str, Any], right: Reply) -> Reply:
        if "tools" not in sent and "tool_choice" not in sent:
            return right
        error = {"message": "no tools", "type": "invalid_request_error", "param": "tools", "code": None}
        return Reply(400, {"content-type": "application/json"}, encode({"type": "error", "error": error}))

    found = Changed(recorded, change).run()
    about_tools = {id_ for id_, _ in found if "tool" in id_ or "history.no_" in id_ or "history.repeated" in id_}
    held = {id_ for (id_, _), one in found.items() if one.status == "holds"}
    assert held & about_tools == {f"{wire}.history.no_tools" for wire in WIRES}
    assert {f"{wire}.errors.bad_json" for wire in WIRES} <= held


def test_pieces_of_parallel_calls_may_alternate(recorded: Recorded) -> None:
    def change(sent: dict[str, Any], right: Reply) -> Reply:
        if not sent.get("stream") or right.status >= 400:
            return right
        events = events_of(right)
        place = {"chat": _chat_index, "responses": _output_index}
        index = next((index for index in place.values() if any(index(event) is not None for event in events)), None)
        if index is None:
            return right
        spots = [number for number, event in enumerate(events) if index(event) is not None]
        queues = [[events[n] for n in spots if index(events[n]) == i] for i in {index(events[n]) for n in spots}]
        mixed = [event for row in zip_longest(*queues) for event in row if event is not None]
        for spot, event in zip(spots, mixed, strict=True):
            events[spot] = event
        numbered = [event for event in events if isinstance(event, dict) and "sequence_number" in event]
        for number, event in enumerate(numbered):
            event["sequence_number"] = number
        return with_events(right, events)

    found = Changed(recorded, change).run("chat.stream", "responses.stream", "chat.call", "responses.call")
    assert {one.status for one in found.values()} == {"holds"}, found


def _chat_index(event: Any) -> int | None:
    choices = event.get("choices") if isinstance(event, dict) else None
    pieces = choices[0]["delta"].get("tool_calls") if choices else None
    return pieces[0]["index"] if pieces else None


def _output_index(event: Any) -> int | None:
    return event.get("output_index") if isinstance(event, dict) else None


ODD: tuple[Any, ...] = (None, [], {}, 7, -1, 1.5, "x", "", True, [{}], {"a": [1]}, [["x"]])


@pytest.mark.parametrize("seed", range(12))
def test_no_answer_ends_a_run(recorded: Recorded, seed: int) -> None:
    """Fields of right answers are removed, or have a value of any type: a finding, and no more."""
    rng = random.Random(seed)

    def mutate(one: dict[str, Any]) -> None:
        for key in [*one]:
            if rng.random() < 0.05:
                one[key] = rng.choice(ODD)
            elif rng.random() < 0.01:
                del one[key]

    def change(sent: dict[str, Any], right: Reply) -> Reply:
        if right.status >= 400 or "Hello." in str(sent):
            return right
        events = events_of(right) if sent.get("stream") else [right.json]
        walk(events, mutate)
        return with_events(right, events) if sent.get("stream") else replace(right, body=encode(events[0]))

    found = Changed(recorded, change).run()
    assert "does not" in {one.status for one in found.values()}


def test_what_a_report_shows_has_no_key_and_what_is_judged_does(recorded: Recorded) -> None:
    """A key that is also a word of the answers changes no verdict; one in an answer is not shown, nor a part of it."""
    word = replace(recorded.target, secrets=("get_weather",))
    right = Changed(recorded, lambda _, reply: reply)
    found = asyncio.run(run(word, choose_checks(WIRES, ["chat.tool_choice"]), right, lambda _: None))
    assert {one.status for one in found} == {"holds"}

    def change(sent: dict[str, Any], reply: Reply) -> Reply:
        error = {**OPENAI_ERROR["error"], "message": f"{'x' * 130} {KEY} is wrong"}
        return reply if "tools" not in sent else Reply(400, {}, encode({"error": error}))

    results = Changed(recorded, change).run("chat.call")
    assert {one.status for one in results.values()} == {"does not"}
    assert all(KEY[:4] not in one.got and "xxx …" in one.got for one in results.values()), results


def test_errors_of_the_caller(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_KEY", raising=False)
    closed = ClosedPort()
    for arguments, expected, code in (
        ((), "Expected the URL of a server", 2),
        (("localhost:8000",), "expected a URL such as", 2),
        (("model.gguf",), "Serve it with `callwright serve model.gguf`", 2),
        ((gateway.url, "--api", "chat,soap"), "--api chat,soap: expected names out of chat, responses, messages", 2),
        ((gateway.url, "--only", "chat.nothing"), "--only chat.nothing: no check has such an id", 2),
        ((gateway.url, "--key-env", "NO_KEY"), "NO_KEY is not set", 2),
        ((gateway.url, "--badge", "x.png"), "--badge x.png: expected a name that ends in .svg", 2),
        ((closed.url, "--model", "m"), "Start the server, or correct the URL", 2),
        ((closed.url,), "Start the server, or correct the URL", 2),
    ):
        result = conform(*arguments)
        assert (result.exit_code, expected in result.output) == (code, True), result.output
        assert "--model" not in result.output, result.output
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
        # It has chat only, which must not stop the checks of chat.
        only = ("--only", "chat.faults", "--only", "responses.answer", "--json", str(report))
        result = conform(f"http://127.0.0.1:{port}/v1", "--model", MODEL, "--serve-model", str(port), *only)
        results = json.loads(report.read_text())["results"]
    assert {one["status"] for one in results if one["id"].startswith("responses.")} == {"not offered"}
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
