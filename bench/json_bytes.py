"""How many bytes are given to JSON decoders and come out of JSON encoders, of msgspec and of the standard library."""

import json
from typing import Any

import msgspec

__all__ = ["JSON", "JsonBytes", "count_json"]


class JsonBytes:
    """What was decoded and encoded since the start, in bytes."""

    def __init__(self) -> None:
        self.decoded = self.encoded = 0


JSON = JsonBytes()


class _Decoder:
    """A decoder of msgspec that counts."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self._decoder = _MADE(*given, **options)

    def __class_getitem__(cls, kind: object) -> type:
        return cls

    def decode(self, text: Any) -> Any:
        JSON.decoded += _size(text)
        return self._decoder.decode(text)


_MADE = msgspec.json.Decoder
_ENCODE, _DECODE, _DUMPS, _LOADS = msgspec.json.encode, msgspec.json.decode, json.dumps, json.loads


def count_json() -> None:
    """Count from now on, in this process. Before what is counted is imported: it may keep a decoder."""

    def encode(*given: Any, **options: Any) -> bytes:
        made = _ENCODE(*given, **options)
        JSON.encoded += len(made)
        return made

    def decode(text: Any, *given: Any, **options: Any) -> Any:
        JSON.decoded += _size(text)
        return _DECODE(text, *given, **options)

    def dumps(*given: Any, **options: Any) -> str:
        made = _DUMPS(*given, **options)
        JSON.encoded += _size(made)
        return made

    def loads(text: Any, *given: Any, **options: Any) -> Any:
        JSON.decoded += _size(text)
        return _LOADS(text, *given, **options)

    counted: dict[Any, dict[str, object]] = {
        msgspec.json: {"Decoder": _Decoder, "encode": encode, "decode": decode},
        json: {"dumps": dumps, "loads": loads},
    }
    for module, functions in counted.items():
        for name, function in functions.items():
            setattr(module, name, function)


def _size(text: Any) -> int:
    return len(text.encode(errors="surrogatepass")) if isinstance(text, str) else memoryview(text).nbytes
