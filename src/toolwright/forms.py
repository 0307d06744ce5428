"""The forms in which models write a call as JSON, read from a whole value.

`{"name": …, "arguments": {…}}` and its relatives: other keys, any order, wrappers, envelopes of several calls,
arguments as a JSON string, parameters beside the name. The arguments keep the model's bytes. Nothing here decides
whether there is a call at all; `toolwright.recover` weighs that for free text, a dialect's own markers say it for
marked calls.
"""

from typing import Any, Final, TypeAlias

import msgspec

from toolwright.jsontext import NotJsonError, decode
from toolwright.schema.keywords import properties
from toolwright.toolset import Toolset

__all__ = ["ARGUMENT_KEYS", "NAME_KEYS", "Form", "call_keys", "read_forms"]

NAME_KEYS: Final = ("tool", "name", "tool_name", "function_name", "function", "tool_call", "action", "recipient_name")
ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "params", "input", "tool_input", "action_input", "kwargs")
_WRAPPER_KEYS: Final = ("function", "function_call", "tool_call")
_ENVELOPE_KEYS: Final = ("tool_calls", "tool_uses")
# Beside a call these mean nothing.
_IGNORED_KEYS: Final = frozenset(("id", "type", "call_id", "index", "role", "content"))
# Beside a call these say that it was made already, or that a tool is being described.
_RECORD_KEYS: Final = frozenset(("result", "output", "response", "error", "status", "description"))
_MAX_WRAPPERS: Final = 5

_Object: TypeAlias = dict[str, msgspec.Raw]
_Shape: Any = _Object | list[msgspec.Raw]


class Form(msgspec.Struct, frozen=True):
    """One call as written. `arguments` is JSON text, `""` when none were given.

    `explicit`: an argument key was there. `flat`: the parameters stood beside the name. `decoded`: the arguments were a
    JSON string. `content`: the text that an envelope carried beside the call.
    """

    name: str
    arguments: str
    explicit: bool
    flat: bool = False
    decoded: bool = False
    content: str = ""


def call_keys(tools: Toolset) -> frozenset[str]:
    """The keys with which an object may begin that turns out to be a call of one of these tools, or its arguments."""
    own = {key for tool in tools for key in properties(tool.parameters)}
    forms = {*NAME_KEYS, *ARGUMENT_KEYS, *_WRAPPER_KEYS, *_ENVELOPE_KEYS, *_IGNORED_KEYS}
    return frozenset(own | forms | set(tools.names())) if len(tools) else frozenset()


def read_forms(text: str, tools: Toolset) -> list[Form] | None:
    """The calls that a JSON text holds; None when it is no JSON or anything in it is no call."""
    try:
        value = decode(text, _Shape)
    except NotJsonError:
        return None
    return _from_value(value, tools, _MAX_WRAPPERS)


def _from_raw(raw: msgspec.Raw, tools: Toolset, depth: int) -> list[Form] | None:
    return _from_value(_value(raw, _Shape), tools, depth) if depth else None


def _from_value(value: object, tools: Toolset, depth: int) -> list[Form] | None:
    match value:
        case list():
            found: list[Form] = []
            for item in value:
                forms = _from_raw(item, tools, depth - 1)
                if not forms:
                    return None
                found += forms
            return found or None
        case dict():
            return _from_object(value, tools, depth)
    return None


def _from_object(given: _Object, tools: Toolset, depth: int) -> list[Form] | None:
    keys = given.keys()
    for key in _ENVELOPE_KEYS:
        if key in keys and keys <= {key, *_IGNORED_KEYS}:
            forms = _from_raw(given[key], tools, depth - 1)
            content = _value(given["content"], str | None) if "content" in given else None
            if forms and content:
                forms[0] = msgspec.structs.replace(forms[0], content=str(content))
            return forms
    for key in _WRAPPER_KEYS:
        if key in keys and keys <= {key, *_IGNORED_KEYS} and bytes(given[key])[:1] == b"{":
            return _from_raw(given[key], tools, depth - 1)
    return _from_call(given, tools)


def _from_call(given: _Object, tools: Toolset) -> list[Form] | None:
    name_key = next((key for key in NAME_KEYS if key in given and bytes(given[key])[:1] == b'"'), None)
    if name_key is None or given.keys() & _RECORD_KEYS - set(_own_keys(given, name_key, tools)):
        return None
    written = str(_value(given[name_key], str) or "")
    name = tools.resolve(written)
    argument_key = next((key for key in ARGUMENT_KEYS if key in given), None)
    rest = {key: raw for key, raw in given.items() if key != name_key and key not in _IGNORED_KEYS}
    if argument_key is None:
        if not rest:
            return [Form(name, "", explicit=False)]
        inner = b",".join(msgspec.json.encode(key) + b":" + bytes(raw) for key, raw in rest.items())
        return [Form(name, "{" + inner.decode() + "}", explicit=False, flat=True)]
    if rest.keys() != {argument_key}:
        return None
    text = bytes(given[argument_key]).decode().strip()
    if text.startswith('"'):
        inside = str(_value(given[argument_key], str)).strip()
        return [Form(name, inside, explicit=True, decoded=bool(inside))]
    return [Form(name, "" if text == "null" else text, explicit=True)]


def _own_keys(given: _Object, name_key: str, tools: Toolset) -> list[str]:
    """The parameters of the tool itself: in the flat form they may be called like the keys of a record."""
    tool = tools.get(tools.resolve(str(_value(given[name_key], str) or "")))
    return list(properties(tool.parameters if tool else None))


def _value(raw: msgspec.Raw, kind: Any) -> object:
    try:
        return decode(raw, kind)
    except NotJsonError:
        return None
