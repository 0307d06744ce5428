"""Optional arguments: they must be given if the user mentions them, and left out otherwise."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from callwright.eval.case import Case, Must, WantedCall
from callwright.eval.groups.tools import TEXT, WHOLE, YES_NO, choice, function, user
from callwright.eval.groups.words import GOODS, HARBOURS, SHIPS, several

_CHARTER: Final = function(
    "charter_ship",
    "Charters a ship.",
    {
        "ship": TEXT,
        "nights": WHOLE,
        "skipper": {"type": "string", "description": "Only where one is named."},
        "pets": YES_NO,
        "deck": choice("upper", "lower"),
    },
    optional=("skipper", "pets", "deck"),
)
_FORECAST: Final = function(
    "read_forecast",
    "Reads the forecast for a harbour.",
    {"harbour": TEXT, "hours": {"type": "integer", "description": "How far ahead, where somebody says so."}},
    optional=("hours",),
)
_STOCK: Final = function(
    "count_stock",
    "Counts the goods in the store.",
    {"article": choice(*GOODS), "harbour": TEXT, "detailed": {"type": "boolean", "default": False}},
    optional=("article", "harbour", "detailed"),
)


def cases(random: Random) -> Iterator[Case]:
    """Cases, without an end."""
    number = 0
    while True:
        for make in (_charter, _forecast, _stock):
            number += 1
            said, tool, arguments = make(random)
            yield Case(
                id=f"optional/{number:03}",
                group="optional",
                messages=(user(said),),
                tools=(tool,),
                must=Must(calls=(WantedCall(tool["function"]["name"], arguments),)),
            )


def _charter(random: Random) -> tuple[str, Any, dict[str, Any]]:
    ship, nights = random.choice(SHIPS), random.randint(2, 14)
    given: dict[str, Any] = {"ship": ship, "nights": nights}
    said = f"Charter the {ship} for {nights} nights"
    if random.random() < 0.4:
        given["deck"] = random.choice(("upper", "lower"))
        said += f", on the {given['deck']} deck"
    if random.random() < 0.3:
        given["pets"] = True
        said += ", with pets"
    return f"{said}.", _CHARTER, given


def _forecast(random: Random) -> tuple[str, Any, dict[str, Any]]:
    harbour = random.choice(HARBOURS)
    if random.random() < 0.5:
        return f"Read the forecast for {harbour}.", _FORECAST, {"harbour": harbour}
    hours = random.randint(3, 72)
    return f"Read the forecast for {harbour}, {hours} hours ahead.", _FORECAST, {"harbour": harbour, "hours": hours}


def _stock(random: Random) -> tuple[str, Any, dict[str, Any]]:
    good, harbour = random.choice(GOODS), several(random, HARBOURS, 1)[0]
    said, given = random.choice(
        (
            ("Count the stock.", {}),
            (f"Count the stock of {good}.", {"article": good}),
            (f"Count the stock of {good} in {harbour}.", {"article": good, "harbour": harbour}),
        )
    )
    return said, _STOCK, given
