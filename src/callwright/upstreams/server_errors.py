"""Errors of a model server, as `UpstreamError` or `RequestError` that name the server and hide its secrets."""

import math
import re
from collections.abc import Mapping
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

from callwright.errors import RefusedByServerError, RequestError, UpstreamError
from callwright.tolerant_json.codec import NotJsonError
from callwright.upstreams.base_urls import base_url_hint, credentials_in, without_credentials
from callwright.upstreams.faults import fault_of
from callwright.upstreams.http_client.response import Response
from callwright.upstreams.refusals import Reported, maybe_reported, plain, reported, too_long
from callwright.upstreams.sse_lines import ErrorData

_MAX_SHOWN = 500
# Statuses that blame the request.
_CALLERS_FAULT = (400, 413, 422)
_REFUSALS = 400
_NO_ACCESS = (401, 403)
_NOT_FOUND = 404
_NOT_HERE = (_NOT_FOUND, 405)
_SECRET = 6  # header values of at least this length are removed from error messages
_SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
_DAY_S = 86_400


class ServerErrors:
    """Builds the errors of the server at `url`. Keys in `headers` and a password in the URL never show up in them."""

    def __init__(self, url: str, headers: Mapping[str, str], connect_s: float) -> None:
        self._name = without_credentials(url)
        self._connect_s = connect_s
        values = [part for value in headers.values() for part in value.split()] + credentials_in(url)
        self._secrets = [value for value in values if len(value) >= _SECRET and value != "Bearer"]

    def failed(self, what: str, fault: Any) -> UpstreamError:
        """An error with this predicate: the server `what`."""
        end = "" if what.endswith("?") else "."
        what = self._without_secrets(what)
        return UpstreamError(f"The upstream at {self._name} {what}{end}", fault=fault, upstream=self._name)

    def lied(self, what: str, shown: bytes | bytearray) -> UpstreamError:
        """An error for an answer that breaks the protocol, with the start of the answer."""
        return self.failed(f"{what}: {self.clip_message(plain(shown))}", "protocol")

    def unknown(self, error: NotJsonError, data: bytes | bytearray) -> UpstreamError:
        """An error for an event that is not valid in the server's API."""
        unknown = self.lied(f"sent an event that its API does not know ({error})", data[:_MAX_SHOWN])
        unknown.__cause__ = error
        return unknown

    def for_failure(self, error: Exception, idle_s: float) -> UpstreamError:
        """An error for one of `FAILURES`. `idle_s` is the timeout between two reads."""
        what, fault = fault_of(error, self._connect_s, idle_s)
        return self.failed(self._without_secrets(what), fault)

    def maybe_reported(
        self, data: bytes | bytearray, kind: type[Any], max_values: int
    ) -> RequestError | UpstreamError | None:
        """The error that an event or a whole answer reports; None if it reports none."""
        mark: bytes = getattr(kind, "mark", b"")
        if isinstance(data, ErrorData):
            found: Reported | None = reported(data)
        elif mark in data and b'"error"' not in data:
            return None
        else:
            found = maybe_reported(data, mark, max_values)
        if found is None:
            return None
        told = self.clip_message(found.words)
        if found.is_too_long:
            return too_long(told)
        failure = self.failed(f"reports an error: {told}", "status")
        failure.said = self._without_secrets(found.words)
        return failure

    def refused(
        self, response: Response, body: bytes | bytearray, path: str, model: object
    ) -> RequestError | UpstreamError:
        """The error for a status of at least 300: a `RequestError` if the request is to blame."""
        found = reported(body, says_json=response.content_type.endswith("json"))
        told = self.clip_message(found.words)
        code = self.clip_message(found.code) if found.code else None
        if response.status in (*_CALLERS_FAULT, 500) and found.is_too_long:
            return too_long(told)
        if response.status in _CALLERS_FAULT and found.is_json:
            return RefusedByServerError(told, code=code, field=found.field)
        if response.status == _NOT_FOUND and (
            code == "model_not_found" or found.field == "model" or _names(told, model)
        ):
            return RequestError(told, param="model", code="model_not_found", status=_NOT_FOUND)
        error = self.answered(response, path, told)
        error.said = self._without_secrets(found.words)
        error.code = code or ""
        return error

    def answered(self, response: Response, path: str, told: str) -> UpstreamError:
        """The `UpstreamError` for such a status. `told` is the server's own message."""
        what = f"answered {response.status}: {told}"
        if response.status in _NO_ACCESS:
            what = f"refused the gateway's credentials (HTTP {response.status}): {told}"
        elif response.status in _NOT_HERE or response.status < _REFUSALS:
            what = f"answered {response.status} to {response.method} {path}: {told}. {base_url_hint(self._name, path)}"
        error = self.failed(what, "status")
        error.status = response.status
        error.retry_after_s = _maybe_wait(response.headers.get("retry-after", ""))
        return error

    def clip_message(self, words: str) -> str:
        """The start of a server's message, without secrets."""
        return self._without_secrets(words)[:_MAX_SHOWN]

    def _without_secrets(self, words: str) -> str:
        for secret in self._secrets:
            words = words.replace(secret, "…")
        return words


def _maybe_wait(said: str) -> str | None:
    """A valid `retry-after`: whole seconds up to a day, or a date (RFC 9110, 10.2.3)."""
    said = said.strip()
    if _SECONDS.fullmatch(said) and float(said) <= _DAY_S:
        return str(math.ceil(float(said)))
    try:
        return format_datetime(parsedate_to_datetime(said), usegmt=True)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _names(told: str, model: object) -> bool:
    """Whether an error mentions this model."""
    return bool(model) and re.search(rf"(?<![\w.-]){re.escape(str(model))}(?![\w-])", told) is not None
