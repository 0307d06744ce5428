"""The command line: `callwright serve | parse | render | dialects | codex | chat`."""

from callwright.cli.main import main

__all__ = ["main"]
