"""Names of headers count in any spelling, over HTTP and WebSocket, by sockets: libraries would choose one."""

import base64
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from callwright.gateway.access.keys import hash_of
from callwright.gateway.access.middleware import Access
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig
from callwright.gateway.request_context import RequestContext
from tests.support.responses_client import RESPONSES
from tests.support.servers import HOST, Gateway
from tests.support.waiting import PATIENCE_S

KEY = "cw-anna-" + "a" * 40
MODELS = (ModelConfig(name="m", upstream="simulated"),)
TRACE = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"

each_spelling = pytest.mark.parametrize("spelt", [str.lower, str.title, str.upper], ids=["lower", "title", "upper"])
each_wire = pytest.mark.parametrize("wire", ["http", "websocket"])
Spelt = Callable[[str], str]
# What a request without any of them is answered.
ALLOWED = {"http": 200, "websocket": 101}


@pytest.fixture(scope="module")
def open_gateway() -> Iterator[Gateway]:
    gateway = Gateway(Config(models=MODELS))
    yield gateway
    gateway.stop()


@pytest.fixture(scope="module")
def keyed_gateway() -> Iterator[Gateway]:
    gateway = Gateway(Config(models=MODELS, keys=(KeyConfig(name="anna", sha256=hash_of(KEY)),)))
    yield gateway
    gateway.stop()


def status(gateway: Gateway, wire: str, headers: dict[str, str], spelt: Spelt) -> int:
    """The status of an answer. `spelt` writes the names."""
    path, more = "/v1/models", {"connection": "close"}
    if wire == "websocket":
        key = base64.b64encode(b"a" * 16).decode()
        more = {
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": key,
        }
        path = RESPONSES
    fields = {"host": f"{HOST}:{gateway.port}", **more, **headers}
    lines = [f"GET {path} HTTP/1.1", *(f"{spelt(name)}: {value}" for name, value in fields.items()), "", ""]
    with closing(socket.create_connection((HOST, gateway.port), timeout=PATIENCE_S)) as client:
        client.sendall("\r\n".join(lines).encode())
        with client.makefile("rb") as came:
            return int(came.readline().split()[1])


STRANGERS = {
    "no header": ({}, None),
    "own origin": ({"origin": "http://localhost"}, None),
    "foreign origin": ({"origin": "https://evil.example"}, 403),
    "foreign host": ({"host": "evil.example"}, 403),
}


@each_spelling
@each_wire
@pytest.mark.parametrize(("headers", "refused"), STRANGERS.values(), ids=STRANGERS)
def test_a_foreign_page_is_refused(
    open_gateway: Gateway, wire: str, headers: dict[str, str], refused: int | None, spelt: Spelt
) -> None:
    assert status(open_gateway, wire, headers, spelt) == (refused or ALLOWED[wire])


KEYS = {
    "no header": ({}, 401),
    "bearer": ({"authorization": f"Bearer {KEY}"}, None),
    "api key": ({"x-api-key": KEY}, None),
    "wrong bearer": ({"authorization": "Bearer wrong"}, 401),
    "wrong api key": ({"x-api-key": "wrong"}, 401),
}


@each_spelling
@each_wire
@pytest.mark.parametrize(("headers", "refused"), KEYS.values(), ids=KEYS)
def test_a_key_is_read(
    keyed_gateway: Gateway, wire: str, headers: dict[str, str], refused: int | None, spelt: Spelt
) -> None:
    assert status(keyed_gateway, wire, headers, spelt) == (refused or ALLOWED[wire])


READ = {
    "x-client-request-id": "mine",
    "x-request-id": "req_mine",
    "x-callwright-fallback": "off",
    "traceparent": TRACE,
    "tracestate": "a=b",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "beta",
    "user-agent": "test",
    "cookie": "a=b",
    "accept": "*/*",
    "x-forwarded-for": "192.0.2.1",
    "x-forwarded-proto": "https",
    "x-claude-code-session-id": "session",
}


@each_spelling
@each_wire
def test_all_names_are_in_lower_case_for_the_application(
    open_gateway: Gateway, wire: str, spelt: Spelt, monkeypatch: pytest.MonkeyPatch
) -> None:
    scopes: list[Any] = []
    who_asks = Access.who_asks

    def noted(access: Access, scope: Any) -> Any:
        scopes.append(scope)
        return who_asks(access, scope)

    monkeypatch.setattr(Access, "who_asks", noted)
    assert status(open_gateway, wire, READ, spelt) == ALLOWED[wire]
    (scope,) = scopes
    found = {name.decode(): value.decode() for name, value in scope["headers"]}
    assert len(found) == len(scope["headers"])
    assert found.items() >= READ.items()
    assert scope["client"][0] == "192.0.2.1"  # the loopback is a proxy that is trusted


@each_spelling
@each_wire
def test_the_context_of_a_refused_request_has_its_headers(
    open_gateway: Gateway, wire: str, spelt: Spelt, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[RequestContext] = []
    monkeypatch.setattr(RequestContext, "failed", lambda context, _: failed.append(context))
    assert status(open_gateway, wire, {**READ, "origin": "https://evil.example"}, spelt) == 403
    (context,) = failed
    assert (context.api, context.client_id, context.fallback_wish) == ("anthropic", "mine", "off")
    assert context.carrier == {"traceparent": TRACE, "tracestate": "a=b"}
