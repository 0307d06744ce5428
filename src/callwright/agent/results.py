"""A tool's result in the form that the model reads: text, truncated to a size, and other parts.

Truncated when it is recorded, never later, so that the prefix of the prompt stays the same. The program has the whole
value.
"""

from collections.abc import Mapping, Sequence, Set
from pathlib import PurePath
from typing import Any, Final

import msgspec

from callwright.agent.annotations import Result
from callwright.conversation import MediaPart
from callwright.tolerant_json.codec import encode

_DONE: Final = "done"
_LESS: Final = "Ask for less if you need more of it"
_CONTENT: Final = 'expected a text, or a list of texts and of parts with a type ({"type": "image_url", …})'
_HEAD: Final = 2 / 3  # the share of the beginning in a truncated text; the rest is its end


class Output(msgspec.Struct, frozen=True):
    """The output for the model: `text`, and parts (Chat shape) to add after all outputs. `is_cut`: it is truncated."""

    text: str
    media: tuple[MediaPart, ...] = ()
    is_cut: bool = False


def write_result(value: Any, most: int) -> Output:
    """The output for a value, in `most` characters and a note. Raises `TypeError` for a value without a text form."""
    if isinstance(value, Result):
        if value.content is None:
            return write_result(_DONE if value.data is None else value.data, most)
        if isinstance(value.content, str):
            return _text(value.content, most)
        return _parts(value.content, most)
    if value is None:
        return _text(_DONE, most)
    if isinstance(value, str):
        return _text(value, most)
    if isinstance(value, bytes | bytearray | memoryview):
        return _text(_bytes(bytes(value)), most)
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return _list(value, most)
    return _text(json_text(value), most)


def cut_text(text: str, most: int) -> str:
    """A text in `most` characters, with a note of the number left out."""
    return _text(text, most).text


def _text(text: str, most: int) -> Output:
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if not text.isascii() else text
    if len(text) <= most:
        return Output(text)
    head = int(most * _HEAD)
    tail = most - head
    missing = len(text) - most
    note = f"\n[… {missing:,} of {len(text):,} characters left out here. {_LESS}.]\n"
    return Output(text[:head] + note + (text[-tail:] if tail else ""), is_cut=True)


def _list(items: Sequence[Any], most: int) -> Output:
    """A JSON list, truncated between items."""
    texts = [json_text(item) for item in items]
    if sum(map(len, texts)) + len(texts) + 1 <= most:
        return Output(f"[{','.join(texts)}]")
    head = _fitting(texts, int(most * _HEAD))
    tail = _fitting(texts[head:][::-1], most - int(most * _HEAD))
    if not head:
        return _text(f"[{','.join(texts)}]", most)
    note = encode(f"… {len(texts) - head - tail:,} of {len(texts):,} items left out here. {_LESS}.").decode()
    return Output(f"[{','.join([*texts[:head], note, *texts[len(texts) - tail :]])}]", is_cut=True)


def _fitting(texts: Sequence[str], most: int) -> int:
    """The number of texts that fit."""
    for number, text in enumerate(texts):
        most -= len(text) + 1
        if most < 0:
            return number
    return len(texts)


def _parts(parts: Sequence[str | Mapping[str, Any]], most: int) -> Output:
    """Join the texts; each other part is named in its place, and goes to `media`."""
    texts: list[str] = []
    media: list[MediaPart] = []
    if isinstance(parts, Mapping | bytes) or not isinstance(parts, Sequence):
        raise TypeError(f"Result(content=…): {_CONTENT}, got {type(parts).__name__}. A value goes into data=…")
    for at, part in enumerate(parts):
        if not isinstance(part, str) and not (isinstance(part, Mapping) and isinstance(part.get("type"), str)):
            raise TypeError(f"Result(content=…): {_CONTENT}, got {part!r:.80} at [{at}]. A value goes into data=…")
        if isinstance(part, str):
            texts.append(part)
        elif part.get("type") == "text":
            texts.append(str(part.get("text") or ""))
        else:
            media.append(MediaPart(dict(part)))
            texts.append(f"[{str(part.get('type', 'part')).removesuffix('_url').removeprefix('input_')} below]")
    output = _text("\n".join(texts), most)
    return msgspec.structs.replace(output, media=tuple(media))


def _bytes(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    return f"binary data, {len(value):,} bytes" if "\0" in text else text


def json_text(value: Any) -> str:
    """Compact JSON text. Raises `TypeError`."""
    try:
        return encode(msgspec.to_builtins(value, str_keys=True, enc_hook=_builtin)).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise TypeError(f"the result has no form as JSON: {error}") from error


def _builtin(value: Any) -> Any:
    """A value that msgspec does not know: a pydantic model, or any type with its own `__str__` or `__repr__`."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set | range):
        return list(value)
    own_words = any(name in base.__dict__ for base in type(value).__mro__[:-1] for name in ("__str__", "__repr__"))
    if isinstance(value, PurePath) or (own_words and not isinstance(value, type)):
        return str(value)
    raise TypeError(f"a {type(value).__qualname__} was returned")
