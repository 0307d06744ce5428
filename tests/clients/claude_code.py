"""Runs the real Claude Code: headless, offline, in an empty folder, with a home of its own."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner
from msgspec import Struct

from callwright.cli import main

MCP_SERVER: Final = Path(__file__).parent / "codex_mcp_demo.py"
_PATIENCE_S: Final = 90
# It neither calls home nor waits between its tries; as root it works in a sandbox only.
_ENVIRONMENT: Final[Mapping[str, str]] = {
    "ANTHROPIC_AUTH_TOKEN": "any",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",
    "IS_SANDBOX": "1",
    "NO_PROXY": "127.0.0.1",
}


def installed() -> str | None:
    """The binary that `CALLWRIGHT_CLAUDE_CODE` names, by itself or by the folder node_modules that holds it."""
    given = Path(os.environ.get("CALLWRIGHT_CLAUDE_CODE") or "/nowhere")
    found = [path for path in (*given.glob("@anthropic-ai/claude-code-*/claude"), given) if path.is_file()]
    return str(found[0].absolute()) if found else None


def settings(*options: str) -> dict[str, str]:
    """The variables that `callwright launch claude` prints."""
    done = CliRunner().invoke(main, ["launch", "claude", "--print", *options])
    assert done.exit_code == 0, done.output
    lines = [shlex.split(line) for line in done.stdout.splitlines() if line.startswith("export ")]
    return dict(line[1].split("=", 1) for line in lines)


class Ran(Struct):
    """What became of a run: the lines that Claude Code printed."""

    exit_code: int
    events: list[dict[str, Any]]
    stderr: str
    folder: Path

    @property
    def result(self) -> dict[str, Any]:
        """The last line: how it ended."""
        return next((event for event in reversed(self.events) if event["type"] == "result"), {})

    @property
    def said(self) -> list[str]:
        """What the model said to the user."""
        return [block["text"] for block in self._blocks("assistant", "text")]

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The tools that were called, with their inputs."""
        return [(block["name"], block["input"]) for block in self._blocks("assistant", "tool_use")]

    @property
    def results(self) -> list[str]:
        """What the tools answered, as text."""
        return [_text(block.get("content")) for block in self._blocks("user", "tool_result")]

    def _blocks(self, role: str, kind: str) -> Iterator[dict[str, Any]]:
        for event in self.events:
            content = event["message"]["content"] if event["type"] == role else ()
            yield from (block for block in content if isinstance(block, dict) and block["type"] == kind)


def _text(content: object) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


class ClaudeCode:
    """A Claude Code of its own at a gateway: `home` holds its configuration, `work` is where it works."""

    def __init__(self, folder: Path, url: str) -> None:
        binary = installed()
        assert binary is not None
        self._binary = binary
        self.url = url
        self.home = folder / "home"
        self.work = folder / "work"
        self.home.mkdir(exist_ok=True)
        self.work.mkdir(exist_ok=True)

    def mcp_config(self) -> tuple[str, ...]:
        """The options that give it the MCP server `demo` with the tool `get_weather`."""
        server = {"command": sys.executable, "args": [str(MCP_SERVER), "3"]}
        path = self.home / "mcp.json"
        path.write_text(json.dumps({"mcpServers": {"demo": server}}))
        return ("--mcp-config", str(path))

    def run(self, prompt: str, *options: str, model: str = "native", **environment: str) -> Ran:
        """Let it do one task."""
        done = subprocess.run(
            [
                *(self._binary, "-p", prompt, "--model", model),
                *("--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"),
                *options,
            ],
            cwd=self.work,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "ANTHROPIC_BASE_URL": self.url,
                **_ENVIRONMENT,
                **environment,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return Ran(done.returncode, events, done.stderr, self.work)
