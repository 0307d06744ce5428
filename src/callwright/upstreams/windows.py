"""Context windows that servers report elsewhere than in their list of models, or that are smaller than listed.

llama.cpp lists the trained window of a model, and runs it with less; Ollama and LM Studio list nothing. Each has a page
of its own that reports how a model is loaded. Knows no HTTP.

Sources: README of llama.cpp's server (`/props`), docs/api.md of Ollama (`/api/ps`), lmstudio.ai/docs (REST API v0),
November 2026.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from callwright.upstreams.base import Server

# Reads windows from the page, given the names of the listed models: tokens by the model's name.
Read: TypeAlias = Callable[[Any, Sequence[str]], dict[str, int]]


def window_in(entry: Any, *names: str) -> int | None:
    """The first of these fields that holds a size."""
    fields = entry if isinstance(entry, dict) else {}
    return next((size for name in names if type(size := fields.get(name)) is int and size > 0), None)


def _of_props(page: Any, names: Sequence[str]) -> dict[str, int]:
    """One slot's share: a request has no more."""
    settings = page.get("default_generation_settings") if isinstance(page, dict) else None
    size = window_in(settings, "n_ctx")
    return dict.fromkeys(names, size) if size is not None and len(names) == 1 else {}


def _of_running(page: Any, _: Sequence[str]) -> dict[str, int]:
    return _windows_in(page, "models", ("name", "model"), ("context_length",))


def _of_loaded(page: Any, _: Sequence[str]) -> dict[str, int]:
    return _windows_in(page, "data", ("id",), ("loaded_context_length", "max_context_length"))


def _windows_in(page: Any, field: str, names: Sequence[str], sizes: Sequence[str]) -> dict[str, int]:
    entries = page.get(field) if isinstance(page, dict) else None
    found: dict[str, int] = {}
    for entry in entries if isinstance(entries, list) else ():
        size = window_in(entry, *sizes)
        for name in names:
            if size is not None and isinstance(entry.get(name), str):
                found[entry[name]] = size
    return found


# Below the server's root.
WINDOW_PAGES: Final[Mapping[Server, tuple[str, Read]]] = {
    "llamacpp": ("/props", _of_props),
    "ollama": ("/api/ps", _of_running),
    "lmstudio": ("/api/v0/models", _of_loaded),
}
