"""How a model announces that it acts now, by language: `I'll look that up.` The words are in `announcements.toml`."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

_LIST: Final = re.compile(r"\{([a-z_]+)\}")
_WORDS: Final = r"\b(?:{breaks})\b"


class Language(NamedTuple):
    """`opening` is at the start of the clause, `act` right after it; with `breaks` it is not an announcement.

    Patterns are compiled on use: most answers need few of them.
    """

    opening: str
    act: str
    breaks: str


class Announcements(NamedTuple):
    """The patterns of all languages, for text in lower case.

    `interjection` may precede the clause, `wait` follow it or be alone; `end` ends the clause, and another begins.
    `showing` is in a clause that announces an example.
    """

    interjection: str
    wait: str
    end: str
    showing: str
    languages: tuple[Language, ...]


@cache
def announcements() -> Announcements:
    """All that is known of announcements; it is read when an answer first needs it."""
    known = tomllib.loads(files("callwright.free_text").joinpath("announcements.toml").read_text(encoding="utf-8"))
    lists = known["lists"]
    forms = ("interjection", "wait", "end", "showing")
    interjection, wait, end, showing = (_filled(known[name], lists) for name in forms)
    languages = tuple(_language({**lists, **language}) for language in known["languages"])
    return Announcements(interjection, wait, end, showing, languages)


def _language(words: Mapping[str, Any]) -> Language:
    forms = (words["opening"], words["act"], words.get("breaks_form", _WORDS))
    return Language(*(_filled(form, words) for form in forms))


def _filled(form: str, lists: Mapping[str, Any]) -> str:
    """A pattern with the words of each list that it names."""
    return _LIST.sub(lambda found: _filled("|".join(lists[found[1]]), lists), form)
