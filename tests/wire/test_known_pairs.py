"""Calls and outputs of a conversation that goes on: what was paired along a known list is what is paired at once."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from callwright.conversation import Call, CallOutput, Item, Message, Reasoning, TextPart
from callwright.errors import RequestError
from callwright.wire.pairing import Found, paired


def found(random_: random.Random, number: int) -> list[Found]:
    pick = random_.choice
    call = Call(
        pick(["dig", "rake"]), pick(["{}", "{}", "{}", "{"]), id=pick("abc"), complete=bool(random_.randrange(5))
    )
    output = CallOutput(pick("abc"), (TextPart(f"done {number}"),))
    message = Message(pick(["user", "assistant"]), (TextPart("Well."),))
    path = f"input[{number}]"
    match random_.randrange(6):
        case 0:
            return [Found(message, path)]
        case 1:
            if not random_.randrange(4):
                return [Found(Reasoning("Hm."), path)]
            return [Found(call, path, is_async=pick([True, False, False, False]))]
        case 2:
            return [Found(output, path, "custom tool call")]
        case _:
            calls = [Call("dig", "{}", id=f"c{number}{one}") for one in range(pick([0, 1, 2]))] or [call]
            outputs = [CallOutput(call.id, (TextPart("dug"),)) for call in calls]
            return [*[Found(call, path) for call in calls], *[Found(output, path) for output in outputs]]


def seen(items: Sequence[Found], *, mend: bool) -> Any:
    try:
        return paired(items, mend=mend)
    except RequestError as error:
        return error.message, error.param, error.code


@pytest.mark.parametrize("mend", [False, True], ids=["refused", "mended"])
@pytest.mark.parametrize("seed", range(300))
def test_what_goes_on_is_paired_as_if_it_were_new(seed: int, mend: bool) -> None:
    random_ = random.Random(seed)
    rows: list[list[Found]] = [[]]
    for number in range(16):
        row = rows[-1] if random_.randrange(6) else random_.choice(rows)
        more = found(random_, number)
        if mend or not isinstance(seen([*row, *more], mend=False)[0], str):
            row = [*row, *more]
        rows.append(row)
        if not random_.randrange(6):
            row = [*row[:-1], *found(random_, number)]  # the last one was not steady
        for other in (mend, mend, not mend) if random_.randrange(6) == 0 else (mend, mend):
            cold = seen([replace(one) for one in row], mend=other)
            assert seen(row, mend=other) == cold


def test_items_stay_the_same_objects_while_a_conversation_goes_on() -> None:
    row: list[Found] = []
    items: tuple[Item, ...] = ()
    for number in range(10):
        call = Call("dig", "{", id="again")  # it is mended, and told in other words
        output = CallOutput("again", (TextPart("dug"),))
        row = [
            *row,
            *[Found(one, f"messages[{number}]") for one in (call, output, Message("user", (TextPart("On."),)))],
        ]
        now = paired(row, mend=True)
        before = paired(row, mend=True)
        assert now == before
        calls = [one for one in now if isinstance(one, CallOutput)]
        assert all(one is other for one, other in zip(items, calls, strict=False))
        items = tuple(calls)
