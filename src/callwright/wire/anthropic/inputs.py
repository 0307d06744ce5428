"""The input of a call, which is a JSON object on this API, whatever the model wrote.

What is no object goes out under a key of its own: so the client answers the call with an error that the model learns
from, and clients read every answer. Claude Code (2.1.330) writes such inputs in the same way.
"""

from collections.abc import Mapping
from typing import Any, Final

from callwright.tolerant_json.codec import NotJsonError, decode, encode

_UNPARSED: Final = "__unparsedToolInput"


def input_of(arguments: str) -> Mapping[str, Any]:
    """The arguments of a call (JSON text, or what the model wrote in its place) as an object."""
    try:
        value = decode(arguments)
    except NotJsonError:
        value = None
    return value if isinstance(value, dict) else {_UNPARSED: {"raw": arguments, "len": len(arguments)}}


def written_input(arguments: str) -> str:
    """The same as JSON text: that of the model where it is an object."""
    value = input_of(arguments)
    return encode(value).decode() if value.keys() == {_UNPARSED} else arguments


def read_input(given: Mapping[str, Any]) -> str:
    """The arguments that the model wrote, of an input that a client sends back."""
    unparsed = given.get(_UNPARSED)
    if given.keys() == {_UNPARSED} and isinstance(unparsed, Mapping) and isinstance(unparsed.get("raw"), str):
        return str(unparsed["raw"])
    return encode(given).decode()
