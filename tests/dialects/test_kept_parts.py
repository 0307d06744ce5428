"""What was written of a conversation before does not show: every dialect writes a conversation whose items have been in
others as it writes one that nobody has seen.
"""

import copy
import random
from collections.abc import Callable, Sequence
from typing import TypeVar
from unittest.mock import patch

import msgspec
import pytest

from callwright.conversation import (
    Call,
    CallOutput,
    Conversation,
    FunctionTool,
    Item,
    Message,
    NamedTool,
    Reasoning,
    ResponseFormat,
    TextPart,
    ToolChoice,
)
from callwright.dialects.base import RenderOptions, dialect_names, get_dialect
from callwright.dialects.tokenizers import added_tokens
from callwright.memo.latest import Latest
from tests.support.entries import entered

T = TypeVar("T")

ROUNDS = 12
LOOK_ALIKES = ("<tool_call>", "<|im_end|>", "[TOOL_CALLS]", "<|call|>", "</s>")
NAMES = ("water", "weed", "garden.sow")
CHOICES: tuple[ToolChoice, ...] = ("auto", "none", "required", NamedTool("weed"))
BED = {"type": "string", "enum": ["a", "b"]}
# Some are equal, as Python compares, and other JSON.
SCHEMAS = [
    *(
        {"type": "object", "properties": {"bed": BED, "cm": {"enum": enum}}}
        for enum in ([1, 0], [True, False], [1.0, 0])
    ),
    {"properties": {"cm": {"enum": [1, 0]}, "bed": BED}, "type": "object"},
    None,
]


def _tools(chance: random.Random) -> list[list[FunctionTool]]:
    """Each in all its versions."""
    described = [f"Does it{word}." for word in ("", " well", " <|im_end|>")]
    return [[FunctionTool(name, chance.choice(described), schema) for schema in SCHEMAS] for name in NAMES]


def _items(chance: random.Random) -> list[Item]:
    """Items in an order that servers take: each call has its output."""
    items: list[Item] = [Message("system", (TextPart("Be brief."),))] if chance.random() < 0.5 else []
    for number in range(chance.randrange(1, 6)):
        items.append(Message("user", (TextPart(f"Go on {number} {chance.choice(LOOK_ALIKES)}"),)))
        if chance.random() < 0.7:
            items.append(Reasoning(f"Hm {number}."))
        if chance.random() < 0.5:
            items.append(Message("assistant", (TextPart(f"Well, {chance.choice(LOOK_ALIKES)}"),)))
        calls = [
            Call(chance.choice(NAMES), f'{{"bed": "{chance.choice(LOOK_ALIKES)}", "cm": {place}}}', f"c{number}{place}")
            for place in range(chance.randrange(3))
        ]
        items += [*calls, *(CallOutput(call.id, (TextPart(f"done {call.id}"),)) for call in calls)]
    return [*items, Message("user", (TextPart("And now?"),))]


def _conversations(seed: int) -> list[Conversation]:
    """Of the same items and tools: parts in several orders, with other tools and wishes."""
    chance = random.Random(seed)
    items, tools = _items(chance), _tools(chance)
    found: list[Conversation] = []
    for _ in range(ROUNDS):
        begin = chance.choice([0, 0, chance.randrange(len(items))])
        # What is left out puts others together: a call stands first in a turn, or alone, or behind another text.
        kept = [item for item in items[begin:] if chance.random() < 0.8]
        some = [chance.choice(versions) for versions in chance.sample(tools, chance.randrange(len(tools) + 1))]
        wanted = chance.choice([None, None, ResponseFormat("json_object")])
        choice = chance.choice(CHOICES) if some else "auto"
        if isinstance(choice, NamedTool) and choice.name not in [tool.name for tool in some]:
            choice = "required"
        found.append(
            Conversation(
                tuple(kept),
                tuple(some),
                tool_choice=choice,
                response_format=wanted,
                keeps_reasoning=chance.random() < 0.6,
            )
        )
    return found


def _options(name: str) -> Sequence[RenderOptions]:
    """The options of a dialect, and each of its flavours."""
    kind = get_dialect(name).options
    found = [kind()]
    for field in msgspec.structs.fields(kind):
        for value in getattr(field.type, "__args__", ()) if field.name in ("flavour", "thinking") else ():
            found.append(kind(**{field.name: value}))
    return found


def _unseen(conversation: Conversation, write: Callable[[Conversation, RenderOptions], T], options: RenderOptions) -> T:
    """What is written of a conversation that nobody has seen, where nobody has seen any tools."""
    with patch("callwright.memo.prefixes._MEMORY", Latest(1)):
        return write(copy.deepcopy(conversation), options)


@pytest.mark.parametrize("name", dialect_names())
def test_what_was_written_before_does_not_show(name: str) -> None:
    dialect = get_dialect(name)
    for seed in range(4):
        for conversation in _conversations(seed):
            new = copy.deepcopy(conversation)
            for options in _options(name):
                assert dialect.messages(conversation, options) == _unseen(new, dialect.messages, options)
                here, there = dialect.render(conversation, options), _unseen(new, dialect.render, options)
                assert here.wire_text == there.wire_text
                assert (here.pieces, here.start) == (there.pieces, there.start)


@pytest.mark.parametrize("name", dialect_names())
def test_tools_that_are_known_take_no_work(name: str) -> None:
    """A prompt of sixty known tools is written with the work of one of a single known tool, or nearly."""
    dialect = get_dialect(name)
    options = dialect.options()

    def work(write: Callable[[Conversation, RenderOptions], object], tools: int) -> int:
        shown = [FunctionTool(f"f{number}", "Does it.", SCHEMAS[0]) for number in range(tools)]
        conversation = Conversation((Message("user", (TextPart("?"),)),), tuple(shown))
        for _ in range(2):  # what is kept may be moved to what is used
            write(conversation, options)
        return entered(lambda: write(conversation, options))

    for write in (dialect.messages, lambda *given: dialect.render(*given).wire_text):
        assert work(write, 60) < work(write, 1) + 30


def test_an_empty_system_message_stays_one() -> None:
    """Some templates put one of their own where there is none."""
    conversation = Conversation((Message("system", (TextPart(""),)), Message("user", (TextPart("?"),))))
    for name in ("hermes", "json", "qwen3_coder"):
        dialect = get_dialect(name)
        assert dialect.messages(conversation, dialect.options())[0] == {"role": "system", "content": ""}


def test_several_formats_take_turns() -> None:
    for seed in range(6):
        for number, conversation in enumerate(_conversations(seed)):
            new = copy.deepcopy(conversation)
            for name in dialect_names()[number % 3 :: 3]:
                dialect = get_dialect(name)
                options = dialect.options()
                assert dialect.messages(conversation, options) == _unseen(new, dialect.messages, options)
                assert dialect.render(conversation, options).text == _unseen(new, dialect.render, options).text


def test_the_same_format_may_have_other_tokenizers() -> None:
    dialect = get_dialect("hermes")
    bare = msgspec.structs.replace(dialect, tokenizers=())
    own = dialect.render(Conversation((Message("user", (TextPart("?"),)),)), dialect.options()).marks
    token = next(
        token for name in dialect.tokenizers for token in added_tokens(name) if token not in own and "|" not in token
    )
    conversation = Conversation((Message("user", (TextPart(f"What is {token}?"),)),), (FunctionTool("f", token),))
    for _ in range(2):
        assert token in str(bare.messages(conversation, bare.options()))
        assert token not in str(dialect.messages(conversation, dialect.options()))
