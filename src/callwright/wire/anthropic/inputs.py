"""The input of a call, which is always a JSON object in this API.

Any other input is wrapped in an object with a special key: the client then answers the call with an error from which
the model learns, and every client can parse it. Claude Code (2.1.330) writes such inputs in the same way.
"""

from collections.abc import Mapping
from typing import Any, Final

from callwright.tolerant_json.codec import NotJsonError, decode, encode

_UNPARSED: Final = "__unparsedToolInput"


def input_of(arguments: str) -> Mapping[str, Any]:
    """The arguments of a call (JSON, or any other text of the model) as an object."""
    try:
        value = decode(arguments)
    except NotJsonError:
        value = None
    return value if isinstance(value, dict) else {_UNPARSED: {"raw": arguments, "len": len(arguments)}}


def written_input(arguments: str) -> str:
    """The same as JSON text: the model's own if it is an object."""
    value = input_of(arguments)
    return encode(value).decode() if value.keys() == {_UNPARSED} else arguments


def read_input(given: Mapping[str, Any]) -> str:
    """The arguments as the model wrote them, from an input that a client sends back."""
    unparsed = given.get(_UNPARSED)
    if given.keys() == {_UNPARSED} and isinstance(unparsed, Mapping) and isinstance(unparsed.get("raw"), str):
        return str(unparsed["raw"])
    return encode(given).decode()
