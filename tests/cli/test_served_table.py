"""The table that a gateway shows when it starts, and the file of `--write`."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from callwright.cli import main
from callwright.cli.config_file import served_config
from callwright.cli.served_table import Looked, served_table
from callwright.doctor.findings import Findings, ProbeResult
from callwright.doctor.probes import TOOLS_STREAMED
from callwright.doctor.recommend import advice
from callwright.gateway.config.auto_mode import AutoModeSelector
from callwright.gateway.config.build_models import build_models
from callwright.gateway.config.config import (
    Config,
    ModelConfig,
    ServerConfig,
    load_config,
    simulated_config,
    with_default_mode,
)
from callwright.upstreams.http import HttpUpstream
from tests.support.fake_servers import PosingServer

NATIVE = ProbeResult("tools", TOOLS_STREAMED, "works", "")


def looked_at(server: PosingServer, name: str) -> tuple[ModelConfig, Looked]:
    """A model of the server, and what its probes find."""
    model = with_default_mode(ModelConfig(name=name, upstream=f"{server.root}/v1"))
    selector = build_models(Config(models=(model,)))[name].mode_selector
    assert isinstance(selector, AutoModeSelector)
    return model, {name: asyncio.run(selector.look())}


@pytest.mark.parametrize("name", ["*", "openai/gpt-oss-120b"])
def test_each_model_is_shown_with_what_was_chosen_and_kept_so(tmp_path: Path, name: str) -> None:
    server = PosingServer("vllm")
    try:
        model, looked = looked_at(server, name)
    finally:
        server.stop()
    lines = list(served_table([model], looked, 80))
    assert lines[0] == f"vLLM 0.33.0 at {server.url}"
    assert lines[1].split() == ["model", "mode", "dialect", "window", "why"]
    assert lines[2].split()[:4] == ["openai/gpt-oss-120b", "raw", "harmony", "131,072"]
    assert any(line.split()[:2] == ["another", "native"] for line in lines) == (name == "*")
    file = tmp_path / "kept.toml"
    file.write_text("\n".join(served_config([model], looked, {"server": {"port": 9000, "workers": None}})))
    kept = load_config(file)
    assert kept.server == ServerConfig(port=9000)
    first = kept.models[0]
    assert (first.name, first.mode, first.dialect, first.server) == ("openai/gpt-oss-120b", "raw", "harmony", "vllm")
    assert [one.name for one in kept.models[1:]] == (["another", "*"] if name == "*" else [])
    assert build_models(kept)


@pytest.mark.parametrize(
    ("name", "end", "part"),
    [
        ("m", "/v1", "does not list the model m. It lists: openai/gpt-oss-120b, another."),
        *(("another", end, "/v1: give this instead") for end in ("/v1/chat/completions", "/chat/completions/", "/x/y")),
        ("another", "", None),
        ("another", "/v1/", None),
    ],
)
def test_a_model_or_url_that_is_probably_wrong_is_shown_and_asked_if_it_can_be(
    name: str, end: str, part: str | None
) -> None:
    server = PosingServer("vllm")
    try:
        model = with_default_mode(ModelConfig(name=name, upstream=f"{server.root}{end}"))
        built = build_models(Config(models=(model,)))[name]
        assert isinstance(built.mode_selector, AutoModeSelector)
        looked = {name: asyncio.run(built.mode_selector.look())}
        chosen = asyncio.run(built.mode_selector.choose(built))
    finally:
        server.stop()
    assert isinstance(chosen.upstream, HttpUpstream)
    assert chosen.upstream.url == server.url
    shown = " ".join(" ".join(served_table([model], looked, 80)).split())
    assert shown.startswith(f"vLLM 0.33.0 at {server.url}")
    assert part in shown if part is not None else "Warning" not in shown


def test_a_model_that_was_probed_at_the_start_is_not_probed_again() -> None:
    server = PosingServer("vllm")
    try:
        model = with_default_mode(ModelConfig(name="*", upstream=server.url))
        built = build_models(Config(models=(model,)))["*"]
        selector = built.mode_selector
        assert isinstance(selector, AutoModeSelector)
        asyncio.run(selector.look())
        asked = len(server.asked)
        chosen = asyncio.run(selector.choose(built.for_model("openai/gpt-oss-120b")))
        assert (chosen.mode, chosen.dialect, len(server.asked)) == ("raw", "harmony", asked)
    finally:
        server.stop()


def test_only_the_first_model_is_probed_by_a_slow_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.gateway.config.auto_mode._MORE_S", 0.0)  # which the first model has taken
    names: list[str | None] = []

    async def probe(name: str | None) -> Findings:
        names.append(name)
        chat = ("a", "b", "c")
        return Findings(url="http://h/v1", models=(*chat, "embed"), chat_models=chat, model="a", results=(NATIVE,))

    selector = AutoModeSelector(None, probe, lambda *_: pytest.fail("nothing is asked"))
    looked = asyncio.run(selector.look())
    assert names == [None]
    lines = list(served_table([ModelConfig(name="*", upstream="http://h/v1", mode="auto")], {"*": looked}, 80))
    assert [line.split()[:2] for line in lines[2:] if line[2] != " "] == [
        ["a", "native"],
        ["(2", "others)"],
        ["embed", "-"],
    ]
    assert any("b, c" in line for line in lines)


def test_a_server_that_is_down_is_shown_with_the_reason() -> None:
    message = "The server cannot be asked: no connection."
    findings = Findings(url="http://h/v1", message=message)
    model = ModelConfig(name="*", upstream="http://h/v1", mode="auto")
    shown = " ".join(served_table([model], {"*": [(findings, advice(findings))]}, 200))
    assert message in shown
    assert "(any)  auto" in shown


@given(
    st.lists(st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=60), min_size=1),
    st.text(st.sampled_from("ab \n"), max_size=300),
    st.integers(60, 140),
)
def test_columns_are_aligned_and_within_the_width(names: list[str], reason: str, columns: int) -> None:
    looked = []
    for name in names:
        findings = Findings(url="http://h", chat_models=tuple(names), model=name, results=(NATIVE,), context=8192)
        looked.append((findings, advice(findings)))
        findings = msgspec.structs.replace(findings, message=reason.strip() or "no")
        looked.append((findings, advice(findings)))
    model = ModelConfig(name="*", upstream="http://h", mode="auto")
    lines = list(served_table([model], {"*": looked}, columns))
    start = lines[1].index("mode")
    assert all(len(line) <= columns for line in lines)
    assert all(line[start - 2 : start] == "  " for line in lines[2:] if len(line) > start and line.split()[1:])
    for name in names:
        assert any(line.split()[0] == name for line in lines[2:])


def test_what_was_given_is_kept_where_nothing_was_probed(tmp_path: Path) -> None:
    simulated = simulated_config(ServerConfig(), "all:0.3")
    model = ModelConfig(name="m", upstream="http://h/v1", mode="raw", dialect="hermes", api_key_env="PATH")
    for config in (simulated, Config(models=(model,))):
        file = tmp_path / f"{config.models[0].name}.toml"
        file.write_text("\n".join(served_config(config.models, {}, {})))
        assert load_config(file).models == config.models


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--write", "there.toml"), ("--write", "there.toml exists already", "another file")),
        (("--write", "there.toml", "--config", "there.toml"), ("--config", "leave out --write")),
        (("--write", "no/folder.toml"), ("Cannot write no/folder.toml", "No such file or directory")),
        (("http://user:hush@127.0.0.1:9", "--write", "new.toml"), ("password", "--key-env")),
    ],
)
def test_a_file_that_cannot_be_written_is_an_error_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "there.toml").write_text("mine")
    ended = CliRunner().invoke(main, ["serve", *arguments])
    assert ended.exit_code == 2, ended.output
    assert all(part in ended.output for part in parts)
    assert "hush" not in ended.output
    assert (tmp_path / "there.toml").read_text() == "mine"
    assert not (tmp_path / "new.toml").exists()


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ("", "auto"),
        ('server = "vllm"', "auto"),
        ('dialect = "hermes"', None),
        ('mode = "native"', "native"),
        ('response_template = "file"', None),
    ],
)
def test_the_mode_of_a_file_is_auto_unless_another_setting_decides_it(tmp_path: Path, settings: str, mode: str) -> None:
    file = tmp_path / "callwright.toml"
    file.write_text(f'[[models]]\nname = "m"\nupstream = "http://h/v1"\n{settings}\n')
    assert load_config(file).models[0].mode == mode
