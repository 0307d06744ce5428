"""The base URL of a model server: without credentials, and the probable corrections of a wrong one."""

import re
from base64 import b64encode
from typing import Final
from urllib.parse import unquote, urlsplit

# Paths below a base URL that may have been mistaken for a part of it.
_BELOW_V1: Final = (
    "/chat/completions",
    "/completions",
    "/models",
    "/embeddings",
    "/rerank",
    "/score",
    "/responses",
    "/messages",
    "/messages/count_tokens",
)
_BASE_URL: Final = re.compile(rf"(?P<root>.*?)(/v1)*({'|'.join(_BELOW_V1)})?/*", re.DOTALL)


def possible_base_urls(url: str) -> list[str]:
    """The base URLs that a URL may have been meant for, the likeliest first: with `/v1` and without, then with ever
    less of its path.
    """
    found = _BASE_URL.fullmatch(url)
    assert found is not None
    parts = urlsplit(found["root"])
    path = parts.path.rstrip("/")
    paths = [path]
    while path:
        path = path.rpartition("/")[0]
        paths.append(path)
    site = f"{parts.scheme}://{parts.netloc}"
    return list(dict.fromkeys([f"{site}{path}{end}" for path in paths for end in ("/v1", "")]))


def base_url_hint(url: str, path: str) -> str:
    """The question whether a base URL is right whose `path` the server does not have.

    It suggests a correction: with one `/v1`, and nothing after it.
    """
    found = _BASE_URL.fullmatch(url)
    assert found is not None
    meant = f"{found['root']}/v1" if path in _BELOW_V1 else url
    if meant == url:
        return "Is its base URL right?"
    return f"Does its base URL lack the /v1, as in {meant}?" if meant.startswith(url) else f"Is its base URL {meant}?"


def without_credentials(url: str) -> str:
    """The URL without user and password, to be shown."""
    return re.sub(r"//[^/@]*@", "//", url)


def credentials_in(url: str) -> list[str]:
    """The secrets of a URL: its password, and the form it has in a basic authentication header."""
    parts = urlsplit(url)
    if not parts.password:
        return []
    user, password = unquote(parts.username or ""), unquote(parts.password)
    return [password, parts.password, b64encode(f"{user}:{password}".encode()).decode()]
