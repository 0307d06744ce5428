"""Which dialect a model speaks: told by its name, or by its chat template, with the reason.

Every dialect says itself which names and templates are its own (`model_globs`, `template_markers`); of several that
match, the one that says it most precisely counts.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec import Struct

from callwright.calls.history import HistoryRules
from callwright.dialects.base import dialect_names, get_dialect

__all__ = ["Detected", "by_name", "by_template", "history_form"]

_PLAIN = HistoryRules()


class Detected(Struct, frozen=True):
    """A dialect, and why it is the one."""

    dialect: str
    reason: str


def by_name(model: str) -> Detected | None:
    """The dialect of a model by its name, such as `Qwen/Qwen3-Coder-30B-A3B-Instruct` or `qwen3-coder:30b`."""
    name = model.lower().replace("_", "-")
    bare = name.rpartition("/")[2]
    found = [
        (len(glob.replace("*", "")), dialect, glob)
        for dialect in dialect_names()
        for glob in get_dialect(dialect).model_globs
        if fnmatchcase(bare, glob) or fnmatchcase(name, glob)
    ]
    if not found:
        return None
    _, dialect, glob = max(found)
    return Detected(dialect, f"the name {model!r} matches {glob!r}")


def by_template(template: str) -> Detected | None:
    """The dialect of a model by the text of its chat template."""
    found = [
        (sum(map(len, marks)), dialect, marks)
        for dialect in dialect_names()
        for marks in _mark_sets(dialect)
        if all(mark in template for mark in marks)
    ]
    if not found:
        return None
    _, dialect, marks = max(found)
    return Detected(dialect, f"the chat template holds {' and '.join(map(repr, marks))}")


@lru_cache(maxsize=256)
def history_form(model: str) -> HistoryRules:
    """What the chat template of a model, known by its name, asks of the calls in a history."""
    found = by_name(model)
    return get_dialect(found.dialect).history_rules if found else _PLAIN


def _mark_sets(dialect: str) -> Iterator[tuple[str, ...]]:
    """Sets of texts of which each tells the dialect; in `template_markers` one set is a string, its texts apart by
    ` + `.
    """
    for marks in get_dialect(dialect).template_markers:
        yield tuple(marks.split(" + "))
