"""The right one of 5, 20 or 100 tools that are much alike."""

from collections.abc import Iterator
from itertools import cycle
from random import Random

from callwright.eval.case import Case, Must, WantedCall
from callwright.eval.groups.tools import crafts, others, user
from callwright.eval.groups.words import code

_WAYS = (
    "{Verb} the {thing} {id}.",
    "Could you {verb} the {thing} with the id {id}, please?",
    "We have to {verb} a {thing} today: {id}. Do it now.",
)


def cases(random: Random) -> Iterator[Case]:
    """Cases, without an end."""
    for number, many in enumerate(cycle((5, 20, 100)), 1):
        tool = random.choice(crafts())
        name: str = tool["function"]["name"]
        verb, _, thing = name.partition("_")
        tools = others(random, many - 1, but=[name])
        tools.insert(random.randrange(many), tool)
        id_ = code(random)
        said = random.choice(_WAYS).format(verb=verb, Verb=verb.capitalize(), thing=thing, id=id_)
        yield Case(
            id=f"many_tools/{number:03}",
            group="many_tools",
            messages=(user(said),),
            tools=tuple(tools),
            must=Must(calls=(WantedCall(name, {f"{thing}_id": id_}),)),
        )
