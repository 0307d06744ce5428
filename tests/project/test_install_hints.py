"""What pages, files and error messages tell people to install works as printed, in a clone: the project is on no index.

And the configurations that pages print load as printed.
"""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from callwright.cli.chat.tools_file import load_tools
from callwright.gateway.config.config import load_config
from callwright.settings.extras import EXTRAS, install_command, missing_package
from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPTIONAL: dict[str, list[str]] = PROJECT["optional-dependencies"]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FILES = [
    *PAGES,
    *(path for folder in ("deploy", "examples", "src") for path in sorted((ROOT / folder).rglob("*"))),
]
INSTALL = re.compile(r"(?P<python>[\w./]+ -m )?pip3? install (?P<what>[^`\n]*)")
OURS = re.compile(r"\.\[([\w,]+)\]|\.")


def printed() -> Iterator[tuple[str, str, str]]:
    """Each command that installs something: where, by which Python, and what."""
    for path in FILES:
        if path.is_file() and path.suffix in (".md", ".py", ".yaml", ".yml", "") and "__pycache__" not in path.parts:
            for found in INSTALL.finditer(re.sub(r"\s*\\?\n\s*(?=install|')", " ", path.read_text(encoding="utf-8"))):
                if "{" not in found["what"]:  # made by `extras`, which is looked at below
                    yield path.relative_to(ROOT).as_posix(), found["python"] or "", found["what"]


PRINTED = list(printed())


def test_commands_that_install_are_found() -> None:
    places = {place for place, *_ in PRINTED}
    assert {"README.md", "docs/embedded.md", "docs/mcp.md", "deploy/Dockerfile"} <= places
    assert "src/callwright/gateway/config/config.py" in places


@pytest.mark.parametrize(("place", "python", "what"), PRINTED)
def test_what_is_printed_installs_in_a_clone(place: str, python: str, what: str) -> None:
    words = [word.rstrip(".,;)") or "." for word in shlex.split(what.partition("  ")[0]) if not word.startswith("-")]
    assert words, what
    assert "callwright" not in {re.split(r"[\[=<>]", word)[0] for word in words}, "it is on no index"
    extras = [extra for word in words if (found := OURS.fullmatch(word)) and found[1] for extra in found[1].split(",")]
    assert set(extras) <= set(OPTIONAL)
    assert python.startswith((".venv/bin/python", "/opt/callwright/bin/python")) or words == ["."], "into which Python?"


@pytest.mark.parametrize("package", EXTRAS)
def test_a_missing_package_is_brought_by_the_extra_that_is_told(package: str) -> None:
    assert package in {Requirement(line).name for line in OPTIONAL[EXTRAS[package]]}


def test_a_missing_package_is_named_with_a_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "executable", str(ROOT / ".venv" / "bin" / "python"))
    told = str(missing_package("xllamacpp", "model.gguf"))
    assert told == "model.gguf: xllamacpp is missing. Install it: .venv/bin/python -m pip install '.[embedded]'"
    monkeypatch.chdir(tmp_path)
    python, *_, what = shlex.split(install_command("embedded"))
    assert (Path(python), what) == (ROOT / ".venv" / "bin" / "python", f"{ROOT}[embedded]")
    monkeypatch.setattr("callwright.settings.extras._CLONE", tmp_path)
    assert install_command("embedded") == "pip install 'callwright[embedded]'"


@pytest.mark.clients
def test_the_command_that_is_told_does_install(tmp_path: Path) -> None:
    command = [*shlex.split(install_command("embedded")), "--dry-run", "--no-deps", "--quiet", "--report", "-"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert f'"name": "{PROJECT["name"]}"' in done.stdout
    assert '"requested_extras": ["embedded"]' in re.sub(r"\[\s+(\S+)\s+\]", r"[\1]", done.stdout)


# --- what else is printed to be used ---

_OTHERS = "<!-- not run: the file of another program -->\n"
CONFIGS = [
    (path.relative_to(ROOT).as_posix(), text)
    for path in PAGES
    for text in re.findall(
        rf"(?<!{_OTHERS})^```toml\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    if "[[cases]]" not in text  # what `callwright eval --cases` reads; the page's commands are run with it
]


@pytest.mark.parametrize(("place", "text"), CONFIGS, ids=[place for place, _ in CONFIGS])
def test_a_configuration_that_is_printed_loads(tmp_path: Path, place: str, text: str) -> None:
    path = tmp_path / "callwright.toml"
    path.write_text(text, encoding="utf-8")
    assert load_config(path).models, place


def test_the_tools_that_the_pages_name_are_there() -> None:
    for path in PAGES:
        for name in re.findall(r"examples/[\w/]+\.py", path.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file(), f"{path.name}: {name}"
        for name in re.findall(r"--tools (examples/[\w/]+\.py)", path.read_text(encoding="utf-8")):
            assert load_tools(ROOT / name)[0]
