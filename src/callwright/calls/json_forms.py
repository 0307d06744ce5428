"""The shapes in which models write a call as JSON, read from a parsed value.

`{"name": …, "arguments": {…}}` and its relatives: other keys, any order, wrappers (`{"function": {…}}`), envelopes with
several calls (`{"tool_calls": […]}`), arguments as a JSON string, parameters next to the name. The bytes of the
arguments are unchanged. Whether there is a call at all is decided by a dialect's markers, or for free text by
`callwright.free_text.recover`.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Final

import msgspec

from callwright.calls.aliases import fold
from callwright.calls.coerce import node_text
from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool
from callwright.events import Problem
from callwright.schema.plain import tool_schema
from callwright.schema.resolve import root_properties
from callwright.tolerant_json.reader import read_json
from callwright.tolerant_json.tree import Node

NAME_KEYS: Final = ("tool", "name", "tool_name", "function_name", "function", "tool_call", "action", "recipient_name")
ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "params", "input", "tool_input", "action_input", "kwargs")
# Keys under which the arguments of a call may be nested alone; models copy `properties` from the schema.
LONE_KEYS: Final = frozenset((*ARGUMENT_KEYS, "function", "properties"))
_WRAPPER_KEYS: Final = ("function", "function_call", "tool_call")
_ENVELOPE_KEYS: Final = ("tool_calls", "tool_uses")
# Keys next to a call that are ignored.
IGNORED_KEYS: Final = frozenset(("id", "type", "call_id", "index", "role", "content"))
# Keys next to a call that mark it as made already, or as the description of a tool.
_RECORD_KEYS: Final = frozenset(("result", "output", "response", "error", "status", "description"))
_MAX_WRAPPERS: Final = 5
_FORM_KEYS: Final = frozenset(map(fold, (*NAME_KEYS, *ARGUMENT_KEYS, *_WRAPPER_KEYS, *_ENVELOPE_KEYS, *IGNORED_KEYS)))


class JsonCall(msgspec.Struct, frozen=True):
    """One call as written. `arguments`: None if the call has no arguments.

    `explicit`: there was a key for arguments. `flat`: the parameters are next to the name. `exact`: the name is
    spelled as the tool's. `closed`: the model wrote the end of the arguments itself. `content`: text that an envelope
    has next to the call.
    """

    name: str
    arguments: Node | None
    explicit: bool
    flat: bool = False
    exact: bool = True
    closed: bool = True
    content: str = ""

    def name_problems(self) -> list[Problem]:
        """The repair of the name, if it was one."""
        return [] if self.exact else [Problem("tool_name_repaired", f"the name {self.name!r} in other words")]


class CallKeySet:
    """The keys with which an object may begin that turns out to be a call of one of these tools, or its arguments.

    An object in an answer that begins with any other key is data, and need not be held back.
    """

    def __init__(self, tools: Toolset) -> None:
        self._tools = tools

    @cached_property
    def _related(self) -> frozenset[str]:
        """Other names of parameters of these tools."""
        own = {key for tool in self._tools for key in root_properties(tool_schema(tool))}
        return frozenset(fold(key) for group in self._tools.hints.aliases if group & own for key in group)

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str) or not len(self._tools):
            return False
        folded = fold(key)
        return folded in _FORM_KEYS or any(folded in _own_keys(tool) for tool in self._tools) or folded in self._related


def _own_keys(tool: FunctionTool) -> frozenset[str]:
    """The folded name of a tool and those of its parameters."""
    return tool.once("keys", lambda tool: frozenset(map(fold, (tool.name, *root_properties(tool_schema(tool))))))


def find_json_calls(node: Node, tools: Toolset) -> list[JsonCall] | None:
    """The calls in a value; None if anything in it is not a call."""
    return _from_value(node, tools, _MAX_WRAPPERS)


def is_begun(node: Node) -> bool:
    """Whether a value is an object that was cut before anything in it had a value. After calls it is another one."""
    return node.kind == "object" and not node.closed and not node.members


def is_record(keys: Iterable[str], own: Iterable[str]) -> bool:
    """Whether keys next to a call mark it as made already; `own` are the tool's parameters."""
    return not (_RECORD_KEYS - {*own}).isdisjoint(keys)


def _from_value(node: Node, tools: Toolset, depth: int) -> list[JsonCall] | None:
    if not depth:
        return None
    if node.kind == "array":
        return _from_values((item.value for item in node.items), tools, depth - 1)
    return _from_object(node, tools, depth) if node.kind == "object" else None


def _from_values(nodes: Iterable[Node], tools: Toolset, depth: int) -> list[JsonCall] | None:
    found: list[JsonCall] = []
    for node in nodes:
        forms = _from_value(node, tools, depth)
        if not forms and found and is_begun(node):
            forms = [JsonCall("", None, explicit=False, closed=False)]
        if not forms:
            return None
        found += forms
    return found or None


def _from_object(node: Node, tools: Toolset, depth: int) -> list[JsonCall] | None:
    given = {member.name: member.value for member in node.members}
    keys = given.keys()
    for key in _ENVELOPE_KEYS:
        if key in keys and keys <= {key, *IGNORED_KEYS}:
            forms = _from_value(given[key], tools, depth - 1)
            content = node_text(given["content"]) if "content" in given else None
            if forms and content:
                forms[0] = msgspec.structs.replace(forms[0], content=content)
            return forms
    for key in _WRAPPER_KEYS:
        if key in keys and keys <= {key, *IGNORED_KEYS} and given[key].kind == "object":
            return _from_value(given[key], tools, depth - 1)
    if "content" in keys and keys <= IGNORED_KEYS:  # a message, with the call in its text
        text = (node_text(given["content"]) or "").strip()
        inside = read_json(text) if text.startswith(("{", "[")) else None
        return _from_value(inside, tools, depth - 1) if inside else None
    return _from_call(node, given, tools)


def _from_call(node: Node, given: dict[str, Node], tools: Toolset) -> list[JsonCall] | None:
    name_key = next((key for key in NAME_KEYS if key in given and given[key].kind in ("string", "word")), None)
    if name_key is None:
        return None
    written = node_text(given[name_key]) or ""
    name = tools.resolve_name(written)
    tool = tools.get(name)
    own = root_properties(tool_schema(tool) if tool else None)
    if is_record(given, own):
        return None
    form = JsonCall(
        name,
        None,
        explicit=False,
        exact=not tools.is_respelled(written, name),
        closed=node.closed,
    )
    rest = [member for member in node.members if member.name != name_key]
    others = {member.name for member in rest} - IGNORED_KEYS
    argument_key = next((key for key in ARGUMENT_KEYS if key in others), None)
    if argument_key is None:
        flat = [member for member in rest if member.name not in IGNORED_KEYS or member.name in own]
        if not others:
            return [form]
        flat[0] = msgspec.structs.replace(flat[0], before="", after="")
        return [msgspec.structs.replace(form, arguments=Node("object", members=flat), flat=True)]
    if others != {argument_key}:
        return None
    arguments = given[argument_key]
    is_null = arguments.kind == "literal" and arguments.json == "null"
    text = node_text(arguments)
    if is_null or (text is not None and not text.strip()):
        return [msgspec.structs.replace(form, explicit=True)]
    return [msgspec.structs.replace(form, arguments=arguments, explicit=True, closed=node.closed or arguments.closed)]
