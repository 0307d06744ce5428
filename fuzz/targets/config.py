"""`callwright.toml` with slips: one is told with its place, or models are made of it."""

import asyncio
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from callwright import ConfigError
from callwright.gateway.config.build_models import build_models
from callwright.gateway.config.config import (
    Config,
    KeyConfig,
    McpConfig,
    ModelConfig,
    RecordConfig,
    ServerConfig,
    StoreConfig,
    load_config,
)
from callwright.settings.bounds import Bounds
from tests.support.choices import Choices

__all__ = ["run"]

TABLES: tuple[tuple[str, Any], ...] = (
    *(
        ("[[models]]", ModelConfig),
        ("[[models]]", ModelConfig),
        ("[server]", ServerConfig),
        ("[limits]", Bounds),
    ),
    *(("[store]", StoreConfig), ("[record]", RecordConfig), ("[[keys]]", KeyConfig), ("[[mcp]]", McpConfig)),
    *(
        ("[models.options]", ModelConfig),
        ("[[models.infer]]", ModelConfig),
        ("[models]", ModelConfig),
        ("[[server]]", None),
    ),
    *(("[models.engine]", ModelConfig), ("[x]", None), ("[[[", None), ("[models.fields.a.b]", None)),
)
VALUES = (
    *(
        '"a"',
        '""',
        '"*"',
        "0",
        "1",
        "-1",
        "1.5",
        "1e400",
        "nan",
        "true",
        "false",
        "[]",
        "{}",
        '["a"]',
        '["a", "b"]',
        "[[]]",
    ),
    *(
        '[["a", "b"]]',
        '"simulated"',
        '"http://127.0.0.1:1/v1"',
        '"ftp://a"',
        '"http://[::1/v1"',
        '["http://a/v1", "http://b/v1"]',
    ),
    *(
        '"model.gguf"',
        '"native"',
        '"prompt"',
        '"raw"',
        '"auto"',
        '"hermes"',
        '"harmony"',
        '"vllm"',
        '"llamacpp"',
        '"silent"',
    ),
    *(
        "1979-05-27",
        '"sqlite://"',
        '"none"',
        "99999999999999999999",
        '"\\u0000"',
        "'''x'''",
        "{a = 1}",
        '{a = {b = "c"}}',
        "[1",
    ),
    *(
        '"é"',
        '"off"',
        '"object"',
        '"mend"',
        '{name = "a"}',
        '"sha256:" ',
        '"x\\ny"',
        '{X-Y = "a\\nb"}',
        '["*"]',
        '"/nowhere"',
    ),
    *(
        '"http://user:pw@a/v1"',
        '"http://a:99999/v1"',
        '"HTTP://A/v1"',
        '"http://"',
        '"http://a b"',
        '" "',
        '"http://a/v1?x=1#y"',
    ),
)
UPSTREAMS = ('"http://127.0.0.1:1/v1"', '"simulated"')


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def run(draw: Choices) -> None:
    """See the module."""
    lines: list[str] = []
    if not draw.once_in(3):
        lines += ["[[models]]", 'name = "a"', f"upstream = {draw.one((*VALUES, *UPSTREAMS * 20))}"]
        lines += [_setting(draw, ModelConfig) for _ in range(draw.number(3))]
    for _ in range(draw.number(4)):
        table, kind = draw.one(TABLES)
        lines += [table, *(_setting(draw, kind) for _ in range(draw.number(3)))]
    text = "\n".join(lines).encode()
    if draw.once_in(6):
        at = draw.number(0xFFFF) % (len(text) + 1)
        text = text[:at] + draw.bytes(6) + text[at + draw.number(4) :]
    path = Path(_folder().name) / "callwright.toml"
    path.write_bytes(text)
    try:
        config = load_config(path)
        assert isinstance(config, Config)
        models = build_models(config)
    except ConfigError as error:
        assert str(error)
        return
    assert models
    msgspec.json.encode(config)
    for model in models.values():
        asyncio.run(model.close())


def _setting(draw: Choices, kind: Any) -> str:
    names = kind.__struct_fields__ if kind is not None else ("a", "port")
    name = draw.one(names) if not draw.once_in(10) else draw.one(("nobody", "a.b", '"x y"', "", "upstrem"))
    return f"{name} = {draw.one(VALUES)}"
