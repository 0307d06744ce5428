"""An answer of one of the three APIs, whole or streamed, as one value, with every deviation from the API's form."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from callwright.doctor.client import Reply
from callwright.eval.wires import WireName, object_of
from callwright.schema.validate import validator_of
from callwright.tolerant_json.codec import NotJsonError, decode, encode

# The parts of an API's form that are judged apart: of any answer, and of a stream.
_OfAny: TypeAlias = Literal["fields", "finish", "usage", "arguments", "refusal", "logprobs"]
Rule: TypeAlias = _OfAny | Literal["framing", "start", "end", "items", "deltas", "ids", "sequence"]
EVENTS: Final = "text/event-stream"
JSON: Final = "application/json"
DONE: Final = "[DONE]"
_LINE_END: Final = re.compile(r"\r\n?")
# In the name of a header, or of a comment in a stream, that reports errors of the model's output.
PROBLEMS: Final = re.compile(r"^x-\w+-problems\b")
Body: TypeAlias = dict[str, Any]
# The rule that a field belongs to, if not to `fields`.
_RULES: Final[Mapping[str, Rule]] = {
    "usage": "usage",
    "finish_reason": "finish",
    "stop_reason": "finish",
    "status": "finish",
    "arguments": "arguments",
    "input": "arguments",
}
_KEY: Final = re.compile(r"\w+")
_MISSING: Final = re.compile(r'"(\w+)" is a required property')
_MOST_FAULTS: Final = 50
# Far more than a report shows: a value in an answer may have megabytes, and be wrong in many places.
_MOST_CHARS: Final = 100_000
# Parts of an API's form, as JSON Schemas. Other fields are allowed.
TEXT: Final[Body] = {"type": "string"}
NAME: Final[Body] = {"type": "string", "minLength": 1}
COUNT: Final[Body] = {"type": "integer", "minimum": 0}
LIST: Final[Body] = {"type": "array"}
OBJECTS: Final[Body] = {"type": "array", "items": {"type": "object"}}
# In seconds: of this millennium, and not in milliseconds.
TIME: Final[Body] = {"type": "number", "minimum": 1_000_000_000, "exclusiveMaximum": 100_000_000_000}


class Breach(Struct, frozen=True):
    """A deviation from one rule of the form."""

    rule: Rule
    expected: str
    got: str


class MadeCall(Struct, frozen=True):
    """A call of an answer; `arguments` as text, or the input of a custom tool."""

    id: Any
    name: Any
    arguments: str
    kind: Literal["function", "custom"] = "function"

    @property
    def value(self) -> Any:
        """The arguments as a value, or None if they are not JSON."""
        try:
            return decode(self.arguments)
        except NotJsonError:
            return None


class Answer(Struct):
    """An answer. `fault`: why it is missing or truncated; `error`: its error object; `problems`: reports about it in
    a header `x-…-problems`, or a comment of that name; `raw`: the text of a whole answer; `is_readable`: whether it is
    one of the API at all, not a web page, another object or a stream that was not requested.
    """

    wire: WireName
    streamed: bool
    sent: Body
    status: int = 0
    headers: Mapping[str, str] = {}
    fault: str = ""
    body: Any = None
    raw: str = ""
    is_readable: bool = False
    text: str = ""
    refusal: str = ""
    reasoning: str = ""
    calls: list[MadeCall] = field(default_factory=list)
    finish: str = ""
    usage: tuple[int, int] | None = None
    error: Any = None
    problems: str = ""
    breaches: list[Breach] = field(default_factory=list)

    def expect(self, fits: bool, rule: Rule, expected: str, got: object) -> bool:
        """Note a breach unless it fits; return whether it does."""
        if not fits:
            self.breaches.append(Breach(rule, expected, show(got)[:_MOST_CHARS]))
        return fits

    def take_call(self, id_: Any, name: Any, arguments: Any, kind: Literal["function", "custom"] = "function") -> None:
        """Add a call; `arguments` as the API has them."""
        self.calls.append(MadeCall(id_, name, arguments if isinstance(arguments, str) else show(arguments), kind))

    def check(self, schema: Body, value: object, at: str = "$") -> None:
        """Note each field of a value that does not fit a schema; `at`: the path of the value."""
        for fault in validator_of(schema).faults(value, _MOST_FAULTS):
            path = at + fault.path.removeprefix("$")
            if missing := _MISSING.match(fault.message):
                self.expect(False, "fields", f"the required {path}.{missing[1]}", "no such field")
                continue
            rule: Rule = next((_RULES[key] for key in reversed(_KEY.findall(path)) if key in _RULES), "fields")
            self.expect(False, rule, f"{path} as documented", fault.message)

    def take_counts(self, usage: Any, names: tuple[str, str], details: tuple[str, str] = ("", "")) -> None:
        """Read the token counts of these names. `details`: the objects with parts of each, if the API has them; then it
        also has their total.
        """
        counts: Body = object_of(usage)
        first: Any = counts.get(names[0])
        second: Any = counts.get(names[1])
        if not self.expect(type(first) is type(second) is int, "usage", f"numbers of {' and '.join(names)}", usage):
            return
        self.usage = first, second
        self.expect(first >= 0 <= second, "usage", "counts of 0 or more", usage)
        written = second > 0 or not (self.text or self.calls)
        self.expect(written, "usage", f"{names[1]} above 0, as there is an answer", usage)
        if not details[0]:
            return
        self.expect(first > 0, "usage", f"{names[0]} above 0, as there is a request", usage)
        total = counts.get("total_tokens")
        self.expect(total == first + second, "usage", f"total_tokens = {first} + {second}", total)
        for most, name, part in ((first, details[0], "cached_tokens"), (second, details[1], "reasoning_tokens")):
            number = object_of(counts.get(name)).get(part)
            fits = number is None or (type(number) is int and 0 <= number <= most)
            self.expect(fits, "usage", f"{name}.{part}: from 0 to {most}", number)


class Event(Struct, frozen=True):
    """An event of a stream: its name, its data, and the data as an object, `{}` if it is not one."""

    name: str
    data: str
    value: Body


def show(value: object) -> str:
    """A value as JSON text, or a text as it is."""
    return (value or "(nothing)") if isinstance(value, str) else encode(value).decode(errors="replace")


def form(required: Mapping[str, Body], optional: Mapping[str, Body] | None = None) -> Body:
    """The schema of an object with these fields."""
    return {"type": "object", "required": [*required], "properties": {**required, **(optional or {})}}


def or_null(schema: Body) -> Body:
    """The schema of a value that may be null."""
    return {"anyOf": [schema, {"type": "null"}]}


def repeated_key(text: str) -> str:
    """The first key that an object in a JSON text has twice; empty if no object has, or it is not JSON."""
    found: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> None:
        found.extend(key for key, number in Counter(key for key, _ in pairs).items() if number > 1)

    try:
        json.loads(text, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return ""
    return found[0] if found else ""


def events_of(reply: Reply, answer: Answer) -> list[Event]:
    """The events of a stream, by the rules of server-sent events; deviations are noted."""
    found: list[Event] = []
    text = reply.body.decode(errors="replace")
    answer.expect("\ufffd" not in text or "\ufffd".encode() in reply.body, "framing", "UTF-8", "other bytes")
    text = _LINE_END.sub("\n", text.removeprefix("\ufeff"))
    *blocks, rest = text.split("\n\n")
    answer.expect(not rest.strip() or bool(reply.fault), "framing", "an empty line after each event", rest)
    for block in blocks:
        name, data = "", []
        for line in filter(None, block.split("\n")):
            key, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if key == "event":
                name = value
            elif key == "data":
                data.append(value)
            elif not key:
                answer.problems += value if PROBLEMS.search(value) else ""
            else:
                answer.expect(key in ("id", "retry"), "framing", "the fields data and event", line)
        if data:
            whole = "\n".join(data)
            found.append(Event(name, whole, _object(whole, answer)))
    return found


def _object(text: str, answer: Answer) -> Body:
    if text == DONE:
        return {}
    try:
        value = decode(text)
    except NotJsonError:
        value = None
    answer.expect(isinstance(value, dict), "framing", "a JSON object as data", text)
    return value if isinstance(value, dict) else {}
