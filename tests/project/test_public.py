"""The public surface changes only with a line in the CHANGELOG."""

import re
import tomllib

import pytest

from tests.support.paths import ROOT
from tests.support.public import LISTED, public_names

RELEASED = LISTED.read_text(encoding="utf-8").splitlines()
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def unmentioned(before: list[str], now: list[str], news: str) -> list[str]:
    """The changes whose name is not in the news."""
    return [line for line in sorted({*before} ^ {*now}) if f"`{name_of(line)}`" not in news]


def name_of(line: str) -> str:
    """The name that the CHANGELOG uses: `port` of `setting ServerConfig.port`, `--port` of `command serve --port`."""
    return re.split(r"[ .]", line.partition("(")[0])[-1]


def test_a_change_of_the_public_surface_is_in_the_changelog() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    news, heading, _ = CHANGES.partition(f"\n## {version}\n")
    assert heading, f"CHANGELOG.md has no section {version}"
    missing = unmentioned(RELEASED, public_names(), news)
    assert not missing, "name them in CHANGELOG.md under '## Next', or write the list when a release is cut"


@pytest.mark.parametrize(
    ("before", "now", "news", "missing"),
    [
        (["command serve --port"], ["command serve --port"], "", []),
        (["command serve --port"], [], "", ["command serve --port"]),
        (["command serve --port"], [], "`--port` is gone", []),
        (["library parse(output)"], ["library parse(output, strict=)"], "", ["library parse(output)"]),
        (["library parse(output)"], ["library parse(output, strict=)"], "`parse` takes `strict`", []),
        ([], ["setting ServerConfig.port"], "the port", ["setting ServerConfig.port"]),
        ([], ["metric callwright_tasks()"], "`callwright_tasks`", []),
    ],
)
def test_each_kind_of_change_is_found(before: list[str], now: list[str], news: str, missing: list[str]) -> None:
    assert unmentioned(before, now, news)[:1] == missing


def test_every_kind_of_name_is_listed() -> None:
    kinds = {line.split()[0] for line in public_names()}
    assert kinds == {"command", "header", "library", "metric", "problem", "setting"}
    assert {"command serve --port", "setting ServerConfig.port", "problem invalid_arguments"} <= {*public_names()}
