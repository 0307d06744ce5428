"""Structured answers: JSON by a schema, with and without tools, from the request and from an output."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from callwright.eval.case import Case, Json, Must, WantedCall
from callwright.eval.groups.tools import TEXT, WHOLE, array, assistant, choice, function, objects, tool_output, user
from callwright.eval.groups.words import HARBOURS, PEOPLE, SHIPS

_TIDE: Final = function("get_tide", "Tells the tide of a harbour.", {"harbour": TEXT})
_PERSON: Final = objects({"name": TEXT, "age": WHOLE})
_REPORT: Final = objects({"harbour": TEXT, "tide_cm": WHOLE, "verdict": choice("low", "medium", "high")})
_LIST: Final = objects({"ships": array(TEXT), "count": WHOLE})


def cases(random: Random) -> Iterator[Case]:
    """Cases, without an end."""
    number = 0
    while True:
        for make in (_person, _reported, _list_case, _call_case):
            number += 1
            yield make(random, f"answers/{number:03}")


def _format(name: str, schema: Json) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": dict(schema), "strict": True}}


def _person(random: Random, id_: str) -> Case:
    name, age = random.choice(PEOPLE), random.randint(18, 80)
    return Case(
        id=id_,
        group="answers",
        messages=(user(f'Who signed? The name is "{name}", the age is {age}.'),),
        response_format=_format("person", _PERSON),
        must=Must(answer=_PERSON, value={"name": name, "age": age}),
    )


def _list_case(random: Random, id_: str) -> Case:
    ships = random.sample(SHIPS, random.randint(2, 4))
    said = f"These ships are in: {', '.join(ships[:-1])} and {ships[-1]}. List the ships with their count."
    return Case(
        id=id_,
        group="answers",
        messages=(user(said),),
        response_format=_format("ships", _LIST),
        must=Must(answer=_LIST, value={"ships": {"$set": ships}, "count": len(ships)}),
    )


def _reported(random: Random, id_: str) -> Case:
    """The output of a tool is there; the answer has a form."""
    harbour, height = random.choice(HARBOURS), random.randint(110, 890)
    call = f"call_tide_{id_[-3:]}"
    return Case(
        id=id_,
        group="answers",
        messages=(
            user(f"Get the tide of the harbour {harbour} and report it. The verdict is medium."),
            assistant(None, (call, "get_tide", f'{{"harbour":"{harbour}"}}')),
            tool_output(call, f'{{"harbour":"{harbour}","tide_cm":{height}}}'),
        ),
        tools=(_TIDE,),
        response_format=_format("report", _REPORT),
        must=Must(calls=(), answer=_REPORT, value={"harbour": harbour, "tide_cm": height, "verdict": "medium"}),
    )


def _call_case(random: Random, id_: str) -> Case:
    """A call is still the right thing, though the answer has a form."""
    harbour = random.choice(HARBOURS)
    return Case(
        id=id_,
        group="answers",
        messages=(user(f"Get the tide of the harbour {harbour}, and report it."),),
        tools=(_TIDE,),
        response_format=_format("report", _REPORT),
        must=Must(calls=(WantedCall("get_tide", {"harbour": harbour}),)),
    )
