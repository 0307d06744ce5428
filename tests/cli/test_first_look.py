"""The first look of a gateway at its upstreams: itself, down, at another URL, without the model."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from callwright.cli.first_look import FirstLook
from callwright.gateway.config.config import Config, ModelConfig
from tests.support.fake_servers import PosingServer, models_of
from tests.support.processes import served
from tests.support.servers import HOST, Answer, whole

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
        assert f"upstream http://{HOST}:{port}/v1 cannot be used yet: ".encode() in said
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
            assert "cannot be used yet: it answers at" in said
            assert f"{server.root}/v1" in said
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("page", "name", "parts"),
    [
        (
            models_of("qwen3:8b", "another"),
            "qwen3:4b",
            ("does not list the model qwen3:4b", "Did you mean 'qwen3:8b'?"),
        ),
        (models_of("qwen3:8b", "another"), "m", ("does not list the model m", "It lists: qwen3:8b, another.")),
        (models_of("m", owned_by="callwright"), "m", ("another Callwright gateway", "its model server")),
        (whole("<html>hello</html>", kind="text/html"), "m", ("A web page answers", "its base URL")),
        (whole('{"error": "no key"}', status=401), "m", ("refuses access", "--key-env")),
        (models_of("m"), "m", ()),
        (models_of("m:latest"), "m", ()),  # Ollama takes both names
    ],
)
def test_what_is_probably_a_mistake_is_reported_at_the_start(
    caplog: pytest.LogCaptureFixture, page: Answer, name: str, parts: tuple[str, ...]
) -> None:
    server = PosingServer()
    server.pose = msgspec.structs.replace(server.pose, pages={"/v1/models": page})
    look = FirstLook(Config(models=(ModelConfig(name=name, upstream=server.url, mode="native"),)))
    try:
        fault = asyncio.run(look.fault_of(server.url))
    finally:
        server.stop()
    told = " ".join(filter(None, (fault, *(record.getMessage() for record in caplog.records))))
    assert bool(told) == bool(parts), told
    assert all(part in told for part in parts), told
