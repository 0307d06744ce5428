"""The command line: `toolwright serve | parse | render | dialects | codex`."""

from toolwright.cli.main import main

__all__ = ["main"]
