"""Patterns are matched alike by every Python, and fail in a time that no text makes long."""

import json
import subprocess
import sys

import pytest

from tests.project.test_house import INSIDE
from tests.support.compiled_patterns import unsafe_repeats
from tests.support.paths import ROOT
from tests.support.pattern_repeats import begins_with_repeat, repeats_in_a_row

# Modules whose functions build patterns, from markers and separators: not seen if modules are only loaded.
MADE_BY_FUNCTIONS = (
    "callwright.streaming.fast_path",
    "callwright.reading.literal.escapes",
    "callwright.free_text.intent",
)


# It matches at each character that is no white space, so it reads none twice.
READS_ONCE = "callwright.tolerant_json.certain:_TOKEN"
# Two need the square of a header's length, which is bounded.
MOST_REPEATS = 2


@pytest.fixture(scope="module")
def listed() -> dict[str, list[tuple[str, str, int]]]:
    """Where the package compiles a pattern or searches with it, the pattern, and its flags."""
    program = [sys.executable, "-m", "tests.support.compiled_patterns", *(f"callwright.{name}" for name in INSIDE)]
    said = subprocess.run(program, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found: dict[str, list[tuple[str, str, int]]] = json.loads(said)
    assert {*MADE_BY_FUNCTIONS} <= {where.partition(":")[0] for where, _, _ in found["compiled"]}
    return found


@pytest.fixture
def patterns(listed: dict[str, list[tuple[str, str, int]]]) -> list[tuple[str, str, int]]:
    return listed["compiled"]


@pytest.mark.processes
def test_no_search_begins_at_each_character_of_a_run_that_it_reads_to_the_end(
    listed: dict[str, list[tuple[str, str, int]]],
) -> None:
    slow = {where: text for where, text, flags in listed["searched"] if begins_with_repeat(text, flags)}
    assert [*slow] == [READS_ONCE], slow


@pytest.mark.parametrize("pattern", [r"\w+:", r"([\w.-]++)=", r"(?:a|b*)c", r"(?i:x{1,9999})y", r"(?=b)a*c"])
def test_a_search_that_begins_with_a_repeat_is_found(pattern: str) -> None:
    assert begins_with_repeat(pattern)


@pytest.mark.parametrize("pattern", [r"(?<!\w)\w+:", r"\A\s*x", r"x\w+", r"(?:a|bc*)d", r"\b\w+:", r"\d{1,999}x"])
def test_a_search_that_begins_once_in_a_run_is_left_alone(pattern: str) -> None:
    assert not begins_with_repeat(pattern)


@pytest.mark.processes
def test_every_pattern_fails_in_a_time_that_no_run_of_one_character_makes_long(
    patterns: list[tuple[str, str, int]],
) -> None:
    rows = [(where, text, *repeats_in_a_row(text, flags)) for where, text, flags in patterns]
    wrong = [f"{where}: {most} of {char!r}\n    {text}" for where, text, most, char in rows if most > MOST_REPEATS]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        (r"\s*x\s*", 1),
        (r"\s*x?\s*", 2),
        (r"\s*x?\s*(?:y|z)?\s*\Z", 3),
        (r"\s*+(?:x\s*+)?(?:y|z)?\s*+\Z", 0),
        (r"\S+?\w*[a-z]{0,30}", 3),
        (r"(?:a+|b)*", 100),
        (r"(?i:A*)a*", 2),
        (r"[^\W\d]*_*", 2),
        (r"(?=a*a*)b*", 2),
        (r"(?>a*)a*a", 1),
    ],
)
def test_repeats_that_may_share_a_run_are_counted(pattern: str, most: int) -> None:
    assert repeats_in_a_row(pattern)[0] == most


@pytest.mark.processes
def test_every_pattern_is_matched_alike_by_every_python(patterns: list[tuple[str, str, int]]) -> None:
    wrong = [f"{where}: {why}\n    {text}" for where, text, flags in patterns for why in unsafe_repeats(text, flags)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?:ab?c)*+",
        r"(?:ab|cd)++",
        r"(?:to=\S++)?+",
        r"(?:ab){2,3}+",
        r"(?:ab|(?!)|cd)*+",
        r"(?:ab|(?!x))*+",
        r"x(?=(?:ab)*+)",
        r"(?:(?:ab)*+|(?!))*+",
        r"(?:(a)|b|(?!))*+",
        r"(?:[ab](x(?:c)?)|(?!))++",
        "(?x) (?: a b )*+",
        r"(a)?(?(1)(?:bc)*+|d)",
    ],
)
def test_what_old_pythons_match_wrongly_is_found(pattern: str) -> None:
    assert len(unsafe_repeats(pattern)) == 1


@pytest.mark.parametrize(
    "pattern",
    [
        r"[ab]*+\s++.?+[^x]{2,3}+(?:a)*+",
        r"(?:ab?c|(?!))*+",
        r"(?:ab|cd|(?!))++",
        r"((?:ab|(?!))*+)",
        r"(?:x(?:ab|(?!))*+()|(?!))?+",
        r"(?:(?!)a|(?!))*+",
        r"(?:ab)*",
        r"(a)(?:ab)?",
    ],
)
def test_what_every_python_matches_alike_is_left_alone(pattern: str) -> None:
    assert not unsafe_repeats(pattern)
