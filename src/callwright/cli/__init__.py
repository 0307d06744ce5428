"""The command line: `callwright serve | parse | render | dialects | codex | claude | chat`."""

from callwright.cli.main import main

__all__ = ["main"]
