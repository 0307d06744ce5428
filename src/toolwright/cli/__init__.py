"""The command line: `toolwright serve | parse | render | dialects | codex | chat`."""

from toolwright.cli.main import main

__all__ = ["main"]
