"""`metadata`: key-value pairs that a client stores with a response or a conversation."""

from collections.abc import Mapping
from typing import Any, Final

from callwright.errors import RequestError
from callwright.openai_format.errors import wrong_type

_MAX_PAIRS: Final = 16
_MAX_KEY: Final = 64
_MAX_VALUE: Final = 512


def check_metadata(given: Mapping[str, Any] | None) -> None:
    """Raises `RequestError` for metadata that OpenAI's API refuses; it names the pair."""
    given = given or {}
    if len(given) > _MAX_PAIRS:
        raise RequestError(
            f"Invalid 'metadata': too many properties. Expected an object with at most {_MAX_PAIRS} properties, but "
            f"got an object with {len(given)} properties instead.",
            param="metadata",
            code="object_above_max_properties",
        )
    for key, value in given.items():
        if len(key) > _MAX_KEY:
            raise RequestError(
                f"Invalid 'metadata': key too long. Expected a key with maximum length {_MAX_KEY}, but got one with "
                f"length {len(key)} instead.",
                param="metadata",
                code="string_above_max_length",
            )
        if not isinstance(value, str):
            raise wrong_type(f"metadata.{key}", "str", value)
        if len(value) > _MAX_VALUE:
            raise RequestError(
                f"Invalid 'metadata.{key}': string too long. Expected a string with maximum length {_MAX_VALUE}, but "
                f"got a string with length {len(value)} instead.",
                param=f"metadata.{key}",
                code="string_above_max_length",
            )
