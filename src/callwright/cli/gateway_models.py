"""The models of a running gateway, for commands that set a client up for one of them: asked for, and named by a user.

What the client wants to know of a model is in the command's own module.
"""

import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from callwright.errors import ConfigError, did_you_mean, reason_of
from callwright.tolerant_json.codec import NotJsonError, decode

# What is taken for a window that nobody knows, in tokens.
DEFAULT_WINDOW: Final = 32_768
_PATIENCE_S: Final = 5.0


def checked_model(name: str) -> str:
    """The name of a model that can be written on one line. Raises `ConfigError`."""
    if not name or not name.isprintable():
        raise ConfigError(f"--model: expected the name of a model, got {name!r}.")
    return name


def checked_url(url: str, example: str) -> str:
    """The URL of a gateway without a slash at its end; `example` is named where it is none. Raises `ConfigError`."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or not url.isprintable():
        raise ConfigError(f"--url: expected a URL such as {example}, got {url!r}.")
    return url.rstrip("/")


def served_models(url: str, key: str = "") -> list[str]:
    """The names of the models that the gateway lists; see `listed_models`."""
    return list(listed_models(url, key))


def listed_models(url: str, key: str = "") -> dict[str, int | None]:
    """The models that the gateway lists whose base URL, with its /v1, this is: the window of each by its name, in
    tokens, None where it is not known.

    `key` is shown to it. Raises `ConfigError` when it cannot be asked or lists none.
    """
    listed = _listed(url, key)
    data = listed.get("data") if isinstance(listed, Mapping) else None
    found: dict[str, int | None] = {}
    for entry in data or ():
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), str):
            window = entry.get("context_length")
            found[entry["id"]] = window if type(window) is int and window > 0 else None
    if not found:
        raise ConfigError(f"The gateway at {url} lists no models. Name one with --model.")
    return found


def windows_of(model: str | None, url: str, given: int | None, key: str = "") -> dict[str, int]:
    """The window in tokens of one model, or of all that the gateway lists: what is `given`, else what the gateway says,
    else `DEFAULT_WINDOW`. Raises `ConfigError` where a model is to be found and the gateway cannot be asked.
    """
    if model is None:
        found = listed_models(url, key)
    else:
        checked_model(model)
        try:
            found = {model: None if given is not None else listed_models(url, key).get(model)}
        except ConfigError:  # it need not run yet
            found = {model: None}
    return {name: given or window or DEFAULT_WINDOW for name, window in found.items()}


def searches_web(url: str, key: str = "") -> bool | None:
    """Whether the gateway searches the web for its models; None where it does not say."""
    try:
        told = _listed(url, key)
    except ConfigError:
        return None
    found = told.get("web_search") if isinstance(told, Mapping) else None
    return found if isinstance(found, bool) else None


def _listed(url: str, key: str) -> Any:
    """What the gateway answers when it is asked for its models. Raises `ConfigError`."""
    way_out = "Start it with `callwright serve`, or name the model with --model."
    request = urllib.request.Request(f"{url}/models", headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
            return decode(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            told = f"is that a gateway? {way_out}"
            if error.code == HTTPStatus.UNAUTHORIZED:
                told = f"{'it does not know that key' if key else 'it asks for a key'}. Name the model with --model."
            raise ConfigError(f"{url}/models answered {error.code}: {told}") from error
    except (OSError, NotJsonError) as error:
        reason = getattr(error, "reason", None) or error
        told = reason_of(reason) if isinstance(reason, BaseException) else reason
        raise ConfigError(f"The gateway at {url} cannot be asked for its models: {told}. {way_out}") from error


def unlisted_warning(model: str, url: str, key: str = "") -> str:
    """A warning where the gateway can be asked for its models and does not list this one; else nothing."""
    try:
        names = served_models(url, key)
    except ConfigError:
        return ""
    if model in names:
        return ""
    near = did_you_mean(model, names)
    return f"Warning: the gateway at {url} does not list {model!r}.{near} It lists: {', '.join(names)}."
