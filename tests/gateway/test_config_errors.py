"""Errors of a configuration whose values do not fit each other, by every way that reads one."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from callwright.cli import main
from callwright.errors import ConfigError
from callwright.gateway.config.changes import new_warning, open_warning
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig, ServerConfig, load_config
from callwright.gateway.process.reload import log_differences
from tests.gateway.test_reload_processes import heard
from tests.gateway.test_workers import proc
from tests.support.processes import gateway
from tests.support.servers import Gateway

MODEL = '[[models]]\nname = "m"\nupstream = "simulated"\nmode = "native"\n'
TEAM = '[[teams]]\nname = "t"\nbudget = {tokens_per_day = 5}\n'
KEY = f'[[keys]]\nname = "anna"\nsha256 = "{"a" * 64}"\n'
NO_STORE, STORE = '[store]\nurl = "none"\n', '[store]\nurl = "sqlite://"\n'
# Each with a part of its error.
WRONG = {
    "syntax": ("[[models", "is not valid TOML"),
    "a type": (f"{MODEL}retries = 'x'\n", "retries"),
    "no models": (NO_STORE, "has no models"),
    "two of one name": (MODEL + MODEL, "Two models are called 'm'."),
    "a budget without prices": (
        f'{MODEL}[[teams]]\nname = "t"\nbudget = {{cost_per_day = 5}}\n',
        "Team 't': a budget of money needs prices.",
    ),
    "a budget without a store": (MODEL + TEAM + NO_STORE, "a budget needs a store"),
    "a key of an unknown team": (f'{MODEL}{KEY}team = "x"\n', "no team is called 'x'"),
    "a key twice": (MODEL + KEY + KEY, "anna"),
    "a fallback to nothing": (f'{MODEL}fallback = ["x"]\n', "no other model is called"),
    "a hook that is not there": (f'{MODEL}[[hooks]]\nname = "h"\ncall = "no.such:hook"\n', "h"),
}
each_wrong = pytest.mark.parametrize(("content", "words"), WRONG.values(), ids=WRONG)


def written(folder: Path, content: str, name: str = "callwright.toml") -> Path:
    file = folder / name
    file.write_text(content)
    return file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments])


def check_named(said: str, file: Path, words: str) -> None:
    assert words in said
    assert said.count(str(file)) == 1, said


@each_wrong
@pytest.mark.parametrize("way", ["check", "diff", "diff of it", "serve"])
def test_an_error_names_the_file(tmp_path: Path, way: str, content: str, words: str) -> None:
    file, right = written(tmp_path, content), written(tmp_path, MODEL, "right.toml")
    command: dict[str, tuple[object, ...]] = {
        "check": ("config", file),
        "diff": ("config", right, "--diff", file),
        "diff of it": ("config", file, "--diff", file),
        "serve": ("serve", "--config", file, "--port", "0"),
    }
    result = run(*command[way])
    assert result.exit_code == 2
    check_named(result.stderr, file, words)


@pytest.mark.processes
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGHUP on Windows")
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=proc)])
def test_the_log_of_a_reload_names_the_file(tmp_path: Path, workers: int) -> None:
    begin = f'[server]\nworkers = {workers}\n[store]\nurl = "sqlite:///{tmp_path}/kept.db"\n'
    file = written(tmp_path, begin + MODEL)
    with gateway("--config", str(file)) as (_, process):
        for content, words in WRONG.values():
            if "[store]" not in content:
                written(tmp_path, begin + content)
                process.send_signal(signal.SIGHUP)
                said = heard(process, b"stays as it was").decode()
                if "\n" not in said.partition("stays as it was")[2]:
                    said += heard(process, b"\n").decode()
                check_named(next(line for line in said.splitlines() if "stays as it was" in line), file, words)


A = ModelConfig(name="a", upstream="simulated")
SAFE = Config(models=(A,))
KEYED = Config(models=(A,), keys=(KeyConfig(name="anna", sha256="a" * 64),))


def on(host: str, config: Config) -> Config:
    return Config(models=config.models, keys=config.keys, server=ServerConfig(host=host))


# Before, after, and whether the change opens the gateway.
OPENED = {
    "the last key is gone": (on("0.0.0.0", KEYED), on("0.0.0.0", SAFE), True),
    "the same on this machine": (KEYED, SAFE, False),
    "another name of this machine": (on("localhost", KEYED), on("localhost", SAFE), False),
    "it was open before": (on("::", SAFE), on("::", SAFE), False),
    "a key more": (on("::", SAFE), on("::", KEYED), False),
    "another address, after a restart": (SAFE, on("::", SAFE), True),
    "no key, and this machine after a restart": (on("192.0.2.1", KEYED), SAFE, True),
}


@pytest.mark.parametrize("title", OPENED)
def test_a_change_that_opens_the_gateway_is_warned_of(
    tmp_path: Path, title: str, caplog: pytest.LogCaptureFixture
) -> None:
    before, after, opens = OPENED[title]
    warning = new_warning(before, after)
    assert (warning is not None) is opens
    log_differences(before, after)
    logged = [one.getMessage() for one in caplog.records if one.levelname == "WARNING" and "restart" not in one.message]
    assert logged == ([f"configuration: {warning}"] if opens else [])
    texts = []
    for name, config in (("before", before), ("after", after)):
        host = f'[server]\nhost = "{config.server.host}"\n'
        texts.append(written(tmp_path, host + MODEL + (KEY if config.keys else ""), name))
    result = run("config", texts[0], "--diff", texts[1])
    assert result.exit_code == 0
    assert result.stderr == (f"Warning: {warning}\n" if opens else "")
    if opens:
        hosts = {before.server.host, after.server.host}
        assert warning in {open_warning(on(host, SAFE)) for host in hosts}


def test_equal_files_have_no_changes(tmp_path: Path) -> None:
    one, other = (written(tmp_path, MODEL, name) for name in ("one.toml", "other.toml"))
    result = run("config", one, "--diff", other)
    assert (result.exit_code, result.stdout) == (0, "No changes.\n")


def test_workers_need_a_store_that_they_can_share(tmp_path: Path) -> None:
    workers = "server.workers = 2\n"
    assert run("config", written(tmp_path, workers + MODEL, "right.toml")).exit_code == 0
    result = run("config", written(tmp_path, f'{workers}store.url = "sqlite://"\n{MODEL}'))
    assert (result.exit_code, "cannot share a store in memory" in result.output) == (2, True)


# Files that are right, but not for a gateway that runs without a store.
AFTER_A_RESTART = {
    "a budget of a team": MODEL + TEAM + STORE,
    "a budget of a key": f"{MODEL}{KEY}budget = {{tokens_per_day = 5}}\n{STORE}",
    "a budget of a model": f"{MODEL}budget = {{tokens_per_day = 5}}\n{STORE}",
}


@pytest.mark.parametrize("content", AFTER_A_RESTART.values(), ids=AFTER_A_RESTART)
def test_a_file_that_needs_a_restart_is_told_so(tmp_path: Path, content: str) -> None:
    running, new = written(tmp_path, MODEL + NO_STORE, "running.toml"), written(tmp_path, content)
    words = "It is right, but only after a restart: [store]: url changed (needs a restart)."
    served = Gateway(load_config(running))
    try:
        with pytest.raises(ConfigError) as refused:
            served.change(load_config(new))
    finally:
        served.stop()
    assert str(refused.value).startswith(words)
    result = run("config", running, "--diff", new)
    assert result.exit_code == 0
    assert words in result.stderr


def test_a_wrong_file_is_told_that_whatever_needs_a_restart(tmp_path: Path) -> None:
    running, new = written(tmp_path, MODEL + NO_STORE, "running.toml"), written(tmp_path, MODEL + MODEL + STORE)
    served: Any = Gateway(load_config(running))
    try:
        with pytest.raises(ConfigError, match=r"^Two models are called"):
            served.change(load_config(new))
    finally:
        served.stop()
