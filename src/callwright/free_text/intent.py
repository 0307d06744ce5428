"""Whether a call in text is meant: certain, ambiguous, or only text. Decided by place and form.

Certain are calls that make up the whole answer, and one run of calls that ends the answer on lines of its own after an
announcement, such as `I'll look that up.` Ambiguous calls are not guessed: they stay text and may be confirmed with the
model.
"""

import re
from collections.abc import Callable, Collection, Sequence
from functools import cache, lru_cache
from typing import Final, Literal, TypeAlias

import msgspec

from callwright.free_text.announcements import announcements
from callwright.free_text.places import Standing, ends_as_prose, is_blank, stands

Verdict: TypeAlias = Literal["certain", "ambiguous", "text"]

_MAX_CLAUSE: Final = 200
_ENDS: Final = " .:!…。：！।~～"
_CLAUSE_ENDS: Final = (".", ":", "!", "…", "。", "：", "！", "।")
_CLAUSE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_])|[。！？।\n]")
_TAG: Final = re.compile(r"<[^<>]*>|\[[A-Z_]+\]")  # around calls
_NAME_WORD = re.compile(r"[a-z]+")


_pattern = cache(re.compile)


class Runs(msgspec.Struct, frozen=True):
    """The runs of calls in an answer, each the numbers of its calls, with nothing but blanks between them.

    `before` is all prose before the first run, `behind` all after the last. `standing` is that of the first.
    """

    runs: tuple[tuple[int, ...], ...] = ()
    standing: Standing = "shown"
    before: str = ""
    behind: str = ""


def find_runs(
    text: str,
    spans: Sequence[tuple[int, int]],
    before: str = "",
    is_text: Callable[[str], bool] = lambda _: False,
) -> Runs:
    """The runs of candidates at `spans` in a text, except those that are only shown, or text according to `is_text`.

    `before` is the output before the text.
    """
    found: list[tuple[int, ...]] = []
    standings: list[Standing] = []
    first = 0
    for number, (_, end) in enumerate(spans):
        if number + 1 < len(spans) and is_blank(text[end : spans[number + 1][0]]):
            continue
        standing = stands(text, spans[first][0], end, before)
        if is_text(text[spans[first][0] : end]):
            standing = "shown"
        if standing != "shown":
            found.append(tuple(range(first, number + 1)))
            standings.append(standing)
        first = number + 1
    if not found:
        return Runs()
    return Runs(tuple(found), standings[0], before + text[: spans[found[0][0]][0]], text[spans[found[-1][-1]][1] :])


def verdict(found: Runs, *, demanded: bool = False, own: bool = False, names: Collection[str] = ()) -> Verdict:
    """The verdict on the calls of an answer.

    `demanded`: the request asks for a call. `own`: they follow the opening tags of the dialect itself. `names` are
    those of the called tools: `I'll water the beds` announces `water_garden`.
    """
    if not found.runs:
        return "text"
    if len(found.runs) > 1:
        return "ambiguous"
    if demanded:
        return "certain"
    if not is_blank(found.behind):
        return "ambiguous"
    # In the line of its announcement it follows the end of the clause; else it is a part of it.
    apart = found.standing == "lines" or found.before.rstrip().endswith(_CLAUSE_ENDS)
    announced = apart and is_announcement(found.before, names)
    is_own = own and (found.standing == "lines" or ends_as_prose(found.before)) and not is_showing(found.before, names)
    return "certain" if is_own or announced or is_blank(found.before) else "ambiguous"


@lru_cache(maxsize=64)
def _words_of(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word for name in names for word in _NAME_WORD.findall(name.lower()))


def is_announcement(text: str, names: Collection[str] = ()) -> bool:
    """Whether a text is one clause announcing something to be done now, perhaps after an interjection (`Sure!`)."""
    return len(text) <= _MAX_CLAUSE and _announces(text, _words_of(tuple(names)))


def is_showing(text: str, names: Collection[str] = ()) -> bool:
    """Whether the last clause of a text announces a call that is only an example: `It is written like this:`."""
    said = _TAG.sub("", text[-_MAX_CLAUSE:]).rstrip()
    clause = _CLAUSE_END.split(said)[-1].replace("’", "'").lower().rstrip(_ENDS)
    return _pattern(announcements().showing).search(clause) is not None and not is_announcement(clause, names)


# The same words are judged again if an answer is read as several families would.
@lru_cache(maxsize=64)
def _announces(text: str, words: frozenset[str]) -> bool:
    known = announcements()
    said = text.replace("’", "'").lower().strip(" \t\r\n\xa0\u3000*_#¡")
    begin = found.end() if (found := _pattern(known.interjection).match(said)) else 0
    waits = _pattern(known.wait).search(said.rstrip(_ENDS), begin)
    clause = said[begin : waits.start() if waits else len(said)]
    end = len(clause.rstrip(_ENDS))
    if not end:
        return waits is not None
    for language in known.languages:
        opening = _pattern(language.opening).match(clause)
        if opening is None or _pattern(known.end).search(clause, opening.end(), end):
            continue
        if _pattern(language.breaks).search(clause, opening.end()):
            continue
        word = _NAME_WORD.match(clause, opening.end())
        named = opening.end() and word and word.group() in words
        if named or _pattern(language.act).match(clause, opening.end(), end):
            return True
    return False
