"""The models of a running gateway, for setting up an agent."""

import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from msgspec import Struct

from callwright.cli.options import check_server_url
from callwright.doctor.chat_models import can_chat
from callwright.errors import ConfigError, did_you_mean, reason_of
from callwright.tolerant_json.codec import NotJsonError, decode

URL: Final = "http://127.0.0.1:8642"
# Assumed for a window that is not known, in tokens.
DEFAULT_WINDOW: Final = 32_768
_PATIENCE_S: Final = 5.0
_WINDOWS: Final = ("context_length", "max_model_len", "context_window")


class Listing(Struct, frozen=True):
    """The models of a gateway. `chat` has the window of each that can chat, in tokens, None if it is not known;
    `others` are the rest. `searches`: whether the gateway searches the web; None if that is not known. `fault`: why it
    could not be asked.
    """

    chat: Mapping[str, int | None] = {}
    others: tuple[str, ...] = ()
    searches: bool | None = None
    fault: str = ""


def root_of(url: str) -> str:
    """The URL of a gateway without /v1. Raises `ConfigError` if it is not a URL."""
    check_server_url(url, "--url", URL)
    return url.rstrip("/").removesuffix("/v1").rstrip("/")


def list_models(root: str, key: str = "") -> Listing:
    """The models that the gateway at `root` (without /v1) lists; `key` is sent to it."""
    try:
        answer = _ask(f"{root}/v1/models", key)
    except ConfigError as error:
        return Listing(fault=str(error))
    data = answer.get("data") if isinstance(answer, Mapping) else None
    entries = [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, list) else []
    named = {entry["id"]: entry for entry in entries if _is_name(entry.get("id"))}
    chat = {name: _window(entry) for name, entry in named.items() if can_chat(name, entry)}
    searches = answer.get("web_search") if isinstance(answer, Mapping) else None
    return Listing(
        chat,
        tuple(name for name in named if name not in chat),
        searches if isinstance(searches, bool) else None,
        "" if named else f"The gateway at {root} lists no models. Name one with --model.",
    )


def check_model(name: str, root: str, listing: Listing) -> str:
    """A warning if the gateway does not list a model of this name. Raises `ConfigError` for a name that cannot be
    one, and for a model that cannot chat.
    """
    if not _is_name(name):
        raise ConfigError(f"--model: expected the name of a model, got {name!r}.")
    if name in listing.others:
        others = f" Models that can: {', '.join(listing.chat)}." if listing.chat else ""
        raise ConfigError(f"--model: {name!r} cannot chat: it is for embeddings, ranks, speech or images.{others}")
    if listing.fault or name in listing.chat:
        return ""
    near = did_you_mean(name, listing.chat)
    return f"the gateway at {root} does not list {name!r}.{near} It lists: {', '.join(listing.chat)}."


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name) and name.isprintable()


def _window(entry: Mapping[str, Any]) -> int | None:
    values = (entry.get(name) for name in _WINDOWS)
    return next((value for value in values if type(value) is int and value > 0), None)


def _ask(url: str, key: str) -> Any:
    """The JSON at a URL. Raises `ConfigError`."""
    way_out = "Start it with `callwright serve`, or name the model with --model."
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
            return decode(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            told = f"is that a gateway? {way_out}"
            if error.code == HTTPStatus.UNAUTHORIZED:
                wrong = "it does not know that key" if key else "it asks for a key (--key-env)"
                told = f"{wrong}. Or name the model with --model."
            raise ConfigError(f"{url} answered {error.code}: {told}") from error
    except NotJsonError as error:
        raise ConfigError(f"{url} does not answer JSON: is that a gateway? {way_out}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        told = reason_of(reason) if isinstance(reason, BaseException) else reason
        raise ConfigError(f"The gateway at {url} cannot be asked for its models: {told}. {way_out}") from error
