"""Images and documents of the Messages API, as parts of a conversation: media in the form that chat servers take, and
documents of text as text.
"""

from collections.abc import Mapping
from typing import Any, Final

from callwright.conversation import MediaPart, Part, TextPart
from callwright.errors import RequestError
from callwright.openai_format.errors import missing, wrong_type

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
    source, at = _source(given, path), f"{path}.source"
    match source.get("type"):
        case "base64":
            url = f"data:{text_of(source, at, 'media_type')};base64,{text_of(source, at, 'data')}"
        case "url":
            url = text_of(source, at, "url")
        case other:
            raise _unsupported(at, other, "'base64' or 'url'")
    return MediaPart({"type": "image_url", "image_url": {"url": url}}, f"{path}.source")


def document_parts(given: Mapping[str, Any], path: str, dropped: set[str]) -> list[Part]:
    """A document: its text under its title, or a PDF as a file. `dropped` collects the types of omitted blocks."""
    source, at = _source(given, path), f"{path}.source"
    title, context = (value if isinstance(value := given.get(name), str) else "" for name in ("title", "context"))
    head = "\n".join(filter(None, (f"Document: {title}" if title else "", context)))
    lead: list[Part] = [TextPart(head + "\n")] if head else []
    match source.get("type"):
        case "text":
            return [*lead, TextPart(text_of(source, at, "data"))]
        case "content":
            content = source.get("content")
            if isinstance(content, str):
                return [*lead, TextPart(content)]
            if not isinstance(content, list):
                raise wrong_type(f"{at}.content", "str | array", content)
            return lead + [one for n, part in enumerate(content) for one in _inner(part, f"{at}.content[{n}]", dropped)]
        case "base64":
            if (kind := source.get("media_type", _PDF)) != _PDF:
                raise RequestError(
                    f"Unsupported value: '{at}.media_type' does not support '{kind}'. Send '{_PDF}', or what the "
                    "document says as a source of type 'text'.",
                    param=f"{at}.media_type",
                    code="unsupported_value",
                )
            data = f"data:{_PDF};base64,{text_of(source, at, 'data')}"
            return [*lead, _file(title, data, path)]
        case other:
            raise _unsupported(at, other, f"'text', 'content', or 'base64' with media type {_PDF}")


def search_result_parts(given: Mapping[str, Any], path: str, dropped: set[str]) -> list[Part]:
    """A search result of the client: its title, source and content. `dropped` is that of `document_parts`."""
    content = given.get("content") or ()
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list | tuple):
        raise wrong_type(f"{path}.content", "array", content)
    parts = [one for n, part in enumerate(content) for one in _inner(part, f"{path}.content[{n}]", dropped)]
    head = " ".join(str(given[name]) for name in ("title", "source") if given.get(name))
    return [TextPart(f"Search result: {head}"), *parts]


def _inner(part: object, path: str, dropped: set[str]) -> list[Part]:
    if not isinstance(part, Mapping):
        raise wrong_type(path, "object", part)
    match part.get("type"):
        case "text":
            return [TextPart(text_of(part, path))]
        case "image":
            return [image_part(part, path)]
        case kind:
            dropped.add(str(kind))
            return []


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
        f"Unsupported value: '{path}.type' does not support '{kind}' here: this gateway keeps no files, and fetches no "
        f"documents. Send {known}.",
        param=f"{path}.type",
        code="unsupported_value",
    )
