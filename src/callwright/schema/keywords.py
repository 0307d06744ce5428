"""The keywords of a schema whose author may have written anything: odd values read as if they were not there."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

DEFINITIONS: Final = ("$defs", "definitions")
# A reference to the whole schema, or to one of its definitions.
LOCAL_REFERENCE: Final = re.compile(r"#(?:/(?P<group>\$defs|definitions)/(?P<name>[^/]+))?")
# The formats that OpenAI's strict schemas may have.
STRICT_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)


def properties(schema: object) -> Mapping[str, Any]:
    """The declared keys of an object, in order, with their schemas."""
    declared = schema.get("properties") if isinstance(schema, Mapping) else None
    return declared if isinstance(declared, Mapping) else {}


def required(schema: object) -> Sequence[str]:
    """The keys that must be there."""
    named = schema.get("required") if isinstance(schema, Mapping) else None
    return [key for key in named if isinstance(key, str)] if isinstance(named, list | tuple) else []
