"""Standard input and output of `callwright bulk`, as temporary files: a job reads and writes parts of files."""

import hashlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from callwright.bulk.job import Source
from callwright.errors import ConfigError

STREAM: Final = Path("-")
_PIECE: Final = 1 << 20


@contextmanager
def streams(sources: Sequence[Path], target: Path) -> Iterator[tuple[tuple[Path, ...], Path, Source | None]]:
    """The inputs and the output as files, and the identity of standard input: a hash of its content, so that a job on
    the same input can be continued. Standard output is written at the end. Raises `ConfigError`.
    """
    if STREAM not in (*sources, target):
        yield tuple(sources), target, None
        return
    if STREAM in sources and len(sources) > 1:
        raise ConfigError("Standard input (-) cannot be combined with files: name files, or pipe all of them into it.")
    with TemporaryDirectory(prefix="callwright-") as folder:
        known_as = None
        if STREAM in sources:
            sources = (Path(folder, "input.jsonl"),)
            known_as = _store_stdin(sources[0])
        output = Path(folder, "output.jsonl") if target == STREAM else target
        yield tuple(sources), output, known_as
        if target == STREAM:
            with output.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer, _PIECE)
            sys.stdout.flush()


def _store_stdin(path: Path) -> Source:
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        while piece := sys.stdin.buffer.read(_PIECE):
            file.write(piece)
            digest.update(piece)
            size += len(piece)
    return Source(f"sha256:{digest.hexdigest()}", size, 0)
