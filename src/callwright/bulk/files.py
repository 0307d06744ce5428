"""Files of rows, JSONL or Parquet, in parts that can be read and written by themselves.

A part of a JSONL file is a range of bytes that begins and ends with a line, one of a Parquet file a row group. In
columns that are added to Parquet what is no text or boolean is JSON text.
"""

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from callwright.errors import ConfigError
from callwright.extras import missing_package
from callwright.tolerant_json.codec import NotJsonError, decode, encode

__all__ = [
    "BadLine",
    "Format",
    "Part",
    "format_of",
    "half_of",
    "has_field",
    "joined",
    "part_bytes_of",
    "parts_of",
    "read_part",
    "write_part",
]

Format: TypeAlias = Literal["jsonl", "parquet"]
Row: TypeAlias = dict[str, Any]

_FORMATS: Final[Mapping[str, Format]] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
# A JSONL file has about so many parts, none of which is smaller or larger than that: enough for each worker to have its
# share and to see that it goes on, few enough to be cheap.
_PARTS: Final = 32
_MIN_PART_BYTES: Final = 65_536
_MAX_PART_BYTES: Final = 8_000_000
# Columns that may hold JSON as text.
_JSON_COLUMNS: Final = ("messages", "input", "tools", "tool_choice")


class Part(Struct, frozen=True):
    """A part of a file: bytes from `begin` to `end`, or the row group `begin`. `size` counts bytes, of Parquet those of
    its columns.
    """

    number: int
    begin: int
    end: int
    size: int


def format_of(path: Path) -> Format:
    """The format of a file, by its suffix. Raises `ConfigError`."""
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise ConfigError(f"{path}: expected a file that ends in {', '.join(_FORMATS)}, got {path.suffix or 'none'!r}.")
    if found == "parquet":
        _parquet()
    return found


def part_bytes_of(path: Path) -> int:
    """How large the parts of a JSONL file should be. Raises `ConfigError` for one that cannot be read."""
    try:
        return max(_MIN_PART_BYTES, min(_MAX_PART_BYTES, path.stat().st_size // _PARTS))
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error}.") from error


def parts_of(path: Path, size: int) -> list[Part]:
    """The parts of a file, of about `size` bytes in JSONL. Raises `ConfigError` for one that cannot be read."""
    try:
        if format_of(path) == "parquet":
            file = _parquet().ParquetFile(path)
            sizes = [file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups)]
            return [Part(number, number, number + 1, size) for number, size in enumerate(sizes)]
        return [Part(number, begin, end, end - begin) for number, (begin, end) in enumerate(_spans(path, size))]
    except (OSError, ValueError) as error:
        raise ConfigError(f"Cannot read {path}: {error}.") from error


def _spans(path: Path, size: int) -> Iterator[tuple[int, int]]:
    end = path.stat().st_size
    begin = 0
    with path.open("rb") as file:
        while begin < end:
            file.seek(min(begin + size, end))
            file.readline()  # the line that goes on here belongs to this part
            yield begin, file.tell()
            begin = file.tell()


class BadLine(Struct, frozen=True):
    """A line that is no JSON object, as it is."""

    line: str
    error: str


def has_field(path: Path, part: Part, name: str) -> bool:
    """Whether rows have a field: in JSONL any of a part, in Parquet all."""
    if format_of(path) == "parquet":
        return name in _parquet().read_schema(path).names
    return any(not isinstance(row, BadLine) and row.get(name) for row in read_part(path, part))


def read_part(path: Path, part: Part) -> list[Row | BadLine]:
    """The rows of a part."""
    if format_of(path) == "parquet":
        return [_from_columns(row) for row in _parquet().ParquetFile(path).read_row_group(part.begin).to_pylist()]
    with path.open("rb") as file:
        file.seek(part.begin)
        lines = file.read(part.end - part.begin).split(b"\n")
    return [_row(line) for line in lines if line.strip()]


def _row(line: bytes) -> Row | BadLine:
    try:
        row = decode(line.decode())
    except (NotJsonError, UnicodeDecodeError) as error:
        return BadLine(line.decode(errors="replace"), f"This line is no JSON: {error}")
    return row if isinstance(row, dict) else BadLine(line.decode(), "This line is no JSON object.")


def half_of(path: Path) -> Path:
    """Where a file is written until it is whole. Each time another: a worker of a killed command may still be at it."""
    return path.with_name(f"{path.stem}.{secrets.token_hex(4)}.half")


def write_part(path: Path, rows: Sequence[Row], source: Path, adds: Mapping[str, str]) -> None:
    """Write a part, whole or not at all. `adds`: the fields that rows of `source` get, and drop, with their types in
    Parquet (`string`, `bool`; `""` = dropped).
    """
    half = half_of(path)
    if path.suffix == ".parquet":
        _write_parquet(half, rows, source, adds)
    else:
        with half.open("wb") as file:
            file.writelines(encode(row) + b"\n" for row in rows)
    os.replace(half, path)


def joined(parts: Sequence[Path], path: Path) -> None:
    """Write the parts one behind the other into a file, whole or not at all."""
    half = path.with_name(f"{path.name}.half")
    if path.suffix == ".parquet":
        parquet = _parquet()
        schema = parquet.read_schema(parts[0])
        with parquet.ParquetWriter(half, schema) as writer:
            for part in parts:
                writer.write_table(parquet.read_table(part))
    else:
        with half.open("wb") as file:
            for part in parts:
                with part.open("rb") as piece:
                    shutil.copyfileobj(piece, file, 1 << 20)
    os.replace(half, path)


# --- Parquet ---


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise missing_package("pyarrow", "Parquet") from error
    return pyarrow.parquet


def _write_parquet(path: Path, rows: Sequence[Row], source: Path, adds: Mapping[str, str]) -> None:
    import pyarrow

    parquet = _parquet()
    kept = [field for field in parquet.read_schema(source) if field.name not in adds]
    added = [pyarrow.field(name, getattr(pyarrow, kind)()) for name, kind in adds.items() if kind]
    schema = pyarrow.schema([*kept, *added])
    made = [{**row, **{name: _as_column(row.get(name)) for name, kind in adds.items() if kind}} for row in rows]
    parquet.write_table(pyarrow.Table.from_pylist(made, schema=schema), path)


def _as_column(value: Any) -> Any:
    return value if value is None or isinstance(value, str | bool) else encode(value).decode()


def _from_columns(row: Row) -> Row:
    return {name: _from_column(name, value) for name, value in row.items()}


def _from_column(name: str, value: Any) -> Any:
    if name in _JSON_COLUMNS and isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return decode(value)
        except NotJsonError:
            return value
    return _without_nothing(value)


def _without_nothing(value: Any) -> Any:
    """A nested value without the members that only other rows have."""
    match value:
        case dict():
            return {key: _without_nothing(member) for key, member in value.items() if member is not None}
        case list():
            return [_without_nothing(item) for item in value]
    return value
