"""The markers that formats put around JSON, and the tokens that end a turn."""

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["CLOSING_MARKS", "END_TOKENS", "JSON_TAGS", "MARKS", "TRAILING"]


# The marks that formats put around a call in JSON; some have no end.
_CLOSERS: Final[Mapping[str, str]] = {
    "<tool_call>": "</tool_call>",
    "<tool_calls>": "</tool_calls>",
    "<function_call>": "</function_call>",
    "<|tool_call|>": "",
    "<|python_tag|>": "",
    "[TOOL_CALLS]": "",
    "[TOOL_REQUEST]": "[END_TOOL_REQUEST]",
}

MARKS: Final = tuple(_CLOSERS)

CLOSING_MARKS: Final = tuple(filter(None, _CLOSERS.values()))

END_TOKENS: Final = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<|endoftext|>", "</s>")

JSON_TAGS: Final = frozenset(("", "json", "jsonc", "json5", "tool", "tool_call", "tool_calls", "tool_code"))

# Closers, fence rests and end tokens, which mean nothing behind a value.
TRAILING = re.compile(r"(?:[\s}\],;]++|`++|~++|" + "|".join(map(re.escape, (*END_TOKENS, *CLOSING_MARKS))) + r")*+")
