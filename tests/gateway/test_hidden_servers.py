"""The address of a model's server is not for clients: errors of one that is down or lies, over all wires."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig
from tests.support.http_client import CHAT, request
from tests.support.messages_client import MESSAGES
from tests.support.outputs import QUESTION
from tests.support.responses_client import RESPONSES
from tests.support.servers import HOST, Answer, Gateway, ModelServer, whole
from tests.support.waiting import PATIENCE_S

USER, OPERATOR = "cw-user-" + "a" * 40, "cw-operator-" + "b" * 40
KEYS: Final = (
    KeyConfig(name="user", sha256=hash_of(USER)),
    KeyConfig(name="operator", sha256=hash_of(OPERATOR), operator=True),
)
# No server listens there.
DEAD: Final = f"http://{HOST}:1/v1"
BODIES: Final[dict[str, dict[str, Any]]] = {
    CHAT: {"messages": [QUESTION]},
    RESPONSES: {"input": "hi"},
    MESSAGES: {"messages": [QUESTION], "max_tokens": 50},
    "/v1/embeddings": {"input": "hi"},
}
FAILURES: Final = {
    "not found": whole("no", 404, "text/plain"),
    "an error": whole({"error": {"message": "boom"}}, 500),
    "no JSON": whole("<html>", 200, "text/html"),
    "a cut": Answer((b"data: {", "cut")),
}


@pytest.fixture(scope="module")
def gateways(_model_server: ModelServer) -> Iterator[dict[str, Gateway]]:
    """With keys and without."""
    models = (
        ModelConfig(name="dead", upstream=DEAD, mode="native"),
        ModelConfig(name="odd", upstream=_model_server.url, mode="native"),
    )
    found = {"keys": Gateway(Config(models=models, keys=KEYS)), "open": Gateway(Config(models=models))}
    yield found
    for gateway in found.values():
        gateway.stop()


def answer_of(gateway: Gateway, path: str, key: str, model: str, *, stream: bool) -> str:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    body = {"model": model, **BODIES[path], **({"stream": True} if stream else {})}
    return request(gateway.url + path, body, headers=headers).text


def websocket_answer(gateway: Gateway, key: str) -> str:
    """The event that ends a turn of the dead model."""
    connect = pytest.importorskip("websockets.sync.client").connect
    headers = {"authorization": f"Bearer {key}"} if key else {}
    with connect(f"ws://{HOST}:{gateway.port}{RESPONSES}", additional_headers=headers) as connection:
        connection.send(json.dumps({"type": "response.create", "model": "dead", "input": "hi"}))
        while True:
            text = str(connection.recv(PATIENCE_S))
            if json.loads(text)["type"] in ("response.failed", "error"):
                return text


WHO: Final = {"a user": ("keys", USER, False), "an operator": ("keys", OPERATOR, True), "no keys": ("open", "", True)}
each_client = pytest.mark.parametrize(("which", "key", "shows"), WHO.values(), ids=WHO)


@each_client
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", BODIES)
def test_a_server_that_is_down_is_named_to_operators(
    gateways: dict[str, Gateway], path: str, which: str, key: str, shows: bool, stream: bool, caplog: Any
) -> None:
    text = answer_of(gateways[which], path, key, "dead", stream=stream and path != "/v1/embeddings")
    assert "cannot be reached" in text
    assert (HOST in text) is shows
    assert ("port 1" in text) is shows
    assert ("'dead'" in text) is not shows
    assert (f"{DEAD} (unreachable)" in caplog.text) is not shows


@each_client
def test_a_turn_on_a_websocket_is_no_exception(gateways: dict[str, Gateway], which: str, key: str, shows: bool) -> None:
    text = websocket_answer(gateways[which], key)
    assert "cannot be reached" in text
    assert (HOST in text) is shows


@each_client
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
def test_other_failures_have_no_address_either(
    gateways: dict[str, Gateway],
    model: ModelServer,
    path: str,
    failure: Answer,
    which: str,
    key: str,
    shows: bool,
    stream: bool,
) -> None:
    model.plays(*[failure] * 4)
    text = answer_of(gateways[which], path, key, "odd", stream=stream)
    assert "error" in text
    assert (str(model.port) in text) is shows
