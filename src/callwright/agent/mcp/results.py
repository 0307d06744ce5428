"""Converts an MCP server's result of a call to one of the runtime. It knows the shapes, not the protocol.

Source of the shapes: `CallToolResult` of the Model Context Protocol, 2026-07-28 and before.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright.agent.annotations import Failed, Result
from callwright.agent.results import cut_text
from callwright.tolerant_json.codec import NotJsonError, decode, encode

_AUDIO: Final[Mapping[str, str]] = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_MAX_FAULT: Final = 2_000
_WRAPPED: Final = "result"


class _ToolError(Failed):
    """The tool reported an error; the error type is that of the tracing conventions."""

    error_type = "tool_error"


def result_of(answer: Any, *, describe_media: bool = False) -> Any:
    """The value of a call: the structured content, which the text usually repeats, or else the text. Images and sounds
    are added in a `Result`, or described in words (`describe_media`). Raises `Failed` for an error result.
    """
    parts = [_part(block, describe_media=describe_media) for block in answer.content]
    texts = [part for part in parts if isinstance(part, str)]
    if answer.is_error:
        raise _ToolError(str(failure("\n".join(texts) or "The tool says that it failed, and not why.")))
    structured = _unwrapped(answer.structured_content, texts)
    if structured is None and len(texts) == len(parts):
        return "\n".join(texts) if parts else None
    if structured is None:
        return Result(content=parts)
    media = [part for part, block in zip(parts, answer.content, strict=True) if block.type in ("image", "audio")]
    return Result(content=[_text(structured), *media], data=structured) if media else structured


def _unwrapped(structured: Any, texts: Sequence[str]) -> Any:
    """Unwrap a value that a server's SDK put into an object, as `result`, because it was not one itself. Only if the
    texts have the same value.
    """
    if not isinstance(structured, Mapping) or structured.keys() != {_WRAPPED}:
        return structured
    value = structured[_WRAPPED]
    items = value if isinstance(value, list) else [] if value is None else [value]
    is_said = len(texts) == len(items) and all(map(_says, texts, items))
    return value if is_said else structured


def _says(text: str, value: Any) -> bool:
    try:
        return text == value or bool(decode(text) == value)
    except NotJsonError:
        return False


def failure(words: str) -> Failed:
    """A failure with a truncated text for the model."""
    return Failed(cut_text(words, _MAX_FAULT))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _part(block: Any, *, describe_media: bool) -> str | dict[str, Any]:
    """Text, or a part in the Chat shape; a description for any other kind."""
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio" if describe_media:
            return f"[{block.mime_type}, {_size(block.data)}]"
        case "image":
            url = f"data:{block.mime_type};base64,{block.data}"
            return {"type": "image_url", "image_url": {"url": url}}
        case "audio" if block.mime_type in _AUDIO:
            return {"type": "input_audio", "input_audio": {"data": block.data, "format": _AUDIO[block.mime_type]}}
        case "audio":
            return f"[{block.mime_type}, {_size(block.data)}]"
        case "resource_link":
            return f"{block.title or block.name}: {block.uri}"
        case "resource":
            return _resource(block.resource)
        case kind:
            return f"[{kind}]"


def _resource(resource: Any) -> str:
    text = getattr(resource, "text", None)
    if text is not None:
        return str(text)
    return f"[{resource.uri}: {resource.mime_type or 'binary data'}, {_size(resource.blob)}]"


def _size(base64: Sequence[Any]) -> str:
    return f"{len(base64) * 3 // 4:,} bytes"
