"""Errors of Anthropic's API. Its clients act on the status, and on some of the wording.

Source: platform.claude.com/docs/en/api/errors, and what Claude Code 2.1.330 does at each, November 2026.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from callwright.errors import RequestError, UpstreamError
from callwright.wire.context_window import read_overflow

_TYPES: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_OVERLOADED: Final = 529
_TOO_MANY: Final = 429
_BUSY: Final = (503, _OVERLOADED)
_BAD: Final = 400
_FAILED: Final = 500
# Statuses that this API does not have.
_OTHERS: Final[Mapping[int, int]] = {503: _OVERLOADED, 502: _FAILED, 405: 404}


class AnthropicError(Struct, kw_only=True):
    """An error: `type` follows the status, `message` is for people and in some cases parsed by clients."""

    type: str
    message: str
    details: Mapping[str, Any] | UnsetType = UNSET


class AnthropicErrorResponse(Struct, kw_only=True, tag_field="type", tag="error"):
    """An error response; in a stream, the event."""

    error: AnthropicError
    request_id: str | UnsetType = UNSET


class _ThreadError(RequestError):
    """A thread that is not stored here: the SDK falls back to sending the whole history."""


def thread_unsupported() -> RequestError:
    """The refusal of `thread` from which Anthropic's SDK recovers: it sends the whole history instead."""
    return _ThreadError(
        "Threads are not kept by this gateway: leave out 'thread', and send all messages.", param="thread"
    )


def anthropic_status(error: RequestError | UpstreamError) -> int:
    """The HTTP status of an error on this API."""
    if isinstance(error, UpstreamError):
        if error.status in (_TOO_MANY, *_BUSY):
            return _TOO_MANY if error.status == _TOO_MANY else _OVERLOADED
        return {"unreachable": _OVERLOADED, "stopped": _OVERLOADED, "timeout": 504}.get(error.fault, _FAILED)
    status = _OTHERS.get(error.status, error.status)
    return status if status in _TYPES else _BAD if status < _FAILED else _FAILED


def anthropic_error(error: RequestError | UpstreamError, request_id: str | None = None) -> AnthropicErrorResponse:
    """The body of an error, and of the event that ends a stream. `request_id` is that of the answer's header."""
    message = error.message
    details: Mapping[str, Any] | UnsetType = UNSET
    if isinstance(error, RequestError):
        if error.code == "context_length_exceeded":
            message = _too_long(message)
        elif error.param is not None and error.param not in message:  # which has no place of its own here
            message = f"{error.param}: {message}"
    if isinstance(error, _ThreadError):
        details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    return AnthropicErrorResponse(
        error=AnthropicError(type=_TYPES[anthropic_status(error)], message=message, details=details),
        request_id=request_id or UNSET,
    )


def _too_long(message: str) -> str:
    """The wording on which Claude Code compacts the conversation and continues, with the server's numbers if any."""
    found = read_overflow(message)
    if found is None or found.window is None or found.total is None:
        return f"prompt is too long: {message}"
    return f"prompt is too long: {found.total} tokens > {found.window} maximum"
