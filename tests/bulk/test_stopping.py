"""Bulk work that is killed, on every engine, and work that two commands would do at once."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from callwright import write
from callwright.bulk.engines import ENGINES
from callwright.bulk.files import Part
from callwright.bulk.job import Job, hold_lock
from callwright.bulk.rows import Work
from callwright.errors import ConfigError
from tests.support.waiting import until

COMMAND = str(Path(sys.executable).with_name("callwright"))
WORK = Work("parse", "hermes")


def lasting(path: Path, count: int) -> Path:
    """A file of rows that takes a while."""
    text = write([{"name": "ring_bell", "arguments": {"why": "fog, " * 30}}], dialect="hermes")
    path.write_text("".join(f"{json.dumps({'id': number, 'output': text})}\n" for number in range(count)))
    return path


def command(source: Path, target: Path, *more: str) -> list[str]:
    return [COMMAND, "bulk", "parse", str(source), str(target), "--dialect", "hermes", "--part-mb", "0.2", *more]


@pytest.mark.clients
@pytest.mark.processes
@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_command_is_gone_on_with_on_every_engine(tmp_path: Path, engine: str) -> None:
    if engine != "local" and importlib.util.find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed")
    source, target, whole = lasting(tmp_path / "in.jsonl", 6_000), tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    workers = () if engine == "daft" else ("--workers", "2")
    asked = command(source, target, "--engine", engine, *workers)
    folder = tmp_path / "out.jsonl.parts"
    process = subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    until(lambda: process.poll() is not None or any(folder.glob("*.done")))
    assert process.poll() is None, "it was done before it was killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not target.exists()
    again = subprocess.run(asked, capture_output=True, encoding="utf-8", check=False)
    assert again.returncode == 0, again.stderr
    assert "Going on: " in again.stderr
    assert "6,000 rows, " in again.stderr
    assert subprocess.run(command(source, whole), capture_output=True, check=False).returncode == 0
    assert target.read_bytes() == whole.read_bytes()


@pytest.mark.processes
def test_a_second_command_on_the_same_output_is_refused(tmp_path: Path) -> None:
    source, target = lasting(tmp_path / "in.jsonl", 10), tmp_path / "out.jsonl"
    job = Job(WORK, (source,), target, 200_000)
    with job.claimed() as (parts, _):
        second = subprocess.run(command(source, target), capture_output=True, encoding="utf-8", check=False)
        assert second.returncode == 2
        assert f"Another command is at work on {target}" in second.stderr
        job.end([job.do(part) for part in parts])
    assert len(target.read_bytes().splitlines()) == 10
    third = subprocess.run(command(source, target, "--overwrite"), capture_output=True, encoding="utf-8", check=False)
    assert third.returncode == 0, third.stderr


def test_the_lock_is_free_again_when_the_block_ends(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    for _ in range(2):
        with (
            hold_lock(lock, "out.jsonl"),
            pytest.raises(ConfigError, match=r"at work on out\.jsonl"),
            hold_lock(lock, "out.jsonl"),
        ):
            pass


def test_a_lock_that_was_removed_by_who_held_it_is_not_taken(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with hold_lock(lock, "out.jsonl"):
        lock.unlink()
        with hold_lock(lock, "out.jsonl"):  # another file of the same name: another folder of parts
            pass


@pytest.mark.processes
def test_a_pipe_that_brings_the_same_is_gone_on_with(tmp_path: Path) -> None:
    source, target = lasting(tmp_path / "in.jsonl", 2_000), tmp_path / "out.jsonl"
    asked = [COMMAND, "bulk", "parse", "-", str(target), "--dialect", "hermes", "--part-mb", "0.05"]
    folder = tmp_path / "out.jsonl.parts"
    with source.open("rb") as pipe:
        process = subprocess.Popen([*asked, "--workers", "1"], stdin=pipe, stderr=subprocess.DEVNULL)
    until(lambda: process.poll() is not None or any(folder.glob("*.done")))
    assert process.poll() is None
    process.kill()
    process.wait()
    other = subprocess.run(asked, input=source.read_bytes()[:-1], capture_output=True, encoding=None, check=False)
    assert other.returncode == 2
    assert b"holds parts of other work" in other.stderr
    same = subprocess.run(asked, input=source.read_bytes(), capture_output=True, check=False)
    assert same.returncode == 0, same.stderr
    assert b"Going on: " in same.stderr
    assert len(target.read_bytes().splitlines()) == 2_000


def test_a_packed_input_that_changed_is_refused(tmp_path: Path) -> None:
    import gzip

    source = tmp_path / "in.jsonl.gz"
    source.write_bytes(gzip.compress(lasting(tmp_path / "plain.jsonl", 50).read_bytes()))
    job = Job(WORK, (source,), tmp_path / "out.jsonl", 1_000)
    with job.claimed() as (parts, _):
        job.do(parts[0])
    source.write_bytes(gzip.compress(lasting(tmp_path / "plain.jsonl", 51).read_bytes()))
    with pytest.raises(ConfigError, match="an input that has changed"), job.claimed():
        pass


def test_a_part_that_is_done_twice_at_once_is_done_once(tmp_path: Path) -> None:
    """A worker of a killed command may still be at it."""
    job = Job(WORK, (lasting(tmp_path / "in.jsonl", 300),), tmp_path / "out.jsonl", 1_000_000)
    with job.claimed() as ((part,), _):
        done: list[object] = []
        threads = [threading.Thread(target=lambda: done.append(job.do(part))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert isinstance(part, Part)
        assert done == [job.do(part)] * 4
        assert not list(job.folder.glob("*.half"))
