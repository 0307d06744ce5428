"""The added tokens of the tokenizers of all families that a dialect claims, by tokenizer.

They are in `tokenizers.toml`, with their sources.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec


class Tokenizer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tokenizer, as the data file has it."""

    source: str
    tokens: str = ""
    bases: tuple[str, ...] = ()
    whole: bool = True


def _read() -> Mapping[str, Tokenizer]:
    text = files("callwright.dialects").joinpath("tokenizers.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Tokenizer])


TOKENIZERS: Final = _read()


@cache
def added_tokens(name: str) -> tuple[str, ...]:
    """All added tokens of a tokenizer of the table."""
    tokenizer = TOKENIZERS[name]
    tokens = [token for base in tokenizer.bases for token in added_tokens(base)]
    for written in tokenizer.tokens.split():
        tokens += _numbered(written.replace("␣", " "))
    return tuple(dict.fromkeys(tokens))


_RANGE: Final = re.compile(r"\{(\d+)\.\.(\d+)\}")


def _numbered(token: str) -> Iterator[str]:
    found = _RANGE.search(token)
    if found is None:
        yield token
    else:
        for number in range(int(found[1]), int(found[2]) + 1):
            yield f"{token[: found.start()]}{number}{token[found.end() :]}"
