"""What must hold of every reading of a model's output: no word is lost, and no call is silently wrong."""

import json
import re
from functools import cache
from typing import Final

import callwright
from callwright.dialects.base import dialect_names, get_dialect
from callwright.reading.collect import Turn

__all__ = ["missing_words", "silent_calls"]

# Words of headers, of escapes and of fences.
_HEADERS: Final = frozenset(("think", "json", "n", "u", "all", "final", "analysis", "commentary", "assistant", "user"))
_WORD: Final = re.compile(r"[^\W_]+")


@cache
def _words_of_formats() -> frozenset[str]:
    """The words of the formats themselves: of their tags, stop tokens and fences."""
    calls = [{"name": "\u2603", "arguments": {"\u2604": value}} for value in ("\u2605", 0, [0], {"\u2606": 0})]
    texts = [callwright.write(calls[:end], dialect=name) for name in dialect_names() for end in range(1, 5)]
    for name in dialect_names():
        texts += get_dialect(name).stops
        texts += callwright.render([{"role": "user", "content": "?"}], dialect=name).marks
    return frozenset(word for text in texts for word in _WORD.findall(text)) | _HEADERS


def missing_words(output: str, turn: Turn) -> list[str]:
    """The words of an output, except those of a format, that are in no part of its reading."""
    found = " ".join(
        [
            turn.content or "",
            turn.reasoning or "",
            *(f"{call.name} {call.arguments} {_decoded(call.arguments)}" for call in turn.calls),
            *(f"{problem.detail} {problem.text} {problem.candidate or ''}" for problem in turn.problems),
        ]
    )
    words, known = list(dict.fromkeys(_WORD.findall(output))), _words_of_formats()
    cut = words.pop() if words and any(word.startswith(words[-1]) for word in known) else ""  # a tag may be cut in it
    return [word for word in words if word != cut and word not in found and word not in known]


def _decoded(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False)
    except ValueError:
        return ""


def silent_calls(turn: Turn) -> list[str]:
    """The complete calls of a reading without a problem of their own or of the answer."""
    return [
        f"{call.name} {call.arguments}"
        for number, call in enumerate(turn.calls)
        if call.complete and not any(problem.call in (None, number) for problem in turn.problems)
    ]
