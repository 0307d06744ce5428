"""Web search as requests ask for it: OpenAI's tools and options, and the errors if no search is available.

Source of the shapes: OpenAI's types `WebSearchTool` and `WebSearchPreviewTool` of the Responses API, `WebSearchOptions`
of the Chat API.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from callwright.calls.web_search import WebSearchTool, one_line
from callwright.errors import RequestError
from callwright.openai_format.errors import type_error

_MAX_DOMAINS: Final = 100
_MAX_LOCATION: Final = 200
_WAY_OUT: Final = (
    "this gateway searches the web where its configuration says how, and it does not. Set [search] in callwright.toml, "
    "with the url of a SearXNG or a tool of an MCP server"
)


class _Place(msgspec.Struct):
    city: str | None = None
    region: str | None = None
    country: str | None = None
    timezone: str | None = None


class _Filters(msgspec.Struct):
    allowed_domains: list[str] | None = None
    blocked_domains: list[str] | None = None


class _Tool(msgspec.Struct):
    filters: _Filters | None = None
    user_location: _Place | None = None
    search_context_size: Literal["low", "medium", "high"] | None = None
    external_web_access: bool | None = None


class _Location(msgspec.Struct):
    approximate: _Place | None = None


class _Options(msgspec.Struct):
    user_location: _Location | None = None
    search_context_size: Literal["low", "medium", "high"] | None = None


def read_web_search(given: Mapping[str, Any], at: str) -> WebSearchTool | None:
    """The search options of a tool of the Responses API; None if it disables access to the web. Raises
    `RequestError`.
    """
    try:
        tool = msgspec.convert(given, _Tool)
    except msgspec.ValidationError as error:
        raise type_error(error, at, given, _supported(at)) from error
    filters = tool.filters or _Filters()
    found = WebSearchTool(
        domains(filters.allowed_domains, f"{at}.filters.allowed_domains"),
        domains(filters.blocked_domains, f"{at}.filters.blocked_domains"),
        _location(tool.user_location),
        tool.search_context_size or "medium",
    )
    return None if tool.external_web_access is False else found


def read_search_options(given: Mapping[str, Any], at: str = "web_search_options") -> WebSearchTool:
    """How a request of the Chat API wants the web to be searched. Raises `RequestError`."""
    try:
        options = msgspec.convert(given, _Options)
    except msgspec.ValidationError as error:
        raise type_error(error, at, given, _supported(at)) from error
    place = options.user_location.approximate if options.user_location else None
    return WebSearchTool(location=_location(place), context=options.search_context_size or "medium")


def _supported(at: str) -> dict[str, Sequence[str]]:
    return {f"{re.sub(r'[0-9]+', '', at)}.search_context_size": ("low", "medium", "high")}


def domains(given: Sequence[str] | None, at: str) -> tuple[str, ...]:
    """Domains, with or without a path after them, normalized for comparison. Raises `RequestError`."""
    if len(given or ()) > _MAX_DOMAINS:
        raise RequestError(
            f"Invalid '{at}': array too long. Expected an array with maximum length {_MAX_DOMAINS}, but got an array "
            f"with length {len(given or ())} instead.",
            param=at,
            code="array_above_max_length",
        )
    for number, name in enumerate(given or ()):
        if not name or "://" in name or any(mark.isspace() for mark in name):
            raise RequestError(
                f"Invalid '{at}[{number}]': expected a domain such as 'example.com', without a scheme before it.",
                param=f"{at}[{number}]",
                code="invalid_value",
            )
    return tuple(dict.fromkeys(name.lower().rstrip("/") for name in given or ()))


def location_words(*parts: str | None) -> str:
    """The user's location in words for the model, from the smallest area to the largest."""
    return one_line(", ".join(filter(None, parts)))[:_MAX_LOCATION]


def _location(place: _Place | None) -> str:
    return location_words(place.city, place.region, place.country, place.timezone) if place else ""


def needs_search(what: str, param: str, code: str = "unsupported_value") -> RequestError:
    """The error for a request that needs a search, if none is available. `what` begins the message."""
    return RequestError(f"{what}: {_WAY_OUT}; or leave it out.", param=param, code=code)


def refused_kind(kind: str, param: str, *, searches: bool) -> RequestError:
    """The error for a tool that is required, or is the only one, and cannot run here. `searches`: the gateway can
    search, but the request denies it access to the web.
    """
    what = f"Unsupported tool type '{kind}' at '{param.removesuffix('.type')}'"
    if kind.startswith("image_generation"):
        told = "nothing here makes images. Leave it out, or offer a function that the client runs"
    elif searches:
        told = "it has 'external_web_access' false, and the gateway has no pages but those of the web. Leave that out"
    else:
        return needs_search(what, param)
    return RequestError(f"{what}: {told}.", param=param, code="unsupported_value")
