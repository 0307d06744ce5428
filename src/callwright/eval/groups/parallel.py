"""Several calls in parallel: of one tool for each of some things, and of several tools."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from callwright.eval.case import Case, Must, WantedCall
from callwright.eval.groups.tools import NUMBER, TEXT, WHOLE, function, user
from callwright.eval.groups.words import HARBOURS, PLANTS, SHIPS, several

_TIDE: Final = function("get_tide", "Tells the tide of a harbour.", {"harbour": TEXT})
_WATER: Final = function("water_plant", "Waters a plant of the greenhouse.", {"plant": TEXT, "litres": NUMBER})
_PILOT: Final = function("send_pilot", "Sends a pilot to a ship.", {"ship": TEXT})
_FLAG: Final = function("raise_flags", "Raises signal flags.", {"count": WHOLE})


def cases(random: Random) -> Iterator[Case]:
    """Cases, without an end. A model that makes one call after the other gets the outputs and is asked again."""
    number = 0
    while True:
        for make in (_tides, _plants, _pilots, _mixed):
            number += 1
            said, calls = make(random)
            yield Case(
                id=f"parallel/{number:03}",
                group="parallel",
                messages=(user(said),),
                tools=(_TIDE, _WATER, _PILOT, _FLAG),
                must=Must(calls=tuple(WantedCall(name, arguments) for name, arguments in calls)),
                steps=len(calls) + 1,
            )


def _join_words(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _tides(random: Random) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    harbours = several(random, HARBOURS, random.randint(2, 4))
    return f"Get the tide in {_join_words(harbours)}.", [("get_tide", {"harbour": one}) for one in harbours]


def _plants(random: Random) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    one, two = several(random, PLANTS, 2)
    litres, more = random.randint(2, 5), random.randint(6, 9)
    said = f"Water the plant {one} with {litres} litres, and water the plant {two} with {more} litres."
    return said, [("water_plant", {"plant": one, "litres": litres}), ("water_plant", {"plant": two, "litres": more})]


def _pilots(random: Random) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    ships = several(random, SHIPS, random.randint(2, 3))
    return f"Send a pilot to the ships {_join_words(ships)}.", [("send_pilot", {"ship": one}) for one in ships]


def _mixed(random: Random) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    harbour, ship, count = random.choice(HARBOURS), random.choice(SHIPS), random.randint(2, 9)
    said = f"Get the tide in {harbour}. Send a pilot to the {ship}. Raise {count} flags."
    return said, [("get_tide", {"harbour": harbour}), ("send_pilot", {"ship": ship}), ("raise_flags", {"count": count})]
