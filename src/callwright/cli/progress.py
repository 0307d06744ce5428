"""Progress of long work on standard error: in a terminal with rich, elsewhere in plain lines.

rich is imported only when needed: it is slow to load, and only terminals use it.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import click

from callwright.cli.terminal import is_terminal

# Seconds between progress lines outside a terminal.
_EVERY_S: Final = 5.0


@contextmanager
def status(about: str) -> Iterator[Callable[[str], None]]:
    """Yields a function that shows the current step: in a terminal on one temporary line, elsewhere on a new line."""
    if not is_terminal(sys.stderr):
        click.echo(f"{about} …", err=True)
        yield lambda text: click.echo(f"  {text}", err=True)
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False).status(f"{about} …") as line:
        yield lambda text: line.update(f"{about} … {text}")


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int, str], None]]:
    """Yields a function to call with `(done, text)` after `done` more of the `total` bytes. In a terminal it shows a
    bar, elsewhere a line every few seconds, with or without progress.
    """
    if not is_terminal(sys.stderr):
        with _Lines(total) as lines:
            yield lines.advance
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.BarColumn(20),
        progress.TaskProgressColumn(),
        progress.DownloadColumn(),
        progress.TextColumn("{task.description}"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True, highlight=False)) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, text: bar.update(task, advance=done, description=text)


@contextmanager
def live(lines: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Show the current `lines`: in a terminal in place, as many as fit; elsewhere the first line, every few seconds if
    it has changed.
    """
    if is_terminal(sys.stderr):
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        with Live(
            get_renderable=lambda: Text.from_ansi("\n".join(lines()), no_wrap=True, overflow="ellipsis"),
            console=Console(stderr=True, highlight=False),
            transient=True,
        ):
            yield
        return
    is_over = threading.Event()

    def tell() -> None:
        latest = ""
        while not is_over.wait(_EVERY_S):
            if (line := lines()[0]) != latest:
                click.echo(line, err=True)
            latest = line

    thread = threading.Thread(target=tell, name="callwright progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


class _Lines:
    """Prints a line every few seconds, from its own thread."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._text = "nothing yet"
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="callwright progress", daemon=True)

    def __enter__(self) -> "_Lines":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def advance(self, done: int, text: str) -> None:
        """Record that `done` more bytes are done."""
        self._done += done
        self._text = text

    def _tell(self) -> None:
        while not self._is_over.wait(_EVERY_S):
            share = self._done / max(self._total, 1)
            click.echo(f"{share:4.0%}  {self._done / 1e6:,.1f} of {self._total / 1e6:,.1f} MB  {self._text}", err=True)
