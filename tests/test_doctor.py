"""`toolwright doctor`: what it finds out about each server, what it advises, and how it is told."""

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.posing import POSES, PosingServer
from tests.tiny_llama import TinyLlama
from toolwright.cli import main
from toolwright.probing.advice import advice
from toolwright.probing.examination import Depth, probe
from toolwright.probing.findings import Findings

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


@pytest.fixture(scope="module")
def _posing() -> Iterator[PosingServer]:
    server = PosingServer()
    yield server
    server.stop()
    gc.collect()


@pytest.fixture
def posing(_posing: PosingServer) -> PosingServer:
    _posing.plays()
    return _posing


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> TinyLlama:
    return TinyLlama(tmp_path_factory.mktemp("llama"))


def found(url: str, **how: Any) -> Findings:
    return asyncio.run(probe(url, **{"timeout_s": 10.0, **how}))


def doctor(*arguments: str, **how: Any) -> Result:
    return CliRunner().invoke(main, ["doctor", *arguments], **how)


# --- which server it is, and what it does ---

# The pose, then: server, version, mode, dialect, `server` and `constrain` of the advice.
SERVERS = [
    ("vllm", "vllm", "0.33.0", "raw", "harmony", "vllm", True),
    ("vllm, reasoning parser", "vllm", "0.33.0", "raw", "hermes", "vllm", False),
    ("vllm behind a proxy", "vllm", "1", "native", None, "vllm", True),
    ("sglang", "sglang", "0.5.23", "raw", "hermes", "sglang", True),
    ("sglang behind a proxy", "sglang", "0.5.23", "raw", "hermes", "sglang", False),
    ("ollama", "ollama", "0.33.0", "native", None, None, True),
    ("ollama, no tools", "ollama", "0.33.0", "prompt", "json", None, True),
    ("lm studio", "unknown", None, "native", None, None, True),
    ("calls are printed", "unknown", None, "prompt", "json", None, True),
    ("no calls in a stream", "unknown", None, "prompt", "json", None, True),
]


@pytest.mark.parametrize("depth", ["all", "mode"])
@pytest.mark.parametrize(("pose", "server", "version", "mode", "dialect", "flavour", "constrain"), SERVERS)
def test_each_server_is_known_and_the_mode_is_the_one_that_works(
    posing: PosingServer,
    depth: Depth,
    pose: str,
    server: str,
    version: str | None,
    mode: str,
    dialect: str | None,
    flavour: str | None,
    constrain: bool,
) -> None:
    posing.pose = POSES[pose]
    findings = found(posing.root, depth=depth)
    advised = advice(findings)
    assert (findings.server, findings.version, findings.message) == (server, version, "")
    assert (advised.usable, advised.mode, advised.dialect) == (True, mode, dialect), advised
    assert advised.constrain is constrain
    if mode == "raw":
        assert advised.server == flavour
    assert findings.url == posing.url
    assert len(posing.asked) == findings.requests
