"""Conversations that go on: what is made along their items is what is made of all of them at once."""

import random
import re
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any, Final
from weakref import ref

import pytest
from msgspec.structs import replace

from callwright.calls.history import HistoryRules, apply_history_rules
from callwright.calls.kept_items import find_gaps
from callwright.calls.repeated_calls import may_repeat, rows
from callwright.conversation import (
    AssistantTurn,
    Call,
    CallOutput,
    Conversation,
    FunctionTool,
    Item,
    MediaPart,
    Message,
    Reasoning,
    TextPart,
    TurnsAlong,
    shared_item,
)
from callwright.dialects.base import Dialect, dialect_names, get_dialect
from callwright.errors import RequestError
from callwright.memo.prefixes import MAX_BYTES, fold
from callwright.openai_format.messages import shared_messages, write_messages
from callwright.turn.plan import is_large
from callwright.wire.token_estimate import estimated_tokens
from tests.support.entries import entered

Items = tuple[Item, ...]
PARTS: Final = (TextPart("leaf"), TextPart(""), TextPart("<|im_end|> <tool_call>"), TextPart("x" * 20_000))
PICTURE: Final = MediaPart({"type": "image_url", "image_url": {"url": "data:,"}}, "messages[1].content[0]")


def item(random_: random.Random) -> Item:
    pick = random_.choice
    parts = (pick(PARTS),) if random_.randrange(12) else (pick(PARTS), PICTURE)
    match random_.randrange(8):
        case 0:
            return Message(pick(["user", "user", "system", "developer"]), parts)
        case 1:
            return Message("assistant", (pick(PARTS),))
        case 2:
            return Reasoning(pick(["", "Hm."]))
        case 3 | 4 | 5:
            return Call(pick(["dig", "rake"]), pick(["{}", '{"row": 1}', '{"row": 1.0}']), id=pick("ab"))
        case _:
            return CallOutput(pick("abc"), (pick(PARTS[:2]),))


def conversations(seed: int) -> list[Items]:
    """Of one client: each goes on from an earlier one, with the same objects; at times one of them is another."""
    random_ = random.Random(seed)
    known: list[Items] = [(Message("user", (TextPart("Dig."),)),)]
    for _ in range(25):
        begin = known[-1] if random_.randrange(5) else random_.choice(known)
        if not random_.randrange(8):
            at = random_.randrange(len(begin))
            begin = (*begin[:at], item(random_), *begin[at + 1 :])
        if not random_.randrange(8):  # what came first is left out
            begin = begin[random_.randrange(len(begin)) :]
        known.append((*begin, *[item(random_) for _ in range(random_.randrange(4))]))
    return known


def anew(items: Items) -> Items:
    """The same items, of which nothing is known."""
    return tuple([replace(one) for one in items])


def seen(make: Callable[[Items], Any], items: Items) -> Any:
    try:
        return make(items)
    except RequestError as error:
        return error.message, error.param


ALONG: Final[dict[str, Callable[[Items], Any]]] = {
    "messages": shared_messages,
    "order": lambda items: apply_history_rules(items, HistoryRules()),
    "repeats, twice": lambda items: may_repeat(items, 2),
    "repeats, three times": lambda items: may_repeat(items, 3),
    "large": lambda items: is_large(Conversation(items)),
    "tokens": estimated_tokens,
    "gaps of the task": partial(find_gaps, everywhere=False),
    "gaps": partial(find_gaps, everywhere=True),
}


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("seed", range(40))
def test_a_conversation_that_goes_on_is_read_as_if_it_were_new(seed: int, name: str) -> None:
    make = ALONG[name]
    for items in conversations(seed):
        cold = seen(make, anew(items))
        assert seen(make, items) == cold
        assert seen(make, items) == cold


@pytest.mark.parametrize("seed", range(80))
def test_messages_that_are_shared_say_what_others_say(seed: int) -> None:
    for items in conversations(seed):
        shared = shared_messages(items)
        assert all(one.get("reasoning") == one.get("reasoning_content") for one in shared)
        plain = [{name: value for name, value in one.items() if name != "reasoning"} for one in shared]
        assert plain == write_messages(Conversation(anew(items)))


@pytest.mark.parametrize("seed", range(80))
def test_what_may_not_repeat_does_not(seed: int) -> None:
    for items in conversations(seed):
        for times in (2, 3):
            if any(row.times >= times for row in rows(items)):
                assert may_repeat(items, times)


@pytest.mark.parametrize("seed", range(80))
def test_turns_along_a_conversation_are_its_turns(seed: int) -> None:
    def more(before: TurnsAlong, items: Sequence[Item], _: int) -> TurnsAlong:
        return before.more(
            items,
            lambda turn, number: (
                [(number, turn)] if not isinstance(turn, AssistantTurn) else [(number, turn), (number, len(turn.calls))]
            ),
        )

    for items in conversations(seed):
        made = fold(items, TurnsAlong(), more, name="test").made
        turns = [one for one in made if not isinstance(one[1], int)]
        assert turns == list(enumerate(Conversation(items).turns()))


TOOLS: Final = ((), (FunctionTool("dig", "Digs."),), (FunctionTool("dig", "Digs."), FunctionTool("browser.open")))
SYSTEMS: Final[tuple[Items, ...]] = ((), (), (Message("system", (TextPart("Dig."),)),))


@pytest.mark.parametrize("name", dialect_names())
def test_every_dialect_shows_a_conversation_that_goes_on_as_if_it_were_new(name: str) -> None:
    dialect = get_dialect(name)
    options = dialect.options()

    def told(items: Items) -> Any:
        return dialect.messages(Conversation((*system, *items), tools, keeps_reasoning=keeps), options)

    def rendered(items: Items) -> Any:
        prompt = dialect.render(Conversation((*system, *items), tools, keeps_reasoning=keeps), options)
        return prompt.pieces, prompt.wire_text, prompt.start, prompt.prefill

    for seed in range(8):
        pick = random.Random(seed).choice
        for items in conversations(seed):
            tools, system, keeps = pick(TOOLS), pick(SYSTEMS), pick([False, True])
            for make in (told, rendered):
                cold = seen(make, anew(items))
                assert seen(make, items) == cold
                assert seen(make, items) == cold


def _on_wire(dialect: Dialect, asked: Conversation) -> str:
    return dialect.render(asked, dialect.options()).wire_text


@pytest.mark.parametrize("name", dialect_names())
def test_in_every_dialect_only_what_is_new_is_written(name: str) -> None:
    dialect = get_dialect(name)
    options, tools = dialect.options(), (FunctionTool("dig", f"Digs for {name}."),)
    items: Items = (Message("system", (TextPart("Dig."),)), Message("user", (TextPart("Where?"),)))
    took: dict[str, list[int]] = {"render": [], "messages": []}
    for number in range(60):
        items = (
            *items,
            Reasoning(f"Row {number}."),
            Message("assistant", (TextPart("So."),)),
            Call("dig", f'{{"row": {number}}}', id=f"c{number}"),
            CallOutput(f"c{number}", (TextPart("Moss."),)),
        )
        asked = Conversation(items, tools)
        took["render"].append(entered(partial(_on_wire, dialect, asked)))
        took["messages"].append(entered(partial(dialect.messages, asked, options)))
    for counts in took.values():
        assert median(counts[50:]) <= median(counts[5:15]) + 8


@pytest.mark.parametrize("name", ["mistral_v3", "mistral_v11", "cohere_command", "cohere_command_r", "kimi_k2"])
def test_an_output_has_the_number_of_the_latest_call_before_it(name: str) -> None:
    dialect = get_dialect(name)
    items: Items
    numbered: Items
    calls = [Call("dig", "{}", id=id_) for id_ in "abab"]
    outputs = [CallOutput(id_, (TextPart("Moss."),)) for id_ in "baab"]
    question = Message("user", (TextPart("Where?"),))
    others = [Call("dig", "{}", id=id_) for id_ in "cdef"]
    items = (question, *calls[:2], *outputs[:2], *calls[2:], *outputs[2:])
    numbered = (
        question,
        *others[:2],
        *[replace(output, call_id=id_) for output, id_ in zip(outputs[:2], "dc", strict=True)],
        *others[2:],
        *[replace(output, call_id=id_) for output, id_ in zip(outputs[2:], "ef", strict=True)],
    )
    prompts = [_numbered(dialect.render(Conversation(one), dialect.options()).text) for one in (items, numbered)]
    assert prompts[0] == prompts[1]


def _numbered(prompt: str) -> str:
    """A prompt with the ids that Mistral's formats show by the order in which they come first."""
    shown = re.compile(r'(?<=\[CALL_ID\])\w{9}|(?<=\[TOOL_RESULTS\])\w{9}(?=\[)|(?<=id": ")\w{9}')
    ids = list(dict.fromkeys(shown.findall(prompt)))
    return shown.sub(lambda found: str(ids.index(found[0])), prompt)


@pytest.mark.parametrize("name", ["harmony", "hermes"])
def test_prompts_for_training_and_without_a_begin_of_the_answer_go_on_as_well(name: str) -> None:
    dialect = get_dialect(name)
    ways = [{"add_generation_prompt": False}, *([{"training": True}] if name == "harmony" else [])]
    for options in [replace(dialect.options(), **way) for way in ways]:

        def rendered(items: Items, options: Any = options) -> str:
            return dialect.render(Conversation(items), options).wire_text

        for seed in range(10):
            for items in conversations(seed):
                made = [seen(rendered, each) for each in (anew(items), items, items)]
                assert made[0] == made[1] == made[2]


def test_only_new_items_are_looked_at() -> None:
    looked: list[int] = []

    def more(before: int, items: Any, start: int) -> int:
        looked.append(len(items) - start)
        return len(items)

    items: Items = ()
    for number in range(100):
        items = (*items, Call("dig", "{}", id=f"new{number}"), CallOutput(f"new{number}", (TextPart("done"),)))
        for _ in range(3):
            assert fold(items, 0, more, name="test") == len(items)
    assert looked == [2] * 100
    looked.clear()
    assert fold(items, 0, more, "other", "test") == len(items)
    assert sum(looked) == len(items)
    assert fold(list(items), 0, more, "other", "test") == len(items)  # a list may change
    assert looked[-1] == len(items)


def test_a_row_is_known_by_its_objects_and_not_by_what_they_are_equal_to() -> None:
    def more(before: list[str], items: Any, start: int) -> list[str]:
        return [*before, *[one.arguments for one in items[start:]]]

    none: list[str] = []
    one, true, end = Call("dig", '{"row": 1}'), Call("dig", '{"row": true}'), Call("rake", "{}")
    assert fold((one, end), none, more, name="test") == ['{"row": 1}', "{}"]
    assert fold((true, end), none, more, name="test") == ['{"row": true}', "{}"]
    assert fold((end,), none, more, name="test") == ["{}"]
    assert fold((), none, more, name="test") == []


def test_instructions_with_a_picture_keep_it_where_roles_are_changed() -> None:
    system, later = Message("system", (TextPart("Look."), PICTURE)), Message("developer", (PICTURE,))
    (first, _, last) = write_messages(Conversation((system, Message("user", (TextPart("?"),)), later)))
    assert first == {"role": "system", "content": [{"type": "text", "text": "Look."}, PICTURE.value]}
    around = [{"type": "text", "text": text} for text in ("<system>", "</system>")]
    assert last == {"role": "user", "content": [around[0], PICTURE.value, around[1]]}


def test_rows_take_no_more_than_their_room_however_much_they_hold() -> None:
    """Of many conversations, each with a long begin of its own and a short end that is long known."""

    def more(before: list[str], items: Sequence[Item], start: int) -> list[str]:
        return [*before, *[one.arguments for one in items[start:] if isinstance(one, Call)]]

    none: list[str] = []
    ends = [Call("rake", "{}", id=f"end{number}") for number in range(400)]
    begins = []
    for end in ends:
        begin = Call("dig", "x" * 1_000_000)
        begins.append(ref(begin))
        fold((begin, end), none, more, name="room")
        fold((begin, end), none, more, name="room, too")
        del begin
    alive = sum(begin() is not None for begin in begins)
    assert 2 < alive < 38  # 1 MB each, counted four times, in a bound of 134 MB
    assert all(begins[-number]() is not None for number in range(1, 10))
    assert fold((Call("dig", "y"), ends[0]), none, more, name="room") == ["y", "{}"]


def fold_two_begins(large: Items, end: Call) -> None:
    def more(before: int, items: Sequence[Item], start: int) -> int:
        return before + len(items) - start

    fold((Call("dig", "{}"), end), 0, more, name="room")
    fold((*large, end), 0, more, name="room, too")


# What may be stored with an end that is known for long.
HOLDS: Final[dict[str, Callable[[str, int], Any]]] = {
    "a begin before a short one": lambda text, n: fold_two_begins((Call("dig", text),), end_of(n)),
    "parameters of the result": lambda text, n: fold((end_of(n),), 0, lambda made, *_: made, text, "room"),
    "a shared item": lambda text, n: shared_item(CallOutput("a", (TextPart(text),))),
    "names of tools": lambda text, n: get_dialect("harmony").render(
        Conversation((Message("user", (TextPart("Dig."),)), end_of(n)), (FunctionTool(f"browser.{text}"),)),
        get_dialect("harmony").options(),
    ),
    "instructions before tools": lambda text, n: get_dialect("hermes").messages(
        Conversation((Message("system", (TextPart(text),)),), (FunctionTool(f"dig{n}"),)),
        get_dialect("hermes").options(),
    ),
}
ENDS: Final = [Call("rake", "{}", id=f"end{number}") for number in range(200)]


def end_of(number: int) -> Call:
    return ENDS[number]


@pytest.mark.parametrize("wide", ["", "𝔤"], ids=["narrow", "wide"])
@pytest.mark.parametrize("hold", HOLDS.values(), ids=list(HOLDS))
def test_results_take_no_more_than_their_room(hold: Callable[[str, int], Any], wide: str) -> None:
    tracemalloc.start()
    try:
        for number in range(len(ENDS)):
            hold(f"{number}{wide}{'x' * 1_000_000}", number)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < MAX_BYTES


def test_a_long_conversation_is_written_that_was_only_looked_at_before() -> None:
    dialect = get_dialect("hermes")
    items: Items = (Message("user", (TextPart("Dig."),)),)
    tracemalloc.start()
    try:
        for number in range(500):
            items = (*items, Call("dig", "{}", id=f"c{number}"), CallOutput(f"c{number}", (TextPart("dug " * 100),)))
            prompt = dialect.render(Conversation(items), dialect.options())
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 10_000_000  # nothing is held of the prompts between
    assert prompt.wire_text == dialect.render(Conversation(anew(items)), dialect.options()).wire_text
