"""Demands of a request on calls: at least one, a certain one, none, one of some, a strict schema, a grammar."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from callwright.eval.case import Case, Must, WantedCall
from callwright.eval.groups.tools import TEXT, WHOLE, choice, function, user
from callwright.eval.groups.words import HARBOURS, PEOPLE, ROOMS, SHIPS

_TIDE: Final = function("get_tide", "Tells the tide of a harbour.", {"harbour": TEXT})
_BELL: Final = function("ring_bell", "Rings the harbour bell.", {"strokes": WHOLE})
_HEAT: Final = function(
    "heat_room",
    "Heats a room to a temperature in °C.",
    {"room": choice(*ROOMS), "celsius": WHOLE, "until": {"type": ["string", "null"]}},
    strict=True,
)
_HELM_GRAMMAR: Final = (
    'start: COURSE " " SPEED\nCOURSE: "N" | "NE" | "E" | "SE" | "S" | "SW" | "W" | "NW"\nSPEED: /[1-9][0-9]?/ "kn"\n'
)
_HELM: Final[dict[str, Any]] = {
    "type": "custom",
    "custom": {
        "name": "steer",
        "description": "Steers the ship: a course, a space, a speed in knots. Such as: NE 12kn",
        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": _HELM_GRAMMAR}},
    },
}
_WHATEVER: Final = ("Hello! I am {}.", "Surprise {}.", "Do whatever {} would like.", "{} is late today.")
_COURSES: Final = "N NE E SE S SW W NW".split()


def cases(random: Random) -> Iterator[Case]:
    """Cases, without an end."""
    number = 0
    while True:
        for make in (_required, _named_tool_case, _none, _allowed, _strict, _grammar, _anything):
            number += 1
            yield make(random, f"demands/{number:03}")


def _case(id_: str, said: str, must: Must, tool_choice: Any = None, tools: tuple[Any, ...] = (_TIDE, _BELL)) -> Case:
    return Case(id=id_, group="demands", messages=(user(said),), tools=tools, tool_choice=tool_choice, must=must)


def _tide(random: Random) -> tuple[str, Must]:
    harbour = random.choice(HARBOURS)
    return f"What is the tide in {harbour}?", Must(calls=(WantedCall("get_tide", {"harbour": harbour}),))


def _required(random: Random, id_: str) -> Case:
    said, must = _tide(random)
    return _case(id_, said, must, "required")


def _named_tool_case(random: Random, id_: str) -> Case:
    strokes = random.randint(2, 12)
    said = f"It is {strokes} o'clock: give as many strokes, {strokes}."
    named = {"type": "function", "function": {"name": "ring_bell"}}
    return _case(id_, said, Must(calls=(WantedCall("ring_bell", {"strokes": strokes}),)), named)


def _none(random: Random, id_: str) -> Case:
    said, _ = _tide(random)
    return _case(id_, said, Must(calls=()), "none")


def _allowed(random: Random, id_: str) -> Case:
    said, must = _tide(random)
    only = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [_only("get_tide")]}}
    return _case(id_, f"{said} Then ring the bell with 3 strokes.", must, only)


def _only(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def _strict(random: Random, id_: str) -> Case:
    room, celsius = random.choice(ROOMS), random.randint(14, 24)
    said = f"Heat the {room} to {celsius} °C, with no end."
    wanted = {"room": room, "celsius": celsius, "until": None}
    return _case(id_, said, Must(calls=(WantedCall("heat_room", wanted),)), tools=(_HEAT, _TIDE))


def _grammar(random: Random, id_: str) -> Case:
    course, knots = random.choice(_COURSES), random.randint(4, 30)
    said = f'Steer the {random.choice(SHIPS)} with "{course} {knots}kn".'
    return _case(id_, said, Must(calls=(WantedCall("steer", {"input": f"{course} {knots}kn"}),)), tools=(_HELM, _TIDE))


def _anything(random: Random, id_: str) -> Case:
    """A call is required although none makes sense: any valid one will do."""
    return _case(id_, random.choice(_WHATEVER).format(random.choice(PEOPLE)), Must(some=True), "required")
