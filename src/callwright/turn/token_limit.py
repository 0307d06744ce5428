"""The token limit of an answer for which the server gets several requests."""

from collections.abc import Mapping
from typing import Any, Final

from callwright.events import Usage

_LIMITS: Final = ("max_completion_tokens", "max_tokens")


def token_limit(fields: Mapping[str, Any]) -> int | None:
    """The token limit of a request with these fields."""
    return next((fields[name] for name in _LIMITS if isinstance(fields.get(name), int)), None)


def reduce_limit(fields: Mapping[str, Any], spent: Usage | None) -> Mapping[str, Any] | None:
    """The fields for the next request, if earlier ones for the same answer used the tokens `spent`, as far as the
    server counts them; None if no tokens are left.
    """
    if spent is None:
        return fields
    limits = {name: fields[name] - spent.completion_tokens for name in _LIMITS if isinstance(fields.get(name), int)}
    return None if any(limit < 1 for limit in limits.values()) else {**fields, **limits}
