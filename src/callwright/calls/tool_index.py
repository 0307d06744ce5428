"""Ranks tools by the words of a query, in any language: BM25 over names, descriptions and parameters.

No language is known here. Words match if they share enough trigrams: "sends" and "send", "погоду" and "погода",
"Wetterbericht" and "Wetter". In scripts without spaces, overlapping windows of a few characters are the words.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from math import log
from typing import Any, Final
from unicodedata import category, normalize

from callwright.conversation import FunctionTool
from callwright.memo.prefixes import once
from callwright.schema.keywords import properties

_RUN: Final = re.compile(r"[^\W_]+")
_PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")  # of a name in camel case
# Scripts without spaces, which are cut into windows: in Chinese, Japanese and Korean a word has about two characters,
# each with a meaning; Thai, Lao, Burmese and Khmer have letters.
_SYLLABLES: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff"
_LETTERS: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_WINDOWS: Final = {"syllables": 2, "letters": 4}
# Hebrew and Arabic, which write articles and prepositions as one with the word. Elsewhere, its beginning matters most.
_PREFIXED: Final = "\u0590-\u07ff"
_SCRIPT: Final = re.compile(
    f"(?P<syllables>[{_SYLLABLES}]+)|(?P<letters>[{_LETTERS}]+)|(?P<prefixed>[{_PREFIXED}]+)"
    f"|[^{_SYLLABLES}{_LETTERS}{_PREFIXED}]+"
)
_TRIGRAM: Final = 3

# Weights: a word in a tool's name counts most, in its parameters least.
_NAME: Final = 4.0
_DESCRIPTION: Final = 2.0
_PARAMETER: Final = 1.0
# The usual parameters of BM25: how soon a repeated word counts no more, and how much a long text is discounted.
_K: Final = 1.2
_B: Final = 0.75
_SIMILAR: Final = 0.45  # Dice's coefficient of the trigrams of words that match; "other" and "weather" have 0.4
_MAX_WORDS: Final = 64
_MAX_QUERY: Final = 2_000  # characters
_MAX_WORD: Final = 64
_BYTES: Final = 24  # of an index, for each byte of the texts; measured with English; 70 with random Chinese


def index_tools(tools: Sequence[FunctionTool]) -> "ToolIndex":
    """The index of these tools, made once for requests with the same ones."""
    size = _BYTES * sum(tool.weight for tool in tools)
    return once(tools, "search", partial(ToolIndex, tools), size=size)


class ToolIndex:
    """An index of tools, for several searches."""

    def __init__(self, tools: Sequence[FunctionTool]) -> None:
        self._tools = tools
        self._in_names: set[str] = set()
        self._rows: dict[str, dict[int, float]] = {}  # word -> tool -> how much it counts
        texts = [_weigh_words(tool) for tool in tools]
        lengths = [sum(weight * len(words) for words, weight in text) for text in texts]
        mean = sum(lengths) / max(1, len(tools))
        for number, text in enumerate(texts):
            weights: dict[str, float] = {}
            for words, weight in text:
                for word in words:
                    weights[word] = weights.get(word, 0.0) + weight
            self._in_names.update(text[0][0])
            discount = _K * (1 - _B + _B * lengths[number] / mean) if mean else _K
            for word, weight in weights.items():
                self._rows.setdefault(word, {})[number] = weight * (_K + 1) / (weight + discount)
        self._sizes: dict[str, int] = {}
        self._words_of: dict[str, list[str]] = {}  # by a part of them
        for word in self._rows:
            parts = _parts(word)
            self._sizes[word] = len(parts)
            for part in parts:
                self._words_of.setdefault(part, []).append(word)

    def search(self, query: str, limit: int = 8, *, fillers: bool = True) -> list[FunctionTool]:
        """The tools that match a query best, best first, at most `limit`; of a long query, the last words count. A tool
        with none of the words is left out. Without `fillers`, words that more than half of the tools and none of
        their names have find nothing.
        """
        scores: dict[int, float] = defaultdict(float)
        asked = dict.fromkeys(reversed(list(_words(query[-_MAX_QUERY:]))))
        for word in list(asked)[:_MAX_WORDS]:
            near = self._near(word)
            matches: dict[int, tuple[float, float]] = {}
            for other, similarity in near.items():
                for number, weight in self._rows[other].items():
                    matches[number] = max(matches.get(number, (0.0, 0.0)), (similarity * weight, similarity))
            common = sum(similarity for _, similarity in matches.values())
            if not fillers and common * 2 > len(self._tools) and self._in_names.isdisjoint(near):
                continue
            rarity = log(1 + (len(self._tools) - common + 0.5) / (common + 0.5))
            for number, (match, _) in matches.items():
                scores[number] += rarity * match
        best = sorted(scores, key=lambda number: (-scores[number], number))
        return [self._tools[number] for number in best[:limit]]

    def _near(self, word: str) -> dict[str, float]:
        """The words that match a word, and how much: the square of their similarity."""
        parts = _parts(word)
        shared = Counter(other for part in parts for other in self._words_of.get(part, ()))
        found = {other: 2 * count / (len(parts) + self._sizes[other]) for other, count in shared.items()}
        return {other: similarity**2 for other, similarity in found.items() if similarity >= _SIMILAR}


def _weigh_words(tool: FunctionTool) -> list[tuple[list[str], float]]:
    """The words of a tool's parts, and how much each counts."""
    schemas = properties(tool.parameters).items()
    parameters = " ".join(f"{key} {_described(schema)}" for key, schema in schemas)
    texts = ((tool.name, _NAME), (tool.description or "", _DESCRIPTION), (parameters, _PARAMETER))
    return [(_words(text), weight) for text, weight in texts]


def _words(text: str) -> list[str]:
    """The words of a text, lower-case and without accents. A name in camel case is one, and so are its parts."""
    if not text.isascii():
        apart = normalize("NFKD", text)
        text = normalize("NFC", "".join(each for each in apart if category(each)[0] != "M"))
    words: list[str] = []
    for run in _RUN.findall(text):
        if not run.isascii():
            words += _pieces(run)
            continue
        words.append(run[:_MAX_WORD].lower())
        if not run[1:].islower():
            parts = _PART.findall(run[:_MAX_WORD])
            words += [part.lower() for part in parts] if len(parts) > 1 else []
    return words


def _pieces(run: str) -> Iterator[str]:
    """The words of letters and digits without a space."""
    for script in _SCRIPT.finditer(run):
        if (size := _WINDOWS.get(script.lastgroup or "")) is not None:
            yield from _windows(script[0], size)
        else:
            yield script[0][:_MAX_WORD].casefold()


def _windows(text: str, size: int) -> Iterator[str]:
    """The overlapping pieces of this size, or a shorter text."""
    return (text[at : at + size] for at in range(max(1, len(text) - size + 1)))


def _parts(word: str) -> set[str]:
    """The parts by which a word is compared: characters or trigrams, see `_SCRIPT`. Numbers are compared as a whole."""
    script = _SCRIPT.match(word)
    kind = script.lastgroup if script is not None else None
    if kind == "syllables":
        return set(word)
    if len(word) < _TRIGRAM or word.isdecimal():
        return {word}
    return set(_windows(word if kind else f"^{word}", _TRIGRAM))


def _described(schema: Any) -> str:
    told = schema.get("description") if isinstance(schema, dict) else None
    return told if isinstance(told, str) else ""
