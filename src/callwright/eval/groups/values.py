"""Values that are more than a word: nested objects, lists, unions, nulls, exact numbers, times, every script."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from callwright.eval.case import Case, Must, WantedCall
from callwright.eval.groups.tools import NUMBER, TEXT, WHOLE, array, choice, function, objects, user
from callwright.eval.groups.words import GOODS, HARBOURS, PEOPLE, SHIPS, STREETS, UNICODE, code, several

_ORDER: Final = function(
    "place_order",
    "Orders goods for a person.",
    {
        "customer": objects({"name": TEXT, "address": objects({"street": TEXT, "number": WHOLE, "harbour": TEXT})}),
        "lines": array(objects({"article": choice(*GOODS), "quantity": WHOLE})),
    },
)
_CREW: Final = function("enlist_crew", "Enlists people on a ship.", {"ship": TEXT, "people": array(TEXT)})
_MARK: Final = function(
    "mark_position",
    "Marks a position on the chart.",
    {
        "label": TEXT,
        "position": {
            "anyOf": [
                objects({"latitude": NUMBER, "longitude": NUMBER}),
                objects({"harbour": TEXT}),
            ]
        },
    },
)
_NOTE: Final = function("name_place", "Gives a place on the map a name.", {"place_code": TEXT, "name": TEXT})
_ALARM: Final = function(
    "set_watch",
    "Sets when a watch begins, and who relieves it (null: nobody).",
    {
        "begins": {"type": "string", "format": "date-time", "description": "UTC, such as 2030-01-31T08:30:00Z"},
        "relief": {"type": ["string", "null"]},
    },
)


def cases(random: Random) -> Iterator[Case]:
    """Cases, without an end."""
    number = 0
    while True:
        for make in (_order, _name, _crew, _mark, _alarm):
            number += 1
            said, tool, arguments = make(random)
            yield Case(
                id=f"values/{number:03}",
                group="values",
                messages=(user(said),),
                tools=(tool,),
                must=Must(calls=(WantedCall(tool["function"]["name"], arguments),)),
            )


def _order(random: Random) -> tuple[str, Any, dict[str, Any]]:
    name, street, house, harbour = random.choice(PEOPLE), random.choice(STREETS), random.randint(2, 99), HARBOURS[0]
    lines = [
        {"article": good, "quantity": random.randint(2, 60)} for good in several(random, GOODS, random.randint(2, 3))
    ]
    listed = " and ".join(f"{line['quantity']} of article {line['article']}" for line in lines)
    said = f"Place an order for {name}, {street} {house}, {harbour}: {listed}."
    address = {"street": street, "number": house, "harbour": harbour}
    return said, _ORDER, {"customer": {"name": name, "address": address}, "lines": {"$set": lines}}


def _name(random: Random) -> tuple[str, Any, dict[str, Any]]:
    place, name = code(random), random.choice(UNICODE)
    return f'Give the place {place} the name "{name}".', _NOTE, {"place_code": place, "name": name}


def _crew(random: Random) -> tuple[str, Any, dict[str, Any]]:
    ship, people = random.choice(SHIPS), several(random, PEOPLE, random.randint(2, 4))
    said = f"Enlist {', '.join(people[:-1])} and {people[-1]} as crew on the {ship}."
    return said, _CREW, {"ship": ship, "people": {"$set": people}}


def _mark(random: Random) -> tuple[str, Any, dict[str, Any]]:
    label = f"wreck {code(random)}"
    if random.random() < 0.5:
        harbour = random.choice(HARBOURS)
        said = f'Mark the position of "{label}" on the chart: it lies in the harbour {harbour}.'
        return said, _MARK, {"label": label, "position": {"harbour": harbour}}
    latitude, longitude = random.randint(-8999, 8999) / 100, random.randint(-17999, 17999) / 100
    said = f'Mark the position of "{label}" on the chart: latitude {latitude}, longitude {longitude}.'
    return said, _MARK, {"label": label, "position": {"latitude": latitude, "longitude": longitude}}


def _alarm(random: Random) -> tuple[str, Any, dict[str, Any]]:
    day, hour, minute = random.randint(1, 28), random.randint(0, 23), random.choice((5, 20, 35, 50))
    begins = f"2031-05-{day:02}T{hour:02}:{minute:02}:00"
    relief = random.choice((None, *PEOPLE))
    told = f"{relief} relieves it" if relief else "nobody relieves it"
    said = f"Set a watch that begins on {day} May 2031 at {hour:02}:{minute:02} UTC; {told}."
    same = {"$one_of": [f"{begins}Z", f"{begins}+00:00", f"{begins}.000Z"]}
    return said, _ALARM, {"begins": same, "relief": relief}
