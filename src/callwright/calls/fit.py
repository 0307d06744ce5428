"""The arguments of one call against its tool's schema: unwrapped, repaired, validated. Used for calls in every
format.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from callwright.calls.aliases import fold
from callwright.calls.coerce import node_text
from callwright.calls.json_forms import ARGUMENT_KEYS, IGNORED_KEYS, NAME_KEYS
from callwright.calls.repair import Repair, RepairRule, repair_arguments
from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool, NamedTool
from callwright.events import Problem, ProblemKind
from callwright.schema.keywords import required
from callwright.schema.plain import tool_schema
from callwright.schema.resolve import root_properties, wanted_type
from callwright.schema.validate import Fault
from callwright.tolerant_json.codec import NotJsonError, encode
from callwright.tolerant_json.find import json_places
from callwright.tolerant_json.reader import JsonRepair, read_json
from callwright.tolerant_json.tree import Member, Node

_KINDS: Final[Mapping[RepairRule, ProblemKind]] = {
    "alias": "argument_renamed",
    "spelling": "argument_renamed",
    "letter": "argument_renamed",
    "same_twice": "argument_dropped",
    "null_left_out": "argument_dropped",
    "unwrapped": "arguments_unwrapped",
}
_JSON_KINDS: Final[Mapping[JsonRepair, ProblemKind]] = {
    "repeated_key": "argument_repeated",
    "same_key": "argument_dropped",
}
# Names in a text that is not JSON, and the closers of JSON after a text.
_NAMED: Final = re.compile(r"""(?<![\w$.-])([\w$.-]++)["']\s*+:""").findall
_CLOSED: Final = re.compile(r"""["']\s*+([}\]])[\s}\]`]*\Z""").search
# How many wrappers around the arguments are taken off, one in the other.
_MAX_WRAPPERS: Final = 5
# Signs that a text may be arguments in a notation of its own, or a part of some: braces, a fence, tags and tokens,
# the end of a key, a call.
_NOTATION: Final = re.compile(
    r"[{}]|```|</?[A-Za-z_|\uff5c][^<>]*>|\[/?[A-Z][A-Z_]+\]|\"\s*:|\A[\w.]+\s*\(.*\)\s*;?\Z", re.DOTALL
).search
# A label before a text, and the words of one that names arguments.
_LABEL: Final = re.compile(r"\W{0,8}(?P<words>\w[\w '-]{0,60}?)[\"'*]{0,3}\s{0,3}[:=](?!//)").match
_LABELS: Final = frozenset(map(fold, (*ARGUMENT_KEYS, *NAME_KEYS, "argument", "parameter", "json")))
# Text allowed before and after the object that is meant: words that end in a colon, tags and tokens.
_LEAD: Final = re.compile(r"[^{}\[\]<>\"`=]{0,200}:|(?:<[^<>]*>|\[/?[A-Z][A-Z_]*\]|\s)*").fullmatch
_TAIL: Final = re.compile(r"(?:<[^<>]*>|\[/?[A-Z][A-Z_]*\]|[\s`])*").fullmatch


class RepairedArguments(msgspec.Struct, frozen=True):
    """The repaired arguments, the remaining faults, and the repairs that were made."""

    node: Node
    faults: list[Fault]
    steps: list[Repair]

    @property
    def text(self) -> str:
        """The arguments as JSON text. A truncated value is included as written."""
        return self.node.text()

    @property
    def is_json_object(self) -> bool:
        """Whether the text is JSON of an object, whether or not it fits."""
        try:
            return isinstance(self.node.value(), dict)
        except NotJsonError:
            return False


def step_problems(steps: Iterable[Repair]) -> list[Problem]:
    """Repairs as problems, for the consumer."""
    return [Problem(_kind(step), f"{step.rule.replace('_', ' ')} at {step.path}") for step in steps]


def _kind(step: Repair) -> ProblemKind:
    is_whole = step.rule == "json_in_text" and step.path == "$"
    return "arguments_decoded" if is_whole else _KINDS.get(step.rule, "argument_coerced")


def json_problems(repairs: Mapping[JsonRepair, int], call: int | None = None, *, odd: str = "") -> list[Problem]:
    """The JSON repairs of the tolerant reader as problems of a call. `odd`: see `JsonPlace`."""
    around = [Problem("json_repaired", odd, call)] if odd else []
    return around + [
        Problem(
            _JSON_KINDS.get(rule, "json_repaired"),
            rule.replace("_", " ") + (f", {times} times" if times > 1 else ""),
            call,
        )
        for rule, times in repairs.items()
    ]


def repair_and_validate(node: Node, name: str, tools: Toolset) -> RepairedArguments:
    """The arguments of the tool `name` as its schema wants them, as far as that is safe.

    An unknown tool's arguments stay as they are.
    """
    tool = tools.get(name)
    if tool is None:
        return RepairedArguments(node, _unwritten(node), [])
    steps: list[Repair] = []
    inner, fault = _unwrapped(node, tool, tools, steps)
    made, repairs = repair_arguments(inner, tool_schema(tool) or {}, tools.hints.aliases)
    if fault is None and (path := object_for_text(repairs, tool)):
        fault = Fault(path, "expected a text, got an object")
    faults = [fault] if fault else _unwritten(made) or _faults(made, name, tools)
    return RepairedArguments(made, faults, steps + repairs)


def tools_taking(node: Node, tools: Toolset) -> list[str]:
    """The names of the tools that accept these arguments, after repair, and declare each of their names.

    So a call whose tool name was lost can be found.
    """
    found: list[str] = []
    for tool in tools:
        own = root_properties(tool_schema(tool))
        made, _ = repair_arguments(node, tool_schema(tool) or {}, tools.hints.aliases)
        declared = own and {member.name for member in made.members} <= own.keys()
        if declared and not (_unwritten(made) or _faults(made, tool.name, tools)):
            found.append(tool.name)
    return found


def _unwrapped(node: Node, tool: FunctionTool, tools: Toolset, steps: list[Repair]) -> tuple[Node, Fault | None]:
    r"""The arguments without wrappers: JSON in a string, a list of one object, a call inside the call.

    In place of `{"tz": "UTC"}` models write `"{\"tz\": \"UTC\"}"`, `[{"tz": "UTC"}]`, `{"name": "get_time",
    "arguments": {"tz": "UTC"}}`, or the value alone. For a tool that needs no arguments, null means no arguments. The
    fault reports an inner call of another tool.
    """
    if _says_nothing(node) and tools.accepts_nothing(tool.name):
        steps.append(Repair("null_left_out", "$"))
        return Node("object"), None
    for _ in range(_MAX_WRAPPERS):
        text = node_text(node)
        if text is not None:
            inside = read_json(text.strip()) if text.strip()[:1] in ("{", "[", '"') else None
            if inside is not None and inside.kind in ("object", "array", "string"):
                steps.append(Repair("json_in_text", "$"))
            elif (inside := _object_in(text.strip(), tool, tools)) is not None:
                steps.append(Repair("unwrapped", "$"))
            else:
                return _text_parameter(node, text.strip(), tool, tools, steps)
        elif node.kind == "array" and len(node.items) == 1 and node.items[0].value.kind == "object":
            inside = node.items[0].value
            steps.append(Repair("item_of_list", "$"))
        else:
            inside, other = _inner_call(node, tool, tools)
            if other:
                return node, Fault("$", f"the arguments of {tool.name!r} contain a call of {other!r}")
            if inside is None:
                break
            steps.append(Repair("unwrapped", "$"))
        node = inside
    is_value = node.kind in ("number", "array") or (node.kind == "literal" and node.json != "null")
    return _lone_parameter(node, tool, tools, steps) if is_value else node, None


def _inner_call(node: Node, tool: FunctionTool, tools: Toolset) -> tuple[Node | None, str]:
    """The arguments inside a call nested in place of the arguments, or the name of the other tool that it calls."""
    own = root_properties(tool_schema(tool))
    keys = {member.name for member in node.members}
    names = [key for key in NAME_KEYS if key in keys - own.keys()]
    wrappers = [key for key in ARGUMENT_KEYS if key in keys - own.keys()]
    if names and wrappers and keys <= {names[0], wrappers[0], *IGNORED_KEYS}:
        inner = tools.resolve_name(node_text(node.get(names[0]) or node) or "")
        if inner == tool.name:
            return node.get(wrappers[0]), ""
        return None, inner if inner in tools else ""
    is_free = not own and (tool_schema(tool) or {}).get("additionalProperties") is not False
    if len(keys) == 1 and keys <= {*ARGUMENT_KEYS, "function", tool.name} - own.keys() and not is_free:
        inside = node.members[-1].value
        if inside.kind == "object" or (node_text(inside) or "").strip().startswith("{"):
            return inside, ""
    return None, ""


def _says_nothing(node: Node) -> bool:
    """Whether arguments are null, an empty text, or an empty list, as PHP writes an empty object."""
    return node.json in ("null", '""') or (node.kind == "array" and not node.items)


def object_for_text(steps: Iterable[Repair], tool: FunctionTool) -> str:
    """The path of an object that was converted to the text of a parameter, if that is doubtful, else `""`. It is under
    `strict`, and if it may hold the tool's only parameter. Next to other parameters it is the text of a document.
    """
    paths = [step.path for step in steps if step.rule == "object_to_text"]
    return paths[0] if paths and (tool.must_be_valid or len(root_properties(tool_schema(tool))) == 1) else ""


def _object_in(text: str, tool: FunctionTool, tools: Toolset) -> Node | None:
    """The arguments in a text that are all of it but for a fence, words before it that end in a colon, and tokens."""
    if "{" not in text:
        return None
    places = list(json_places(text, whole=False))
    nodes = [node for place in places for node in place.nodes]
    if len(nodes) != 1 or nodes[0].kind != "object" or not nodes[0].closed or places[0].doubt:
        return None
    before, behind = text[: places[0].begin].strip(), text[places[0].end :]
    named = before.removesuffix(tool.name).strip() if before.endswith(tool.name) else before
    if not (_LEAD(named) and _TAIL(behind)):
        return None
    own = root_properties(tool_schema(tool)).keys()
    inner, other = _inner_call(nodes[0], tool, tools)
    is_own = {member.name for member in nodes[0].members} <= own
    return nodes[0] if is_own or inner is not None or other else None


def _text_parameter(
    node: Node, text: str, tool: FunctionTool, tools: Toolset, steps: list[Repair]
) -> tuple[Node, Fault | None]:
    """A text that is all of the arguments as the value of a parameter, see `_lone_parameter`; not a text that may be
    arguments in another notation. It is that of one of several parameters only if the request demands a call, and then
    only in quotes: otherwise it may be a refusal.
    """
    own = root_properties(tool_schema(tool))
    if tool.custom is None:
        is_demanded = tool.must_be_valid or tools.choice == "required" or isinstance(tools.choice, NamedTool)
        is_bare = node.kind == "word"
        if (is_bare and is_demanded) or (len(own) > 1 and (is_bare or not is_demanded)):
            return node, None
        label = _LABEL(text)
        words = frozenset(map(fold, label["words"].split())) if label else frozenset()
        names = frozenset(map(fold, (tool.name, *own)))
        if not text or _NOTATION(text) or is_torn(text, own) or words & (_LABELS | names):
            return node, Fault("$", "expected an object, got a text that may hold one")
    return _lone_parameter(Node("string", node.json), tool, tools, steps), None


def _lone_parameter(node: Node, tool: FunctionTool, tools: Toolset, steps: list[Repair]) -> Node:
    """A value that is all of the arguments as that of the tool's only parameter, or of the only one that it requires,
    if the value fits as it is: `12` for `{"seconds": 12}`.
    """
    own = root_properties(tool_schema(tool))
    needed = [key for key in required(tool_schema(tool) or {}) if key in own]
    key = next(iter(own)) if len(own) == 1 else needed[0] if len(needed) == 1 else None
    schema = own[key] if key is not None else None
    wanted = wanted_type(schema) if isinstance(schema, Mapping) else ""
    if key is None or not wanted:
        return node
    made = Node("object", members=[Member("", "", node, Node("string", encode(key).decode()), ": ", key)])
    fitted, _ = repair_arguments(made, tool_schema(tool) or {}) if node.kind == "string" == wanted else (made, [])
    if _unwritten(fitted) or _faults(fitted, tool.name, tools):
        return node
    steps.append(Repair("value_to_parameter", "$"))
    return made


def is_torn(text: str, own: Collection[str]) -> bool:
    """Whether a text that is no JSON seems to be a part of some: it names a parameter, or ends as JSON does."""
    if any(name in own for name in _NAMED(text)):
        return True
    closes = _CLOSED(text)
    return closes is not None and text.count(closes[1]) > text.count("{" if closes[1] == "}" else "[")


def _faults(node: Node, name: str, tools: Toolset) -> list[Fault]:
    try:
        return tools.faults(name, node.value())
    except NotJsonError as error:
        return [Fault("$", f"no JSON: {error}")]


def _unwritten(node: Node) -> list[Fault]:
    """Faults for values that were never written, or only by half."""
    waiting = [("$", node)]
    faults: list[Fault] = []
    while waiting:
        path, part = waiting.pop()
        if part.kind == "missing":
            faults.append(Fault(path, "no value was written"))
        elif part.kind == "half":
            faults.append(Fault(path, f"{part.json!r} is half a value"))
        waiting += [(f"{path}.{member.name}", member.value) for member in part.members]
        waiting += [(f"{path}[{number}]", item.value) for number, item in enumerate(part.items)]
    return faults
