"""What differs between two configurations, and what of it a running gateway cannot take."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from callwright.gateway.config.config import Config, ServerConfig
from callwright.gateway.config.hosts import is_loopback

# Opened once by a process: its socket and workers, the store, the folder of records.
_ONCE: Final = ("host", "port", "workers", "max_body_bytes", "drain_s", "metrics", "watch")
_TABLES_ONCE: Final = ("store", "record")
# The setting that identifies an entry of a table.
_NAMED_BY: Final = {"models": "name", "keys": "name", "teams": "name", "mcp": "label", "hooks": "name"}


class Difference(Struct, frozen=True):
    """How an entry of a table differs, or with an empty `entry` the table itself."""

    table: str
    entry: str
    what: str
    needs_restart: bool = False

    def __str__(self) -> str:
        name = f"[[{self.table}]] {self.entry}" if self.entry else f"[{self.table}]"
        return f"{name}: {self.what}{' (needs a restart)' if self.needs_restart else ''}"


def differences(before: Config, after: Config) -> list[Difference]:
    """What `after` has other than `before`, without values: some are secrets."""
    return [one for table in Config.__struct_fields__ for one in _of_table(table, before, after)]


def open_warning(config: Config) -> str | None:
    """The warning of a gateway that listens elsewhere than on this machine alone, without keys."""
    if config.keys or is_loopback(config.server.host):
        return None
    return f"whoever reaches {config.server.host} may use this gateway. Give it [[keys]]."


def new_warning(before: Config, after: Config) -> str | None:
    """The `open_warning` of `after`, now or after a restart, if `before` gave none."""
    if open_warning(before) is not None:
        return None
    return open_warning(applicable(before, after)) or open_warning(after)


def applicable(running: Config, wanted: Config) -> Config:
    """The `wanted` configuration, as far as a gateway that was started with `running` can take it."""
    once = {name: getattr(running.server, name) for name in _ONCE}
    tables = {name: getattr(running, name) for name in _TABLES_ONCE}
    return msgspec.structs.replace(wanted, server=msgspec.structs.replace(wanted.server, **once), **tables)


def _of_table(table: str, before: Config, after: Config) -> Iterator[Difference]:
    old, new = getattr(before, table), getattr(after, table)
    if old == new:
        return
    if not isinstance(old, tuple):
        yield from _of_settings(table, old, new)
        return
    olds, news = _by_name(table, old), _by_name(table, new)
    for name in dict.fromkeys((*olds, *news)):
        if name not in news:
            yield Difference(table, name, "removed")
        elif name not in olds:
            yield Difference(table, name, "added")
        elif olds[name] != news[name]:
            yield Difference(table, name, f"{', '.join(_changed(olds[name], news[name]))} changed")
    if list(olds) != list(news) and olds.keys() == news.keys():
        yield Difference(table, "", "order changed")


def _of_settings(table: str, old: Struct | None, new: Struct | None) -> Iterator[Difference]:
    if old is None or new is None:
        yield Difference(table, "", "added" if old is None else "removed", table in _TABLES_ONCE)
        return
    changed = _changed(old, new)
    once = changed if table in _TABLES_ONCE else [n for n in changed if isinstance(new, ServerConfig) and n in _ONCE]
    live = [name for name in changed if name not in once]
    for names, needs_restart in ((live, False), (once, True)):
        if names:
            yield Difference(table, "", f"{', '.join(names)} changed", needs_restart)


def _changed(old: Struct, new: Struct) -> list[str]:
    return [name for name in old.__struct_fields__ if getattr(old, name) != getattr(new, name)]


def _by_name(table: str, entries: Sequence[Any]) -> Mapping[str, Any]:
    field = _NAMED_BY.get(table)
    return {getattr(one, field) if field else str(number): one for number, one in enumerate(entries, 1)}
