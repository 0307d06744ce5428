"""What a dialect is, and how one is found by name.

A dialect is a module (or a package) in `callwright.dialects` that says how one model family is prompted and how its
output is parsed. Its file name is its name; there is no registry. It has:

    aliases           other names that engines and users know it by
    model_families    the model families that use it, for people
    model_globs       globs of such models' names, in lower case with `-` for `_` (optional)
    template_markers  texts in the chat templates of such models, ` + ` between those that belong together (optional)
    history_rules     what chat templates of such models ask of calls in a history, `HistoryRules` (optional)
    source            where the format was taken from
    stops             stop strings for a raw completion
    stop_token_ids    their ids, `()` if these differ by model
    Options           the options of `render` and `messages` (a subclass of `RenderOptions`)
    render            Conversation -> Prompt: the whole prompt, for completion endpoints (mode raw)
    messages          Conversation -> chat messages with the tools as text, for chat endpoints (mode prompt)
    parse             reads an output and emits events
    write             AssistantTurn -> the text that the model would write
"""

import importlib
import pkgutil
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol, cast

import msgspec

from callwright.calls.toolset import Toolset
from callwright.config_errors import SlipError, read_settings
from callwright.conversation import AssistantTurn, Conversation
from callwright.errors import RequestError, nearest
from callwright.prompt import Prompt
from callwright.stream_reader import Parse, StreamReader

__all__ = ["Dialect", "RenderOptions", "dialect_names", "get_dialect", "read_options"]


class RenderOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of every dialect. `add_generation_prompt`: end the prompt where the model's answer begins."""

    add_generation_prompt: bool = True


class Dialect(Protocol):
    """The interface of a dialect module; see the docstring of this module."""

    aliases: tuple[str, ...]
    model_families: str
    source: str
    stops: tuple[str, ...]
    stop_token_ids: tuple[int, ...]
    Options: type[RenderOptions]

    def render(self, conversation: Conversation, options: Any) -> Prompt: ...

    def messages(self, conversation: Conversation, options: Any) -> list[dict[str, Any]]: ...

    def parse(self, source: StreamReader, start: str, tools: Toolset) -> Parse[None]: ...

    def write(self, turn: AssistantTurn) -> str: ...


_NOT_DIALECTS = {"base", "detect", "prompts", "readers"}


@cache
def dialect_names() -> tuple[str, ...]:
    """The names of all dialects, sorted; without their aliases."""
    found = (module.name for module in pkgutil.iter_modules(sys.modules[__package__].__path__))
    return tuple(sorted(name for name in found if name not in _NOT_DIALECTS and not name.startswith("_")))


@cache
def get_dialect(name: str) -> Dialect:
    """The dialect of this name or alias. Raises `RequestError`, which suggests the nearest name."""
    if name in dialect_names():
        return _load(name)
    for other in dialect_names():
        if name in _load(other).aliases:
            return _load(other)
    meant = {word: other for other in dialect_names() for word in (other, *_load(other).aliases)}
    near = nearest(name, meant)
    hint = f" Did you mean {meant[near]!r}?" if near else ""
    raise RequestError(
        f"Unknown dialect {name!r}.{hint} Known dialects: {', '.join(dialect_names())}.",
        param="dialect",
        code="invalid_value",
    )


def read_options(dialect: str, options: Mapping[str, object]) -> RenderOptions:
    """The options of a dialect, checked. Raises `RequestError` for unknown names and wrong types."""
    kind = get_dialect(dialect).Options
    try:
        return read_settings(options, kind)
    except SlipError as error:
        raise RequestError(
            f"Options of dialect {dialect!r}: {error}", param=error.path or None, code="invalid_value"
        ) from error


def _load(name: str) -> Dialect:
    return cast(Dialect, importlib.import_module(f"callwright.dialects.{name}"))
