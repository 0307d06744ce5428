"""The JSON of a request's body, as far as it is within the limits.

Clients send the same tools with each request, and tools are most of it: those that have been decoded and checked are
kept by their text.
"""

from typing import Any, Final

import msgspec

from callwright.errors import RequestError
from callwright.limits import Limits
from callwright.schema.cache import kept_by_text
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.wire.errors import json_fault
from callwright.wire.limits import check_depth, check_limits

__all__ = ["decoded"]

_TOOLS: Final = "tools"
_SECRETIVE: Final = b'"mcp"'  # tools of this type come with keys, which nobody keeps


def decoded(body: bytes | str, limits: Limits) -> object:
    """The value of a body. Raises `RequestError` for one that is no JSON, or holds too much.

    Its tools may be those of an earlier body: whoever reads them changes nothing in them.
    """
    value = _with_kept_tools(body, limits)
    return _whole(body, limits) if value is None else value


def _whole(body: bytes | str, limits: Limits) -> object:
    try:
        value = decode(body)
    except NotJsonError as error:
        fault = json_fault(body if isinstance(body, bytes) else body.encode("utf-8", "replace"), error)
        raise RequestError(f"We could not parse the JSON body of your request. (It {fault}.)") from error
    check_depth(body, value, limits.max_depth)
    check_limits(value, body, limits)
    return value


def _with_kept_tools(body: bytes | str, limits: Limits) -> dict[str, Any] | None:
    """The value of a body with tools; None for another, and for one with anything wrong, which is told of the whole.
    Of a field that is given twice, the first is passed over.
    """
    if len(body) > limits.max_schema_bytes:  # a limit for all schemas of a body together
        return None
    try:
        fields = decode(body, dict[str, msgspec.Raw])
        tools = fields.get(_TOOLS)
        if tools is None:
            return None
        others: list[bytes | msgspec.Raw] = [b"{"]
        value: dict[str, Any] = {}
        for name, text in fields.items():
            value[name] = None if name == _TOOLS else decode(text)
            if name != _TOOLS:
                others.append(text)
        rest = b"".join(others)
        check_depth(rest, value, limits.max_depth)
        check_limits(value, rest, limits)
        value[_TOOLS] = _checked_tools(bytes(tools), limits)
    except (NotJsonError, RequestError, _NotToBeKept):
        return None
    return value


class _NotToBeKept(Exception):  # noqa: N818  # nobody's error
    """There are keys in it."""


@kept_by_text
def _checked_tools(text: bytes, limits: Limits) -> object:
    if _SECRETIVE in text:
        raise _NotToBeKept
    value = decode(text)
    check_depth(text, value, limits.max_depth - 1)
    check_limits({_TOOLS: value}, text, limits)
    return value
