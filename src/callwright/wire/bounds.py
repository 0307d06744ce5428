"""Limits on the size of a request: inputs that would cost the gateway more than the client.

Each limit is checked on the decoded request of any API, before it is parsed. Malformed parts are ignored here: parsing
reports them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from callwright.errors import RequestError
from callwright.memo.by_text import kept_by_text
from callwright.memo.prefixes import fold
from callwright.schema.size import may_be_large, most_properties, schema_fault
from callwright.schema.strict import too_many_properties
from callwright.settings import bounds
from callwright.settings.bounds import Bounds
from callwright.tolerant_json.codec import decode, encode

_BAD_FORMAT: Final = "invalid_json_schema"
# A property of a schema takes no less in a text: `"":{},`.
_PROPERTY_BYTES: Final = 6
# Values of one body, except inside texts. The decoder takes four million numbers in one call, of 0.1 s, in
# which nothing else runs; a context window of a million tokens, each a number, is within.
_MAX_VALUES: Final = 1_048_576
# Lists of messages and items; all lists in one of these but its tools are parts.
_LISTS: Final = ("messages", "input", "items")
_TOOLS: Final = "tools"
# In Anthropic's API: the servers whose tools are requested, and a tool within a message.
_SERVERS: Final = "mcp_servers"
_EDITS: Final = "context_management"
_STOPS: Final = "stop_sequences"
# Fields that most requests lack.
_OPTIONS: Final = frozenset((_SERVERS, _EDITS, _STOPS))
_FORMATS: Final = frozenset(("response_format", "text", "output_config", "output_format"))
_ADDITION: Final = "tool_addition"
_NONE: Final[tuple[int, ...]] = ()


class _ToolList(NamedTuple):
    """Tools of one list. `paths` are theirs if they are not a list at `param`, but scattered in it."""

    tools: Sequence[Any]
    param: str
    paths: Sequence[str] | None = None


class _Schema(NamedTuple):
    """A schema in a request: its owner, in words, its path, and the code of its error."""

    value: Mapping[str, Any]
    whose: str
    param: str
    code: str
    is_strict: bool = False


def check_depth(text: bytes | str, value: object, most: int) -> None:
    """Raises `RequestError` for a JSON text whose value has more than `most` levels."""
    brackets = text.count(b"[") + text.count(b"{") if isinstance(text, bytes) else text.count("[") + text.count("{")
    if brackets <= most:
        return
    row, levels = [value], 0
    while row := [item for item in row if type(item) is dict or type(item) is list]:
        levels += 1
        if levels > most:
            raise RequestError(
                f"We could not parse the JSON body of your request. (It is nested too deeply: expected at most {most} "
                "levels.)",
                code="invalid_value",
            )
        row = [inner for item in row for inner in (item.values() if type(item) is dict else item)]


def check_values(text: bytes | str) -> None:
    """Raises `RequestError` for a JSON text of too many values. Does not decode it."""
    if len(text) <= 2 * _MAX_VALUES:  # a value takes no less: `1,`
        return
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    if data.count(b",") <= _MAX_VALUES:
        return
    data = data.replace(rb"\\", b"").replace(rb"\"", b"")
    values = data.count(b'"') // 2  # each text is one, and there are no more pieces than these
    if values <= _MAX_VALUES:
        values = sum([piece.count(b",") for piece in data.split(b'"')[::2]])
    if values > _MAX_VALUES:
        raise RequestError(
            f"We could not parse the JSON body of your request. (It has too many values: expected {_MAX_VALUES} at "
            "most.)",
            code="invalid_value",
        )


def check_items(items: Sequence[Any], limits: Bounds, param: str, beside: Sequence[Any] = ()) -> None:
    """Raises `RequestError` for too many messages or items, or too many parts in all of them, with those `beside`."""
    if len(items) > limits.max_items:
        raise _too_long(param, limits.max_items, len(items))
    parts = len(beside) + fold(items, 0, _number_of_parts)
    if parts > bounds.MAX_PARTS:
        raise RequestError(
            f"Invalid '{param}': too many parts. Expected at most {bounds.MAX_PARTS} parts of content and calls in all "
            f"of them together, but got {parts} instead. Join adjacent texts.",
            param=param,
            code="array_above_max_length",
        )


def check_bounds(given: object, text: bytes | str, limits: Bounds) -> None:
    """Raises `RequestError` for a request, decoded from this text, that holds too much of anything but depth."""
    if not isinstance(given, dict):
        return
    system = given.get("system")
    for param in _LISTS:
        if isinstance(given.get(param), list):
            beside = system if param == "messages" and isinstance(system, list) else ()
            check_items(given[param], limits, param, beside)
    if not _OPTIONS.isdisjoint(given):
        _check_options(given, limits)
    lists, formats = list(_tool_lists(given)), [] if _FORMATS.isdisjoint(given) else list(_formats(given))
    if lists or formats:
        _check_schemas(lists, formats, text, limits)


def _check_schemas(lists: Sequence[_ToolList], formats: Sequence[_Schema], text: bytes | str, limits: Bounds) -> None:
    """Raises `RequestError` for schemas above a bound. A text shorter than what exceeds one is not searched."""
    for found in lists:
        _check_number(found, limits)
    if len(text) > bounds.MAX_SCHEMA_BYTES:
        _check_bytes([*(found.tools for found in lists), *(schema.value for schema in formats)])
    if len(text) > bounds.MAX_GRAMMAR_CHARS:
        for found in lists:
            for tool, path in _tools(found):
                _check_grammar(tool, path)
    if len(text) > bounds.MAX_PROPERTIES * _PROPERTY_BYTES:
        for schema in (*formats, *_schemas(lists)):
            if schema.is_strict and (number := most_properties(schema.value)) > bounds.MAX_PROPERTIES:
                raise _invalid(schema, too_many_properties(number, bounds.MAX_PROPERTIES))
    if may_be_large(text):
        for schema in (*formats, *_schemas(lists)):
            if (fault := _fault(encode(schema.value))) is not None:
                raise _invalid(schema, fault)


def _check_options(given: Mapping[str, Any], limits: Bounds) -> None:
    servers = given.get(_SERVERS)
    if isinstance(servers, list) and len(servers) > limits.max_tools:  # each counts once, as a namespace does
        raise _too_long(_SERVERS, limits.max_tools, len(servers))
    edits = given.get(_EDITS)
    options = {
        _STOPS: given.get(_STOPS),
        _EDITS: edits,
        f"{_EDITS}.edits": edits.get("edits") if isinstance(edits, dict) else None,
    }
    for param, listed in options.items():
        if isinstance(listed, list) and len(listed) > bounds.MAX_OPTIONS:
            raise _too_long(param, bounds.MAX_OPTIONS, len(listed))


def check_choices(number: int | None, param: str) -> None:
    """Raises `RequestError` for more answers to one request than there may be."""
    if number is not None and number > bounds.MAX_CHOICES:
        raise RequestError(
            f"Invalid '{param}': integer above maximum value. Expected a value <= {bounds.MAX_CHOICES}, but got "
            f"{number} instead. Send several requests.",
            param=param,
            code="integer_above_max_value",
        )


def _invalid(schema: _Schema, fault: str) -> RequestError:
    return RequestError(f"Invalid schema for {schema.whose}: {fault}", param=schema.param, code=schema.code)


def _too_long(param: str, most: int, number: int) -> RequestError:
    return RequestError(
        f"Invalid '{param}': array too long. Expected an array with maximum length {most}, but got an array with "
        f"length {number} instead.",
        param=param,
        code="array_above_max_length",
    )


# --- the contents of a request ---


def _number_of_parts(before: int, items: Sequence[Any], start: int) -> int:
    return before + sum([_parts_of(item) for item in items[start:]])


def _parts_of(item: Any) -> int:
    """The parts of a message or an item, and the calls."""
    parts = 0
    for name, value in item.items() if isinstance(item, dict) else ():
        if isinstance(value, list) and name != _TOOLS:
            parts += len(value)
            for part in value:
                if isinstance(part, dict) and ("content" in part or "source" in part):
                    parts += _number_of_inner(part)
    return parts


def _number_of_inner(part: Mapping[str, Any]) -> int:
    """The parts within a part: in Anthropic's API a tool result, for one, has parts of its own."""
    lists = [*_inner_parts(part)]
    number = 0
    while lists:
        parts = lists.pop()
        number += len(parts)
        lists += [inner for part in parts if isinstance(part, dict) for inner in _inner_parts(part)]
    return number


def _inner_parts(part: Mapping[str, Any]) -> Iterator[list[Any]]:
    """The parts of a result, of a document, and the references in a search result."""
    content, source = part.get("content"), part.get("source")
    if isinstance(content, dict):
        content = content.get("tool_references")
    if isinstance(content, list):
        yield content
    if isinstance(source, dict) and isinstance(source.get("content"), list):
        yield source["content"]


def _tool_lists(given: Mapping[str, Any]) -> Iterator[_ToolList]:
    """The lists of tools: of the request, and of the items that bring more of them."""
    for param in ("tools", "functions"):
        if isinstance(given.get(param), list):
            yield _ToolList(given[param], param)
    items = given.get("input")
    if isinstance(items, list):
        for number in fold(items, _NONE, _with_tools):
            yield _ToolList(items[number]["tools"], f"input[{number}].tools")
    messages = given.get("messages")
    if isinstance(messages, list):
        for number in fold(messages, _NONE, _adding_tools):
            yield _added_tools(messages[number]["content"], f"messages[{number}].content")


def _with_tools(before: tuple[int, ...], items: Sequence[Any], start: int) -> tuple[int, ...]:
    """The numbers of items that bring tools."""
    brings = [isinstance(item, dict) and isinstance(item.get("tools"), list) for item in items[start:]]
    return (*before, *[number for number, does in enumerate(brings, start) if does])


def _adding_tools(before: tuple[int, ...], messages: Sequence[Any], start: int) -> tuple[int, ...]:
    """The numbers of messages of Anthropic's API that define tools."""
    return (*before, *[number for number, one in enumerate(messages[start:], start) if _adds_tools(one)])


def _adds_tools(message: Any) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else ()
    return any(isinstance(block, dict) and block.get("type") == _ADDITION for block in blocks)


def _added_tools(content: Sequence[Any], param: str) -> _ToolList:
    """The tools that a message of Anthropic's API defines."""
    found = {
        f"{param}[{at}].tool.definition": block["tool"].get("definition")
        for at, block in enumerate(content)
        if isinstance(block, dict) and block.get("type") == _ADDITION and isinstance(block.get("tool"), dict)
    }
    return _ToolList([*found.values()], param, [*found])


def _tools(found: _ToolList) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The fields of each tool, those of a namespace included, with their paths."""
    for number, tool in enumerate(found.tools):
        path = f"{found.param}[{number}]" if found.paths is None else found.paths[number]
        if not isinstance(tool, dict):
            continue
        if isinstance(tool.get("tools"), list):
            yield from _tools(_ToolList(tool["tools"], f"{path}.tools"))
        for kind in ("function", "custom"):
            if isinstance(tool.get(kind), dict):
                yield tool[kind], f"{path}.{kind}"
        yield tool, path


def _schemas(lists: Sequence[_ToolList]) -> Iterator[_Schema]:
    for found in lists:
        for tool, path in _tools(found):
            for field, word in (("parameters", "function"), ("input_schema", "tool"), ("output_schema", "function")):
                if isinstance(tool.get(field), dict):
                    whose, code = f"{word} '{tool.get('name')}'", "invalid_function_parameters"
                    yield _Schema(tool[field], whose, f"{path}.{field}", code, tool.get("strict") is True)


def _formats(given: Mapping[str, Any]) -> Iterator[_Schema]:
    """The schema that an answer is to have, in the words of each API."""
    format_, text = given.get("response_format"), given.get("text")
    inner = format_.get("json_schema") if isinstance(format_, dict) else None
    if isinstance(inner, dict) and isinstance(inner.get("schema"), dict):
        yield _format(inner, "response_format")
    inner = text.get("format") if isinstance(text, dict) else None
    if isinstance(inner, dict) and isinstance(inner.get("schema"), dict):
        yield _format(inner, "text.format.schema")
    config = given.get("output_config")
    named = {"output_config.format": config.get("format") if isinstance(config, dict) else None}
    for param, inner in {**named, "output_format": given.get("output_format")}.items():
        if isinstance(inner, dict) and isinstance(inner.get("schema"), dict):  # always a strict one
            yield _Schema(inner["schema"], f"'{param}'", f"{param}.schema", _BAD_FORMAT, is_strict=True)


def _format(given: Mapping[str, Any], param: str) -> _Schema:
    is_strict = given.get("strict") is True
    return _Schema(given["schema"], f"response_format '{given.get('name')}'", param, _BAD_FORMAT, is_strict)


# --- what each may be ---


def _check_number(found: _ToolList, limits: Bounds) -> None:
    if found.paths is not None:
        if len(found.tools) > limits.max_tools:
            raise RequestError(
                f"Invalid '{found.param}': too many tools. Expected at most {limits.max_tools} of them in one message, "
                f"but got {len(found.tools)} instead.",
                param=found.param,
                code="array_above_max_length",
            )
        return
    # A namespace counts once: Codex puts all tools of an MCP server into one.
    number = sum(not (isinstance(tool, dict) and tool.get("defer_loading")) for tool in found.tools)
    if number > limits.max_tools:
        raise _too_long(found.param, limits.max_tools, number)


def _check_bytes(parts: Sequence[object]) -> None:
    size = sum(len(encode(part)) for part in parts)
    if size > bounds.MAX_SCHEMA_BYTES:
        raise RequestError(
            f"Invalid 'tools': schemas too large. Expected at most {bounds.MAX_SCHEMA_BYTES} bytes of tools and "
            f"schemas in a request, but got {size} instead.",
            param="tools",
            code="string_above_max_length",
        )


@kept_by_text
def _fault(schema: bytes) -> str | None:
    """The limit that a schema exceeds, or None. Cached, as clients resend the same schemas."""
    return schema_fault(decode(schema))


def _check_grammar(tool: Mapping[str, Any], path: str) -> None:
    format_ = tool.get("format")
    inner = format_.get("grammar") if isinstance(format_, dict) else None
    where = f"{path}.format.grammar" if isinstance(inner, dict) else f"{path}.format"
    grammar = inner if isinstance(inner, dict) else format_
    definition = grammar.get("definition") if isinstance(grammar, dict) else None
    if isinstance(definition, str) and len(definition) > bounds.MAX_GRAMMAR_CHARS:
        raise RequestError(
            f"Invalid '{where}.definition': string too long. Expected a string with maximum length "
            f"{bounds.MAX_GRAMMAR_CHARS}, but got a string with length {len(definition)} instead.",
            param=f"{where}.definition",
            code="string_above_max_length",
        )
