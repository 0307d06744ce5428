"""Progress outside a terminal: lines, each once."""

import threading
from collections.abc import Sequence

import pytest

from callwright.cli import progress


def test_a_line_is_printed_again_only_if_it_has_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_EVERY_S", 0.001)
    coming = ["1 of 3", "1 of 3", "2 of 3", "2 of 3"]
    is_over = threading.Event()

    def lines() -> Sequence[str]:
        if len(coming) == 1:
            is_over.set()
        return [coming[0] if len(coming) == 1 else coming.pop(0), "more"]

    with progress.live(lines):
        assert is_over.wait(30)
    assert capsys.readouterr().err.splitlines() == ["1 of 3", "2 of 3"]
