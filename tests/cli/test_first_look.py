"""The first look of a gateway at its upstreams: itself, down, without `/v1`."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fake_servers import PosingServer
from tests.support.processes import served
from tests.support.servers import HOST

pytestmark = pytest.mark.processes

SERVE = (str(Path(sys.executable).parent / "callwright"), "serve")


def free_port() -> int:
    with socket.create_server((HOST, 0)) as free:
        port: int = free.getsockname()[1]
        return port


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("host", [HOST, "localhost", "127.1"])
@pytest.mark.parametrize("form", ["--upstream", "URL"])
def test_a_gateway_that_is_its_own_upstream_ends(tmp_path: Path, form: str, host: str, workers: str) -> None:
    port = free_port()
    url = f"http://{host}:{port}/v1"
    upstream = (form, url) if form == "--upstream" else (url,)
    store = f"sqlite:///{tmp_path / 'store.db'}"
    ended = subprocess.run(
        [*SERVE, *upstream, "--port", str(port), "--workers", workers, "--store", store],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    assert f"The upstream {url} is this gateway itself" in ended.stderr
    assert "--port" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_another_gateway_is_an_upstream_as_any() -> None:
    with (
        served(*SERVE, "--port", "0", "--store", "none") as (first, _),
        served(*SERVE, "--upstream", f"{first}/v1", "--port", "0", "--store", "none") as (_, process),
    ):
        process.terminate()
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert b"itself" not in process.stderr.read()


def test_an_upstream_that_is_down_is_reported_and_again_when_it_answers() -> None:
    port = free_port()
    options = ("--upstream", f"http://{HOST}:{port}/v1", "--port", "0", "--store", "none")
    with served(*SERVE, *options) as (_, process):
        assert process.stderr is not None
        said = process.stderr.readline()
        assert f"upstream http://{HOST}:{port}/v1 is not reachable yet: ".encode() in said
        server = PosingServer("ollama", port)
        try:
            assert b"answers now" in process.stderr.readline()
        finally:
            server.stop()


def test_an_upstream_without_v1_is_reported_with_what_was_meant(tmp_path: Path) -> None:
    server = PosingServer("vllm")
    file = tmp_path / "callwright.toml"
    file.write_text(f'[server]\nport = 0\n[[models]]\nname = "*"\nmode = "native"\nupstream = "{server.root}"\n')
    try:
        with served(*SERVE, "--config", str(file)) as (_, process):
            assert process.stderr is not None
            said = process.stderr.readline().decode()
            assert "is not reachable yet: it has no /models" in said
            assert f"{server.root}/v1" in said
    finally:
        server.stop()
