"""A conversation in a file, one Chat message a line."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from callwright.errors import ConfigError


class Transcript:
    """The conversation in a file, one Chat message a line. It is complete after each turn."""

    def __init__(self, path: Path, system: str) -> None:
        if path.exists() and not (path.is_file() and path.stat().st_size == 0):
            raise ConfigError(f"--save: {path} is there already. Choose another name.")
        self._path = path
        self._number = 1
        self._first = [{"role": "system", "content": system}] if system else []
        self._write(path, [])

    def keep(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Write the current conversation."""
        self._write(self._current, messages)

    def begin_anew(self) -> None:
        """Start a new file for the next conversation: chat-2.jsonl after chat.jsonl."""
        while os.path.lexists(self._current):
            self._number += 1

    @property
    def _current(self) -> Path:
        return self._path if self._number == 1 else self._path.with_stem(f"{self._path.stem}-{self._number}")

    def _write(self, path: Path, messages: Sequence[Mapping[str, Any]]) -> None:
        lines = [json.dumps(message, ensure_ascii=False) + "\n" for message in (*self._first, *messages)]
        try:
            path.write_text("".join(lines), encoding="utf-8", errors="replace")
        except OSError as error:
            raise ConfigError(f"--save: cannot write {path}: {error.strerror}.") from error
