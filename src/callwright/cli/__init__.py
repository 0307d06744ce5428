"""The command line: `callwright serve | parse | render | dialects | launch | chat`."""

from callwright.cli.main import main

__all__ = ["main"]
