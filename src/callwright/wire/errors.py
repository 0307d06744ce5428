"""OpenAI's errors as bodies and statuses."""

import json
import re

from msgspec import Struct

from callwright.errors import RequestError, UpstreamError
from callwright.tolerant_json.codec import NotJsonError

# An escape in a JSON text: a surrogate pair, a half of one, or any other.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def json_fault(body: bytes, error: NotJsonError) -> str:
    """What makes a body no JSON and where, as the rest of a sentence about it; `error` is that of its decoding."""
    if not body.strip():
        return "is empty"
    try:
        text = body.decode()
    except UnicodeDecodeError as wrong:
        return f"is not UTF-8: byte 0x{body[wrong.start]:02x} at position {wrong.start}"
    try:
        json.loads(text)
    except json.JSONDecodeError as wrong:
        return f"is not valid JSON: {wrong.msg} at line {wrong.lineno}, column {wrong.colno}"
    except (RecursionError, ValueError):
        pass
    if isinstance(error.__cause__, RecursionError):
        return "is nested too deeply"
    half = next((escape for escape in _ESCAPE.finditer(text) if escape["half"]), None)
    if half is None:
        return f"is not valid JSON: {error}"
    line, column = text.count("\n", 0, half.start()) + 1, half.start() - text.rfind("\n", 0, half.start())
    return f"contains an unpaired surrogate, {half.group()}, which is not a character, at line {line}, column {column}"


class ErrorObject(Struct, kw_only=True):
    """An error: `message` for people, the rest for programs. `param` is the path of the field in the request."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorResponse(Struct):
    """The answer to what went wrong."""

    error: ErrorObject


def error_body(error: RequestError | UpstreamError) -> ErrorResponse:
    """The API's error object for an error."""
    if isinstance(error, RequestError):
        return ErrorResponse(ErrorObject(message=error.message, type=error.type, param=error.param, code=error.code))
    if error.status == 429:
        type_, code = "rate_limit_error", "rate_limit_exceeded"
    else:
        type_, code = "server_error", f"upstream_{error.fault}"
    return ErrorResponse(ErrorObject(message=error.message, type=type_, param=None, code=code))


def upstream_status(error: UpstreamError) -> int:
    """The HTTP status for an upstream failure."""
    if error.status == 429:
        return 429
    return {"unreachable": 503, "timeout": 504, "stopped": 503}.get(error.fault, 502)
