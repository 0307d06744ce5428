"""The table of the models that a gateway serves: mode, dialect and window of each, and why they were chosen."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Final, TypeAlias

from msgspec import Struct

from callwright.cli.terminal import count_noun, shortened
from callwright.dialects.base import TEMPLATE_PREFIX
from callwright.doctor.findings import Findings
from callwright.doctor.recommend import Advice
from callwright.gateway.config.build_models import detected, mode_of
from callwright.gateway.config.config import ANY_MODEL, SIMULATED_UPSTREAM, ModelConfig, file_of, servers_of
from callwright.turn.model import AUTO, TEMPLATE
from callwright.upstreams.base_urls import without_credentials

# The findings about the servers of each model of a configuration, by the model's name.
Looked: TypeAlias = Mapping[str, Sequence[tuple[Findings, Advice]]]

_HEADS: Final = ("model", "mode", "dialect", "window", "why")
_NONE: Final = "-"
_SAME: Final = "same"
_LATER: Final = "chosen when a model is first used"
# A longer name has a line of its own.
_NAME_WIDTH: Final = 28
_LEAST_WHY: Final = 20
_MODELS_WIDTH: Final = 60


class _Row(Struct, frozen=True):
    """A model in the table, below the title of its server. The cells are in the order of `_HEADS`."""

    title: str
    cells: tuple[str, ...]


def served_table(models: Sequence[ModelConfig], looked: Looked, columns: int) -> Iterator[str]:
    """The lines of the table, at most `columns` wide if the names allow it."""
    rows = [row for given in models for row in _rows(given, looked.get(given.name, ()))]
    used = [place for place in range(len(_HEADS)) if place < 2 or any(row.cells[place] for row in rows)]
    cells = [[row.cells[place] or _NONE for place in used] for row in rows]
    for before, row in reversed(list(pairwise(cells))):  # a long reason is read once
        if before[-1] == row[-1] != _NONE:
            row[-1] = _SAME
    widths = [
        max(len(_HEADS[place]), *(len(row[at]) for row in cells if at or len(row[at]) <= _NAME_WIDTH), 0)
        for at, place in enumerate(used)
    ]
    if used[-1] == len(_HEADS) - 1:
        widths[-1] = max(_LEAST_WHY, columns - sum(widths[:-1]) - 2 * len(used))
    for title, group in groupby(zip(rows, cells, strict=True), key=lambda pair: pair[0].title):
        yield title
        yield from _line([_HEADS[place] for place in used], widths)
        for _, row in group:
            yield from _line(row, widths)
        yield from _warnings(title, looked, columns)


def _warnings(title: str, looked: Looked, columns: int) -> Iterator[str]:
    """The warnings about the server with this title."""
    found = (findings for results in looked.values() for findings, _ in results if _title(findings) == title)
    for warning in dict.fromkeys(warning for findings in found for warning in findings.warnings()):
        yield from _indent(f"Warning: {warning}", columns)


def _line(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """A row on one line, or on more: the last cell is wrapped, a long name has its own line."""
    first, *others = cells
    if len(first) > widths[0]:
        yield f"  {first}"
        first = ""
    *short, last = others
    wrapped = textwrap.wrap(last, widths[-1], break_on_hyphens=False) or [""]
    start = [first, *short]
    for text in wrapped:
        aligned = (cell.ljust(width) for cell, width in zip((*start, text), widths, strict=True))
        yield f"  {'  '.join(aligned)}".rstrip()
        start = [""] * len(start)


def _rows(given: ModelConfig, looked: Sequence[tuple[Findings, Advice]]) -> Iterator[_Row]:
    where = ", ".join(map(without_credentials, servers_of(given)))
    if where == SIMULATED_UPSTREAM:
        where = "A simulated model"
    if not looked:
        yield _Row(where, _configured(given))
        return
    first, advised = looked[0]
    title = _title(first)
    if not advised.usable and not first.chat_models:
        reason = advised.choices["mode"].reason
        yield _Row(title, (_display_name(given.name), AUTO, "", "", f"{reason} {_LATER.capitalize()}."))
        return
    for findings, choice in looked:
        name = _display_name(given.name) if given.name != ANY_MODEL else findings.model or ""
        yield _Row(title, _result_row(name, findings, choice))
    if given.name == ANY_MODEL:
        yield from _others(title, [findings.model for findings, _ in looked], first)


def _title(findings: Findings) -> str:
    return f"{findings.title()} at {findings.url}"


def _indent(text: str, columns: int) -> Iterator[str]:
    yield from textwrap.wrap(
        text, columns, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False, break_long_words=False
    )


def _others(title: str, probed: Sequence[str | None], listed: Findings) -> Iterator[_Row]:
    """The models of a server that were not probed, together."""
    left = [name for name in listed.chat_models if name not in probed]
    if left:
        name = left[0] if len(left) == 1 else f"({count_noun(len(left), 'other')})"
        why = f"{_LATER}: {shortened(left, _MODELS_WIDTH)}" if len(left) > 1 else _LATER
        yield _Row(title, (name, AUTO, "", "", why))
    no_chat = [name for name in listed.models if name not in listed.chat_models and name not in probed]
    if no_chat:
        name = no_chat[0] if len(no_chat) == 1 else f"({count_noun(len(no_chat), 'other')})"
        why = "cannot chat" if len(no_chat) == 1 else f"cannot chat: {shortened(no_chat, _MODELS_WIDTH)}"
        yield _Row(title, (name, "", "", "", why))


def _result_row(name: str, findings: Findings, advised: Advice) -> tuple[str, ...]:
    window = f"{findings.context:,}" if findings.context else ""
    reason = advised.choices["mode"].reason
    if not advised.usable:
        return name, AUTO, "", window, reason
    reasons = (reason, findings.dialect_reason if advised.dialect else "")
    return name, advised.mode, _short(advised.dialect or ""), window, "; ".join(filter(None, reasons))


def _configured(given: ModelConfig) -> tuple[str, ...]:
    """A model as it was configured. Its dialect may be found by its name or its template."""
    window = f"{given.context_length:,}" if given.context_length else ""
    if given.mode == AUTO and file_of(given) is None:
        return _display_name(given.name), AUTO, given.dialect or "", window, _LATER
    dialect = given.dialect or (AUTO if file_of(given) else "")
    is_open = given.name == ANY_MODEL and not given.template
    found = detected(given) if dialect in (AUTO, TEMPLATE) and not is_open else None
    shown = _short(found.dialect) if found else dialect
    return _display_name(given.name), given.mode or mode_of(given), shown, window, found.reason if found else ""


def _display_name(name: str) -> str:
    return "(any)" if name == ANY_MODEL else name


def _short(dialect: str) -> str:
    """A dialect's name for display: that of a template without its number, which means nothing to a reader."""
    return TEMPLATE if dialect.startswith(TEMPLATE_PREFIX) else dialect
