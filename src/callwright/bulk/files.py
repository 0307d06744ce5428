"""Files of rows, JSONL or Parquet, in parts that can be read and written by themselves.

A part of a JSONL file is a range of bytes that begins and ends with a line, one of a Parquet file a range of the rows
of a row group. Both are read and written some rows at a time. JSONL may be packed by gzip: it is unpacked before it is
read in parts, see `unpack`.
"""

import codecs
import gzip
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct

from callwright.bulk import parquet
from callwright.bulk.columns import ColumnKind, Row
from callwright.errors import ConfigError, reason_of
from callwright.tolerant_json.codec import NotJsonError, decode, encode

Format: TypeAlias = Literal["jsonl", "parquet"]

_FORMATS: Final[Mapping[str, Format]] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_PACKED: Final = ".gz"
# The approximate number of parts of an input, and the limits of their size: enough parts to occupy all workers and show
# progress, few enough to be cheap.
_PARTS: Final = 32
_MIN_PART_BYTES: Final = 65_536
_MAX_PART_BYTES: Final = 8_000_000
# What files of other kinds begin with.
_MAGIC: Final = {
    b"PAR1": "Parquet: name it .parquet",
    b"\x1f\x8b": "gzip: name it .jsonl.gz",
    b"PK\x03\x04": "a zip archive: unpack it first",
    b"\x28\xb5\x2f\xfd": "Zstandard: unpack it first",
}
# The delimiters of columns in a table, and the same in Python.
_DELIMITERS: Final = {b",": ",", b"\t": r"\t", b";": ";"}
# Bytes at the begin of a file that show its kind, and those of them in a message.
_SNIFFED_BYTES: Final = 65_536
_SHOWN_BYTES: Final = 60
# Bytes of a JSONL file read at a time, in addition to the rest of the last line.
_READ_BYTES: Final = 1_000_000
# Outputs are read again: speed matters more than the last tenth of their size.
_GZIP_LEVEL: Final = 5


class Part(Struct, frozen=True):
    """A part of the input number `source`: bytes of a JSONL file from `begin` to `end`, or rows of the row group
    `group`. `size` counts bytes, of Parquet those of its columns.
    """

    number: int
    source: int
    begin: int
    end: int
    size: int
    group: int = -1


class BadLine(Struct, frozen=True):
    """A line that is no JSON object, as it is."""

    line: str
    error: str


class RowWriter(Protocol):
    """Takes the rows of a part in order."""

    def write(self, rows: Sequence[Row]) -> None: ...

    def close(self) -> None: ...


def is_packed(path: Path) -> bool:
    """Whether a file is packed by gzip, by its suffix."""
    return path.suffix.lower() == _PACKED


def format_of(path: Path) -> Format:
    """The format of a file, by its suffix. Raises `ConfigError`."""
    inner = path.with_suffix("") if is_packed(path) else path
    found = _FORMATS.get(inner.suffix.lower())
    if found is None or (found == "parquet" and is_packed(path)):
        known = ", ".join([*_FORMATS, f".jsonl{_PACKED}"])
        got = "".join(path.suffixes[-2:] if is_packed(path) else path.suffixes[-1:])
        raise ConfigError(f"{path}: expected a file that ends in {known}, got {got or 'none'!r}.")
    if found == "parquet":
        parquet.library()
    return found


def unpack(path: Path, to: Path) -> None:
    """Unpack a file into another, atomically. Raises `ConfigError` if it is not valid gzip."""
    half = half_of(to)
    try:
        with gzip.open(path, "rb") as packed, half.open("wb") as file:
            shutil.copyfileobj(packed, file, 1 << 20)
    except (OSError, EOFError) as error:
        half.unlink(missing_ok=True)
        raise ConfigError(f"Cannot read {path}: {reason_of(error)}.") from error
    half.replace(to)


def part_bytes_of(paths: Sequence[Path]) -> int:
    """The size in bytes of the parts of these files. Raises `ConfigError` for one that cannot be read."""
    size = 0
    for path in paths:
        try:
            size += parquet.bytes_of(path) if format_of(path) == "parquet" else path.stat().st_size
        except (OSError, ValueError) as error:
            raise ConfigError(f"Cannot read {path}: {reason_of(error)}.") from error
    return max(_MIN_PART_BYTES, min(_MAX_PART_BYTES, size // _PARTS))


def parts_of(paths: Sequence[Path], size: int) -> list[Part]:
    """The parts of the files, of about `size` bytes. Raises `ConfigError` for a file that cannot be read."""
    parts: list[Part] = []
    for source, path in enumerate(paths):
        try:
            if format_of(path) == "parquet":
                spans = list(parquet.spans(path, size))
            else:
                spans = [(-1, begin, end, end - begin) for begin, end in _spans(path, size)]
        except (OSError, ValueError) as error:
            raise ConfigError(f"Cannot read {path}: {reason_of(error)}.") from error
        parts += [
            Part(number, source, begin, end, bytes_, group)
            for number, (group, begin, end, bytes_) in enumerate(spans, len(parts))
        ]
    return parts


def check_lines(path: Path, unpacked: Path) -> None:
    """Raise `ConfigError` if the begin of a JSONL file shows that it is of another kind than its suffix."""
    with unpacked.open("rb") as file:
        begin = file.read(_SNIFFED_BYTES)
    kind = next((what for magic, what in _MAGIC.items() if begin.startswith(magic)), None)
    lines = list(filter(None, map(_bare, begin.split(b"\n"))))
    if kind is None and lines and (lines[0] == b"[" or not any(isinstance(_row(line), dict) for line in lines)):
        kind = _kind_of_text(path, lines[0])
    if kind is not None:
        raise ConfigError(f"{path}: expected JSONL, one JSON object a line, got {kind}.")


def _kind_of_text(path: Path, first: bytes) -> str | None:
    """The kind of a text by its first line, and how to convert it; None if it is not known."""
    read = f"gzip -dc {path} | jq -c" if is_packed(path) else f"cat {path} | jq -c"
    if first[:1] == b"[":
        return f"a JSON array. Convert it: {read} '.[]' > rows.jsonl"
    if first[:1] == b"{":
        return f"a JSON object over several lines. Convert it: {read} . > rows.jsonl" if first == b"{" else None
    mark = next((mark for mark in _DELIMITERS if mark in first), None)
    if mark is None:
        return None
    columns = first[:_SHOWN_BYTES].decode(errors="replace")
    table = f"pandas.read_csv('{path}', sep='{_DELIMITERS[mark]}')"
    way_out = f"Convert it in Python: {table}.to_json('rows.jsonl', orient='records', lines=True)"
    return f"a table (CSV) with the columns {columns}. {way_out}"


def _spans(path: Path, size: int) -> Iterator[tuple[int, int]]:
    end = path.stat().st_size
    begin = 0
    with path.open("rb") as file:
        while begin < end:
            file.seek(min(begin + size, end))
            file.readline()  # a line that crosses the boundary belongs to this part
            yield begin, file.tell()
            begin = file.tell()


def has_field(path: Path, part: Part, name: str) -> bool:
    """Whether rows have a field: in JSONL any of a part, in Parquet all."""
    if format_of(path) == "parquet":
        return name in parquet.schema_of(path).names
    return any(not isinstance(row, BadLine) and row.get(name) for rows in read_rows(path, part) for row in rows)


def read_rows(path: Path, part: Part) -> Iterator[Sequence[Row | BadLine]]:
    """The rows of a part, some at a time."""
    if format_of(path) == "parquet":
        yield from parquet.read_rows(path, part.group, part.begin, part.end)
        return
    with path.open("rb") as file:
        file.seek(part.begin)
        while (left := part.end - file.tell()) > 0:
            lines = file.read(min(left, _READ_BYTES))
            if left > _READ_BYTES:
                lines += file.readline()
            yield [_row(line) for line in lines.split(b"\n") if _bare(line)]


def _bare(line: bytes) -> bytes:
    """A line without surrounding white space and without a byte order mark."""
    return line.strip().removeprefix(codecs.BOM_UTF8)


def _row(line: bytes) -> Row | BadLine:
    try:
        row = decode(_bare(line).decode())
    except (NotJsonError, UnicodeDecodeError) as error:
        return BadLine(line.decode(errors="replace"), f"This line is not valid JSON: {error}")
    return row if isinstance(row, dict) else BadLine(line.decode(), "This line is not a JSON object.")


def half_of(path: Path) -> Path:
    """A temporary path for a file until it is complete. Unique: a worker of a killed command may still be writing."""
    return path.with_name(f"{path.stem}.{secrets.token_hex(4)}.half")


# --- writing ---


class _Lines:
    """Writes JSONL, packed or not. The same rows give the same bytes: there is no timestamp."""

    def __init__(self, path: Path, *, packed: bool) -> None:
        self._below = path.open("wb")
        self._file: IO[bytes] | gzip.GzipFile = self._below
        if packed:
            self._file = gzip.GzipFile("", "wb", _GZIP_LEVEL, self._below, mtime=0)

    def write(self, rows: Sequence[Row]) -> None:
        self._file.write(b"".join([encode(row) + b"\n" for row in rows]))

    def close(self) -> None:
        if self._file is not self._below:
            self._file.close()
        self._below.close()


def rows_writer(path: Path, like: Path, schema: Any = None) -> RowWriter:
    """Return a writer of rows to `path` in the format of the file `like`: Parquet with this schema, or JSONL. Without a
    schema the rows of a Parquet file are stored as JSONL until it is known.
    """
    if schema is not None:
        return parquet.Writer(path, schema)
    return _Lines(path, packed=is_packed(like))


def joined(
    parts: Sequence[Path], path: Path, schema: Any = None, columns: Mapping[str, ColumnKind] | None = None
) -> None:
    """Concatenate the parts into a file, atomically. `schema`: that of Parquet parts. `columns`: write Parquet with
    these columns from parts in JSONL. Neither: concatenate the bytes.
    """
    half = half_of(path)
    try:
        if columns is not None:
            _join_lines(parts, half, columns)
        elif schema is not None:
            parquet.join(parts, half, schema)
        else:
            with half.open("wb") as file:
                for part in parts:
                    with part.open("rb") as piece:
                        shutil.copyfileobj(piece, file, 1 << 20)
        os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)


def _join_lines(parts: Sequence[Path], half: Path, columns: Mapping[str, ColumnKind]) -> None:
    writer = parquet.Writer(half, parquet.schema_for(columns))
    for number, part in enumerate(parts):
        for rows in read_rows(part, Part(number, 0, 0, part.stat().st_size, 0)):
            writer.write([row for row in rows if not isinstance(row, BadLine)])
    writer.close()
