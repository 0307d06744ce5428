"""Images and documents of the Messages API, as parts of a conversation: media in the form that chat servers take, and
documents of text as text.
"""

from collections.abc import Mapping
from typing import Any, Final

from callwright.conversation import MediaPart, Part, TextPart
from callwright.errors import RequestError
from callwright.openai_format.errors import missing, wrong_type

__all__ = ["document_parts", "image_part", "search_result_parts", "text_of"]

_PDF: Final = "application/pdf"


def text_of(given: Mapping[str, Any], path: str, field: str = "text") -> str:
    """A text that a block must have. Raises `RequestError`."""
    text = given.get(field)
    if text is None:
        raise missing(f"{path}.{field}")
    if not isinstance(text, str):
        raise wrong_type(f"{path}.{field}", "str", text)
    return text


def image_part(given: Mapping[str, Any], path: str) -> Part:
    """An image, in the request itself or at an address."""
    source = _source(given, path)
    match source.get("type"):
        case "base64":
            url = f"data:{text_of(source, path, 'media_type')};base64,{text_of(source, path, 'data')}"
        case "url":
            url = text_of(source, path, "url")
        case other:
            raise _unsupported(path, other, "'base64' or 'url'")
    return MediaPart({"type": "image_url", "image_url": {"url": url}}, f"{path}.source")


def document_parts(given: Mapping[str, Any], path: str) -> list[Part]:
    """A document: its text under its title, or a PDF as a file."""
    source = _source(given, path)
    title, context = (value if isinstance(value := given.get(name), str) else "" for name in ("title", "context"))
    head = "\n".join(filter(None, (f"Document: {title}" if title else "", context)))
    lead: list[Part] = [TextPart(head + "\n")] if head else []
    match source.get("type"):
        case "text":
            return [*lead, TextPart(text_of(source, path, "data"))]
        case "content":
            content = source.get("content")
            if isinstance(content, str):
                return [*lead, TextPart(content)]
            if not isinstance(content, list):
                raise wrong_type(f"{path}.source.content", "str | array", content)
            return [*lead, *(_inner(part, f"{path}.source.content[{n}]") for n, part in enumerate(content))]
        case "base64" if source.get("media_type", _PDF) == _PDF:
            data = f"data:{_PDF};base64,{text_of(source, path, 'data')}"
            return [*lead, _file(title, data, path)]
        case other:
            raise _unsupported(path, other, "'text', 'content', or 'base64' with media type application/pdf")


def search_result_parts(given: Mapping[str, Any], path: str) -> list[Part]:
    """A search result of the client: its title and source, and what it says."""
    content = given.get("content")
    texts = [
        text_of(part, f"{path}.content[{number}]")
        for number, part in enumerate(content if isinstance(content, list) else ())
        if isinstance(part, Mapping) and part.get("type") == "text"
    ]
    head = " ".join(str(given[name]) for name in ("title", "source") if given.get(name))
    return [TextPart("\n".join([f"Search result: {head}", *texts]))]


def _inner(part: object, path: str) -> Part:
    if not isinstance(part, Mapping):
        raise wrong_type(path, "object", part)
    return image_part(part, path) if part.get("type") == "image" else TextPart(text_of(part, path))


def _file(title: str, data: str, path: str) -> MediaPart:
    return MediaPart(
        {"type": "file", "file": {"filename": title or "document.pdf", "file_data": data}}, f"{path}.source"
    )


def _source(given: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    source = given.get("source")
    if source is None:
        raise missing(f"{path}.source")
    if not isinstance(source, Mapping):
        raise wrong_type(f"{path}.source", "object", source)
    return source


def _unsupported(path: str, kind: object, known: str) -> RequestError:
    return RequestError(
        f"Unsupported value: '{path}.source.type' does not support '{kind}' here: this gateway keeps no files. Send "
        f"{known}.",
        param=f"{path}.source.type",
        code="unsupported_value",
    )
