"""Renders a chat template in a process of its own, within bounds of time, memory and length."""

import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from callwright.errors import ConfigError
from callwright.settings.extras import missing_package

# Characters; the longest that is known has 40,000.
MAX_TEMPLATE: Final = 1_000_000
_MEMORY: Final = 1_073_741_824
_SECONDS: Final = 5
_PROCESSES: Final = 2
_KEPT: Final = 16
_PROGRAM: Final = Path(__file__).with_name("sandbox.py")


class TemplateFailureError(Exception):
    """A template could not be rendered. `refused`: the template itself raised an error about its input."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class TemplateRenderer:
    """One template. It has at most two processes, for concurrent prompts, so that a slow prompt does not block all
    others. A process is started on first use, and again after it was ended.
    """

    def __init__(self, template: str) -> None:
        """Raises `ConfigError` for one that is too long, or if jinja2 is not installed."""
        self._idle: list[subprocess.Popen[str]] = []
        if len(template) > MAX_TEMPLATE:
            raise ConfigError(f"The chat template has {len(template):,} characters; {MAX_TEMPLATE:,} are the most.")
        if importlib.util.find_spec("jinja2") is None:
            raise missing_package("jinja2", "chat template")
        self._template = template
        self._places = threading.BoundedSemaphore(_PROCESSES)

    def render(self, variables: Mapping[str, Any], today: str) -> str:
        """The prompt. `today` is the date (YYYY-MM-DD) for the template. Raises `TemplateFailureError`."""
        with self._places:
            try:
                process = self._idle.pop()
            except IndexError:
                process = self._start_process()
            answer = self._ask_process(process, {"variables": variables, "today": today})
            self._idle.append(process)
        return _text(answer)

    def close(self) -> None:
        """End the processes that do not render."""
        while self._idle:
            self._end(self._idle.pop())

    def __del__(self) -> None:
        self.close()

    def _start_process(self) -> "subprocess.Popen[str]":
        command = [sys.executable, "-I", str(_PROGRAM), str(_MEMORY), str(_SECONDS)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", env={}
        )
        try:
            _text(self._ask_process(process, {"template": self._template}))
        except TemplateFailureError:
            self._end(process)  # it has no template: its answers would be wrong
            raise
        return process

    def _ask_process(self, process: "subprocess.Popen[str]", request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of a process. Raises `TemplateFailureError`, and ends the process, if there is no answer."""
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(_SECONDS, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            timer.cancel()
        if not line.endswith("\n"):
            self._end(process)
            raise TemplateFailureError(f"it takes more than {_SECONDS} s, or more memory than a prompt needs")
        answer: dict[str, Any] = json.loads(line)
        return answer

    @staticmethod
    def _end(process: "subprocess.Popen[str]") -> None:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue
        process.wait()


def _text(answer: Mapping[str, Any]) -> str:
    if "error" in answer:
        raise TemplateFailureError(answer["error"], refused=answer.get("refused", False))
    return str(answer["text"])


@lru_cache(maxsize=_KEPT)
def renderer_of(template: str) -> TemplateRenderer:
    """The renderer of a template, which all share that use it."""
    return TemplateRenderer(template)
