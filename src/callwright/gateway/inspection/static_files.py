"""The files of the pages, with headers that exclude foreign content.

The pages load nothing from other origins, run only their own scripts, and cannot be framed. The files contain no data
of this gateway: the pages request it, with a key if keys are configured. `explanations.js` has the sentences of
`callwright.problems`.
"""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from callwright.errors import RequestError
from callwright.problems import EXPLANATIONS, FAILURES
from callwright.tolerant_json.codec import encode

_FOLDER: Final = files("callwright.inspection") / "pages"
_EXPLANATIONS: Final = "explanations.js"
_KINDS: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


class _File(Struct, frozen=True):
    content: bytes
    kind: str
    tag: str


def wants_page(request: Request) -> bool:
    """Whether a browser asks, which shows pages; curl and libraries want a text."""
    return "text/html" in request.headers.get("accept", "")


def shell(request: Request) -> Response:
    """The single page, whose view depends on its path."""
    return _answer(request, _file("index.html"))


def asset(request: Request) -> Response:
    """A file that the page loads. Raises `RequestError` (404)."""
    name = request.path_params["name"]
    found = _file(name) if name in _names() else None
    if found is None:
        raise RequestError(f"The pages have no file '{name[:100]}'.", status=404)
    return _answer(request, found)


def _answer(request: Request, file: _File) -> Response:
    headers = {**_HEADERS, "etag": file.tag}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.kind)


@cache
def _names() -> frozenset[str]:
    """The files that there are: nothing else in the package or the system is served."""
    found = {entry.name for entry in _FOLDER.iterdir() if entry.is_file()}
    found.add(_EXPLANATIONS)
    found |= {f"vendor/{entry.name}" for entry in (_FOLDER / "vendor").iterdir() if entry.is_file()}
    return frozenset(name for name in found if name.rpartition(".")[2] in _KINDS)


@cache
def _file(name: str) -> _File:
    content = _explanations() if name == _EXPLANATIONS else _FOLDER.joinpath(*name.split("/")).read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
    return _File(content, _KINDS[name.rpartition(".")[2]], tag)


def _explanations() -> bytes:
    return b"export const EXPLANATIONS = %s;\nexport const FAILURES = %s;\n" % (
        encode(EXPLANATIONS),
        encode([*FAILURES]),
    )
