"""The keywords of a schema whose author may have written anything: odd values read as if they were not there."""

from collections.abc import Mapping, Sequence
from typing import Any


def properties(schema: object) -> Mapping[str, Any]:
    """The declared keys of an object, in order, with their schemas."""
    declared = schema.get("properties") if isinstance(schema, Mapping) else None
    return declared if isinstance(declared, Mapping) else {}


def required(schema: object) -> Sequence[str]:
    """The keys that must be there."""
    named = schema.get("required") if isinstance(schema, Mapping) else None
    return [key for key in named if isinstance(key, str)] if isinstance(named, list | tuple) else []
