"""Runs the real Codex CLI: offline, in an empty folder, with a home of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from msgspec import Struct

from callwright.cli import main

MCP_SERVER: Final = Path(__file__).parent / "codex_mcp_demo.py"
WEBSOCKET: Final = "model_providers.callwright.supports_websockets=true"
HTTP: Final = "model_providers.callwright.supports_websockets=false"
_PATIENCE_S: Final = 90


def installed() -> str:
    """The binary. Skips the test where `CALLWRIGHT_CODEX` names none, or no folder node_modules that holds it."""
    given = Path(os.environ.get("CALLWRIGHT_CODEX") or "/nowhere")
    for path in (given / ".bin" / "codex", given):
        if path.is_file():
            return str(path.absolute())
    pytest.skip("CALLWRIGHT_CODEX names neither a Codex binary nor a node_modules folder that holds it")


class Ran(Struct):
    """What became of a run: the events that Codex printed."""

    exit_code: int
    events: list[dict[str, Any]]
    stderr: str
    folder: Path

    def items(self, kind: str) -> list[dict[str, Any]]:
        """The finished items of a kind."""
        items = [event["item"] for event in self.events if event["type"] == "item.completed"]
        return [item for item in items if item["type"] == kind]

    @property
    def said(self) -> list[str]:
        """What the agent said."""
        return [item["text"] for item in self.items("agent_message")]

    @property
    def failure(self) -> str | None:
        """Why the turn failed."""
        return next((event["error"]["message"] for event in self.events if event["type"] == "turn.failed"), None)

    @property
    def warnings(self) -> list[str]:
        """What Codex complained about beside that."""
        return [item["message"] for item in self.items("error")]

    @property
    def files(self) -> dict[str, bytes]:
        """What lies in the work folder now."""
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in self._found()}

    def _found(self) -> Iterator[Path]:
        return (path for path in sorted(self.folder.rglob("*")) if path.is_file())


class Codex:
    """A Codex of its own: `home` holds its configuration, `work` is where it works."""

    def __init__(self, folder: Path) -> None:
        self._binary = installed()
        self.home = folder / "home"
        self.work = folder / "work"
        self.home.mkdir(exist_ok=True)
        self.work.mkdir(exist_ok=True)

    def configure(self, *options: str) -> None:
        """Write the configuration as `callwright launch codex` does."""
        done = CliRunner().invoke(main, ["launch", "codex", "--print", "--home", str(self.home), *options])
        assert done.exit_code == 0, done.output
        subprocess.run(["/bin/sh", "-eu", "-c", done.stdout], check=True)

    def add_mcp_server(self, others: int = 0) -> None:
        """Give it the MCP server `demo` with the tool `get_weather` and so many others."""
        command, arguments = json.dumps(sys.executable), json.dumps([str(MCP_SERVER), str(others)])
        with (self.home / "config.toml").open("a") as config:
            config.write(f"[mcp_servers.demo]\ncommand = {command}\nargs = {arguments}\n")

    def call(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of it."""
        environment: Mapping[str, str] = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        return subprocess.run(
            [self._binary, *arguments],
            cwd=self.work,
            env={**environment, "CODEX_HOME": str(self.home), "NO_PROXY": "127.0.0.1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )

    def run(self, prompt: str, *settings: str, options: tuple[str, ...] = ()) -> Ran:
        """Let it do one task. `settings` are `key=value` of its configuration."""
        flags = [flag for setting in settings for flag in ("-c", setting)]
        done = self.call(
            "exec",
            *("--json", "--strict-config", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
            *flags,
            *options,
            prompt,
        )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return Ran(done.returncode, events, done.stderr, self.work)
