"""Several models behind one gateway: each is found by its name, listed, and asked in its own way."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from unittest.mock import AsyncMock

import pytest
from starlette.types import Message

from callwright.gateway.app import create_app
from callwright.gateway.config.config import ModelConfig, ServerConfig, load_config, simulated_config
from tests.conftest import Served
from tests.support.http_client import CHAT, ask, request
from tests.support.outputs import QUESTION, TOOLS
from tests.support.servers import ModelServer, completion, said


def body(way: str) -> dict[str, Any]:
    return {"model": way, "messages": [QUESTION], "tools": TOOLS}


TOML = """
[server]
max_body_bytes = 200000

[[models]]
name = "big"
upstream = "{url}"
model = "org/big-1"
mode = "native"

[[models]]
name = "org/small:8b"
upstream = "{url}"
mode = "raw"
dialect = "hermes"
server = "vllm"
[models.options]
thinking = "off"
[models.fields]
temperature = 0.5
"""


@pytest.fixture
def from_file(serve: Served, model: ModelServer, tmp_path: Path) -> str:
    """A gateway that was configured by a file with two models."""
    path = tmp_path / "callwright.toml"
    path.write_text(TOML.format(url=model.url))
    config = load_config(path)
    return serve(*config.models, max_body_bytes=config.server.max_body_bytes)


CARD: Final = {
    *("id", "object", "created", "owned_by", "type", "display_name", "created_at"),
    *("mode", "supported_parameters", "capabilities"),
}


def test_each_model_of_a_file_is_asked_in_its_own_way(from_file: str, model: ModelServer) -> None:
    model.plays(said("Big."), completion("Small.<|im_end|>"))
    big, small = (ask(from_file, body(name), stream=False) for name in ("big", "org/small:8b"))
    assert (big.message["content"], small.message["content"]) == ("Big.", "Small.")
    assert [asked.path for asked in model.asked] == ["/v1/chat/completions", "/v1/completions"]
    first, second = (asked.body for asked in model.asked)
    assert (first["model"], second["model"]) == ("org/big-1", "org/small:8b")
    assert "temperature" not in first
    assert second["temperature"] == 0.5
    assert second["prompt"].endswith("<think>\n\n</think>\n\n")


def test_the_models_are_listed(from_file: str) -> None:
    listed = request(f"{from_file}/v1/models", method="GET").json
    assert listed["object"] == "list"
    assert [entry["id"] for entry in listed["data"]] == ["big", "org/small:8b"]
    for entry in listed["data"]:
        assert set(entry) - {"architecture", "dialect"} == CARD
        assert (entry["object"], entry["type"], entry["display_name"]) == ("model", "model", entry["id"])
        assert datetime.fromisoformat(entry["created_at"]).timestamp() == entry["created"]
        assert request(f"{from_file}/v1/models/{entry['id']}", method="GET").json == entry


def test_a_gateway_for_any_model_hands_the_name_on(serve: Served, model: ModelServer) -> None:
    gateway = serve(ModelConfig(name="*", upstream=model.url))
    model.plays(said("Hi"))
    reply = request(gateway + CHAT, body("org/anything"))
    assert reply.json["model"] == "org/anything"
    assert model.body["model"] == "org/anything"
    model.names = ("one", "two")
    listed = request(f"{gateway}/v1/models", method="GET").json
    assert [entry["id"] for entry in listed["data"]] == ["one", "two"]


@pytest.mark.parametrize(("path", "status"), [("/v1/v1/models", 200), ("/v1/models", 404)])
def test_within_another_application_paths_begin_behind_its_own(path: str, status: int) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "root_path": "/v1", "query_string": b"", "headers": []}
    asyncio.run(create_app(simulated_config(ServerConfig()))(scope, AsyncMock(), send))
    assert sent[0]["status"] == status
