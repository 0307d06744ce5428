"""Possessive quantifiers have the form that every Python matches correctly."""

import json
import subprocess
import sys

import pytest

from tests.project.test_house import INSIDE
from tests.support.compiled_patterns import unsafe_repeats
from tests.support.paths import ROOT

# Modules whose functions build patterns, from markers and separators: not seen if modules are only loaded.
MADE_BY_FUNCTIONS = (
    "callwright.streaming.fast_path",
    "callwright.reading.literal.escapes",
    "callwright.free_text.intent",
)


@pytest.mark.processes
def test_every_pattern_is_matched_alike_by_every_python() -> None:
    program = [sys.executable, "-m", "tests.support.compiled_patterns", *(f"callwright.{name}" for name in INSIDE)]
    said = subprocess.run(program, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    patterns = json.loads(said)
    assert {*MADE_BY_FUNCTIONS} <= {where.partition(":")[0] for where, _, _ in patterns}
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
