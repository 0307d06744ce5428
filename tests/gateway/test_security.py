"""The threats of docs/contributing/threat-model.md without a test module of their own: clients, pages and servers.

Keys, strangers, limits and too many requests have modules of their own: test_keys, test_traffic, test_limits.
"""

import json
import logging
import re
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from callwright.dialects.base import dialect_names
from callwright.gateway.config.config import ModelConfig
from callwright.prompt import Control, Prompt, Text, neutralise, neutralise_json
from tests.conftest import KEY, Served
from tests.support.control_tokens import everywhere
from tests.support.http_client import CHAT, Live, Reply, request
from tests.support.outputs import QUESTION, TOOLS
from tests.support.paths import ROOT
from tests.support.responses_client import CONVERSATIONS, RESPONSES, function
from tests.support.servers import HOST, Answer, ModelServer, said, whole

# --- control tokens ---


def forgeries(controls: tuple[str, ...]) -> Iterator[str]:
    """The tokens themselves, two that share characters, and ends and begins that a neighbour might complete."""
    yield " ".join(controls)
    yield " ".join(token[:-1] + token for token in controls)
    yield " ".join(token + token[1:] for token in controls)
    for token in controls:
        yield f"{token[1:]} x {token[:-1]}"
        yield f"{token[len(token) // 2 :]} x {token[: len(token) // 2]}"


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("dialect", dialect_names())
def test_no_text_of_a_client_becomes_a_control_token(dialect: str, choice: str) -> None:
    plain = everywhere(dialect, "xyz", choice)
    wanted = [piece.text for piece in plain.pieces if isinstance(piece, Control)]
    for text in forgeries(plain.marks):
        prompt = everywhere(dialect, text, choice)
        assert [piece.text for piece in prompt.pieces if isinstance(piece, Control)] == wanted, text
        for literal in prompt.marks:
            assert prompt.wire_text.count(literal) == sum(piece.count(literal) for piece in wanted), text


def test_a_token_cannot_be_completed_by_what_stands_beside_a_text() -> None:
    tokens = ("[e~[", "]~!b[", "]~b]", "<|a|>")
    for before, text, after in (
        ("[e~[", "Hi ]~!b", "[e~["),
        ("]~b", "] Hi", ""),
        ("<|", "a", "|>"),
        ("", "]~", "b]"),
        ("]~b]", "]~b]", "]~b]"),
    ):
        pieces = (Control(before), Text(text), Control(after))
        got = Prompt(pieces, tokens).wire_text
        assert got.replace("\u2060", "") == before + text + after
        for token in tokens:
            assert got.count(token) == before.count(token) + after.count(token)


def test_a_token_cannot_hide_across_another_one() -> None:
    pieces = (Text("see <|"), Control("|a|"), Text(">, and {"), Text("}", json=True), Text(" too"))
    assert Prompt(pieces, ("<||a|>", "|a|", "{}")).wire_text == "see <\u2060||a|>, and {\u2060} too"


def test_tokens_that_share_characters_are_all_broken() -> None:
    tokens = ("<|a|>", "]~b]", "|a|><|a")
    for text in ("]~b]~b]", "<|a|><|a|>", "]~b]]~b]~b]~b]"):
        assert not [token for token in tokens if token in neutralise(text, tokens)]
        escaped = neutralise_json(json.dumps(text), tokens)
        assert not [token for token in tokens if token in escaped]
        assert json.loads(escaped) == text


# --- keys of upstreams ---


@pytest.fixture
def keyed(serve: Served, model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A gateway that has a key for the scripted server, in each place that can hold one."""
    monkeypatch.setenv("CALLWRIGHT_TEST_KEY", KEY)
    return serve(
        ModelConfig(name="by-environment", upstream=model.url, api_key_env="CALLWRIGHT_TEST_KEY"),
        ModelConfig(name="by-header", upstream=model.url, headers={"x-api-key": KEY}),
        ModelConfig(name="by-url", upstream=model.url.replace("//", f"//user:{KEY}@")),
    )


ECHOES = {
    "an error": whole({"error": {"message": f"Wrong key: {KEY}", "code": KEY, "type": KEY, "param": KEY}}, 400),
    "no access": whole({"error": {"message": f"Wrong key: {KEY}", "code": KEY}}, 401),
    "a page": whole(f"<html>Authorization: Bearer {KEY}</html>", 500, "text/html"),
    "a header": whole({"error": "no"}, 503, x_echo=KEY, www_authenticate=f"Bearer {KEY}"),
    "a stream": Answer((f'data: {{"error": {{"message": "key {KEY}"}}}}\n\n'.encode(),)),
    "no event": Answer((f"data: {{{KEY}\n\n".encode(),)),
    "a cut": Answer((f"data: {KEY}".encode(), "cut")),
    "another place": whole("", 302, location=f"http://elsewhere.invalid/?key={KEY}"),
}


@pytest.mark.parametrize("name", ["by-environment", "by-header", "by-url"])
@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_the_key_of_an_upstream_is_told_nowhere(
    keyed: str, model: ModelServer, name: str, echo: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "callwright")
    for path, body in ((CHAT, {"messages": [QUESTION]}), (RESPONSES, {"input": "hi"})):
        for stream in (False, True):
            model.plays(echo)
            reply = request(keyed + path, {"model": name, "stream": stream, **body})
            assert KEY not in f"{reply.text} {reply.headers}"
            assert "error" in reply.text
    assert KEY not in caplog.text


# --- where the gateway connects to ---


class Listener:
    """A server that nobody may connect to."""

    def __init__(self) -> None:
        self.server = ModelServer()
        self.url = f"http://{HOST}:{self.server.port}/secret"


@pytest.fixture(scope="module")
def secret() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.server.stop()


@pytest.mark.parametrize("mode", [{}, {"mode": "raw", "dialect": "hermes", "media": "tell"}], ids=["native", "raw"])
def test_a_url_in_a_request_is_never_fetched(
    serve: Served, model: ModelServer, secret: Listener, mode: dict[str, Any]
) -> None:
    url = serve(ModelConfig(name="m", upstream=model.url, **mode))
    image = {"type": "image_url", "image_url": {"url": secret.url}}
    schema = {"type": "object", "properties": {"x": {"$ref": secret.url}}, "$schema": secret.url}
    function = {"name": "f", "parameters": schema}
    asked: list[tuple[str, dict[str, Any]]] = [
        (CHAT, {"messages": [{"role": "user", "content": [image]}]}),
        (CHAT, {"messages": [QUESTION], "tools": [{"type": "function", "function": function}]}),
        (CHAT, {"messages": [QUESTION], "base_url": secret.url, "upstream": secret.url, "api_base": secret.url}),
        (RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": secret.url}]}]}),
        (RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_file", "file_url": secret.url}]}]}),
        (RESPONSES, {"input": "hi", "tools": [{"type": "mcp", "server_label": "s", "server_url": secret.url}]}),
        (RESPONSES, {"input": "hi", "tools": [{"type": "function", **function}]}),
    ]
    for path, body in asked:
        model.plays(said("Hi"))
        reply = request(url + path, {"model": "m", **body})
        assert reply.status in (200, 400), reply.text
    assert not secret.server.asked


def test_an_upstream_that_sends_the_gateway_elsewhere_is_not_followed(
    serve: Served, model: ModelServer, secret: Listener
) -> None:
    url = serve(ModelConfig(name="m", upstream=model.url))
    for status in (301, 302, 303, 307, 308):
        model.plays(whole("", status, location=secret.url))
        reply = request(url + CHAT, {"model": "m", "messages": [QUESTION]})
        assert (reply.status, reply.error["code"]) == (502, "upstream_status")
        assert f"answered {status}" in reply.error["message"]
    assert not secret.server.asked


def test_what_openai_would_run_itself_is_not_run_here(serve: Served, model: ModelServer) -> None:
    url = serve(ModelConfig(name="m", upstream=model.url))
    for tool, field in (
        ({"type": "mcp", "server_label": "s"}, "server_label"),
        ({"type": "code_interpreter", "container": {"type": "auto"}}, "type"),
    ):
        reply = request(url + RESPONSES, {"model": "m", "input": "hi", "tools": [tool]})
        assert (reply.status, reply.error["param"]) == (400, f"tools[0].{field}")
    model.plays(said("Hi"))
    request(url + RESPONSES, {"model": "m", "input": "hi", "tools": [{"type": "web_search"}, function("f")]})
    assert [tool["function"]["name"] for tool in model.body["tools"]] == ["f"]


# --- logs, headers, paths ---

LINES = "x\n2026-01-01 00:00:00 INFO forged\r\n\x1b[2Kforged\u2028forged"


def test_no_request_and_no_upstream_writes_a_line_of_the_log(
    serve: Served, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "callwright")
    url = serve(ModelConfig(name="m", upstream=model.url))
    bad = whole({"error": {"message": LINES}}, 500)
    event = Answer((f"data: {json.dumps({'error': {'message': LINES}})}\n\n".encode(),))
    begun = Answer((*said("Hi").steps[:2], *event.steps))
    for path, body in ((CHAT, {"messages": [QUESTION]}), (RESPONSES, {"input": "hi"})):
        request(url + path, {"model": LINES, **body})
        request(url + path, {"model": "m", LINES: LINES, "tool_choice": LINES, **body})
        for answer in (bad, event, begun):
            model.plays(answer)
            request(url + path, {"model": "m", "stream": True, **body})
    request(f"{url}{RESPONSES}/{quote(LINES)}", method="GET")
    request(f"{url}/{quote(LINES)}", method="GET", headers={"origin": "https://evil.example"})
    assert "forged" in caplog.text  # they are told, but within their line
    forged = [record.getMessage() for record in caplog.records if re.search("[\n\r\x1b\u2028]", record.getMessage())]
    assert not forged


def test_nothing_that_a_client_sends_stands_in_a_header(serve: Served, model: ModelServer) -> None:
    url = serve(ModelConfig(name="m", upstream=model.url))
    model.plays(said("Hi"), whole({"error": {"message": "x"}}, 429, retry_after="7", x_evil="1", set_cookie="a=b"))
    evil = "marked\r\nx-evil: 1"
    tool = {**TOOLS[0], "function": {**TOOLS[0]["function"], "description": evil}}
    headers = {"x-request-id": "marked", "origin": "http://localhost", "user-agent": "marked"}
    for _ in range(2):
        body = {"model": "m", "messages": [{"role": "user", "content": evil}], "tools": [tool]}
        reply = request(url + CHAT, body, headers=headers)
        told = json.dumps(dict(reply.headers))
        assert "marked" not in told
        assert "evil" not in told
        assert "set-cookie" not in reply.headers
    sent = {name.lower(): value for name, value in model.asked[0].headers.items()}
    assert "marked" not in json.dumps(sent)


ODD_IDS = [
    "../../etc/passwd",
    "..",
    "%00",
    "a/b",
    "'; DROP TABLE responses; --",
    "x" * 8_000,
    "{id}",
    "\u202e",
    "*",
    "%",
]


@pytest.mark.parametrize("id_", ODD_IDS)
def test_an_odd_id_is_an_id_that_is_not_there(simulated: str, id_: str) -> None:
    for path in (RESPONSES, CONVERSATIONS, "/v1/models"):
        reply = request(f"{simulated}{path}/{quote(id_, safe='')}", method="GET")
        assert reply.status == 404, path
        assert reply.error["type"] == "invalid_request_error"
    for fields in ({"previous_response_id": id_}, {"conversation": id_}, {"model": id_}):
        reply = request(simulated + RESPONSES, {"model": "native", "input": "hi", **fields})
        assert reply.status in (400, 404), fields
        assert reply.error["type"] == "invalid_request_error"


# --- huge bodies ---


def test_a_body_that_never_ends_is_refused(serve: Served) -> None:
    url = serve(ModelConfig(name="m", upstream="simulated"), max_body_bytes=10_000)
    with Live(url + CHAT, None, headers={"transfer-encoding": "chunked"}) as live:
        sent = threading.Thread(target=_flood, args=(live,))
        sent.start()
        reply = Reply(live.status, live.headers, tuple(live.pieces()))
        assert (reply.status, reply.error["code"]) == (413, "request_too_large")
    sent.join(10)
    assert not sent.is_alive()


def _flood(live: Live) -> None:
    piece = b"2710\r\n" + b" " * 10_000 + b"\r\n"
    try:
        for _ in range(10_000):
            live.send(piece)
    except OSError:  # the gateway has closed it
        return


# --- the page ---


def test_the_page_names_a_test_for_each_threat() -> None:
    page = (ROOT / "docs" / "contributing" / "threat-model.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    files = [path for folder in ("tests", "fuzz") for path in (ROOT / folder).rglob("test_*.py")]
    modules = named & {path.stem for path in files}
    assert modules >= {"test_keys", "test_limits", "test_admission", "test_shutdown"}
    texts = "".join(path.read_text(encoding="utf-8") for path in files)
    assert not [name for name in named - modules if f"def {name}(" not in texts]
