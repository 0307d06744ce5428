"""A release on GitHub: the notes of the changelog, and the files that go with them."""

import hashlib
import re
import runpy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.paths import ROOT

release_notes: Callable[[str, str], str] = runpy.run_path(str(ROOT / "scripts/release_notes.py"))["release_notes"]
VERSION = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)[0]
WHEEL, SOURCE, PARTS = f"callwright-{VERSION}-py3-none-any.whl", f"callwright-{VERSION}.tar.gz", "callwright.cdx.json"
CHANGES = """# Changes

## 2.1.0

Read [how](#change-your-setup) and
[more](docs/hooks.md#http), or [elsewhere](https://example.org/#a).

### Change your setup

- **One:** with
  `two` lines.
- Another.

## 2.1

Older.

## 2.0

## 1.9
"""


def test_the_notes_are_the_part_of_the_version_with_links_that_work_anywhere() -> None:
    source = "https://github.com/callwright/callwright/blob/v2.1.0/"
    assert release_notes(CHANGES, "2.1.0") == (
        f"Read [how]({source}CHANGELOG.md#change-your-setup) and [more]({source}docs/hooks.md#http), "
        "or [elsewhere](https://example.org/#a).\n\n### Change your setup\n\n- **One:** with `two` lines.\n- Another.\n"
    )
    assert release_notes(CHANGES, "2.1") == "Older.\n"


@pytest.mark.parametrize("version", ["2", "2.1.1", "2.0", "1.9"])
def test_a_version_without_notes_is_refused(version: str) -> None:
    with pytest.raises(SystemExit, match=re.escape(f"'## {version}'")):
        release_notes(CHANGES, version)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A clone in which a release was built."""
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    dist = tmp_path / "dist"
    dist.mkdir()
    for name in (WHEEL, SOURCE, PARTS):
        (dist / name).write_text(name, encoding="utf-8")
    sums = (f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in (WHEEL, SOURCE, PARTS))
    (dist / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    return tmp_path


def publish(project: Path) -> subprocess.CompletedProcess[str]:
    if not shutil.which("sha256sum"):
        pytest.skip("sha256sum is not installed")
    command = ["bash", "scripts/publish", "--dry-run", "release"]
    return subprocess.run(command, cwd=project, capture_output=True, encoding="utf-8", check=False)


@pytest.mark.processes
def test_a_release_has_the_notes_and_each_file_of_the_build(project: Path) -> None:
    done = publish(project)
    assert done.returncode == 0, done.stderr
    words = done.stderr.split()
    assert words[:5] == ["gh", "release", "create", f"v{VERSION}", "--verify-tag"]
    assert words[-4:] == [f"dist/{name}" for name in (WHEEL, SOURCE, PARTS, "SHA256SUMS")]
    notes = project / words[words.index("--notes-file") + 1]
    assert notes.read_text(encoding="utf-8") == release_notes(
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), VERSION
    )


@pytest.mark.processes
def test_a_file_that_is_not_the_one_of_the_build_is_not_released(project: Path) -> None:
    (project / "dist" / WHEEL).write_text("another", encoding="utf-8")
    done = publish(project)
    assert done.returncode != 0
    assert WHEEL in done.stderr + done.stdout
    assert "gh release" not in done.stderr
