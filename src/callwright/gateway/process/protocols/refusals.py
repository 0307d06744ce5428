"""Responses to unreadable requests: an error in the format of the requested API, and `connection: close`."""

from collections.abc import Iterable
from http import HTTPStatus

from callwright.errors import RequestError
from callwright.gateway.request_context import Api
from callwright.tolerant_json.codec import encode
from callwright.wire.anthropic.errors import anthropic_error
from callwright.wire.errors import error_body


def too_large(limit: int, *, is_head: bool) -> RequestError:
    """The 431 for a head above the limit, or for a body with too much framing."""
    what, parts, instead = (
        ("head too large", "request line and headers", "Send fewer or shorter headers")
        if is_head
        else ("body broken", "chunk sizes, their extensions and trailers in a row", "Send it with a content-length")
    )
    return RequestError(
        f"Request {what}: expected at most {limit} bytes of {parts}, got more. {instead}.",
        code="request_head_too_large",
        status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    )


def no_request(what: str = "an HTTP/1.1 request") -> RequestError:
    """The 400 for input that is not HTTP."""
    return RequestError(
        f"Invalid HTTP request received: expected {what}, got something else. Send it with an HTTP client.",
        code="invalid_http_request",
    )


def no_websocket(why: str) -> RequestError:
    """The 400 for a handshake that does not lead to a WebSocket. It names the version, as RFC 6455, 4.2.2 demands."""
    return RequestError(
        f"Invalid WebSocket handshake: expected one by RFC 6455, version 13, got: {why}. Use a WebSocket client.",
        code="invalid_http_request",
        headers={"sec-websocket-version": "13"},
    )


def too_many_empty_lines(limit: int) -> RequestError:
    """The 400 for a body in chunks that costs too much to read."""
    return RequestError(
        f"Request body broken: expected at most {limit} empty lines in a body in chunks, got more. Send it with a "
        "content-length.",
        code="invalid_http_request",
    )


def unknown_coding(coding: bytes) -> RequestError:
    """The 501 for a body that was made smaller, or else, on its way."""
    return RequestError(
        f"Unknown transfer coding: expected 'chunked' alone, got {coding.decode(errors='replace')!r} before it. Send "
        "the body without another coding.",
        code="unknown_transfer_coding",
        status=HTTPStatus.NOT_IMPLEMENTED,
    )


def no_room(most: int) -> RequestError:
    """The 429 for a connection above the limit."""
    return RequestError(
        f"Too many connections: {most} are open and in use, which is the limit. Please try again, or raise "
        "max_connections in [limits] of the gateway's configuration.",
        status=429,
        type_="rate_limit_error",
        code="rate_limit_exceeded",
        headers={"retry-after": "1"},
    )


def write_refusal(error: RequestError, headers: Iterable[tuple[bytes, bytes]], api: Api = "openai") -> bytes:
    """The answer, whole. `headers` are those of every answer; `api` is the one that was asked, as far as is known."""
    body = encode(anthropic_error(error) if api == "anthropic" else error_body(error))
    own = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        **(error.headers or {}),
    }
    lines = [
        b"HTTP/1.1 %d %b" % (error.status, HTTPStatus(error.status).phrase.encode()),
        *(b"%b: %b" % each for each in headers),
        *(f"{name}: {value}".encode() for name, value in own.items()),
    ]
    return b"\r\n".join([*lines, b"", body])
