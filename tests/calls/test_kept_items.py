"""What a history lacks is found by its calls, whatever a client did to the spelling of their arguments."""

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.calls.kept_items import call_keys, decode_items, encode_items, find_gaps, put_back, task_of
from callwright.conversation import Call, CallOutput, Item, MediaPart, Message, Reasoning, TextPart
from tests.support.examples import examples

ARGUMENTS: Final = '{"crane": 7, "load": {"tons": 2.0, "names": ["é", "b"]}, "dry": true}'
CALL: Final = Call("lift", ARGUMENTS, id="call_a")
ASKED: Final = Message("user", (TextPart("Lift it."),))
SAID: Final = Message("assistant", (TextPart("One moment."),))
THOUGHT: Final = Reasoning("The crane is free.")
OUTPUT: Final = CallOutput("call_a", (TextPart("lifted"),))
OTHER: Final = Call("lower", "{}", id="call_b")

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e15, 1e15) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)


def key(arguments: str, id_: str = "call_a", name: str = "lift") -> str | None:
    keys = call_keys(Call(name, arguments, id=id_), "task")
    return keys and keys[0]


def reordered(value: Any) -> Any:
    match value:
        case dict():
            return {name: reordered(value[name]) for name in reversed(value)}
        case list():
            return [reordered(one) for one in value]
        case float() if value.is_integer():
            return int(value)
    return value


@given(OBJECTS)
@examples(300)
def test_a_call_is_known_however_its_arguments_are_written(arguments: dict[str, Any]) -> None:
    written = json.dumps(arguments, ensure_ascii=False)
    again = json.dumps(reordered(arguments), indent=2, ensure_ascii=True)
    assert key(written) == key(again) is not None


@given(OBJECTS, OBJECTS)
@examples(300)
def test_other_arguments_are_another_call(one: dict[str, Any], other: dict[str, Any]) -> None:
    def told(value: Any) -> str:
        return json.dumps(reordered(value), sort_keys=True)

    assert (key(json.dumps(one)) == key(json.dumps(other))) == (told(one) == told(other))


@pytest.mark.parametrize(
    "other",
    [
        Call("lift", ARGUMENTS, id="call_b"),
        Call("lower", ARGUMENTS, id="call_a"),
        Call("lift", ARGUMENTS.replace("7", '"7"'), id="call_a"),
        Call("lift", ARGUMENTS.replace("true", "1"), id="call_a"),
    ],
)
def test_a_call_of_another_id_or_name_or_value_is_another(other: Call) -> None:
    ours, theirs = call_keys(CALL, "task"), call_keys(other, "task")
    assert ours is not None
    assert theirs is not None
    assert not {*ours} & {*theirs}


@pytest.mark.parametrize(
    ("arguments", "id_"),
    [(ARGUMENTS, ""), ("[1]", "call_a"), ('{"a": ', "call_a"), ('{"a":' * 99_000 + "1" + "}" * 99_000, "call_a")],
    ids=["no id", "no object", "cut off", "too deep"],
)
def test_what_no_history_holds_as_a_call_has_no_key(arguments: str, id_: str) -> None:
    assert key(arguments, id_) is None


def test_no_arguments_are_an_empty_object_as_a_history_has_them() -> None:
    assert key("") == key("null") == key("{}")


# --- which turns lack something, and where it is put ---

PUT: Final = Reasoning("put back")
CASES: dict[str, tuple[Sequence[Item], Sequence[Item]]] = {
    "a call": ((ASKED, CALL, OUTPUT), (ASKED, PUT, CALL, OUTPUT)),
    "text before it": ((ASKED, SAID, CALL, OUTPUT), (ASKED, PUT, SAID, CALL, OUTPUT)),
    "calls at once": ((ASKED, CALL, OTHER, OUTPUT), (ASKED, PUT, CALL, OTHER, OUTPUT)),
    "two turns": ((ASKED, CALL, OUTPUT, OTHER), (ASKED, PUT, CALL, OUTPUT, PUT, OTHER)),
    "its own": ((ASKED, THOUGHT, CALL, OUTPUT), (ASKED, THOUGHT, CALL, OUTPUT)),
    "its own, behind the text": ((ASKED, SAID, THOUGHT, CALL), (ASKED, SAID, THOUGHT, CALL)),
    "its own, behind the call": ((ASKED, CALL, THOUGHT, OTHER), (ASKED, CALL, THOUGHT, OTHER)),
    "its own in the first turn": ((ASKED, THOUGHT, CALL, OUTPUT, OTHER), (ASKED, THOUGHT, CALL, OUTPUT, PUT, OTHER)),
    "no call": ((ASKED, SAID), (ASKED, SAID)),
    "an earlier task": ((ASKED, CALL, OUTPUT, SAID, ASKED), (ASKED, CALL, OUTPUT, SAID, ASKED)),
    "an answer before it": ((ASKED, SAID, SAID, CALL), (ASKED, SAID, PUT, SAID, CALL)),
    "no user": ((CALL, OUTPUT), (PUT, CALL, OUTPUT)),
    "text of the task before": ((SAID, ASKED, CALL), (SAID, ASKED, PUT, CALL)),
    "the same call twice": ((ASKED, CALL, OUTPUT, CALL, OUTPUT), (ASKED, CALL, OUTPUT, PUT, CALL, OUTPUT)),
    "a system message": (
        (ASKED, CALL, OUTPUT, Message("developer", (TextPart("Hurry."),)), OTHER),
        (ASKED, PUT, CALL, OUTPUT, Message("developer", (TextPart("Hurry."),)), PUT, OTHER),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_stands_once_before_what_the_turn_said_and_never_beside_the_clients_own(case: str) -> None:
    given_, whole = CASES[case]
    gaps = find_gaps(given_, everywhere=False)
    assert put_back(given_, gaps, dict.fromkeys(gaps, (PUT,))) == tuple(whole)


def test_everywhere_earlier_tasks_count_too() -> None:
    items = (ASKED, CALL, OUTPUT, SAID, ASKED, OTHER)
    gaps = find_gaps(items, everywhere=True)
    assert put_back(items, gaps, dict.fromkeys(gaps, (PUT,))) == (ASKED, PUT, CALL, OUTPUT, SAID, ASKED, PUT, OTHER)


def test_a_call_is_known_by_itself_and_by_the_task_that_it_was_made_for() -> None:
    items = (ASKED, CALL, OUTPUT, SAID, Message("user", (TextPart("Lower it."),)), OTHER)
    keys = {*(call_keys(CALL, task_of(items[:1])) or ())}
    assert set(find_gaps(items[:3], everywhere=False)) == keys
    later = {*(call_keys(OTHER, task_of(items)) or ())}
    assert set(find_gaps(items, everywhere=False)) == later
    assert set(find_gaps(items, everywhere=True)) == keys | later
    assert len(keys | later) == 4


def test_only_what_is_kept_is_put_back() -> None:
    items = (ASKED, CALL, OUTPUT, OTHER)
    gaps = find_gaps(items, everywhere=False)
    kept = {(call_keys(OTHER, task_of(items)) or ("",))[0]: (PUT,), "of another history": (PUT,)}
    assert put_back(items, gaps, kept) == (ASKED, CALL, OUTPUT, PUT, OTHER)


def test_items_are_the_same_when_they_come_back() -> None:
    items = (THOUGHT, CALL, CallOutput("call_a", (TextPart("a"), TextPart("b"))), Reasoning("é\n\U0001f6a2"))
    whole = (THOUGHT, CALL, CallOutput("call_a", (TextPart("ab"),)), Reasoning("é\n\U0001f6a2"))
    assert decode_items(encode_items(items)) == whole
    assert decode_items(encode_items([CallOutput("c", (MediaPart({"type": "image"}),))])) == (
        CallOutput("c", (TextPart(""),)),
    )
