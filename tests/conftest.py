"""The servers that tests share: each gateway is started once for its configuration and stopped at the end."""

import gc
import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec
import pytest

from callwright.gateway.config.config import Config, KeyConfig, McpConfig, ModelConfig, SearchConfig, ServerConfig
from callwright.gateway.config.hooks import HookConfig
from callwright.settings import bounds
from tests.support import hook_functions
from tests.support.connection_server import Answering, ConnectionServer
from tests.support.servers import ClosedPort, Gateway, ModelServer

KEY = "sk-upstream-7f3"
Served: TypeAlias = Callable[..., str]
Starts: TypeAlias = Callable[[Config], Gateway]
Hooked: TypeAlias = Callable[..., Gateway]
Connected: TypeAlias = Callable[[Answering], ConnectionServer]


@pytest.fixture(scope="session")
def _model_server() -> Iterator[ModelServer]:
    server = ModelServer()
    yield server
    server.stop()
    gc.collect()  # what was left open warns now, and warnings are errors


@pytest.fixture(scope="session")
def _gateways(_model_server: ModelServer) -> Iterator[dict[bytes, Gateway]]:
    started: dict[bytes, Gateway] = {}
    yield started
    for gateway in started.values():
        gateway.ask_to_stop()  # all of them together: each takes a while
    for gateway in started.values():
        gateway.stop()
    gc.collect()


@pytest.fixture(scope="session")
def closed_port() -> Iterator[str]:
    """The base URL of a server that refuses connections."""
    port = ClosedPort()
    yield port.url
    port.close()


@pytest.fixture
def connected() -> Iterator[Connected]:
    """Starts a server that answers connections as a function says."""
    started: list[ConnectionServer] = []

    def start(answering: Answering) -> ConnectionServer:
        started.append(ConnectionServer(answering))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def model(_model_server: ModelServer) -> ModelServer:
    """The scripted model server. It has nothing to say yet."""
    _model_server.plays()
    return _model_server


@pytest.fixture
def serve(
    _gateways: dict[bytes, Gateway], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    """Starts a gateway, or finds it when one of this configuration runs, and answers its URL. Until the test ends it
    sends heartbeats every `heartbeat_s`, if that is given.

    Nothing that the test does may make it fail: what it logs as an error, or asyncio does, fails the test.
    """

    def started(
        *models: ModelConfig,
        mcp: tuple[McpConfig, ...] = (),
        keys: tuple[KeyConfig, ...] = (),
        search: SearchConfig | None = None,
        heartbeat_s: float | None = None,
        **server: Any,
    ) -> str:
        if heartbeat_s is not None:
            monkeypatch.setattr(bounds, "HEARTBEAT_S", heartbeat_s)
        config = Config(server=ServerConfig(**server), models=models, mcp=mcp, keys=keys, search=search)
        key = msgspec.json.encode(config)
        if key not in _gateways:
            _gateways[key] = Gateway(config)
        return _gateways[key].url

    yield started
    assert not [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR]


@pytest.fixture
def start(caplog: pytest.LogCaptureFixture) -> Iterator[Starts]:
    """Starts gateways for one test, which log no error."""
    started: list[Gateway] = []

    def begin(config: Config) -> Gateway:
        started.append(Gateway(config))
        return started[-1]

    yield begin
    for gateway in started:
        gateway.stop()
    assert not [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR]


@pytest.fixture
def hooked(start: Starts, model: ModelServer) -> Iterator[Hooked]:
    """Starts gateways with these hooks before the scripted model server, see `scripted_models`."""
    hook_functions.GO_ON.clear()
    hook_functions.ASKED.clear()

    def begin(*hooks: HookConfig, retries: int = 0, **more: Any) -> Gateway:
        return start(Config(models=scripted_models(model.url, retries), hooks=hooks, **more))

    yield begin
    hook_functions.GO_ON.set()


@pytest.fixture
def gateway(serve: Served, model: ModelServer) -> str:
    """A gateway before the scripted model server; `scripted_models` says under which names it asks it how."""
    return serve(*scripted_models(model.url))


def scripted_models(url: str, retries: int = 0) -> tuple[ModelConfig, ...]:
    """The model server, asked in every way: `native`, `prompt-D`, and `raw-D-S` for each dialect D and server S."""
    native = ModelConfig(name="native", upstream=url, model="served/native")
    prompts = [
        ModelConfig(name=f"prompt-{dialect}", upstream=url, model="served/prompt", mode="prompt", dialect=dialect)
        for dialect in ("json", "hermes", "harmony")
    ]
    raws = [
        ModelConfig(
            name=f"raw-{dialect}-{server}", upstream=url, model="served/raw", mode="raw", dialect=dialect, server=server
        )
        for dialect in ("harmony", "hermes", "json")
        for server in ("openai", "vllm", "sglang", "llamacpp")
    ]
    return tuple(msgspec.structs.replace(model, retries=retries) for model in (native, *prompts, *raws))


@pytest.fixture
def simulated(serve: Served) -> str:
    """A gateway that serves the simulated model in each of `WAYS`."""
    return serve(*(ModelConfig(name=way, upstream="simulated", **how) for way, how in WAYS.items()))


WAYS: dict[str, dict[str, Any]] = {
    "native": {},
    "prompt-json": {"mode": "prompt", "dialect": "json"},
    "prompt-hermes": {"mode": "prompt", "dialect": "hermes"},
    "prompt-harmony": {"mode": "prompt", "dialect": "harmony"},
    "raw-harmony": {"mode": "raw", "dialect": "harmony"},
    "raw-hermes": {"mode": "raw", "dialect": "hermes"},
}
