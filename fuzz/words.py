"""The languages of outputs: what the vectors of each dialect are made of, JSON and text in pieces, whole and broken."""

import re
from collections.abc import Sequence
from functools import cache

import callwright
from callwright.tolerant_json.markers import END_TOKENS
from tests.support.cases import load_cases
from tests.support.choices import Choices

__all__ = [
    "DIALECTS",
    "JSON_ATOMS",
    "TEXT_ATOMS",
    "TRICKY",
    "atoms_of",
    "is_mark",
    "language",
    "output",
    "seeds_of",
    "spliced",
]

DIALECTS = callwright.dialects()

JSON_ATOMS = (
    *('{"name": "', '{"tool": "', '"arguments": {', '"parameters":', '"sides": 6', '"title": "', '{"bed": "north"}'),
    *("{", "}", "[", "]", "{}", "[]", '"', '\\"', "\\", ",", ":", ", ", ": ", "null", "true", "-1.5e3", "}}", "'"),
    *('{"name": "roll_dice", "arguments": {"sides": 6}}', '{"tool": "ping", "arguments": {}}', '{"sides": 20}'),
    *('{"arguments": {"sides": 3}, "name": "roll_dice"}', '{"name": "roll_dice", "arguments": "{\\"sides\\": 6}"}'),
    *('[{"name": "ping"}, {"name": "roll_dice", "parameters": {"sides": 2}}]', '{"tool_calls": [', '{"roll_dice": '),
    *('{"tool": "nobody", "arguments": {}}', '{"tool": "take_note", "title": "a", "body": "b"}', '{"a": [{"b": "'),
    *(
        "NaN",
        "-",
        "1e",
        "None",
        "True",
        "0x1F",
        "1_000",
        "007",
        "\\u12",
        "\\ud83d",
        "/*",
        "*/",
        "// x\n",
        "#",
        ";",
        "=",
    ),
    *("...", "“", "”", '"""', "undefined", "1e999", "9" * 40),
)
TEXT_ATOMS = (
    *(" ", "  ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u2028", "\ufeff", "\x00", "x", "\ud83d", "\udea2", "\\u00e9"),
    *("é", "水", "⛵", "İ", "ſ"),
    *("`", "``", "```", "````", "~~~", "```json\n", "\n```\n", "```py\n", "> ", "| ", "#", "<", ">", "</", "|>", "<|"),
    *("roll_dice", "ping", "nobody", "tide-table", "Sound Lamp", "functions.ping", "Six.", "Shall I?", "For example: "),
    *(" " * 300, " " * 520, "\n" * 60, "a" * 450),
)
# What a string of an argument may hold that is more to some format.
TRICKY = (
    *("</tool_call>", "<tool_call>", "<think>", "</think>", "<|im_end|>", "<|call|>", "<|end|>", "<|message|>", "</s>"),
    *("```", "\n```\n", "`", "~~~", '"', "\\", '\\"', '"}', "}}", "{", "[", "'", "\n", "\r", "\t", "\x00", "\x7f"),
    *("\u2028", "é", "⛵", "水", "for example", "Shall I?", "instead of", "I called", "//", " ", "> ", "| ", "&lt;"),
    *("assistantfinal", "to=functions.ping", "<|start|>", "### User", "[TOOL_CALLS]", "\\u0041", "]]>", "</parameter>"),
    *('{"tool": "ping", "arguments": {}}', "true", "null", "12", "x"),
)

_MARK = re.compile(r"<[^<>\n]{1,60}>|\[/?[A-Z_]{3,}\]|[^\x00-\x7f]+|[\w.-]+|\s+|[^\w\s]")


@cache
def seeds_of(dialect: str) -> tuple[str, ...]:
    """Outputs in this dialect: those of its vectors, and a call as it writes it."""
    written = callwright.write([{"name": "roll_dice", "arguments": {"sides": 6}}], dialect=dialect)
    return (written, *(case.output for case in load_cases() if case.dialect == dialect))


@cache
def atoms_of(dialect: str) -> tuple[str, ...]:
    """What its outputs are made of, and the halves of its marks."""
    found = {mark: None for seed in seeds_of(dialect) for mark in _MARK.findall(seed)}
    marks = [mark for mark in found if len(mark) > 2 and not mark[0].isalnum()]
    halves = [half for mark in marks for half in (mark[: len(mark) // 2], mark[len(mark) // 2 :])]
    calls = [seed for seed in seeds_of(dialect) if len(seed) < 200][:10]
    return (*found, *marks, *dict.fromkeys(halves), *calls)


@cache
def is_mark(text: str, dialect: str) -> bool:
    """Whether a text stands among the marks of a dialect."""
    return not text.isalnum() and any(text in mark for mark in (*atoms_of(dialect), *_controls(dialect), *END_TOKENS))


@cache
def _controls(dialect: str) -> tuple[str, ...]:
    return tuple(callwright.render([], dialect=dialect).marks)


@cache
def language(dialect: str) -> Sequence[str]:
    """The atoms of outputs in a dialect, its own as often as all others."""
    own = atoms_of(dialect)
    others = (*JSON_ATOMS, *TEXT_ATOMS)
    return (*own * max(1, round(len(others) / len(own))), *others)


def output(draw: Choices, dialect: str) -> str:
    """An output of atoms, or one of the vectors with atoms in it or in place of something."""
    spoken = dialect if not draw.once_in(6) else draw.one(DIALECTS)
    atoms = language(spoken)
    if draw.once_in(3):
        return draw.text(atoms, 14)
    text = draw.one(seeds_of(spoken))
    if draw.once_in(4):
        text += draw.one(seeds_of(dialect))
    return spliced(draw, text, atoms)


def spliced(draw: Choices, text: str, atoms: Sequence[str]) -> str:
    """The text with some atoms in it, or in place of something, or pieces of it in another place."""
    for _ in range(draw.number(4)):
        at = draw.number(0xFFFF) % (len(text) + 1)
        size = draw.one((0, 0, 1, 2, 5, 20))
        moved = draw.once_in(5)
        begin = draw.number(0xFFFF) % (len(text) + 1) if moved else 0
        new = text[begin : begin + draw.number(60)] if moved else draw.one(atoms)
        text = text[:at] + new + text[at + size :]
    return text
