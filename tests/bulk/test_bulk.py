"""Bulk work: row by row, in the same order, however the file is cut, stopped and gone on with; on every engine."""

import importlib.util
import json
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from callwright import write
from callwright.bulk.engines import ENGINES
from callwright.bulk.files import parts_of
from callwright.bulk.job import Job
from callwright.bulk.rows import Batch, Work
from callwright.cli import main
from callwright.errors import ConfigError
from tests.support.bulk import read_part
from tests.support.waiting import until

Json = dict[str, Any]
COMMAND = str(Path(sys.executable).with_name("callwright"))

TOOLS: list[Json] = [
    {
        "type": "function",
        "function": {
            "name": "count_boats",
            "parameters": {
                "type": "object",
                "properties": {"harbour": {"type": "string"}, "masts": {"type": "integer"}},
                "required": ["harbour"],
            },
        },
    }
]


def call(arguments: str, name: str = "count_boats", id_: str = "call_1") -> Json:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(*calls: Json, results: int = 1) -> list[Json]:
    outputs = [{"role": "tool", "tool_call_id": each["id"], "content": "41"} for each in calls[:results]]
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How many boats?"},
        {"role": "assistant", "content": "I count them.", "tool_calls": list(calls)},
        *outputs,
        {"role": "user", "content": "Thanks"},
    ]


GOOD = call('{"harbour": "Lübeck", "masts": 2}')
RESULT = "<tool_response>\n41\n</tool_response>"
MARKED = '<tool_call>\n{"name": "count_boats", "arguments": {"harbour": "Kiel"}}\n</tool_call>'

EXPECTED = "Expected a text in `output`, messages (`messages`, `conversations`) or `choices`"
# What is to be done, the row, and what of it is then so.
ROWS: dict[str, tuple[Work, Json, Json]] = {
    "an output with a call": (
        Work("parse", "hermes", TOOLS),
        {"id": 7, "output": f"Well.\n{MARKED}"},
        {
            "id": 7,
            "message": {
                "role": "assistant",
                "content": "Well.",
                "tool_calls": [call('{"harbour": "Kiel"}', id_="call_0")],
            },
            "finish_reason": "tool_calls",
            "problems": (),
        },
    ),
    "an output that says its own dialect and tools": (
        Work("parse", "hermes"),
        {"output": '[TOOL_CALLS][{"name": "f", "arguments": {}}]', "dialect": "mistral_v3", "tools": []},
        {"finish_reason": "tool_calls"},
    ),
    "no output": (
        Work("parse", "hermes"),
        {"text": "x"},
        {"error": f"{EXPECTED}, got the fields text. Name another: --field output=text."},
    ),
    "an output that is no text": (
        Work("parse", "hermes"),
        {"output": 5},
        {"error": f"{EXPECTED}, got int in `output`. Name another: --field output=NAME.", "output": 5},
    ),
    "no dialect": (
        Work("render"),
        {"messages": []},
        {"error": "No dialect: name it for all rows, or in each. (dialect)"},
    ),
    "a prompt with an option": (
        Work("render", "harmony", options={"reasoning_effort": "low", "current_date": "2026-01-02"}),
        {"messages": [{"role": "user", "content": "hi"}]},
        {"error": None},
    ),
    "a good history": (Work("validate", tools=TOOLS), {"messages": chat(GOOD)}, {"valid": True, "problems": []}),
    "a wrong type": (
        Work("validate", tools=TOOLS),
        {"messages": chat(call('{"harbour": 3}'))},
        {
            "valid": False,
            "problems": [
                {
                    "kind": "invalid_arguments",
                    "detail": "the arguments of 'count_boats' do not fit: $.harbour: 3 is not of type \"string\"",
                    "message": 2,
                    "call": 0,
                }
            ],
        },
    ),
    "two that are wrong": (
        Work("validate", tools=TOOLS),
        {"messages": chat(call("{"), call("{}", "sink_boats", "call_2"), results=2)},
        {"valid": False},
    ),
    "a call without its result": (
        Work("validate", tools=TOOLS),
        {"messages": chat(GOOD, results=0)},
        {"valid": False},
    ),
    "no tools of its own in the row": (
        Work("validate", tools=TOOLS),
        {"messages": chat(GOOD), "tools": []},
        {"valid": False},
    ),
    "a call at the end without an id": (
        Work("validate", tools=TOOLS),
        {"messages": [*chat(GOOD)[:2], {"role": "assistant", "tool_calls": [{**GOOD, "id": None}]}]},
        {"valid": False},
    ),
    "a call at the end": (Work("validate", tools=TOOLS), {"messages": chat(GOOD)[:3]}, {"valid": True}),
    "results in tags, several in a user message": (
        Work("convert", tools=TOOLS, source="hermes"),
        {
            "messages": [
                {"role": "assistant", "content": MARKED + MARKED},
                {"role": "user", "content": f"{RESULT}\n<tool_response>42</tool_response>"},
                {"role": "assistant", "content": MARKED},
                {"role": "tool", "content": RESULT},
                {"role": "user", "content": f"Is {RESULT} all?"},
            ]
        },
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [call('{"harbour": "Kiel"}', id_=f"call_0_{number}") for number in (0, 1)],
                },
                {"role": "tool", "tool_call_id": "call_0_0", "content": "41"},
                {"role": "tool", "tool_call_id": "call_0_1", "content": "42"},
                {"role": "assistant", "content": None, "tool_calls": [call('{"harbour": "Kiel"}', id_="call_3_0")]},
                {"role": "tool", "tool_call_id": "call_3_0", "content": "41"},
                {"role": "user", "content": f"Is {RESULT} all?"},
            ]
        },
    ),
    "from a dialect's text": (
        Work("convert", tools=TOOLS, source="hermes"),
        {"messages": [{"role": "assistant", "content": MARKED}, {"role": "tool", "content": "41"}]},
        {
            "messages": [
                {"role": "assistant", "content": None, "tool_calls": [call('{"harbour": "Kiel"}', id_="call_0_0")]},
                {"role": "tool", "tool_call_id": "call_0_0", "content": "41"},
            ]
        },
    ),
    "items that are none": (
        Work("convert", source="responses"),
        {"input": [{"type": "song"}]},
        {"input": [{"type": "song"}]},
    ),
}


@pytest.mark.parametrize("title", ROWS)
def test_a_row_keeps_its_fields_and_gets_what_was_found(title: str) -> None:
    work, row, then = ROWS[title]
    work.check()
    batch = pickle.loads(pickle.dumps(Batch(work)))
    (made,) = batch([row])
    assert {key: made.get(key) for key in then} == then
    told = "error" in made or made.get("valid") is False
    assert told == (("error" in then and then["error"] is not None) or then.get("valid") is False or "song" in str(row))


def test_forms_of_a_transcript_lead_back_to_it() -> None:
    row = {"id": 1, "messages": chat(GOOD, call("{}", id_="call_2"), results=2), "tools": TOOLS}
    (items,) = Batch(Work("convert", target="responses"))([row])
    assert [item["type"] for item in items["input"]] == [
        *("message", "message", "message", "function_call", "function_call"),
        *("function_call_output", "function_call_output", "message"),
    ]
    assert Batch(Work("convert", source="responses"))([items]) == [row]


def test_a_transcript_becomes_the_text_of_a_dialect() -> None:
    (made,) = Batch(Work("convert", target="hermes", tools=TOOLS))([{"id": 1, "messages": chat(GOOD)}])
    assert set(made) == {"id", "text"}
    assert made["text"].endswith("<|im_start|>user\nThanks<|im_end|>\n")
    assert '<tool_call>\n{"name": "count_boats"' in made["text"]


# --- files and parts ---

COUNT = 60


def outputs(path: Path) -> Path:
    """A file of rows, two of which are broken, with an empty line and no line end."""
    rows = [
        {
            "id": number,
            "output": write([{"name": "count_boats", "arguments": {"harbour": "ø" * number}}], dialect="json"),
        }
        for number in range(COUNT)
    ]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    lines[7:7] = ["nonsense", "", "[1]"]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def done(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["bulk", *map(str, arguments)])


@pytest.mark.parametrize("size", [1, 2, 100, 1_000, 10_000_000])
def test_parts_hold_every_row_once(tmp_path: Path, size: int) -> None:
    source = outputs(tmp_path / "in.jsonl")
    whole = [row for part in parts_of([source], 10**9) for row in read_part(source, part)]
    parts = parts_of([source], size)
    assert [row for part in parts for row in read_part(source, part)] == whole
    assert len(whole) == COUNT + 2
    assert (len(parts) > 1) == (size < 10_000_000)


def test_a_file_is_worked_on_and_told_of(tmp_path: Path) -> None:
    source, target = outputs(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"
    result = done("parse", source, target, "--dialect", "json", "--part-mb", 0.001, "--workers", 2)
    assert result.exit_code == 0, result.output
    assert re.search(r"62 rows, \d+ with problems, 2 with an error; [\d,]+ rows/s", result.output)
    rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [row.get("id") for row in rows] == [*range(7), None, None, *range(7, COUNT)]
    assert [row["line"] for row in rows if "error" in row] == ["nonsense", "[1]"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_a_mark_at_the_begin_of_a_file_is_no_part_of_its_first_row(tmp_path: Path) -> None:
    source, target, tools = (tmp_path / name for name in ("in.jsonl", "out.jsonl", "tools.json"))
    source.write_text('{"id": 1, "output": "Hi"}\r\n{"id": 2, "output": "Ho"}\r\n', encoding="utf-8-sig", newline="")
    tools.write_text(json.dumps(TOOLS), encoding="utf-8-sig")
    result = done("parse", source, target, "--dialect", "json", "--tools", tools)
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["message"]["content"]) for row in rows] == [(1, "Hi"), (2, "Ho")]


def test_work_that_was_stopped_is_gone_on_with(tmp_path: Path) -> None:
    source, target, other = outputs(tmp_path / "in.jsonl"), tmp_path / "out.jsonl", tmp_path / "other.jsonl"
    job = Job(Work("parse", "json"), (source,), target, part_bytes=1000)
    with job.claimed() as (parts, _):
        for part in parts[:3]:
            job.do(part)
    (job.folder / "00000003.half").write_bytes(b"half a part")
    asked = ("parse", source, target, "--dialect", "json", "--part-mb", 0.001)
    result = done(*asked)
    assert f"Going on: 3 of {len(parts)} parts are done." in result.output
    assert "62 rows" in result.output
    assert done(*asked[:2], other, *asked[3:]).exit_code == 0
    assert target.read_bytes() == other.read_bytes()


# The command, killed where it would rename a file for the nth time: each part, and what is told of it, comes to be so.
_KILLED = """
import os, signal, sys
from callwright.cli import main

left = int(sys.argv[1])

def watch(event, arguments):
    global left
    if event == "os.rename":
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
main(["bulk", *sys.argv[2:]])
"""


@pytest.mark.processes
def test_a_killed_process_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    source, target, other = outputs(tmp_path / "in.jsonl"), tmp_path / "out.jsonl", tmp_path / "other.jsonl"
    asked = ["parse", str(source), str(target), "--dialect", "json", "--part-mb", "0.0001", "--workers", "1"]
    folder = Job(Work("parse", "json"), (source,), target).folder
    finished = 0
    for renamed in (30, 31):
        process = subprocess.run([sys.executable, "-c", _KILLED, str(renamed), *asked], check=False)
        assert process.returncode == -signal.SIGKILL
        before, finished = finished, len(list(folder.glob("*.done")))
        assert finished - before in (14, 15)
    assert done(*asked).exit_code == 0
    assert done("parse", source, other, "--dialect", "json").exit_code == 0
    assert target.read_bytes() == other.read_bytes()


@pytest.mark.processes
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no /proc")
def test_no_worker_outlives_a_killed_command(tmp_path: Path) -> None:
    source = outputs(tmp_path / "in.jsonl")
    source.write_text(source.read_text(encoding="utf-8") * 500, encoding="utf-8")  # more than is done by then
    asked = ["parse", str(source), str(tmp_path / "out.jsonl"), "--dialect", "json", "--part-mb", "0.0001"]
    process = subprocess.Popen([COMMAND, "bulk", *asked, "--workers", "2"], stderr=subprocess.DEVNULL)
    folder = tmp_path / "out.jsonl.parts"
    until(lambda: process.poll() is not None or (children(process.pid) and any(folder.glob("*.done"))))
    found = children(process.pid)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    until(lambda: not any(map(is_running, found)))


def children(pid: int) -> list[int]:
    """The processes that this one has started and that run."""
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""  # empty when it has ended, and nobody has asked how
    except OSError:
        return False


# What cannot be, and words of what is said of it. `IN` and `OUT` are the files.
WRONG: dict[str, tuple[str, str]] = {
    "an unknown operation": ("mend IN OUT", "'mend' is not one of"),
    "no dialect": ("render IN OUT", "add --dialect hermes"),
    "an unknown dialect": ("parse IN OUT --dialect hermse", "Did you mean 'hermes'?"),
    "a file that is not there": (
        "parse nowhere.jsonl OUT --dialect json",
        "Cannot read nowhere.jsonl: No such file or directory.",
    ),
    "a format that is none": ("parse IN out.csv --dialect json", "expected a file that ends in .jsonl"),
    "the output is the input": ("parse IN IN --dialect json", "is the input itself"),
    "an output that is there": ("parse IN THERE --dialect json", "--overwrite"),
    "from a form to the same": ("convert IN OUT", "Give another form by --to, or --from auto"),
    "an output below a file": ("parse IN in.jsonl/out.jsonl --dialect json", "Not a directory"),
    "an unknown form": ("convert IN OUT --to respones", "Unknown dialect 'respones'"),
    "options for no dialect": ("validate IN OUT --option a=1", "they need --dialect"),
    "an unknown option": ("render IN OUT --dialect json --option colour=red", "colour"),
    "an option without a value": ("render IN OUT --dialect json --option colour", "expected NAME=VALUE"),
    "tools that are none": ("validate IN OUT --tools IN", "in.jsonl is not valid JSON"),
}


@pytest.mark.parametrize("title", WRONG)
def test_what_cannot_be_is_said_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, title: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outputs(tmp_path / "in.jsonl")
    (tmp_path / "there.jsonl").write_text("")
    command, words = WRONG[title]
    names = {"IN": "in.jsonl", "OUT": "out.jsonl", "THERE": "there.jsonl"}
    result = done(*(names.get(word, word) for word in command.split()))
    assert result.exit_code == 2, result.output
    assert words in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "there.jsonl"]


def test_work_in_which_no_row_can_be_read_has_failed(tmp_path: Path) -> None:
    source = outputs(tmp_path / "in.jsonl")
    result = done("render", source, tmp_path / "out.jsonl", "--dialect", "json")
    assert result.exit_code == 1
    assert "62 with an error" in result.output


def test_why_rows_have_errors_is_told_with_counts_the_commonest_first(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    rows = [*[{"text": "x"}] * 3, {"output": 5}, {"output": "Hi"}]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    result = done("parse", source, tmp_path / "out.jsonl", "--dialect", "json")
    assert result.exit_code == 0
    _, first, *reasons = result.stderr.splitlines()[:4]
    assert first.startswith("5 rows, 0 with problems, 4 with an error; ")
    assert reasons == [
        f"  3  {EXPECTED}, got the fields text. Name another: --field output=text. (row 1)",
        f"  1  {EXPECTED}, got int in `output`. Name another: --field output=NAME. (row 4)",
    ]


def test_a_byte_order_mark_is_no_part_of_the_first_row(tmp_path: Path) -> None:
    row, out = b'{"output": "Hello."}\n', tmp_path / "out.jsonl"
    (tmp_path / "in.jsonl").write_bytes(b"\xef\xbb\xbf" + row)
    assert done("parse", tmp_path / "in.jsonl", out, "--dialect", "hermes").exit_code == 0
    assert json.loads(out.read_bytes())["message"]["content"] == "Hello."


def test_a_row_may_name_its_dialect_where_the_command_does_not(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"messages": []}\n{"messages": [], "dialect": "json"}\n')
    result = done("render", source, tmp_path / "out.jsonl")
    assert result.exit_code == 0
    assert "\n2 rows, 0 with problems, 1 with an error; " in result.stderr
    assert "  1  No dialect: name it for all rows, or in each. (dialect) (row 1)\n" in result.stderr


@pytest.mark.parametrize("rows", [1, 2_000])
def test_a_file_of_any_size_has_parts_that_show_how_far_it_is(tmp_path: Path, rows: int) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(f"{json.dumps({'output': 'x' * 1_000})}\n" * rows)
    with Job(Work("parse", "json"), (source,), tmp_path / "out.jsonl").claimed() as (parts, _):
        assert sum(part.size for part in parts) == source.stat().st_size
        assert (len(parts) >= 30) == (rows > 1)


def test_an_error_of_an_earlier_run_is_gone(tmp_path: Path) -> None:
    source = outputs(tmp_path / "in.jsonl")
    done("render", source, tmp_path / "first.jsonl", "--dialect", "json")
    result = done("parse", tmp_path / "first.jsonl", tmp_path / "second.jsonl", "--dialect", "json")
    assert "2 with an error" in result.output


def test_parts_of_other_work_are_not_mixed(tmp_path: Path) -> None:
    source, target = outputs(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"
    with Job(Work("parse", "json"), (source,), target).claimed():
        pass
    with (
        pytest.raises(ConfigError, match="holds parts of other work"),
        Job(Work("parse", "hermes"), (source,), target).claimed(),
    ):
        pass


# --- engines and Parquet ---

needs = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")


@pytest.mark.clients
@needs
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_every_engine_makes_the_same(tmp_path: Path, engine: str, suffix: str) -> None:
    source = outputs(tmp_path / "in.jsonl")
    if suffix == "parquet":
        source = as_parquet(source)
    made = []
    for name, how in (("here", "local"), ("there", engine)):
        target = tmp_path / f"{name}.{suffix}"
        asked = ["parse", source, target, "--dialect", "json", "--part-mb", "0.001", "--engine", how]
        asked += [] if how == "daft" else ["--workers", "1"]
        ran = subprocess.run(
            [COMMAND, "bulk", *map(str, asked)],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        made.append(target.read_bytes())
    assert made[0] == made[1]


@pytest.mark.clients
@needs
def test_columns_of_parquet_keep_their_types_and_get_new_ones(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    source, target = as_parquet(outputs(tmp_path / "in.jsonl")), tmp_path / "out.parquet"
    assert done("parse", source, target, "--dialect", "json").exit_code == 0
    table = parquet.read_table(target)
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds == {
        "id": "int64",
        "output": "string",
        "message": "string",
        "finish_reason": "string",
        "problems": "string",
        "error": "string",
    }
    rows = table.to_pylist()
    assert [row["id"] for row in rows] == list(range(COUNT))
    assert "øøø" in json.loads(rows[3]["message"])["content"]


def as_parquet(source: Path) -> Path:
    import pyarrow
    import pyarrow.parquet as parquet

    lines = source.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    path = source.with_suffix(".parquet")
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=13)
    return path


def test_how_many_work_is_refused_where_it_would_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = outputs(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"
    monkeypatch.setenv("RAY_ADDRESS", "ray://127.0.0.1:1")
    for engine in ("daft", "ray"):
        asked = ["bulk", "parse", source, target, "--dialect", "json", "--engine", engine, "--workers", "2"]
        result = CliRunner().invoke(main, list(map(str, asked)))
        assert (result.exit_code, target.exists()) == (2, False)
        assert "--workers is for" in result.stderr
