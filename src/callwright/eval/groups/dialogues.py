"""Work over several turns: a call needs the output of another one, a call fails, a history is long. Judged by the final
state of the world.
"""

from collections.abc import Iterator
from random import Random
from typing import Final

from callwright.eval.case import Case, Must, WantedCall
from callwright.eval.groups.tools import TEXT, WHOLE, assistant, function, others, tool_output, user
from callwright.eval.groups.words import GOODS, HARBOURS, SHIPS, code, several
from callwright.eval.world import Change, Effect, Fail, Get, Move, Put

_BERTH: Final = function("get_berth", "Tells the berth of a ship.", {"ship": TEXT})
_TOW: Final = function("tow_to", "Tows what lies in a berth to a harbour.", {"berth": TEXT, "harbour": TEXT})
_MOVE: Final = function(
    "move_crates", "Moves crates from one store to another.", {"source": TEXT, "target": TEXT, "crates": WHOLE}
)
_DOCK: Final = function("dock_ship", "Docks a ship in a harbour.", {"ship": TEXT, "harbour": TEXT})
_FUEL: Final = function("set_fuel", "Sets the fuel of a ship, in tonnes.", {"ship": TEXT, "tonnes": WHOLE})


def cases(random: Random) -> Iterator[Case]:
    """Cases, without an end."""
    number = 0
    while True:
        for make in (_dependent, _moved, _failing, _long, _corrected):
            number += 1
            yield make(random, f"dialogues/{number:03}")


def _dependent(random: Random, id_: str) -> Case:
    """The second call needs the output of the first one."""
    ship, other = several(random, SHIPS, 2)
    berth, elsewhere = code(random), code(random)
    harbour = random.choice(HARBOURS)
    return Case(
        id=id_,
        group="dialogues",
        messages=(user(f"Get the berth of the {ship}, then tow what lies in that berth to {harbour}."),),
        tools=(_BERTH, _TOW),
        must=Must(
            state={
                "ships": {ship: {"berth": berth}, other: {"berth": elsewhere}},
                "tows": {berth: {"harbour": harbour}},
            }
        ),
        steps=4,
        tables={"ships": {ship: {"berth": berth}, other: {"berth": elsewhere}}},
        effects={"get_berth": Get("ships", "ship"), "tow_to": Put("tows", "berth")},
    )


def _moved(random: Random, id_: str) -> Case:
    one, two = several(random, HARBOURS, 2)
    there, crates = random.randint(50, 99), random.randint(3, 40)
    stores = {one: {"crates": there}, two: {"crates": 10}}
    return Case(
        id=id_,
        group="dialogues",
        messages=(user(f"Move {crates} crates from {one} to {two}."),),
        tools=(_MOVE, _DOCK),
        must=Must(state={"stores": {one: {"crates": there - crates}, two: {"crates": 10 + crates}}}),
        steps=3,
        tables={"stores": stores},
        effects={"move_crates": Move("stores", "source", "target", "crates", "crates")},
    )


def _failing(random: Random, id_: str) -> Case:
    """A call fails for good: nothing is to be made up, and nothing else to be tried."""
    ship, harbour = random.choice(SHIPS), random.choice(HARBOURS)
    effect: Effect = Fail(f"{harbour} is closed because of ice until further notice")
    return Case(
        id=id_,
        group="dialogues",
        messages=(user(f"Dock the {ship} in {harbour}. If that fails, tell me why and do nothing else."),),
        tools=(_DOCK, _FUEL),
        must=Must(calls=(WantedCall("dock_ship", {"ship": ship, "harbour": harbour}),), text={"$has": "ice"}),
        steps=3,
        effects={"dock_ship": effect},
    )


def _corrected(random: Random, id_: str) -> Case:
    """The first call fails, and its error explains how to correct it."""
    ship, tonnes = random.choice(SHIPS), random.randint(20, 80)
    key = f"{ship.upper()}-{random.randint(2, 9)}"
    return Case(
        id=id_,
        group="dialogues",
        messages=(user(f"Set the fuel of the {ship} to {tonnes} tonnes."),),
        tools=(_FUEL, _DOCK),
        must=Must(state={"tanks": {key: {"tonnes": tonnes}}}),
        steps=4,
        tables={"tanks": {key: {"tonnes": 5}}},
        effects={"set_fuel": Change("tanks", "ship")},
    )


def _long(random: Random, id_: str) -> Case:
    """A long history of calls, after which one more is asked for."""
    messages = []
    for number in range(random.randint(12, 24)):
        ship, harbour, good = random.choice(SHIPS), random.choice(HARBOURS), random.choice(GOODS)
        call = f"call_past_{number}"
        messages += [
            user(f"Dock the {ship} in {harbour}; it carries {good}."),
            assistant(None, (call, "dock_ship", f'{{"ship":"{ship}","harbour":"{harbour}"}}')),
            tool_output(call, '{"status":"done"}'),
            assistant(f"The {ship} lies in {harbour}, with its {good}."),
        ]
    ship, tonnes = random.choice(SHIPS), random.randint(20, 80)
    messages.append(user(f"Set the fuel of the {ship} to {tonnes} tonnes."))
    return Case(
        id=id_,
        group="dialogues",
        messages=tuple(messages),
        tools=(_DOCK, _FUEL, *others(random, 4)),
        must=Must(calls=(WantedCall("set_fuel", {"ship": ship, "tonnes": tonnes}),)),
    )
