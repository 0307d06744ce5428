"""Which keywords of a tool's schema a prompt leaves out, as the vendors' templates do."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from callwright.conversation import FunctionTool
from callwright.schema.keywords import properties
from callwright.schema.plain import resolved_schema, tool_schema

# They do not describe a value, or are resolved.
_SILENT: Final = frozenset(("title", "$schema", "$id", "$comment", "$defs", "definitions", "nullable"))


class ShownKeywords(Struct, frozen=True):
    """The keywords that a prompt shows of a parameter, and of schemas `nested` in one (None: the same), such as the
    `items` of an array (None: as any).

    `resolves`: references are followed first, see `callwright.schema.plain`. `text_enums`: an enumeration is shown for
    the type `string` alone.
    """

    keywords: frozenset[str]
    nested: frozenset[str] | None = None
    items: frozenset[str] | None = None
    resolves: bool = True
    text_enums: bool = False


def hidden_keywords(tool: FunctionTool, shown: ShownKeywords) -> frozenset[str]:
    """The keywords in a tool's schema that such a prompt does not show."""
    schema = resolved_schema(tool) if shown.resolves else tool_schema(tool)
    found: set[str] = set()
    root = schema or {}
    # Each is a schema, the keywords shown of it, and those shown of nested schemas.
    inner = shown.keywords if shown.nested is None else shown.nested
    items = inner if shown.items is None else shown.items
    found.update(key for key in root if key not in shown.keywords | {"type", "properties", "required"} | _SILENT)
    found -= {"additionalProperties"} if isinstance(root.get("additionalProperties"), bool) else set()
    waiting: list[tuple[object, frozenset[str]]] = [(part, shown.keywords) for part in properties(root).values()]
    while waiting:
        part, keywords = waiting.pop()
        if not isinstance(part, Mapping):
            continue
        for key, value in part.items():
            if key in _SILENT or (key == "additionalProperties" and isinstance(value, bool)):
                continue
            if key not in keywords or (key == "enum" and shown.text_enums and part.get("type") != "string"):
                found.add(key)
            else:
                waiting += [(one, items if key == "items" else inner) for one in _inside(key, value)]
    return frozenset(found)


def _inside(key: str, value: Any) -> Iterable[object]:
    """The schemas that a keyword holds."""
    if key == "properties" and isinstance(value, Mapping):
        return list(value.values())
    if key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
        return value
    return [value] if key == "items" else []
