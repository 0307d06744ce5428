"""The entry of a configuration for the way that won."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from callwright.eval.report.words import told_pair, told_share
from callwright.eval.summary import Summary, WaySummary
from callwright.gateway.config.config import ModelConfig


def chosen_toml(summary: Summary, entries: Mapping[str, ModelConfig]) -> str | None:
    """A `callwright.toml` with the best of the ways that a gateway can be configured for, and why it is the best;
    None where only the server itself was measured, which needs none.
    """
    known = Summary([way for way in summary.ways if way.way in entries], summary.pairs)
    best = known.best
    if best is None:
        return None
    pairs = [pair for pair in summary.pairs if best.way in (pair.first, pair.second)]
    lines = [f"# {_why(best)}", *(f"# {told_pair(pair)}" for pair in pairs), *_entry(entries[best.way])]
    return "\n".join(lines) + "\n"


def _why(best: WaySummary) -> str:
    return f"{best.way}: {best.right} of {best.cases} cases right, {told_share(best.interval)}"


def _entry(entry: ModelConfig) -> list[str]:
    """What of an entry is not the default. It is called as its server calls the model."""
    default = msgspec.to_builtins(ModelConfig(name=entry.name, upstream=entry.upstream))
    given = {name: value for name, value in msgspec.to_builtins(entry).items() if value != default[name]}
    given.pop("model", None)
    named = {"name": entry.model or entry.name, "upstream": entry.upstream}
    return ["[[models]]", *(f"{name} = {_toml(value)}" for name, value in (named | given).items())]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
