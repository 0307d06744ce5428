"""Parquet files: ranges of rows of a row group, read and written some rows at a time, so that memory use does not
depend on the size of a row group.

In added columns, values other than texts and booleans are JSON text.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from callwright.bulk.columns import ColumnKind, Row, cell, from_columns
from callwright.errors import ConfigError
from callwright.settings.extras import missing_package

# The most ranges of a row group: to reach its range, a reader must read all rows before it.
_MAX_RANGES: Final = 32
# Rows to read, or to write as a row group, at a time; fewer if they are large.
_BATCH_ROWS: Final = 10_000
_BATCH_BYTES: Final = 4_000_000
# Pages are read from the file as they are needed.
_BUFFER_BYTES: Final = 1 << 20


def library() -> Any:
    """`pyarrow.parquet`. Raises `ConfigError` if it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise missing_package("pyarrow", "Parquet") from error
    return pyarrow.parquet


def _open_file(path: Path) -> Any:
    return library().ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False)


def bytes_of(path: Path) -> int:
    """The size of a file's columns, in bytes."""
    with _open_file(path) as file:
        return sum(file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups))


def schema_of(path: Path) -> Any:
    """The columns of a file."""
    return library().read_schema(path)


def spans(path: Path, size: int) -> Iterator[tuple[int, int, int, int]]:
    """The ranges of a file, of about `size` bytes: row group, first row, end row (exclusive), bytes."""
    with _open_file(path) as file:
        for group in range(file.num_row_groups):
            told = file.metadata.row_group(group)
            rows, bytes_ = told.num_rows, told.total_byte_size
            ranges = max(1, min(_MAX_RANGES, rows, -(-bytes_ // max(1, size))))
            for number in range(ranges):
                begin, end = rows * number // ranges, rows * (number + 1) // ranges
                yield group, begin, end, bytes_ * (number + 1) // ranges - bytes_ * number // ranges


def read_rows(path: Path, group: int, begin: int, end: int) -> Iterator[list[Row]]:
    """The rows of a range, some at a time."""
    with _open_file(path) as file:
        told = file.metadata.row_group(group)
        each = max(1, told.total_byte_size // max(1, told.num_rows))
        at = 0
        for batch in file.iter_batches(max(1, min(_BATCH_ROWS, _BATCH_BYTES // each)), row_groups=[group]):
            first, last = max(begin - at, 0), min(end - at, batch.num_rows)
            if first < last:
                yield [from_columns(row) for row in batch.slice(first, last - first).to_pylist()]
            at += batch.num_rows
            if at >= end:
                return


def schema_with(paths: Sequence[Path], adds: Mapping[str, str]) -> Any:
    """The merged schema of these files, with the columns that rows get and without those that they lose (`""`). Raises
    `ConfigError` if their schemas conflict.
    """
    import pyarrow

    try:
        one = pyarrow.unify_schemas([schema_of(path).remove_metadata() for path in paths])
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise ConfigError(f"The inputs have columns of one name and different types: {error}") from error
    if len(paths) == 1:
        one = schema_of(paths[0])
    kept = [field for field in one if field.name not in adds]
    return pyarrow.schema([*kept, *[pyarrow.field(name, _type(kind)) for name, kind in adds.items() if kind]])


def schema_for(columns: Mapping[str, ColumnKind]) -> Any:
    """The schema for rows with fields of these kinds."""
    import pyarrow

    return pyarrow.schema([pyarrow.field(name, _type(kind)) for name, kind in columns.items()])


_TYPES: Final[Mapping[str, str]] = {"none": "null", "bool": "bool_", "double": "float64", "json": "string"}


def _type(kind: str) -> Any:
    import pyarrow

    return getattr(pyarrow, _TYPES.get(kind, kind))()


class Writer:
    """Writes rows to a file with a schema. A value that does not fit a text column becomes JSON text."""

    def __init__(self, path: Path, schema: Any) -> None:
        import pyarrow

        self._schema = schema
        self._made = {
            field.name: {"bool": "bool", "int64": "int64", "double": "double"}.get(str(field.type), "json")
            for field in schema
            if str(field.type) in ("bool", "int64", "double", "string", "large_string")
        }
        self._table = pyarrow.Table
        self._writer = library().ParquetWriter(path, schema)

    def write(self, rows: Sequence[Row]) -> None:
        """Write some rows, which become a row group or several."""
        made = [{**row, **{name: cell(row.get(name), kind) for name, kind in self._made.items()}} for row in rows]
        if made:
            self._writer.write_table(self._table.from_pylist(made, schema=self._schema))

    def close(self) -> None:
        """Write the end of the file."""
        self._writer.close()


def join(parts: Sequence[Path], path: Path, schema: Any) -> None:
    """Concatenate files of one schema, a row group at a time."""
    with library().ParquetWriter(path, schema) as writer:
        for part in parts:
            with _open_file(part) as file:
                for group in range(file.num_row_groups):
                    writer.write_table(file.read_row_group(group))
