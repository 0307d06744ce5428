"""The markers that model formats put around JSON, and the stop tokens that servers leave in the text."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

# Opening and closing markers of calls in JSON; some formats have no closing one.
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

CLOSING_MARKS: Final = (
    *filter(None, _CLOSERS.values()),
    # The opening ones of these are tags of single formats; a closing one may be left without it.
    *("</TOOLCALL>", "</longcat_tool_call>", "[/TOOL_CALLS]", "<|/tool_call|>"),
)

END_TOKENS: Final = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<|endoftext|>", "</s>")

JSON_TAGS: Final = frozenset(("", "json", "jsonc", "json5", "tool", "tool_call", "tool_calls", "tool_code"))
# Languages of their own with names like these.
_OTHER_TAGS: Final = frozenset(("jsonl", "jsonld", "json-ld"))
_MAX_TAG: Final = 20


@lru_cache(maxsize=64)
def is_json_tag(tag: str) -> bool:
    """Whether the language of a code fence, which may be misspelled, is one of JSON."""
    name = tag.lower()
    is_near = name not in _OTHER_TAGS and get_close_matches(name[:_MAX_TAG], JSON_TAGS, n=1, cutoff=0.8)
    return name in JSON_TAGS or bool(is_near)


# What may follow a value and means nothing: spare closers (`{"a": 1}}`), leftover fences, stop tokens.
TRAILING = re.compile(rf"(?:[\s}}\],;]++|`++|~++|{'|'.join(map(re.escape, (*END_TOKENS, *CLOSING_MARKS)))}|(?!))*+")
