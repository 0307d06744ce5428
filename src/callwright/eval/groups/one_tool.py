"""One tool, and a request for it that names all it takes: texts, numbers, dates, choices, yes or no."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from callwright.eval.case import Case, Must, WantedCall
from callwright.eval.groups.tools import NUMBER, TEXT, WHOLE, YES_NO, choice, function, user
from callwright.eval.groups.words import HARBOURS, ROOMS, SHIPS, code, date, several

_FERRY: Final = function(
    "book_ferry",
    "Books a ferry.",
    {
        "origin": TEXT,
        "destination": TEXT,
        "date": {"type": "string", "format": "date", "description": "YYYY-MM-DD"},
        "passengers": WHOLE,
    },
)
_LAMP: Final = function(
    "set_lamp",
    "Sets the lamp of a room.",
    {"room": choice(*ROOMS), "brightness": {"type": "integer", "minimum": 0, "maximum": 100}},
)
_TIDE: Final = function("log_tide", "Logs the height of the tide.", {"harbour": TEXT, "height_m": NUMBER})
_BERTH: Final = function("free_berth", "Frees a berth.", {"berth_code": TEXT})
_HORN: Final = function("switch_horn", "Switches the fog horn of a ship on or off.", {"ship": TEXT, "enabled": YES_NO})


def cases(random: Random) -> Iterator[Case]:
    """Cases, without an end."""
    number = 0
    while True:
        for make in (_ferry, _lamp, _tide, _berth, _horn):
            number += 1
            said, tool, arguments = make(random)
            yield Case(
                id=f"one_tool/{number:03}",
                group="one_tool",
                messages=(user(said),),
                tools=(tool,),
                must=Must(calls=(WantedCall(tool["function"]["name"], arguments),)),
            )


def _ferry(random: Random) -> tuple[str, Any, dict[str, Any]]:
    origin, destination = several(random, HARBOURS, 2)
    (told, day), passengers = date(random), random.randint(2, 9)
    said = f"Book a ferry from {origin} to {destination} on {told} for {passengers} passengers."
    return (
        said,
        _FERRY,
        {"origin": origin, "destination": destination, "date": day, "passengers": passengers},
    )


def _lamp(random: Random) -> tuple[str, Any, dict[str, Any]]:
    room, brightness = random.choice(ROOMS), random.randint(5, 95)
    return (
        f"Set the lamp in the {room} to a brightness of {brightness}.",
        _LAMP,
        {"room": room, "brightness": brightness},
    )


def _tide(random: Random) -> tuple[str, Any, dict[str, Any]]:
    harbour, height = random.choice(HARBOURS), random.randint(11, 89) / 10
    return f"Log a tide of {height} m in {harbour}.", _TIDE, {"harbour": harbour, "height_m": height}


def _berth(random: Random) -> tuple[str, Any, dict[str, Any]]:
    berth = code(random)
    return f"Please free berth {berth}.", _BERTH, {"berth_code": berth}


def _horn(random: Random) -> tuple[str, Any, dict[str, Any]]:
    ship, enabled = random.choice(SHIPS), random.random() < 0.5
    return f"Switch {'on' if enabled else 'off'} the fog horn of the {ship}.", _HORN, {"ship": ship, "enabled": enabled}
