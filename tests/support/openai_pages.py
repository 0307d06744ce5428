"""The page of what becomes of the fields of OpenAI's requests, whose tables are those of `tests.support`.

A table stands below a line `<!-- fields: responses -->` and is as long as its lines begin with `|`.
"""

import re
from itertools import groupby
from typing import Final

from tests.support.chat_fields import CHAT
from tests.support.field_outcomes import Done, HandedOn, Kept, Outcome, Refused, Told, rows
from tests.support.responses_fields import RESPONSES

__all__ = ["fields_page"]

_TABLES: Final = {"responses": RESPONSES, "chat": CHAT}
_MARK: Final = re.compile(r"(?<=<!-- fields: )(?P<api>\w+) -->\n*(?:\|.*\n)*\n*")
_WORDS: Final[dict[type, str]] = {
    Done: "done",
    HandedOn: "forwarded",
    Refused: "rejected",
    Told: "reported",
    Kept: "stored",
}


def fields_page(page: str) -> str:
    """The page with its tables as they should be. Raises `ValueError` where it has no place for one of them."""
    if missing := _TABLES.keys() - {found["api"] for found in _MARK.finditer(page)}:
        raise ValueError(f"no place for the table of {', '.join(sorted(missing))}")
    return _MARK.sub(lambda found: f"{found['api']} -->\n\n{_table(found['api'])}\n", page).rstrip("\n") + "\n"


def _table(api: str) -> str:
    lines = ["| in | fields | |", "|---|---|---|"]
    for group, found in groupby(rows(_TABLES[api]), key=lambda row: row[0]):
        by_word: dict[str, list[str]] = {}
        for _, names, outcome in found:
            by_word.setdefault(_word(outcome), []).extend(names.split())
        for word, names_ in by_word.items():
            told = "all" if names_ == ["*"] else " ".join(f"`{name}`" for name in names_)
            lines.append(f"| {f'`{group}`' if group else 'the request'} | {told} | {word} |")
    return "\n".join(lines) + "\n"


def _word(outcome: Outcome) -> str:
    return _WORDS[type(outcome)]
