"""Histories as clients send them, in every dialect: a prompt shows one in the order of its calls, all of it, and as the
model wrote it, and a conversation that goes on keeps its beginning.
"""

import random
from collections.abc import Sequence
from operator import is_
from typing import Any

import pytest

from callwright.calls.history import normalized
from callwright.conversation import Call, CallOutput, Conversation, Item, Message, Reasoning, TextPart
from callwright.dialects.base import dialect_names, get_dialect
from callwright.openai_format.messages import shared_messages
from callwright.openai_format.tools import read_tools
from callwright.tolerant_json.codec import encode

Json = dict[str, Any]
READ: Json = {
    "type": "function",
    "function": {
        "name": "dig",
        "parameters": {"type": "object", "properties": {"bed": {"type": "string"}, "deep": {"type": "number"}}},
    },
}
BEDS = ("rosé", "Grüße", "日本", "🌱 leaf", "a\nb", 'say "dig"', "c:\\u00e9")


def said(text: str) -> Message:
    return Message("user", (TextPart(text),))


def history(chance: random.Random, rounds: int = 3) -> list[tuple[Item, ...]]:
    """The items of a conversation as its parts: each of them is sent at once."""
    parts: list[tuple[Item, ...]] = [(said("Begin."),)]
    number = 0
    for _ in range(rounds):
        reasons = (Reasoning("Hm."),) if chance.random() < 0.5 else ()
        words = (Message("assistant", (TextPart("I look."),)),) if chance.random() < 0.5 else ()
        calls: list[Call] = []
        for _ in range(chance.randrange(1, 4)):
            id_ = chance.choice(["", "call_0", f"c{number}", f"c{number}"])
            name, arguments = chance.choice(
                [("dig", "{}"), ("dig", r'{"bed": "ros\u00e9"}'), ("", "{}"), ("dig", '{"bed": "ro'), ("rake", "[1]")]
            )
            calls.append(Call(name, arguments, id_))
            number += 1
        outputs = [CallOutput(call.id, (TextPart(f"OUT-{number}-{place}"),)) for place, call in enumerate(calls)]
        if chance.random() < 0.5:
            chance.shuffle(outputs)
        between = (said("Wait."),) if chance.random() < 0.3 else ()
        at = chance.randrange(len(outputs) + 1)
        parts.append((*reasons, *words, *calls, *outputs[:at], *between, *outputs[at:]))
        parts.append((said(f"Go on {number}."),))
    return parts


def test_a_conversation_that_goes_on_keeps_its_beginning() -> None:
    for seed in range(300):
        parts = history(random.Random(seed))
        items: tuple[Item, ...] = ()
        before: tuple[Item, ...] = ()
        for part in parts:
            items = (*items, *part)
            now = normalized(items)
            assert len(before) <= len(now)
            assert all(map(is_, before, now)), (seed, before, now)
            assert normalized(now) == now
            before = now


def test_nothing_is_lost_and_nothing_is_told_that_was_not_there() -> None:
    for seed in range(300):
        items = [item for part in history(random.Random(seed)) for item in part]
        now = normalized(items)
        outputs = [item.text for item in items if isinstance(item, CallOutput)]
        texts = [item.text for item in now if isinstance(item, CallOutput | Message)]
        assert len(now) == len(items)
        assert all(sum(output in text for text in texts) == 1 for output in outputs), seed
        waiting: list[str] = []
        for item in now:
            if isinstance(item, Call):
                assert item.name
                waiting.append(item.id)
            elif isinstance(item, CallOutput):
                assert item.call_id == waiting.pop(0)
            else:
                assert not waiting


def ordered(name: str, items: Sequence[Item]) -> tuple[str, list[Json]]:
    dialect = get_dialect(name)
    conversation = Conversation(tuple(items), read_tools([READ]))
    return dialect.render(conversation, dialect.options()).text, dialect.messages(conversation, dialect.options())


@pytest.mark.parametrize("name", dialect_names())
def test_results_are_shown_in_the_order_of_their_calls(name: str) -> None:
    chance = random.Random(name)
    for number in range(2, 6):
        calls = [Call("dig", f'{{"deep": {place}}}', f"c{place}") for place in range(number)]
        outputs = [CallOutput(call.id, (TextPart(f"OUT-{call.id}"),)) for call in calls]
        as_called = ordered(name, [said("Dig."), *calls, *outputs, said("Go on.")])
        chance.shuffle(outputs)
        at = chance.randrange(1, number)
        assert ordered(name, [said("Dig."), *calls, *outputs, said("Go on.")]) == as_called
        assert ordered(name, [said("Dig."), *calls, *outputs[:at], said("Go on."), *outputs[at:]]) == as_called


@pytest.mark.parametrize("bed", BEDS)
@pytest.mark.parametrize("name", dialect_names())
def test_a_call_is_shown_as_the_model_wrote_it_however_a_client_escapes_it(name: str, bed: str) -> None:
    plain, escaped = (
        ordered(name, [said("Dig."), Call("dig", arguments, "c"), CallOutput("c")])
        for arguments in (encode({"bed": bed}).decode(), escaped_json(bed))
    )
    assert plain == escaped


def escaped_json(bed: str) -> str:
    units = bed.encode("utf-16-be")
    codes = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    marks = {"000a": r"\n", "0022": r"\"", "005c": "\\\\"}
    return '{"bed":"' + "".join(marks.get(code, rf"\u{code}") for code in codes) + '"}'


@pytest.mark.parametrize("name", dialect_names())
@pytest.mark.parametrize(
    ("called", "arguments"), [("", '{"bed": "SEEN"}'), ("  ", '{"bed": "SEEN"}'), ("dig", '{"bed": "SEEN')]
)
def test_a_call_that_no_format_can_show_is_told_in_words_with_its_result(
    name: str, called: str, arguments: str
) -> None:
    items: list[Item] = [
        said("Dig."),
        Call(called, arguments, "c"),
        CallOutput("c", (TextPart("NO TOOL"),)),
        said("Go on."),
    ]
    text, messages = ordered(name, items)
    told = [message["content"] for message in messages]
    for shown in (text, "".join(map(str, told))):
        assert shown.index("I called") < shown.index("SEEN") < shown.index("The output of that call: NO TOOL")
    assert ordered(name, normalized(items)) == (text, messages)


def test_a_server_that_renders_itself_is_told_the_same() -> None:
    items = (said("Dig."), Call("", r'{"bed": "\u00e9"}', "c"), CallOutput("c", (TextPart("NO TOOL"),)))
    assert shared_messages(normalized(items))[1:] == [
        {"role": "assistant", "content": r'I called a tool without its name, with the arguments {"bed": "\u00e9"}'},
        {"role": "user", "content": "The output of that call: NO TOOL"},
    ]
