"""What the gateway logs: a line for each request, with its id, and nothing of what was said."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest

from callwright.gateway.config.config import Config, ModelConfig
from callwright.gateway.observability.logs import JsonFormatter, Line, _LoopHandler, _PlainFormatter, log_request
from callwright.gateway.request_context import RequestContext, Turns
from tests.conftest import KEY
from tests.support.http_client import CHAT, Reply, request
from tests.support.outputs import TOOLS, block
from tests.support.responses_client import RESPONSES
from tests.support.servers import Gateway, ModelServer, call_deltas, chat, completion, said, whole
from tests.support.waiting import PATIENCE_S

SECRET = "zebra-4711"
QUESTION = {"role": "user", "content": f"What is the weather in {SECRET}?"}
ARGUMENTS = json.dumps({"city": SECRET})


@pytest.fixture
def gateway(model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("UPSTREAM_KEY", KEY)
    models = (
        ModelConfig(name="native", upstream=model.url, api_key_env="UPSTREAM_KEY", retries=1),
        ModelConfig(name="hermes", upstream=model.url, mode="raw", dialect="hermes", retries=1),
    )
    gateway = Gateway(Config(models=models))
    yield gateway.url
    gateway.stop()


class Lines(logging.Handler):
    """What would be written as JSON, from `info` on."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(JsonFormatter())
        self.texts: list[str] = []
        self._written = threading.Condition()

    def emit(self, record: logging.LogRecord) -> None:
        with self._written:
            self.texts.append(self.format(record))
            self._written.notify()

    def _requests(self) -> list[dict[str, Any]]:
        told = [json.loads(text) for text in self.texts]
        return [line for line in told if line["logger"] == "callwright.access"]

    def requests(self, number: int = 1) -> list[dict[str, Any]]:
        """The lines of so many requests: one is written when its answer is over, which the client may hear before."""
        with self._written:
            assert self._written.wait_for(lambda: len(self._requests()) == number, PATIENCE_S), self.texts
            return self._requests()


@pytest.fixture
def lines() -> Iterator[Lines]:
    lines = Lines()
    root = logging.getLogger("callwright")
    before = root.level
    root.setLevel(logging.DEBUG)
    root.addHandler(lines)
    yield lines
    root.removeHandler(lines)
    root.setLevel(before)


def asked(url: str, model: str = "native", headers: dict[str, str] | None = None, **fields: Any) -> Reply:
    body = {"model": model, "messages": [QUESTION], "tools": TOOLS, **fields}
    return request(url + CHAT, body, headers={"authorization": f"Bearer {KEY}", **(headers or {})})


def test_a_request_is_one_line_that_says_how_it_went(gateway: str, model: ModelServer, lines: Lines) -> None:
    model.plays(completion(block("get_weather", '{"town": 7}')), completion(block("get_weather", "{'city': 'Rome'}")))
    reply = asked(gateway, "hermes")
    assert reply.status == 200
    (line,) = lines.requests()
    assert line["request_id"] == reply.headers["x-request-id"]
    assert (line["method"], line["path"], line["model"], line["status"]) == ("POST", CHAT, "hermes", 200)
    assert (line["input_tokens"], line["output_tokens"]) == (22, 14)
    assert (line["calls"], line["retries"]) == (1, 1)
    assert line["problems"] == {"call_retried": 1, "json_repaired": 1}
    assert 0 < line["first_byte_ms"] <= line["ms"]
    assert "client_left" not in line


@pytest.mark.parametrize("given", ["thread-7", "a" * 512, "x=1;y"])
def test_the_clients_own_id_is_carried_along(gateway: str, model: ModelServer, lines: Lines, given: str) -> None:
    model.plays(said("Hi"))
    reply = asked(gateway, headers={"x-client-request-id": given}, stream=True)
    assert reply.headers["x-client-request-id"] == given
    assert lines.requests()[0]["client_request_id"] == given


@pytest.mark.parametrize("given", ["", "a" * 513, "two words", "zwölf"])
def test_an_id_that_is_none_is_left_out(gateway: str, model: ModelServer, lines: Lines, given: str) -> None:
    model.plays(said("Hi"))
    reply = asked(gateway, headers={"x-client-request-id": given})
    assert "x-client-request-id" not in reply.headers
    assert "client_request_id" not in lines.requests()[0]


def test_a_path_cannot_forge_a_line(gateway: str, lines: Lines) -> None:
    request(f"{gateway}/v1/x%0a%0dstatus=200%20{'y' * 500}", method="GET")
    (line,) = lines.requests()
    assert line["path"].startswith("/v1/x\\n\\rstatus=200%20yyy")
    assert len(line["path"]) == 200
    assert line["status"] == 404


def test_what_machines_ask_for_all_the_time_is_no_line(gateway: str, lines: Lines) -> None:
    request(f"{gateway}/healthz", method="GET")
    request(f"{gateway}/metrics", method="GET")
    assert not lines.requests(0)
    request(f"{gateway}/v1/models", method="GET")
    lines.requests(1)


def test_a_path_that_is_none_is_no_failed_request(gateway: str, lines: Lines) -> None:
    for method in ("GET", "PUT"):
        request(gateway + CHAT, method=method)
    assert not [line["error"] for line in lines.requests(2) if "error" in line]


def test_every_line_is_written_in_order_and_one_that_cannot_be_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no words")

    written = StringIO()
    log = logging.Logger("lines")  # apart from all others
    log.addHandler(_LoopHandler(written, _PlainFormatter("%(message)s")))

    async def in_loop() -> None:
        log.info("one")
        await asyncio.to_thread(log.info, "two")
        log.info(Broken())
        log.info("three")
        log.warning("four")
        assert written.getvalue().endswith("three\nfour\n"), "a warning goes out at once"
        log.info("five")

    asyncio.run(in_loop())
    log.info("six")
    assert written.getvalue().split() == ["one", "two", "three", "four", "five", "six"]
    assert "RuntimeError: no words" in capsys.readouterr().err


# Requests of which a line says what it says of none or few.
TOLD: dict[str, dict[str, Any]] = {
    "plain": {"model": "m", "status": 200, "is_whole": True, "turns": Turns(1, (9, 4, 0), 2), "first_s": 2.5},
    "odd words": {"model": 'a b="c"', "client_id": "x=1", "caller": "Zoë\n", "status": 200, "is_whole": True},
    "not a character": {"model": "\ud800", "status": 404, "is_whole": True, "error": "model_not_found"},
    "much went wrong": {
        "turns": Turns(1, problems={"json_repaired": 2, "call_retried": 1}, retries=1, ambiguous={"shown": 1}),
        "reasoning_put_back": 3,
        "response_id": "resp_1",
        "status": 499,
        "error": "stall",
    },
}


@pytest.mark.parametrize("case", TOLD)
@pytest.mark.parametrize("format_", [JsonFormatter(), _PlainFormatter("%(asctime)s %(levelname)s %(message)s")])
def test_a_line_is_the_same_with_a_record_and_without(
    monkeypatch: pytest.MonkeyPatch, format_: JsonFormatter | _PlainFormatter, case: str
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_777_777_777.03125)
    monkeypatch.setattr("time.time_ns", lambda: 1_777_777_777_031_250_000)  # as logging asks since Python 3.13
    monkeypatch.setattr(logging.getLogger("callwright.access"), "level", logging.INFO)
    context = RequestContext(id="req_1", method="POST", path=CHAT, begun_s=1.0, ended_s=3.125, **TOLD[case])
    written = []
    for more in ([], [logging.NullHandler()]):  # who listens beside it gets a record
        stream = StringIO()
        monkeypatch.setattr(logging.root, "handlers", [_LoopHandler(stream, format_), *more])
        log_request(context)
        written.append(stream.getvalue())
    assert written[0] == written[1]
    assert "req_1" in written[0]
    assert written[0].count("\n") == 1


@pytest.mark.parametrize(
    ("cost", "shown"), [(70, "0.000070"), (1, "0.000001"), (0, "0.000000"), (252, "0.000252"), (1_500_000, "1.5")]
)
def test_a_cost_is_a_decimal_number(cost: int, shown: str) -> None:
    assert str(Line(Turns(cost=cost).logged())) == f"cost={shown}"


def test_a_line_that_cannot_be_written_is_told_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = StringIO()
    stream.close()
    monkeypatch.setattr(logging.root, "handlers", [_LoopHandler(stream, _PlainFormatter("%(message)s"))])
    monkeypatch.setattr(logging.getLogger("callwright.access"), "level", logging.INFO)
    log_request(RequestContext(id="req_1", method="POST", path=CHAT, status=200, is_whole=True))
    assert "closed file" in capsys.readouterr().err


# What goes wrong repeats words of the request, of the model or of its server in the answer.
FAILURES: dict[str, dict[str, Any]] = {
    "refused": {"tool_choice": {"type": "function", "function": {"name": SECRET}}},
    "unknown model": {"model": SECRET},
    "server error": {"plays": [whole({"error": {"message": f"cannot do {SECRET}"}}, 500)]},
    "server refuses": {"plays": [whole({"error": {"message": f"cannot do {SECRET}"}}, 400)]},
    "no events": {"plays": [whole(f"<html>{SECRET}</html>", kind="text/html")]},
    "unmet": {"plays": [said(SECRET)] * 2, "tool_choice": "required"},
    "wrong arguments": {"plays": [chat(*call_deltas("get_weather", json.dumps({"town": SECRET})))] * 2},
    "printed": {"plays": [said(block("get_weather", ARGUMENTS))]},
    "right": {"plays": [chat(*call_deltas("get_weather", ARGUMENTS))]},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("case", FAILURES)
def test_no_line_says_what_was_said(gateway: str, model: ModelServer, lines: Lines, case: str, stream: bool) -> None:
    fields = dict(FAILURES[case])
    model.plays(*fields.pop("plays", ()))
    name = fields.pop("model", "native")
    asked(gateway, name, stream=stream, **fields)
    model.plays(*FAILURES[case].get("plays", ()))
    request(gateway + RESPONSES, {"model": name, "input": QUESTION["content"], "stream": stream})
    lines.requests(2)
    told = "\n".join(lines.texts)
    assert SECRET not in told
    assert KEY not in told
