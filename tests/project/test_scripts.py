"""The scripts' own environment: made when it is missing, made again if it is of no use, otherwise left alone."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = [pytest.mark.processes, pytest.mark.slow]

# Debian's Python without python3-venv: it leaves an environment without pip, names the package to install, and fails.
WITHOUT_ENSUREPIP = """#!/bin/sh
case "$*" in
*venv*) "{python}" -m venv --without-pip .venv; echo "apt install python3-venv" >&2; exit 1 ;;
*) exec "{python}" "$@" ;;
esac
"""


def make_env(project: Path, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    program = ["bash", "-c", ". scripts/_env; make_env .venv"]
    return subprocess.run(
        program, cwd=project, env=environment | {"PYTHON": python}, capture_output=True, text=True, check=False
    )


def without_ensurepip(project: Path) -> None:
    wrapper = project / "python"
    wrapper.write_text(WITHOUT_ENSUREPIP.format(python=sys.executable), encoding="utf-8")
    wrapper.chmod(0o755)
    first = make_env(project, str(wrapper))
    assert first.returncode == 1
    assert "apt install python3-venv" in first.stderr
    assert (project / ".venv/bin/python").exists()


def interrupted(project: Path) -> None:
    (project / ".venv/bin").mkdir(parents=True)
    (project / ".venv/pyvenv.cfg").write_text("home = /usr/bin\n", encoding="utf-8")


def python_gone(project: Path) -> None:
    interrupted(project)
    for name in ("python", "python3"):
        (project / ".venv/bin" / name).symlink_to(project / "gone")


@pytest.mark.parametrize("state", [without_ensurepip, interrupted, python_gone])
def test_an_environment_that_is_of_no_use_is_made_again(tmp_path: Path, state: Callable[[Path], None]) -> None:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    state(tmp_path)
    stale = tmp_path / ".venv/.installed-1"
    stale.touch()
    again = make_env(tmp_path)
    assert again.returncode == 0, again.stderr
    assert "Making .venv" in again.stderr
    assert not stale.exists()
    subprocess.run([tmp_path / ".venv/bin/python", "-m", "pip", "--version"], check=True, capture_output=True)
    stale.touch()
    assert make_env(tmp_path).stderr == ""
    assert stale.exists()
