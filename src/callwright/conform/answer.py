"""An answer of one of the three APIs, whole or streamed, as one value, with every deviation from the API's form."""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from callwright.doctor.client import Reply, clipped
from callwright.eval.wires import WireName
from callwright.tolerant_json.codec import NotJsonError, decode, encode

# The parts of an API's form that are judged apart: of any answer, and of a stream.
_OfAny: TypeAlias = Literal["content_type", "fields", "finish", "usage", "arguments"]
Rule: TypeAlias = _OfAny | Literal["framing", "start", "end", "items", "deltas", "ids", "sequence"]
EVENTS: Final = "text/event-stream"
JSON: Final = "application/json"
DONE: Final = "[DONE]"
_LINE_END: Final = re.compile(r"\r\n?")
# In the name of a header, or of a comment in a stream, that reports what was wrong with the model's output.
PROBLEMS: Final = re.compile(r"^x-\w+-problems\b")
_SHOWN: Final = 160
Body: TypeAlias = dict[str, Any]


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
    a header `x-…-problems`, or a comment of that name.
    """

    wire: WireName
    streamed: bool
    sent: Body
    status: int = 0
    headers: Mapping[str, str] = {}
    fault: str = ""
    body: Any = None
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
            self.breaches.append(Breach(rule, expected, show(got)))
        return fits

    def take_call(self, id_: Any, name: Any, arguments: Any, kind: Literal["function", "custom"] = "function") -> None:
        """Add a call; `arguments` as the API has them."""
        self.calls.append(MadeCall(id_, name, arguments if isinstance(arguments, str) else show(arguments), kind))

    def take_counts(self, usage: Any, names: tuple[str, str], total: str = "") -> None:
        """Read the token counts of these names."""
        first, second = (usage.get(name) if isinstance(usage, dict) else None for name in names)
        if type(first) is int and type(second) is int:
            self.usage = first, second
            if total:
                self.expect(
                    usage.get(total) == first + second, "usage", f"{total} = {first} + {second}", usage.get(total)
                )
        else:
            self.expect(False, "usage", f"numbers of {names[0]} and {names[1]}", usage)


class Event(Struct, frozen=True):
    """An event of a stream: its name, its data, and the data as an object, `{}` if it is not one."""

    name: str
    data: str
    value: Body


def show(value: object) -> str:
    """A value as short JSON text."""
    if isinstance(value, str):
        return clipped(value, _SHOWN) or "(nothing)"
    return clipped(encode(value).decode(errors="replace"), _SHOWN)


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
