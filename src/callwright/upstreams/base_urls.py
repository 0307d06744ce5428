"""The base URL of a model server: what was probably meant by one that the server does not know."""

import re
from typing import Final

__all__ = ["base_url_hint"]

# What stands below a base URL, and may have been taken for a part of it.
_BELOW_V1: Final = ("/chat/completions", "/completions", "/models", "/embeddings", "/rerank", "/score")
_BASE_URL: Final = re.compile(rf"(?P<root>.*?)(/v1)*({'|'.join(_BELOW_V1)})?", re.DOTALL)


def base_url_hint(url: str, path: str) -> str:
    """The question whether a base URL is right, whose `path` the server does not have; it names the one that was
    probably meant: with one `/v1`, and nothing behind it.
    """
    found = _BASE_URL.fullmatch(url)
    assert found is not None
    meant = f"{found['root']}/v1" if path in _BELOW_V1 else url
    if meant == url:
        return "Is its base URL right?"
    return f"Does its base URL lack the /v1, as in {meant}?" if meant.startswith(url) else f"Is its base URL {meant}?"
