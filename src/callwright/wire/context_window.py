"""Parse the token counts in servers' errors for a request that exceeds the context window.

Sources: the messages of vLLM (`serving_engine.py`, `utils.py`), SGLang (`tokenizer_manager.py`), llama.cpp
(`server-context.cpp`), TGI (`validation.rs`), LM Studio and OpenAI, 2025 and 2026.
"""

import re
from typing import Final

from msgspec import Struct

_NUMBER: Final = r"(\d[\d,]*)"
# The window; the total requested; and the prompt alone.
_WINDOW: Final = re.compile(
    rf"(?:context (?:length|window|size)|n_ctx)\b(?: of the model)?\D{{0,24}}?{_NUMBER}|>\s*{_NUMBER} maximum"
    rf"|`max_new_tokens` must be <= {_NUMBER}|`inputs` must have less than {_NUMBER}",
    re.IGNORECASE,
)
_TOTAL: Final = re.compile(
    rf"(?:requested|resulted in|a total of|request|input|prompt is too long:?)\D{{0,24}}?{_NUMBER}\s*(?:\w+ )?tokens",
    re.IGNORECASE,
)
_PROMPT: Final = re.compile(
    rf"{_NUMBER}\s*(?:tokens )?(?:in the messages|in the prompt|from the input messages|input tokens|in your prompt)"
    rf"|(?:input|request|prompt) \({_NUMBER} tokens\)|{_NUMBER} `inputs` tokens"
    rf"|less than \d+ tokens\. Given: {_NUMBER}",
    re.IGNORECASE,
)


class Overflow(Struct, frozen=True):
    """Tokens of the window, of prompt and requested answer together, of the prompt. None: not reported."""

    window: int | None = None
    total: int | None = None
    prompt: int | None = None

    def room(self) -> int | None:
        """The maximum tokens of an answer; None if the prompt leaves none, or if unknown."""
        if self.window is None or self.prompt is None or self.prompt >= self.window:
            return None
        return self.window - self.prompt


def read_overflow(words: str) -> Overflow | None:
    """The numbers in a server's words; None if it names no window."""
    window, total, prompt = (_first(pattern, words) for pattern in (_WINDOW, _TOTAL, _PROMPT))
    if window is None:
        return None
    if total is None or total <= window:  # of the prompt alone, or of the answer
        total = max((number for number in (total, prompt) if number is not None and number > window), default=None)
    return Overflow(window, total, prompt)


def _first(pattern: re.Pattern[str], words: str) -> int | None:
    found = pattern.search(words)
    text = next((group for group in found.groups() if group), None) if found else None
    return int(text.replace(",", "")) if text else None
