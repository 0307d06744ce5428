"""Detects the dialect of a model by its name, or by marks in the text of its chat template, with the reason.

Every dialect declares its names and templates (`model_globs`, `template_markers`); if several match, the most specific
one wins. The text that a template renders is better evidence: `callwright.chat_template.detect` uses it first.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Final

from msgspec import Struct

from callwright.calls.history import HistoryRules
from callwright.conversation import Call
from callwright.dialects.base import dialect_names, get_dialect

_PLAIN: Final = HistoryRules()
# Suffixes of names that do not depend on the family: file types and quantizations.
_ENDING: Final = re.compile(r"[-.](?:gguf|safetensors|mlx|awq|gptq|exl[23]|fp\d+|bf16|f16|i?q\d\w*|int\d|\d+bit)\Z")
# Word boundaries in names: `qwen3`, `Mistral-Small3.2`, `gpt_oss:20b`.
_CUTS: Final = re.compile(r"[-_:\s/@+()]+|(?<=[a-z])(?=\d)|(?<=\d)(?=[a-z]{3})")
_POINT: Final = re.compile(r"(?<!\d_\d)(?<=\d)_(?=\d)")
# Models of a family that do not chat.
_OTHER_KINDS: Final = frozenset(
    "asr base clip embed embedding embeddings genrm guard guardian llava ocr parse prm reranker rerank reward rm "
    "safety siglip tts whisper aligner forcedaligner".split()
)
# Control tokens: a tokenizer without any of them does not belong to the dialect.
_TOKENS: Final = re.compile(r"<[|｜][^\s<>{}|｜]+[|｜]?>|｜[A-Z]+｜|\[[A-Z_]{3,}\]")


class Detected(Struct, frozen=True):
    """A dialect, and why it is the one. `options` are those of the dialect that are known with it."""

    dialect: str
    reason: str
    options: tuple[tuple[str, object], ...] = ()


def by_name(model: str, vocabulary: Collection[str] = ()) -> Detected | None:
    """The dialect of a model by its name, such as `Qwen/Qwen3-Coder-30B-A3B-Instruct` or `qwen3-coder:30b`. Of several
    families in a name the first counts, which is that of the tuned model, and of those the most precise. With a
    `vocabulary`, none whose control tokens are not in it.
    """
    words = ["^", *_words(model), "$"]
    if not _OTHER_KINDS.isdisjoint(words):
        return None
    found = [
        (-at, len(family), sum(map(len, family)), dialect, glob)
        for dialect in dialect_names()
        for glob in get_dialect(dialect).model_globs
        for family in [_family(glob)]
        if (at := _place(words, family)) is not None and _knows(vocabulary, dialect)
    ]
    if not found:
        return None
    *_, dialect, glob = max(found)
    return Detected(dialect, f"the name {model!r} matches {glob!r}")


def options_by_name(dialect: str, model: str) -> Mapping[str, object]:
    """The options of a dialect for a model of this name, such as the flavour of its prompts: those of the most precise
    name that it declares.
    """
    words = ["^", *_words(model), "$"]
    given = get_dialect(dialect).model_options
    found = [(len(_family(glob)), len(glob), glob) for glob in given if _place(words, _family(glob)) is not None]
    return given[max(found)[-1]] if found else {}


def by_template(template: str, vocabulary: Collection[str] = ()) -> Detected | None:
    """The dialect of a model by marks in the text of its chat template."""
    found = [
        (sum(map(len, marks)), dialect, marks)
        for dialect in dialect_names()
        for marks in _mark_sets(dialect)
        if all(mark in template for mark in marks) and _knows(vocabulary, dialect)
    ]
    if not found:
        return None
    _, dialect, marks = max(found)
    return Detected(dialect, f"the chat template holds {' and '.join(map(repr, marks))}")


def holds_marks(dialect: str, text: str) -> bool:
    """Whether a text holds marks of a dialect."""
    return any(all(mark in text for mark in marks) for marks in _mark_sets(dialect))


@lru_cache(maxsize=256)
def history_form(model: str) -> HistoryRules:
    """The rules of a model's chat template for the calls in a history, by the name of the model."""
    found = by_name(model)
    return get_dialect(found.dialect).history_rules if found else _PLAIN


def _words(name: str) -> list[str]:
    """The words of a name, without its organisation and the suffixes that do not depend on the family."""
    bare = name.lower().rstrip("/").rpartition("/")[2]
    while (shorter := _ENDING.sub("", bare)) != bare:
        bare = shorter
    return [word for word in _CUTS.split(_POINT.sub(".", bare)) if word]


@cache
def _family(glob: str) -> tuple[str, ...]:
    """The words of a family's name."""
    return tuple(_words(glob))


def _place(words: list[str], family: tuple[str, ...]) -> int | None:
    """The index in a name of the consecutive words of a family, or None."""
    for at in range(len(words) - len(family) + 1):
        if all(map(fnmatchcase, words[at : at + len(family)], family)):
            return at
    return None


def _knows(vocabulary: Collection[str], dialect: str) -> bool:
    """Whether a vocabulary, if there is one, has the control token that begins a dialect's calls."""
    return not vocabulary or (token := _first_token(dialect)) is None or token in vocabulary


@cache
def _first_token(dialect: str) -> str | None:
    found = _TOKENS.search(get_dialect(dialect).calls.layout.text([Call("name", "{}")]))
    return found.group() if found else None


def _mark_sets(dialect: str) -> Iterator[tuple[str, ...]]:
    """Sets of texts, each of which identifies the dialect; in `template_markers` one set is a string, its texts apart
    by ` + `.
    """
    for marks in get_dialect(dialect).template_markers:
        yield tuple(marks.split(" + "))
