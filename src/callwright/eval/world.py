"""A small world that tools read and change: tables of records, the same for the same calls.

The action of a tool is data (`Effect`), so that a case is data, too. No clock, no chance, no access to anything else.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, TypeAlias

from msgspec import Struct

from callwright.tolerant_json.codec import encode

# Tables by name, records by key.
Tables: TypeAlias = Mapping[str, Mapping[str, Any]]


class _Effect(Struct, frozen=True, tag_field="does", tag=str.lower, forbid_unknown_fields=True, omit_defaults=True):
    """The action of a tool."""


class Get(_Effect, frozen=True):
    """Answers the record whose key is the argument `key`."""

    table: str
    key: str


class Find(_Effect, frozen=True):
    """Answers the records, with their keys, that have the values of the arguments."""

    table: str


class Put(_Effect, frozen=True):
    """Writes the arguments as the record whose key is the argument `key`."""

    table: str
    key: str


class Change(_Effect, frozen=True):
    """Writes the arguments into the record whose key is the argument `key`, which must be there."""

    table: str
    key: str


class Remove(_Effect, frozen=True):
    """Removes the record whose key is the argument `key`."""

    table: str
    key: str


class Move(_Effect, frozen=True):
    """Subtracts the argument `amount` from the field of one record and adds it to that of another."""

    table: str
    source: str
    target: str
    amount: str
    field: str


class Say(_Effect, frozen=True):
    """Answers a text."""

    text: str


class Fail(_Effect, frozen=True):
    """Fails with a text; after `times` failures (0: always) has the effect `then`."""

    text: str
    times: int = 0
    then: "Effect | None" = None


Effect: TypeAlias = Get | Find | Put | Change | Remove | Move | Say | Fail


class Executed(Struct, frozen=True):
    """A call that was run: of a custom tool the arguments are its `input`."""

    name: str
    arguments: Any
    output: str


class _RefusedError(Exception):
    """The error that a tool answers."""


class World:
    """The tables of one case while it is played, and the executed calls. A tool without an effect answers `done`."""

    def __init__(self, tables: Tables, effects: Mapping[str, Effect]) -> None:
        self.tables: dict[str, dict[str, Any]] = deepcopy({name: dict(rows) for name, rows in tables.items()})
        self.executed: list[Executed] = []
        self._effects = effects
        self._failed: dict[str, int] = {}

    def run(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Run a call, whose arguments fit the tool's schema. Answers its output, an error as `{"error": …}`."""
        effect = self._effects.get(name)
        try:
            answer = {"status": "done"} if effect is None else self._do(name, effect, arguments)
        except _RefusedError as error:
            answer = {"error": str(error)}
        output = answer if isinstance(answer, str) else encode(answer).decode()
        self.executed.append(Executed(name, deepcopy(arguments), output))
        return output

    def _do(self, name: str, effect: Effect, given: Mapping[str, Any]) -> Any:
        match effect:
            case Say(text):
                return text
            case Fail(text, times, then):
                failed = self._failed[name] = self._failed.get(name, 0) + 1
                if then is not None and times and failed > times:
                    return self._do(name, then, given)
                raise _RefusedError(text)
            case Get(table, key):
                return self._record(table, given.get(key))
            case Find(table):
                rows = self.tables.get(table, {})
                found = {key: row for key, row in rows.items() if all(row.get(n) == v for n, v in given.items())}
                return {"found": found}
            case Put(table, key):
                self.tables.setdefault(table, {})[str(given.get(key))] = _rest(given, key)
            case Change(table, key):
                self._record(table, given.get(key)).update(_rest(given, key))
            case Remove(table, key):
                self._record(table, given.get(key))
                del self.tables[table][str(given.get(key))]
            case Move(table, source, target, amount, field):
                taken, given_to = self._record(table, given.get(source)), self._record(table, given.get(target))
                if taken[field] < given[amount]:
                    raise _RefusedError(f"{given.get(source)} has only {taken[field]} {field}")
                taken[field] -= given[amount]
                given_to[field] += given[amount]
        return {"status": "done"}

    def _record(self, table: str, key: Any) -> Any:
        rows = self.tables.get(table, {})
        if str(key) not in rows:
            raise _RefusedError(f"there is no {key!r} in {table}; there are: {', '.join(rows)}")
        return rows[str(key)]


def _rest(given: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: deepcopy(value) for name, value in given.items() if name != key}
