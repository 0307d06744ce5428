"""Tools that the cases offer, and short ways to write tools and messages."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from callwright.eval.case import Json
from callwright.eval.groups.words import CRAFTS

TEXT: Final[Json] = {"type": "string"}
WHOLE: Final[Json] = {"type": "integer"}
NUMBER: Final[Json] = {"type": "number"}
YES_NO: Final[Json] = {"type": "boolean"}
_VERBS: Final[Mapping[str, str]] = {
    "repair": "Repairs",
    "rent": "Rents out",
    "inspect": "Inspects",
    "paint": "Paints",
    "weigh": "Weighs",
    "label": "Labels",
    "store": "Stores",
    "insure": "Insures",
    "photograph": "Photographs",
    "retire": "Retires",
}


def function(
    name: str,
    about: str,
    properties: Mapping[str, Json],
    *,
    optional: Sequence[str] = (),
    strict: bool = False,
) -> dict[str, Any]:
    """A function tool. All of its properties but the `optional` ones are required, and there are no others."""
    parameters = {
        "type": "object",
        "properties": dict(properties),
        "required": [key for key in properties if key not in optional],
        "additionalProperties": False,
    }
    said: dict[str, Any] = {"name": name, "description": about, "parameters": parameters}
    return {"type": "function", "function": said | ({"strict": True} if strict else {})}


def choice(*words: str) -> Json:
    """A text out of some."""
    return {"type": "string", "enum": list(words)}


def array(items: Json) -> Json:
    """A list."""
    return {"type": "array", "items": items}


def objects(properties: Mapping[str, Json], *, optional: Sequence[str] = ()) -> Json:
    """An object with these properties only."""
    required = [key for key in properties if key not in optional]
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def crafts() -> list[dict[str, Any]]:
    """A hundred tools that are much alike: what can be done, and with what."""
    return [
        function(f"{verb}_{thing}", f"{does} one {thing} of the town.", {f"{thing}_id": TEXT})
        for verb, does in _VERBS.items()
        for thing in CRAFTS
    ]


def others(random: Random, number: int, *, but: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Sample `number` tools of `crafts()`, without those named in `but`, in any order."""
    return random.sample([tool for tool in crafts() if tool["function"]["name"] not in but], number)


def user(text: str) -> Json:
    """A message of the user."""
    return {"role": "user", "content": text}


def assistant(text: str | None, *calls: tuple[str, str, str]) -> Json:
    """An earlier assistant message with its calls: id, name and arguments of each."""
    made = [{"id": id_, "type": "function", "function": {"name": name, "arguments": a}} for id_, name, a in calls]
    return {"role": "assistant", "content": text} | ({"tool_calls": made} if made else {})


def tool_output(id_: str, text: str) -> Json:
    """A tool result."""
    return {"role": "tool", "tool_call_id": id_, "content": text}
