"""The words of requests and tools, so that they can be compared: stems, words for the same, and what a word is about.

The tables are small on purpose: everyday words for what tools commonly do. A word that is in none of them still finds
the tool and the property that are named like it.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

__all__ = ["NUMBER_WORDS", "SECONDS", "STOP_WORDS", "meaning", "meanings", "name_words", "synonyms", "words"]

# Words for the same; the first stands for all.
_SAME: Final = tuple(
    tuple(line.split())
    for line in """
add plus sum addition total +
subtract minus difference subtraction -
multiply times product multiplication * ×
divide divided quotient division / ÷
power exponent ^ **
calculate compute evaluate calculator
search find query google browse
email e-mail mail
message text body sms
todo to-do task
delete remove erase
execute run
replace replacement substitute
read view
write overwrite save
convert conversion exchange
celsius centigrade c °c metric
fahrenheit f °f imperial
kilometer kilometers kilometre kilometres km
mile miles mi
meter meters metre metres m
foot feet ft
kilogram kilograms kg
gram grams g
pound pounds lb lbs
second seconds sec
minute minutes min mins
hour hours hr hrs
usd dollar dollars $
eur euro euros €
gbp sterling £
jpy yen ¥
percent percentage pct %
english en
french fr
german de
spanish es
japanese ja
on enable enabled active
off disable disabled inactive
ticker symbol
url link uri website
path file filename folder directory
person people guest guests passenger passengers attendee attendees participant participants
""".strip().splitlines()
)
# What words are about, though they do not mean it: a tool is found by it, and nothing else.
_ABOUT: Final[Mapping[str, str]] = {
    "weather": "rain snow sunny sun forecast temperature warm cold hot umbrella wind windy degree",
    "calculate": "add subtract multiply divide power percent sqrt math arithmetic",
    "currency": "dollar euro sterling yen money",
    "temperature": "celsius fahrenheit kelvin",
    "unit": "kilometer mile meter foot kilogram gram pound celsius fahrenheit",
    "stock": "share ticker",
    "timer": "minute second countdown",
    "event": "meeting appointment calendar",
    "edit": "replace change fix rename",
    "write": "create",
    "translate": "english french german spanish japanese italian chinese",
}
# Words that say nothing about what is asked for.
STOP_WORDS: Final = frozenset(
    "a an and are at be but by can could do does for from get give have how i i'm in into is it its let like me much "
    "many my now of off on or our please set show tell than that the then there these this to up us use was we what "
    "what's when where which who will with would you your".split()
)
NUMBER_WORDS: Final = {
    word: number
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|°[CF]\b|\*\*|(?<=[\d)])\s*[+*/^×÷-](?=\s*[\d(])|[%$€£¥]")
_NAME_WORD = re.compile(r"\d+|[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|[^\w\s]")
_ENDING = re.compile(r"(?<=...)(?:ations?|ating|ate[sd]?|ions?|ings?|ies|ied|ed|es|s|e|y)$|(?<=.{5})ers?$")
_SHORT: Final = 4  # a stem so short may be that of anything


@lru_cache(4096)
def _stem(word: str) -> str:
    return _ENDING.sub("", word)


_FIRST: Final = {word: line[0] for line in _SAME for word in line}
_FIRST_OF_STEM: Final = {
    stem: first for word, first in _FIRST.items() if len(stem := _stem(word)) >= _SHORT or stem == word
}
_WAYS: Final = {line[0]: line for line in _SAME}


@lru_cache(4096)
def meaning(word: str) -> str:
    """What stands for a word, in all its forms and in all that mean the same."""
    word = word.strip().lower()
    stem = _stem(word)
    return _FIRST.get(word) or _FIRST_OF_STEM.get(stem) or stem


def synonyms(word: str) -> list[str]:
    """The words for the same, in the ways in which they are written."""
    return [way for other in _WAYS.get(meaning(word), ()) for way in (other, other.upper(), other.title())]


@lru_cache(512)
def words(text: str) -> tuple[str, ...]:
    """The words of a text, and the signs that are read as words."""
    found: list[str] = []
    for word in _WORD.findall(text):
        word = re.sub(r"['’]s$", "", word.strip())
        found += [word] if word.lower() in _FIRST else word.split("-") if len(word) > 1 else [word]
    return tuple(found)


def name_words(name: str) -> list[str]:
    """The words of an identifier: `getCity_name` has three."""
    return _NAME_WORD.findall(name)


def meanings(of: Iterable[str], *, about: bool = False) -> frozenset[str]:
    """What words mean, without those that say nothing; `about`: and what that is about."""
    empty = STOP_WORDS | NUMBER_WORDS.keys()
    found = {meaning(word) for word in of if word and word.lower() not in empty}
    return frozenset(found.union(*(_TOPICS.get(word, ()) for word in found))) if about else frozenset(found)


_TOPICS: Final[dict[str, list[str]]] = {}
for _topic, _its in _ABOUT.items():
    for _word in _its.split():
        _TOPICS.setdefault(meaning(_word), []).append(meaning(_topic))
