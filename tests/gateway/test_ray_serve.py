"""`deploy/ray_serve.py` on a Ray Serve of this machine: two replicas on one PostgreSQL, asked by a real client."""

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.servers import HOST, ModelServer, said
from tests.support.streaming import assert_flows

pytestmark = [
    pytest.mark.clients,
    pytest.mark.postgres,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("ray", "openai", "fastapi", "aiohttp_cors")),
        reason="ray[serve] or openai is not installed",
    ),
]
pytest_plugins = ["tests.support.databases"]

# Starts it on a free port and says which; ends with its standard input.
_DRIVER = """
import socket, sys
import ray
from ray import serve
from deploy.ray_serve import gateway
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)
serve.start(http_options={"host": "127.0.0.1", "port": port})
serve.run(gateway({"config": sys.argv[1]}))
print("serving", port, flush=True)
sys.stdin.read()
serve.shutdown()
ray.shutdown()
"""


@pytest.fixture(scope="module")
def served(
    postgres: Callable[[], str], _model_server: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    config = tmp_path_factory.mktemp("ray") / "callwright.toml"
    config.write_text(
        f'[store]\nurl = "{postgres()}"\n[[models]]\nname = "any"\nupstream = "{_model_server.url}"\nmode = "native"\n'
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    driver = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, str(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    assert driver.stdin is not None
    assert driver.stdout is not None
    try:
        line = b""
        while not line.startswith(b"serving"):
            line = driver.stdout.readline()
            if not line:
                pytest.fail(driver.communicate()[1].decode()[-4_000:])
        yield f"http://{HOST}:{int(line.split()[1])}"
        driver.communicate(timeout=60)
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.communicate()


def test_chains_go_on_over_its_replicas(served: str, model: ModelServer) -> None:
    import openai

    count = 8
    model.plays(*(said(f"answer {number}") for number in range(count)))
    with openai.OpenAI(base_url=f"{served}/v1", api_key="none") as client:
        previous: Any = None
        for number in range(count):
            previous = client.responses.create(
                model="any", input=f"question {number}", previous_response_id=previous.id if previous else None
            )
            assert previous.output_text == f"answer {number}"
        assert len(model.asked[-1].body["messages"]) == 2 * count - 1
        client.responses.delete(previous.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(previous.id)


def test_a_stream_is_not_held_up(served: str, model: ModelServer) -> None:
    assert_flows(served, "any", model)
