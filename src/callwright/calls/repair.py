"""Repairs arguments by their schema: renames parameters and coerces values if that is safe, and reports each step.

Works on the tree of a parsed value. A value that no rule fits is unchanged, and validation reports its errors.
Nothing is filled in, dropped or guessed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from callwright.calls.aliases import GROUPS, AliasGroups, NameRule, ParameterNames, may_rename
from callwright.calls.coerce import RULES, CoercionRule, as_integer, constant, fold_enum
from callwright.schema import validate
from callwright.schema.keywords import properties, required
from callwright.schema.resolve import Schema, branches, chosen, wanted_type
from callwright.tolerant_json.codec import NotJsonError, encode
from callwright.tolerant_json.tree import Item, Member, Node

RepairRule = CoercionRule | NameRule | Literal["same_twice", "null_left_out", "unwrapped", "value_to_parameter"]

# Values nested deeper than this are not repaired.
_MAX_DEPTH: Final = 24
_KINDS: Final = {"object": "object", "array": "array", "string": "string", "word": "string", "number": "number"}


class Repair(msgspec.Struct, frozen=True):
    """One repair: the rule, and the path of the value."""

    rule: RepairRule
    path: str


def repair_arguments(node: Node, schema: Schema, groups: AliasGroups = GROUPS) -> tuple[Node, list[Repair]]:
    """A value as its schema wants it, as far as the rules go, and the repairs that were made. `groups` are alias
    groups.
    """
    mender = ArgumentRepair(schema, groups)
    return mender.value(node, schema), mender.repairs


class _Mended(msgspec.Struct, frozen=True):
    """The cached outcome for a value and a schema. It holds both, because the cache knows them by their `id()`."""

    given: Node
    schema: object
    made: Node
    repairs: list[Repair]


class ArgumentRepair:
    """Repairs values against one root schema; `repairs` collects the steps.

    Every branch of a union is tried, and again for each value around it. The outcomes are cached, so the tries do not
    multiply.
    """

    def __init__(
        self,
        root: Schema,
        groups: AliasGroups = GROUPS,
        known: dict[tuple[int, int, str, int], _Mended] | None = None,
    ) -> None:
        self.repairs: list[Repair] = []
        self._root = root
        self._groups = groups
        self._known = {} if known is None else known

    def value(self, node: Node, schema: object, path: str = "$", depth: int = 0) -> Node:
        """One value as `schema` wants it; the same node if there is nothing to do."""
        if depth >= _MAX_DEPTH:
            return node
        key = (id(node), id(schema), path, depth)
        known = self._known.get(key)
        if known is None:
            before = len(self.repairs)
            choices = self._chosen(node, branches(schema, self._root))
            if len(choices) > 1:
                made = self._union(node, choices, path, depth)
            else:
                made = self._plain(node, choices[0], path, depth)
            self._known[key] = _Mended(node, schema, made, self.repairs[before:])
            return made
        self.repairs += known.repairs
        return known.made

    def _trial(self) -> "ArgumentRepair":
        """A copy whose repairs count only if the caller takes its outcome."""
        return ArgumentRepair(self._root, self._groups, self._known)

    def _chosen(self, node: Node, choices: Sequence[Schema]) -> Sequence[Schema]:
        """The branches of a union of objects that the constants among the members leave."""
        if len(choices) == 1 or node.kind != "object":
            return choices
        choices = [choice for choice in choices if wanted_type(choice) in ("", "object")] or choices
        for member in node.members if len(choices) > 1 else ():
            if (value := constant(member.value)) is not ...:
                choices = chosen(choices, member.name, value, self._root)
        return choices

    def _plain(self, node: Node, schema: Schema, path: str, depth: int) -> Node:
        kind = wanted_type(schema)
        if kind and not _is(node, kind):
            for name, rule in RULES.get(kind, ()):
                found = rule(node, schema)
                if found is None:
                    continue
                trial = self._trial()
                made = trial._plain(found, schema, path, depth + 1) if depth < _MAX_DEPTH else found
                if _is(made, kind) and (name not in ("value_to_list", "item_of_list") or self._fits(made, schema)):
                    self.repairs += [Repair(name, path), *trial.repairs]
                    return made
            return node
        if (
            kind in ("integer", "number")
            and (whole := as_integer(node.json, is_integer=kind == "integer")) != node.json
        ):
            return Node("number", whole, node.written)  # no repair: the same number, as integers are written
        if node.kind == "object":
            return self._object(node, schema, path, depth)
        if node.kind == "array":
            return self._array(node, schema, path, depth)
        if (member := fold_enum(node, schema)) is not None:
            self.repairs.append(Repair("enum_spelling", path))
            return member
        return node

    def _union(self, node: Node, choices: Sequence[Schema], path: str, depth: int) -> Node:
        """The value as the branch of a union that takes the fewest repairs; unchanged if several take as few and give
        different values.
        """
        best: list[tuple[int, Node, list[Repair]]] = []
        for choice in choices:
            trial = self._trial()
            made = trial._plain(node, choice, path, depth + 1)
            if self._fits(made, choice):
                best.append((len(trial.repairs), made, trial.repairs))
        best.sort(key=lambda entry: entry[0])
        tied = [made for repairs, made, _ in best if repairs == best[0][0]]
        if not best or (best[0][0] and not all(_same(tied[0], made) for made in tied)):
            return node
        self.repairs += best[0][2]
        return best[0][1]

    def _array(self, node: Node, schema: Schema, path: str, depth: int) -> Node:
        items = schema.get("items")
        if not isinstance(items, Mapping):
            return node
        made = [self.value(item.value, items, f"{path}[{n}]", depth + 1) for n, item in enumerate(node.items)]
        if all(new is item.value for new, item in zip(made, node.items, strict=True)):
            return node
        changed = [Item(item.before, item.after, new) for new, item in zip(made, node.items, strict=True)]
        return msgspec.structs.replace(node, items=changed)

    def _object(self, node: Node, schema: Schema, path: str, depth: int) -> Node:
        declared = properties(schema)
        members = self._renamed(node.members, schema, path)
        others, needed = schema.get("additionalProperties"), frozenset(required(schema))
        made: list[Member] = []
        for member in members:
            wants = declared.get(member.name, others)
            value = self.value(member.value, wants, f"{path}.{member.name}", depth + 1)
            may_go = member.name in declared and member.name not in needed
            if may_go and self.leaves_out(value, declared[member.name]):
                self.repairs.append(Repair("null_left_out", f"{path}.{member.name}"))
                continue
            made.append(member if value is member.value else msgspec.structs.replace(member, value=value))
        unchanged = len(made) == len(node.members) and all(
            new is old for new, old in zip(made, node.members, strict=True)
        )
        return node if unchanged else msgspec.structs.replace(node, members=made)

    def leaves_out(self, value: Node, schema: object) -> bool:
        """Whether a value is null for a parameter that does not accept null: models write it for "not given"."""
        return value.kind == "literal" and value.json == "null" and not self._fits(value, schema)

    def _renamed(self, members: Sequence[Member], schema: Schema, path: str) -> list[Member]:
        """The members under the names that the schema declares.

        A name is not changed if it would collide with another value. The same value under two names is included once.
        """
        declared = properties(schema)
        given = {member.name for member in members}
        unknown = [member for member in members if member.name not in declared]
        if not unknown or not declared or not may_rename(schema):
            return list(members)
        missing = [name for name in required(schema) if name not in given]
        claims: dict[str, list[tuple[Member, NameRule]]] = {}
        names = ParameterNames(declared)
        for member in unknown:
            found = names.resolve(member.name, missing, self._groups)
            if found and self._takes(declared[found[0]], member.value):
                claims.setdefault(found[0], []).append((member, found[1]))
        renamed: dict[str, str] = {}
        dropped: set[str] = set()
        by_name: dict[str, list[Member]] = {}
        for member in members:
            by_name.setdefault(member.name, []).append(member)
        for name, claimants in claims.items():
            own = by_name.get(name, [])
            rivals = own or [claimants[0][0]]
            same = [entry for entry in claimants if _same(entry[0].value, rivals[0].value)]
            if len(same) != len(claimants):
                continue
            if not own:
                renamed[claimants[0][0].name] = name
                self.repairs.append(Repair(claimants[0][1], f"{path}.{claimants[0][0].name}"))
                same = same[1:]
            for member, _ in same:
                dropped.add(member.name)
                self.repairs.append(Repair("same_twice", f"{path}.{member.name}"))
        made: list[Member] = []
        for member in members:
            if member.name in renamed:
                name = renamed[member.name]
                key = Node("string", encode(name).decode())
                made.append(msgspec.structs.replace(member, key=key, name=name))
            elif member.name not in dropped:
                made.append(member)
        return made

    def _takes(self, schema: object, value: Node) -> bool:
        """Whether a parameter accepts a value, after repair."""
        return self._fits(self._trial().value(value, schema), schema)

    def _fits(self, node: Node, schema: object) -> bool:
        if not isinstance(schema, Mapping):
            return schema is not False
        shared = {key: self._root[key] for key in ("$defs", "definitions") if key in self._root}
        try:
            return validate.is_valid({**shared, **schema}, node.value())
        except NotJsonError:
            return False


def _is(node: Node, kind: str) -> bool:
    """Whether a value is of a JSON Schema type; `5.0` is an integer."""
    if kind == "integer":
        return node.kind == "number" and _whole(node)
    if kind in ("boolean", "null"):
        return node.kind == "literal" and (node.json == "null") == (kind == "null")
    return _KINDS.get(node.kind) == kind


def _whole(node: Node) -> bool:
    try:
        value: Any = node.value()
    except NotJsonError:
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _same(one: Node, other: Node) -> bool:
    if one is other:
        return True
    try:
        return one.value() == other.value()
    except NotJsonError:
        return False
