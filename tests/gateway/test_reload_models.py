"""What of a model is made again when its configuration changes: its server, with connections or weights, or less."""

import json
import logging
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import pytest
from msgspec.structs import replace

from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import Config, InferenceConfig, KeyConfig, McpConfig, ModelConfig, StoreConfig
from callwright.gateway.config.spending import BudgetConfig, PriceConfig
from callwright.settings.bounds import Bounds
from callwright.upstreams.embedded.engine import EngineOptions
from tests.conftest import Starts
from tests.support.http_client import CHAT, Live, request
from tests.support.outputs import QUESTION
from tests.support.paths import ROOT
from tests.support.servers import Answer, Gateway, ModelServer, said
from tests.support.tiny_gguf import write_model

Anew: TypeAlias = Literal["server", "model", "nothing"]  # a new server has a new model, too
PRICE: Final = PriceConfig(input=3.0, output=15.0)
BUDGET: Final = BudgetConfig(tokens_per_day=1_000_000)
SMALL: Final = EngineOptions(context_tokens=1024, slots=2, threads=1)
TEMPLATES: Final = ROOT / "tests" / "response_template" / "cases"
MEMORY: Final = StoreConfig(url="sqlite://")
OTHER: Final = ModelConfig(name="other", upstream="simulated")
MCP: Final = McpConfig(label="s", url="http://127.0.0.1:9/mcp")
URLS: Final = ["http://127.0.0.1:8/v1", "http://127.0.0.1:9/v1"]
NATIVE: Final[dict[str, Any]] = {"upstream": URLS[0], "mode": "native"}
AUTO: Final[dict[str, Any]] = {"upstream": URLS[0], "mode": "prompt", "dialect": "auto", "model": "qwen3-8b"}
# For each setting: a model, another value, and what is made anew.
CHANGES: Final[dict[str, tuple[dict[str, Any], Any, Anew]]] = {
    "name": (NATIVE, "b", "server"),
    "upstream": (NATIVE, URLS[1], "server"),
    "model": (NATIVE, "m", "model"),
    "mode": ({**NATIVE, "dialect": "hermes", "mode": "prompt"}, "raw", "server"),
    "dialect": ({**NATIVE, "dialect": "hermes", "mode": "prompt"}, "json", "model"),
    "template": (AUTO, "chat.jinja", "model"),
    "response_template": (NATIVE, "tags.json", "model"),
    "server": (NATIVE, "vllm", "server"),
    "options": ({**NATIVE, "dialect": "json", "mode": "prompt"}, {"examples": True}, "model"),
    "fields": (NATIVE, {"temperature": 0.5}, "model"),
    "pass_fields": (NATIVE, ("guided_regex",), "model"),
    "media_urls": (NATIVE, ("data",), "model"),
    "headers": (NATIVE, {"x-tenant": "b"}, "server"),
    "api_key_env": (NATIVE, "KEY_OF_A_SERVER", "server"),
    "connect_timeout_s": (NATIVE, 5.0, "server"),
    "idle_timeout_s": (NATIVE, 5.0, "server"),
    "aliases": (NATIVE, [["depot", "warehouse"]], "model"),
    "infer": (NATIVE, [InferenceConfig(tool="t", keys=["k"])], "model"),
    "retries": (NATIVE, 0, "model"),
    "retry_s": (NATIVE, 5.0, "model"),
    "fallback": (NATIVE, ("other",), "nothing"),
    "max_repeats": (NATIVE, 2, "model"),
    "max_repeated_text": (NATIVE, 100, "model"),
    "ask_ambiguous": (NATIVE, False, "model"),
    "keep_reasoning": (NATIVE, False, "model"),
    "requests": (NATIVE, "lenient", "model"),
    "media": (NATIVE, "tell", "model"),
    "balance": ({**NATIVE, "upstream": URLS}, "least", "server"),
    "constrain": ({**NATIVE, "dialect": "json", "mode": "prompt", "server": "vllm"}, "off", "model"),
    "arguments": (NATIVE, "object", "model"),
    "defer_tools_above": (NATIVE, 10, "model"),
    "mcp": (NATIVE, ("s",), "model"),
    "context_length": (NATIVE, 4_096, "nothing"),
    "input_modalities": (NATIVE, ("text",), "model"),
    "max_requests": (NATIVE, 5, "nothing"),
    "queue_s": (NATIVE, 1.0, "nothing"),
    "price": (NATIVE, PRICE, "nothing"),
    "budget": (NATIVE, BUDGET, "nothing"),
    "engine": ({"upstream": "tiny.gguf", "engine": SMALL}, replace(SMALL, slots=1), "server"),
    "faults": ({"upstream": "simulated"}, "silent", "server"),
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    write_model(path, "hermes")
    return path


def parts_of(gateway: Gateway, name: str) -> tuple[object, object]:
    """The server and the rest of a model."""
    made = gateway.running.revision._model_parts
    return made._servers[name].upstream, made._built[name]


@pytest.mark.processes  # templates are rendered in one
@pytest.mark.parametrize("setting", ModelConfig.__struct_fields__)
def test_each_setting_makes_anew_what_depends_on_it(
    start: Starts,
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
) -> None:
    monkeypatch.setenv("KEY_OF_A_SERVER", "secret")
    (tmp_path / "chat.jinja").write_text("{% for message in messages %}{{ message.content }}{% endfor %}")
    given, value, anew = CHANGES[setting]
    files = {"tiny.gguf": tiny, "chat.jinja": tmp_path / "chat.jinja", "tags.json": TEMPLATES / "tags.json"}
    if given["upstream"] == "tiny.gguf":
        pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
        given = {**given, "upstream": str(tiny)}
    mcp = (MCP,) if setting == "mcp" else ()
    if mcp:
        pytest.importorskip("mcp", reason="mcp is not installed")
    before = ModelConfig(**{"name": "a", **given})
    after = replace(before, **{setting: str(files.get(value, value)) if isinstance(value, str) else value})
    gateway = start(Config(models=(before, OTHER), mcp=mcp, store=MEMORY))
    old = parts_of(gateway, "a")
    gateway.change(Config(models=(after, OTHER), mcp=mcp, store=MEMORY))
    new = parts_of(gateway, after.name)
    assert [one is other for one, other in zip(old, new, strict=True)] == {
        "server": [False, False],
        "model": [True, False],
        "nothing": [True, True],
    }[anew]
    assert getattr(gateway.running.revision.config.models[0], setting) != getattr(before, setting)


FILE_CHANGES: Final[list[tuple[str, dict[str, Any], dict[str, Any], int]]] = [
    # What changes in the model and in the rest, and how often the weights were loaded until then.
    ("at the start", {}, {}, 1),
    ("a price", {"price": PRICE}, {}, 1),
    ("a budget", {"price": PRICE, "budget": BUDGET}, {}, 1),
    ("a retry", {"retries": 1}, {}, 1),
    ("a fallback", {"fallback": ("other",)}, {}, 1),
    ("fields", {"fields": {"temperature": 0.0}}, {}, 1),
    ("a dialect", {"dialect": "json"}, {}, 1),
    ("places", {"max_requests": 1}, {}, 1),
    ("keys", {}, {"keys": (KeyConfig(name="anna", sha256=hash_of("cw-anna")),)}, 1),
    ("limits of answers", {}, {"limits": Bounds(max_answer_bytes=1_000_000)}, 1),
    ("the engine", {"engine": replace(SMALL, slots=1)}, {}, 2),
    ("the engine as before", {}, {}, 3),
]


@pytest.mark.processes
def test_weights_are_loaded_again_only_if_the_engine_changes(
    start: Starts, tiny: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    caplog.set_level(logging.INFO, "callwright.upstreams")
    base = ModelConfig(name="a", upstream=str(tiny), engine=SMALL)
    gateway = start(Config(models=(base, OTHER), store=MEMORY))
    found: list[tuple[str, int, int]] = []
    for title, of_model, of_rest, _ in FILE_CHANGES:
        gateway.change(Config(models=(replace(base, **of_model), OTHER), store=MEMORY, **of_rest))
        body = {"model": "a", "messages": [QUESTION], "max_tokens": 2}
        status = request(gateway.url + CHAT, body, headers={"authorization": "Bearer cw-anna"}).status
        loads = [one for one in caplog.records if one.getMessage().startswith("loading ")]
        found.append((title, status, len(loads)))
    assert found == [(title, 200, loads) for title, _, _, loads in FILE_CHANGES]


@pytest.mark.parametrize("changed", [{"price": PRICE}, {"retries": 0}, {"queue_s": 0.1}])
def test_the_places_of_a_model_are_counted_over_a_change(
    model: ModelServer, start: Starts, changed: dict[str, Any]
) -> None:
    limited = ModelConfig(name="a", upstream=model.url, mode="native", max_requests=1, queue_s=0)
    gateway = start(Config(models=(limited,), store=MEMORY))
    role, *rest = said("Hi").steps
    gate = model.gate()
    model.plays(Answer((role, gate, *rest)), said("Hi"))
    body = {"model": "a", "messages": [QUESTION]}
    with Live(gateway.url + CHAT, json.dumps(body).encode()) as live:
        gate.wait_until_reached()
        gateway.change(Config(models=(replace(limited, **changed),), store=MEMORY))
        assert request(gateway.url + CHAT, body).status == 429
        gate.open()
        assert live.status == 200
        assert b"Hi" in b"".join(live.pieces())
    assert request(gateway.url + CHAT, body).status == 200
