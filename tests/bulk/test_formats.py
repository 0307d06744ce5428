"""Files of bulk work: several, packed, as streams, from one format to another; the same rows in the same order."""

import gzip
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from callwright.bulk.columns import cell, from_columns, kinds_of, merged_kinds
from callwright.cli import main

Json = dict[str, Any]
COMMAND = str(Path(sys.executable).with_name("callwright"))
TOOLS: list[Json] = [{"type": "function", "function": {"name": "ring_bell", "parameters": {"type": "object"}}}]
needs_pyarrow = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")


def rows(count: int, first: int = 0) -> list[Json]:
    written = '<tool_call>{"name": "ring_bell", "arguments": {"times": %d}}</tool_call>'
    return [
        {"id": number, "output": written % number, "weight": number / 2, "tags": ["tide", "ø"], "tools": TOOLS}
        for number in range(first, first + count)
    ]


def lines(*given: Json) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in given)


def put(path: Path, *given: Json) -> Path:
    """A file of rows in the format that its name says."""
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(lines(*given)))
    elif path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet as parquet

        texts = [{**row, "tools": json.dumps(row["tools"])} for row in given]
        parquet.write_table(pyarrow.Table.from_pylist(texts), path)
    else:
        path.write_bytes(lines(*given))
    return path


def got(path: Path) -> list[Json]:
    """The rows of a file, whatever format it has, with JSON in columns read."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as parquet

        found = parquet.read_table(path).to_pylist()
        named = ("tools", "tags", "message", "problems")
        return [
            {name: json.loads(v) if name in named and isinstance(v, str) else v for name, v in row.items()}
            for row in found
        ]
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return list(map(json.loads, text.splitlines()))


def done(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["bulk", "parse", *map(str, arguments), "--dialect", "hermes"])


SUFFIXES = ("jsonl", "ndjson", "jsonl.gz", "parquet")


@pytest.mark.clients
@needs_pyarrow
@pytest.mark.parametrize("source", SUFFIXES)
@pytest.mark.parametrize("target", SUFFIXES)
def test_from_each_format_to_each_the_rows_are_the_same(tmp_path: Path, source: str, target: str) -> None:
    expected = tmp_path / "expected.jsonl"
    assert done(put(tmp_path / "plain.jsonl", *rows(30)), expected).exit_code == 0
    out = tmp_path / f"out.{target}"
    result = done(put(tmp_path / f"in.{source}", *rows(30)), out, "--part-mb", 0.001)
    assert result.exit_code == 0, result.output
    nothing = {"error": None}  # in a table each row has each column
    assert [nothing | row for row in got(out)] == [nothing | row for row in got(expected)]
    assert not (tmp_path / f"out.{target}.parts").exists()


@pytest.mark.clients
@needs_pyarrow
@pytest.mark.parametrize("target", SUFFIXES)
def test_several_files_become_one_in_the_order_in_which_they_are_named(tmp_path: Path, target: str) -> None:
    given = [put(tmp_path / f"{name}", *rows(9, first)) for name, first in (("b.jsonl", 0), ("a.jsonl.gz", 9))]
    given.append(put(tmp_path / "c.parquet", *rows(9, 18)))
    out = tmp_path / f"out.{target}"
    result = done(*given, out, "--part-mb", 0.0005, "--workers", 2)
    assert result.exit_code == 0, result.output
    assert [row["id"] for row in got(out)] == list(range(27))
    assert all(row["finish_reason"] == "tool_calls" for row in got(out))


def test_the_same_rows_are_packed_to_the_same_bytes(tmp_path: Path) -> None:
    source = put(tmp_path / "in.jsonl", *rows(20))
    for name in ("one", "two"):
        assert done(source, tmp_path / f"{name}.jsonl.gz", "--part-mb", 0.001).exit_code == 0
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()


@pytest.mark.processes
@pytest.mark.parametrize("target", ["-", "out.jsonl"])
def test_what_comes_in_by_a_pipe_goes_out_by_one(tmp_path: Path, target: str) -> None:
    ran = subprocess.run(
        [COMMAND, "bulk", "parse", "-", target, "--dialect", "hermes"],
        input=lines(*rows(5)),
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    out = ran.stdout if target == "-" else (tmp_path / target).read_bytes()
    assert [json.loads(line)["id"] for line in out.splitlines()] == list(range(5))
    assert b"5 rows, 0 with problems" in ran.stderr
    assert (b"Wrote standard output." in ran.stderr) == (target == "-")


# --- counts and status ---

GOOD: Json = {"output": "It is high tide."}
BAD: Json = {"output": 7}
BAD_OUTPUT = (
    "Expected a text in `output`, messages (`messages`, `conversations`) or `choices`, got int in `output`. "
    "Name another: --field output=NAME."
)
MENDED: Json = {"output": "<tool_call>{'name': 'ring_bell', 'arguments': {}}</tool_call>", "tools": TOOLS}

# The rows, and the exit status by what the work is to fail on.
FAILS: dict[str, tuple[list[Json], dict[str, int]]] = {
    "nothing": ([], {"all": 0, "error": 0, "problem": 0}),
    "all is well": ([GOOD, GOOD], {"all": 0, "error": 0, "problem": 0}),
    "a problem": ([GOOD, MENDED], {"all": 0, "error": 0, "problem": 1}),
    "an error": ([GOOD, BAD], {"all": 0, "error": 1, "problem": 1}),
    "errors only": ([BAD, BAD], {"all": 1, "error": 1, "problem": 1}),
}


@pytest.mark.parametrize("on", ["all", "error", "problem"])
@pytest.mark.parametrize("title", FAILS)
def test_the_status_says_whether_the_work_has_failed(tmp_path: Path, title: str, on: str) -> None:
    given, status = FAILS[title]
    source, target = put(tmp_path / "in.jsonl", *given), tmp_path / "out.jsonl"
    assert done(source, target, "--fail-on", on).exit_code == status[on]
    assert len(target.read_bytes().splitlines()) == len(given)


def test_the_counts_are_told_to_machines(tmp_path: Path) -> None:
    source, summary = put(tmp_path / "in.jsonl", GOOD, BAD, MENDED), tmp_path / "counts.json"
    assert done(source, tmp_path / "out.jsonl", "--summary", summary).exit_code == 0
    counts = json.loads(summary.read_bytes())
    assert counts["rows_per_second"] > 0
    assert counts["seconds"] > 0
    assert {name: counts[name] for name in counts if not name.endswith(("second", "seconds"))} == {
        "operation": "parse",
        "rows": 3,
        "rows_with_errors": 1,
        "rows_with_problems": 1,
        "errors": {BAD_OUTPUT: 1},
        "problems": {"json_repaired": 1, "arguments_trailing_text": 1},
        "examples": {
            BAD_OUTPUT: {"row": 2},
            "json_repaired": {"row": 3, "detail": "bad quotes, 3 times", "excerpt": MENDED["output"]},
            "arguments_trailing_text": {
                "row": 3,
                "detail": "text beside the arguments",
                "excerpt": "{'name': 'ring_bell', 'arguments': }",
            },
        },
        "parts": 1,
        "parts_done_before": 0,
    }
    told = done(source, tmp_path / "other.jsonl", "--summary", "-")
    assert json.loads(told.stdout)["rows"] == 3


# --- what cannot be ---

# The arguments, and words of what is said. Files: a.jsonl, a.parquet (`id` is a number), b.parquet (`id` is a text).
WRONG: dict[str, tuple[str, str]] = {
    "a gzip that is none": ("none.jsonl.gz out.jsonl", "Cannot read none.jsonl.gz"),
    "Parquet that is none": ("none.parquet out.jsonl", "Cannot read none.parquet"),
    "one of several is missing": ("a.jsonl gone.jsonl out.jsonl", "Cannot read gone.jsonl"),
    "a packed table": ("a.jsonl out.parquet.gz", "got '.parquet.gz'"),
    "a stream beside a file": ("- a.jsonl out.jsonl", "cannot be combined"),
    "two standard outputs": ("a.jsonl - --summary -", "are both standard output"),
    "columns that are not one": ("a.parquet b.parquet out.parquet", "different types"),
    "one of the inputs is the output": ("a.jsonl b.jsonl b.jsonl", "is the input itself"),
}


@pytest.mark.clients
@needs_pyarrow
@pytest.mark.parametrize("title", WRONG)
def test_what_cannot_be_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, title: str) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.jsonl", "b.jsonl", "a.parquet"):
        put(Path(name), *rows(2))
    put(Path("b.parquet"), *[{**row, "id": "x"} for row in rows(2)])
    for name in ("none.jsonl.gz", "none.parquet"):
        Path(name).write_bytes(b"nonsense")
    before = sorted(tmp_path.iterdir())
    arguments, words = WRONG[title]
    result = done(*arguments.split())
    assert result.exit_code == 2, result.output
    assert words in result.output
    assert sorted(tmp_path.iterdir()) == before


ROW = '{"output": "x"}'
# The content of a file, and words of the message; None if it is JSONL, with bad lines or without.
KINDS: dict[str, tuple[str, bytes, str | None]] = {
    "an array": ("a.jsonl", f"[{ROW}, {ROW}]".encode(), "a JSON array. Convert it: cat a.jsonl | jq -c '.[]' >"),
    "an array over lines": ("a.ndjson", f"\ufeff[\n  {ROW},\n  {ROW}\n]".encode(), "a JSON array"),
    "a packed array": ("a.jsonl.gz", gzip.compress(f"[{ROW}]".encode()), "gzip -dc a.jsonl.gz | jq -c '.[]'"),
    "an object over lines": ("a.jsonl", b'{\n  "output": "x"\n}\n', "a JSON object over several lines"),
    "CSV": ("a.jsonl", b"id,output\n1,x\n", "a table (CSV) with the columns id,output"),
    "tabs": ("a.jsonl", b"id\toutput\n1\tx\n", "sep='\\t'"),
    "Parquet": ("a.jsonl", b"PAR1....", "Parquet: name it .parquet"),
    "gzip": ("a.jsonl", gzip.compress(ROW.encode()), "gzip: name it .jsonl.gz"),
    "zip": ("a.jsonl", b"PK\x03\x04....", "a zip archive"),
    "a bad line first": ("a.jsonl", f"[1, 2]\n{ROW}\n".encode(), None),
    "a comma first": ("a.jsonl", f"id,output\n{ROW}\n".encode(), None),
    "half an object": ("a.jsonl", b'{"output": "x", ', None),
    "nothing": ("a.jsonl", b"\n \n", None),
}


@pytest.mark.parametrize("title", KINDS)
@pytest.mark.parametrize("operation", ["parse", "validate"])
def test_a_file_of_another_kind_is_named_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, title: str, operation: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name, content, words = KINDS[title]
    Path(name).write_bytes(content)
    result = CliRunner().invoke(main, ["bulk", operation, name, "out.jsonl"])
    if words is None:
        assert result.exit_code < 2, result.output
        assert Path("out.jsonl").exists()
        return
    assert result.exit_code == 2
    assert f"{name}: expected JSONL, one JSON object a line, got " in result.output
    assert words in result.output
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("engine", ["ray", "daft"])
def test_an_engine_that_is_missing_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("callwright.bulk.engines.find_spec", lambda _: None)
    put(Path("a.jsonl"), *rows(2))
    result = CliRunner().invoke(main, ["bulk", "parse", "a.jsonl", "out.jsonl", "--engine", engine])
    assert result.exit_code == 2
    assert f"The engine {engine}: {engine} is missing. Install it" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


# --- tables of rows with any fields ---

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
ANY_ROWS = st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), max_size=6)


@given(ANY_ROWS, st.integers(0, 6))
def test_columns_are_the_same_in_whatever_parts_they_are_found(given_rows: list[Json], cut: int) -> None:
    whole = kinds_of(given_rows)
    assert merged_kinds([kinds_of(given_rows[:cut]), kinds_of(given_rows[cut:])]) == whole
    assert set(whole) == {name for row in given_rows for name in row}
    held = {"none": type(None), "bool": bool, "int64": int, "double": float, "string": str, "json": str}
    for row in given_rows:
        for name, value in row.items():
            made = cell(value, whole[name])
            assert made is None or type(made) is held[whole[name]]


@pytest.mark.clients
@needs_pyarrow
def test_a_large_row_group_is_cut_and_none_of_its_rows_is_lost(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet as parquet

    from callwright.bulk.files import part_bytes_of, parts_of
    from tests.support.bulk import read_part

    count = 5_000
    path = tmp_path / "in.parquet"
    table = pyarrow.table({"id": range(count), "output": [f"{number} boats " * 50 for number in range(count)]})
    parquet.write_table(table, path, row_group_size=count, use_dictionary=False)
    parts = parts_of([path], part_bytes_of([path]))
    assert 10 < len(parts) <= 32
    assert [row["id"] for part in parts for row in read_part(path, part) if isinstance(row, dict)] == list(range(count))


def test_a_row_of_a_table_has_no_members_that_only_others_have() -> None:
    assert from_columns({"messages": '[{"role": "user"}]', "x": {"a": None, "b": [{"c": None}]}}) == {
        "messages": [{"role": "user"}],
        "x": {"b": [{}]},
    }
