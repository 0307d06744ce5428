"""Secrets in records and on the pages: fields with names of credentials are left out, and texts that
have the form of a key are masked.

A mask is as long as its text, so places in a record stay right, and a text that arrived in pieces is masked in each.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import msgspec

from callwright.errors import ConfigError
from callwright.gateway.config.hooks import RedactConfig
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.turn.records import Record

# Fields with such names may hold a key. Within schemas and messages the names are the user's.
_KEYS: Final = re.compile(r"api.?key|authorization|headers|password|secret|token$|credential", re.IGNORECASE)
_NOT_KEYS: Final = ("messages", "input", "tools", "parameters")
_MASK: Final = "*"
# No letter or digit is before a key, unless it ends an escape of JSON.
_BEGIN: Final = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))"
# Random letters and digits, not words: at least 12 in a row, among them a digit before a letter.
_RANDOM: Final = r"(?=(?:[A-Za-z0-9]{0,64}[_-]){0,16}?(?=[A-Za-z0-9]{12})[A-Za-z0-9]{0,64}?[0-9][A-Za-z])"
_KNOWN: Final = (
    _BEGIN + r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b",
    r"(?i:aws_?secret_?access_?key)[\"'\\\s:=]{1,8}[A-Za-z0-9/+]{40}",
    _BEGIN + r"gh[pousr]_[A-Za-z0-9]{30,255}",
    _BEGIN + r"github_pat_[A-Za-z0-9_]{50,255}",
    _BEGIN + r"glpat-[A-Za-z0-9_-]{20,255}",
    _BEGIN + r"xox[abeoprs]-(?=[0-9]{1,20}-)[A-Za-z0-9-]{10,255}",
    _BEGIN + r"AIza[A-Za-z0-9_-]{35}",
    _BEGIN + r"sk-" + _RANDOM + r"[A-Za-z0-9_-]{20,255}",  # OpenAI, Anthropic, OpenRouter, DeepSeek
    _BEGIN + r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}",
    _BEGIN + r"hf_[A-Za-z0-9]{30,255}",
    _BEGIN + r"cw-[A-Za-z0-9_-]{43}",
    _BEGIN + r"eyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,16384}\.[A-Za-z0-9_-]{0,4096}",
    _BEGIN + r"(?i:bearer)[ ]{1,4}(?=[A-Za-z._~+/-]{0,4096}[0-9])[A-Za-z0-9._~+/-]{16,4096}=*",
    r"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----(?s:.){0,16384}?(?:-----END [A-Z ]{0,32}PRIVATE KEY-----|\Z)",
)
# JSON in JSON in JSON, and the JSON of a record.
_MOST_NESTED: Final = 4
_PAIR: Final = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE: Final = re.compile(rf"\\({_PAIR}|u[0-9a-fA-F]{{4}}|[\"\\/bfnrt])")
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
# The fields of deltas and events whose texts arrive in pieces.
_STREAMED: Final = ("text", "arguments")


class Redactor:
    """Masks texts, and the `secrets` that hooks name. Without a configuration only those. Raises `ConfigError` for an
    invalid pattern.
    """

    def __init__(self, config: RedactConfig | None) -> None:
        given = config or RedactConfig(known=False)
        for number, pattern in enumerate(given.patterns):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(
                    f"redact.patterns[{number}]: expected a regular expression, got {pattern!r}: {error}."
                ) from error
        patterns = [*(_KNOWN if given.known else ()), *given.patterns]
        self._find = [re.compile(pattern) for pattern in patterns]

    def text(self, text: str, secrets: Collection[str] = ()) -> str:
        """The text with its secrets masked."""
        for begin, end in self._find_all(text, secrets):
            text = text[:begin] + _MASK * (end - begin) + text[end:]
        return text

    def value(self, value: Any, secrets: Collection[str] = ()) -> Any:
        """A JSON value with the secrets in its texts masked."""
        if isinstance(value, str):
            return self.text(value, secrets)
        if isinstance(value, dict):
            return {self.text(name, secrets): self.value(item, secrets) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item, secrets) for item in value]
        return value

    def record(self, record: Record, secrets: Collection[str] = ()) -> Record:
        """A record with its secrets masked, also those in several pieces of the output."""
        if not (self._find or secrets):
            return record
        given = msgspec.to_builtins(record)
        for attempt in given["attempts"]:
            self._mask_pieces([delta for _, delta in attempt.get("deltas", ())], secrets)
            self._mask_pieces(attempt.get("events", ()), secrets)
        return msgspec.convert(self.value(given, secrets), Record)

    def _mask_pieces(self, typed: Collection[dict[str, Any]], secrets: Collection[str]) -> None:
        streams: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for one in typed:
            for field in _STREAMED:
                if isinstance(one.get(field), str):
                    streams.setdefault((one["type"], field, one.get("index")), []).append(one)
        for (_, field, _), pieces in streams.items():
            masked, at = self.text("".join(one[field] for one in pieces), secrets), 0
            for one in pieces:
                end = at + len(one[field])
                one[field], at = masked[at:end], end

    def _find_all(self, text: str, secrets: Collection[str]) -> Iterator[tuple[int, int]]:
        for pattern in self._find:
            yield from [found.span() for found in pattern.finditer(text)]
        places = [_Unescaped(text)] if secrets else []
        while places:
            last = places[-1].text
            for secret in secrets:
                begin = last.find(secret)
                while begin >= 0:
                    yield _original(places, begin), _original(places, begin + len(secret))
                    begin = last.find(secret, begin + len(secret))
            if "\\" not in last or len(places) > _MOST_NESTED:
                return
            places.append(_Unescaped(last, _ESCAPE))


class _Unescaped:
    """A text without its escapes of JSON, and the places of its characters in the text with them."""

    def __init__(self, given: str, escape: re.Pattern[str] | None = None) -> None:
        """`escape` matches the escapes; None: there are none."""
        pieces: list[str] = []
        self._here, self._there = [0], [0]  # places after each escape
        size = end = 0
        for found in escape.finditer(given) if escape is not None else ():
            pieces += given[end : found.start()], _character(found[1])
            size, end = size + found.start() - end + 1, found.end()
            self._here.append(size)
            self._there.append(end)
        self.text = "".join((*pieces, given[end:]))

    def original(self, place: int) -> int:
        """The place in the given text."""
        number = bisect_right(self._here, place) - 1
        return self._there[number] + place - self._here[number]


def _original(steps: Sequence[_Unescaped], place: int) -> int:
    for step in reversed(steps):
        place = step.original(place)
    return place


def _character(escape: str) -> str:
    if escape[0] != "u":
        return _ESCAPED.get(escape, escape)
    units = b"".join(bytes.fromhex(unit) for unit in escape[1:].split("\\u"))
    return units.decode("utf-16-be", "surrogatepass")


def request_without_keys(body: bytes | str | None) -> Any:
    """A request as received, without fields that have names of credentials; None if it is unknown."""
    if body is None:
        return None
    try:
        return without_keys(decode(body))
    except NotJsonError:
        return None


def without_keys(body: Any) -> Any:
    """A request's body without fields that are named like a key, also in its tools and other objects."""
    if not isinstance(body, dict):
        return body
    kept = {
        name: value if name in _NOT_KEYS else without_keys(value)
        for name, value in body.items()
        if not _KEYS.search(name)
    }
    if isinstance(tools := kept.get("tools"), list):
        kept["tools"] = [without_keys(tool) for tool in tools]
    return kept
