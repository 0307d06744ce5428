"""English words in requests and in tools: stems, synonyms and topics.

The tables are small on purpose. A word in none of them still matches a tool or a property of the same name.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

# Synonyms; the first represents all.
_SYNONYMS: Final = """
add plus sum addition total + | subtract minus difference subtraction - | multiply times product multiplication * ×
divide divided quotient division / ÷ | power exponent ^ ** | calculate compute evaluate calculator
search find query google browse | email e-mail mail | message text body sms | todo to-do task | delete remove erase
execute run | replace replacement substitute | read view | write overwrite save | convert conversion exchange
celsius centigrade c °c metric | fahrenheit f °f imperial | kilometer kilometers kilometre kilometres km
mile miles mi | meter meters metre metres m | foot feet ft | kilogram kilograms kg | gram grams g | pound pounds lb lbs
second seconds sec | minute minutes min mins | hour hours hr hrs | usd dollar dollars $ | eur euro euros €
gbp sterling £ | jpy yen ¥ | percent percentage pct % | english en | french fr | german de | spanish es | japanese ja
on enable enabled active | off disable disabled inactive | ticker symbol | url link uri website
path file filename folder directory
person people guest guests passenger passengers attendee attendees participant participants
"""
# Topics with words that hint at them: a tool is found by its topic.
_TOPICS: Final = """
weather rain snow sunny sun forecast temperature warm cold hot umbrella wind windy degree
calculate add subtract multiply divide power percent sqrt math arithmetic
currency dollar euro sterling yen money | temperature celsius fahrenheit kelvin
unit kilometer mile meter foot kilogram gram pound celsius fahrenheit | stock share ticker
timer minute second countdown | event meeting appointment calendar | edit replace change fix rename | write create
translate english french german spanish japanese italian chinese
"""
# Words that do not show the purpose of a request.
STOP_WORDS: Final = frozenset(
    "a an and are at be but by can could do does for from get give have how i i'm in into is it its let like me much "
    "many my now of off on or our please set show tell than that the then there these this to up us use was we what "
    "what's when where which who will with would you your".split()
)
NUMBER_WORDS: Final = "zero one two three four five six seven eight nine ten eleven twelve".split()
SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|°[CF]\b|\*\*|(?<=[\d)])\s*[+*/^×÷-](?=\s*[\d(])|[%$€£¥]")
_NAME_WORD = re.compile(r"\d+|[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|[^\w\s]")
_ENDING = re.compile(r"(?<=...)(?:ations?|ating|ate[sd]?|ions?|ings?|ies|ied|ed|es|s|e|y)$|(?<=.{5})ers?$")


def _lines(table: str) -> list[list[str]]:
    return [line.split() for line in re.split(r"[\n|]", table.strip())]


def _stem(word: str) -> str:
    return _ENDING.sub("", word)


_GROUPS: Final = {word: group for group in _lines(_SYNONYMS) for word in group}
_OF_STEMS: Final = {_stem(word): group for word, group in _GROUPS.items() if len(_stem(word)) >= 4}


def _synonyms(word: str) -> list[str]:
    word = word.strip().lower()
    return _GROUPS.get(word) or _OF_STEMS.get(_stem(word)) or [_stem(word)]


@lru_cache(4096)
def meaning(word: str) -> str:
    """One word for all forms and synonyms of a word."""
    return _synonyms(word)[0]


def synonyms(word: str) -> list[str]:
    """The synonyms of a word, in lower, upper and title case."""
    return [form for other in _synonyms(word) for form in (other, other.upper(), other.title())]


@lru_cache(512)
def words(text: str) -> tuple[str, ...]:
    """The words of a text, and the signs that are read as words."""
    found: list[str] = []
    for word in _WORD.findall(text):
        word = re.sub(r"['’]s$", "", word.strip())
        found += [word] if word.lower() in _GROUPS or len(word) == 1 else word.split("-")
    return tuple(found)


def name_words(name: str) -> list[str]:
    """The words of an identifier: `getCity_name` has three."""
    return _NAME_WORD.findall(name)


def meanings(of: Iterable[str], *, with_topics: bool = False) -> frozenset[str]:
    """The meanings of words, without stop words and numbers."""
    found = {meaning(word) for word in of if word and word.lower() not in _EMPTY}
    return frozenset(found.union(*(_TOPICS_OF.get(word, ()) for word in found)) if with_topics else found)


_EMPTY: Final = STOP_WORDS.union(NUMBER_WORDS)
_TOPICS_OF: Final[dict[str, set[str]]] = {}
for _topic, *_hints in _lines(_TOPICS):
    for _hint in _hints:
        _TOPICS_OF.setdefault(meaning(_hint), set()).add(meaning(_topic))
