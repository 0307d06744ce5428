"""Outputs read by what a checkpoint declares of them, with the same claims as for a dialect; and declarations with
something wrong in them, which are refused by name or can be read by.
"""

import json
from functools import cache
from typing import Any

from callwright import ConfigError, ResponseTemplate
from fuzz.targets.dialects import asked
from fuzz.values import HOSTILE, mutated
from fuzz.words import JSON_ATOMS, TEXT_ATOMS, spliced
from tests.support.cases import Case, read_cases
from tests.support.choices import Choices
from tests.support.paths import ROOT
from tests.support.properties import output_holds

__all__ = ["run"]

FOLDER = ROOT / "tests" / "response_template" / "cases"
FIELDS: tuple[Any, ...] = (
    *HOSTILE,
    *("json", "text", "xml-inline", "kv-lines", "gemma4-tool-call", "{content}", "{key}", "$", "^", "<a>", "</a>\\s*"),
    *("(?P<key>\\w+)=(?P<value>.*?);", "(?P<name>\\w+)", "(a+)+$", "[", "(?=x)", "\\b", "(?s).*?", "|", "a|", "(?:)*"),
    *({"open": "<a>", "close": "</a>"}, {"open_pattern": "<(a|b)>", "close_pattern": "</a>|$"}, {"repeats": True}),
)


@cache
def _cases() -> list[Case]:
    return [case for path in sorted(FOLDER.glob("*.txt")) for case in read_cases(path)]


@cache
def _declared(name: str) -> tuple[Any, ResponseTemplate]:
    given = json.loads((FOLDER / f"{name}.json").read_text())
    return given, ResponseTemplate.load(FOLDER / f"{name}.json")


def run(draw: Choices) -> None:
    """See the module."""
    case = draw.one(_cases())
    draw.about = case.dialect
    given, template = _declared(case.dialect)
    if draw.once_in(3):
        for _ in range(1 + draw.number(2)):
            given = mutated(draw, given, FIELDS)
        try:
            template = ResponseTemplate(given)
        except ConfigError as error:
            assert str(error)
            return
    atoms = (*(case.output[at : at + 8] for at in range(0, len(case.output), 8)), *JSON_ATOMS, *TEXT_ATOMS)
    output = spliced(draw, case.output, atoms)
    if draw.once_in(4):
        template = template.after("<|im_start|>assistant\n" + draw.text(atoms, 4))
    output_holds(draw, output, draw.one(("stop", "length")), {"dialect": template, **asked(draw)})
