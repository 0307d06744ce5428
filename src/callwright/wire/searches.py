"""Results of a web search, packed so that a client sends them back unchanged with the history."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from callwright.calls.web_search import SearchResult, results_text
from callwright.tolerant_json.codec import encode
from callwright.wire.sealed import is_swollen, sealed, unsealed

T = TypeVar("T")

# Longer ones were not packed here, or exceed one request's share: a history must not expand to much more than its size
# in bytes.
_MAX_BYTES: Final = 262_144
_MAX_TOTAL_BYTES: Final = 8_388_608


class SealedSearch(msgspec.Struct, frozen=True):
    """A search as it travels: its results, or, without results, the words that the model has read."""

    words: str
    results: tuple[SearchResult, ...] = ()

    @property
    def model_text(self) -> str:
        """The text that the model has read."""
        return results_text(self.results) if self.results else self.words


def sealed_search(words: str, results: Sequence[SearchResult]) -> str:
    """A whole search as `encrypted_content`."""
    return sealed(encode(SealedSearch("" if results else words, tuple(results))).decode())


def sealed_result(result: SearchResult) -> str:
    """A single result as `encrypted_content`."""
    return sealed(encode(result).decode())


class Unsealer:
    """Unpacks the searches of one request, as far as they are small together. `left` and `swells` are those of
    `SealedTexts`.
    """

    def __init__(self) -> None:
        self.left = _MAX_TOTAL_BYTES
        self.swells = False

    def search(self, content: object) -> SealedSearch | None:
        """What `sealed_search` packed; None for anything else."""
        return self._unpacked(content, SealedSearch)

    def result(self, content: object) -> SearchResult | None:
        """A single result that was packed by `sealed_result`; None for anything else."""
        return self._unpacked(content, SearchResult)

    def _unpacked(self, content: object, kind: type[T]) -> T | None:
        most = min(_MAX_BYTES, self.left)
        if not isinstance(content, str) or not most:
            return None
        text = unsealed(content, most)
        if text is None:
            return None
        self.left = max(0, self.left - len(text))
        self.swells = self.swells or is_swollen(text, content)
        try:
            return msgspec.json.decode(text, type=kind)
        except msgspec.MsgspecError:
            return None


def citation(result: SearchResult, start: int, end: int) -> Mapping[str, Any]:
    """A citation of a result in OpenAI's form. `start` and `end` are characters of the text, the last one left out."""
    return {
        "type": "url_citation",
        "start_index": start,
        "end_index": end,
        "url": result.url,
        "title": result.title,
    }
