"""`callwright serve` without an upstream: the model servers of this machine, on ports that each test chooses."""

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from callwright.cli.local_servers import find_upstream
from callwright.errors import ConfigError
from callwright.gateway.config.config import ModelConfig
from tests.conftest import Served
from tests.support.fake_servers import PosingServer
from tests.support.page_gateway import free_port


class Machine:
    """Servers on ports of this machine."""

    def __init__(self, running: ExitStack) -> None:
        self._running = running

    def runs(self, *poses: str) -> dict[int, str]:
        """The port of each server that poses so, with its name."""
        servers = {pose: PosingServer(pose) for pose in poses}
        for server in servers.values():
            self._running.callback(server.stop)
        return {int(server.root.rpartition(":")[2]): pose for pose, server in servers.items()}


@pytest.fixture
def machine() -> Iterator[Machine]:
    with ExitStack() as running:
        yield Machine(running)


@pytest.mark.parametrize("pose", ["ollama", "lm studio", "vllm", "sglang"])
def test_the_only_server_is_found(machine: Machine, capsys: pytest.CaptureFixture[str], pose: str) -> None:
    ports = machine.runs(pose)
    (port,) = ports
    url = find_upstream(None, {free_port(): "closed", **ports})
    assert url == f"http://localhost:{port}"
    assert re.fullmatch(rf"Found .+ at {url}\n", capsys.readouterr().out)


def test_no_server_names_every_port(capsys: pytest.CaptureFixture[str]) -> None:
    ports = {free_port(): "Some", free_port(): "Other"}
    assert find_upstream(None, ports) is None
    shown = capsys.readouterr().out
    assert all(f"{name} ({port})" in shown for port, name in ports.items())
    assert "callwright serve http://" in shown


def test_several_servers_are_listed_with_their_commands(machine: Machine) -> None:
    ports = machine.runs("ollama", "vllm")
    with pytest.raises(ConfigError) as error:
        find_upstream(None, ports)
    listed = str(error.value)
    assert all(f"  callwright serve http://localhost:{port}\n" in listed for port in ports)
    assert all(word in listed for word in ("2 model servers", "Ollama 0.33.0: qwen3:8b", "vLLM 0.33.0: openai/"))


def test_a_model_chooses_among_several_servers(machine: Machine) -> None:
    ports = machine.runs("ollama", "vllm")
    urls = {pose: f"http://localhost:{port}" for port, pose in ports.items()}
    assert find_upstream("qwen3:8b", ports) == urls["ollama"]
    assert find_upstream("openai/gpt-oss-120b", ports) == urls["vllm"]
    for unclear in ("another", "unknown"):  # which both servers list, or none
        with pytest.raises(ConfigError):
            find_upstream(unclear, ports)


def test_what_is_no_model_server_is_reported_and_not_served(
    machine: Machine, serve: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = int(serve(ModelConfig(name="m", upstream="simulated")).rpartition(":")[2])
    assert find_upstream(None, {gateway: "vLLM"}) is None
    assert f"Not served: http://localhost:{gateway}. It is a Callwright gateway" in capsys.readouterr().out
    ports = machine.runs("ollama")
    assert find_upstream(None, {gateway: "vLLM", **ports}) == f"http://localhost:{next(iter(ports))}"
