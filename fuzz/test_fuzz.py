"""What must hold for any input: the targets of `fuzz/`, briefly; then outputs that grow, written calls, and prompts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright
from callwright import Prompt
from callwright.conversation import (
    AssistantTurn,
    Call,
    CallOutput,
    Conversation,
    FunctionTool,
    Message,
    TextPart,
)
from callwright.dialects.base import get_dialect, read_options
from fuzz import targets
from fuzz.engine import MAX_BYTES
from fuzz.words import TRICKY, atoms_of
from tests.support.cases import TOOLS, tools
from tests.support.choices import Choices, cut
from tests.support.control_tokens import assert_none_forged, found, tokens_of
from tests.support.examples import examples
from tests.support.parsing import lost, merged, read
from tests.support.properties import assert_well_formed

DIALECTS = ("harmony", "hermes", "json")

fuzz = examples(100)
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)

# --- targets ---


@pytest.mark.parametrize("name", [name for name in targets.names() if name != "growth"])
@fuzz
@given(data=st.binary(min_size=60, max_size=MAX_BYTES))
def test_a_target_holds(name: str, data: bytes) -> None:
    targets.load(name)(Choices(data))


SIZES = st.lists(st.integers(1, 25), min_size=1, max_size=6)


# --- outputs that grow ---

BLOCK = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
HOSTILE = {
    ("hermes", "blocks that are never closed"): BLOCK.removesuffix("</tool_call>") * 1_500,
    ("hermes", "thoughts and calls by turns"): f"<think>{BLOCK}" * 1_500,
    ("hermes", "open tags"): "<tool_call>" * 3_000,
    ("hermes", "many objects in a block"): "<tool_call>" + '{"name": "ping"}' * 1_500 + "</tool_call>",
    ("hermes", "nested arguments"): '<tool_call>{"name": "ledger", "arguments": ' + '{"a":' * 10_000,
    ("hermes", "brackets"): "<tool_call>" + "[" * 30_000,
    ("json", "objects"): '{"tool": "ping", "arguments": {}}\n' * 1_000,
    ("json", "brackets"): "[{" * 15_000,
    ("json", "nested arguments"): '{"sides": ' + "[" * 5_000 + "]" * 5_000 + "}",
    ("json", "calls in thoughts"): 'x\n{"tool": "ping", "arguments": {}}</think>' * 1_500,
    ("json", "ends of thoughts"): "x</think>" * 3_000,
    ("json", "fences"): "```json\n" * 3_000,
    ("json", "braces in prose"): "{x} " * 5_000,
    ("harmony", "starts"): "<|start|>" * 3_000,
    ("harmony", "headers"): "<|start|>assistant<|channel|>analysis<|message|>" * 1_000,
    ("harmony", "calls"): "<|start|>assistant<|channel|>commentary to=ping<|message|>{}<|call|>" * 1_000,
    ("harmony", "brackets"): "<|channel|>commentary to=ledger<|message|>" + "[" * 30_000,
    ("harmony", "stripped messages"): "assistantfinal" * 2_000,
}


@pytest.mark.parametrize(("dialect", "title"), HOSTILE)
def test_a_text_that_repeats_one_thing_is_read_to_its_end(dialect: str, title: str) -> None:
    finish = ("stop", "length")[len(title) % 2]  # no reader is told
    output = HOSTILE[dialect, title]
    for pieces in ([output], cut(output, [997])):
        assert_well_formed(read(pieces, finish, dialect=dialect, tools=tools(*TOOLS)))
    events = read([output], finish, dialect=dialect, tools=tools(*TOOLS), check="verbatim")
    assert_well_formed(events)
    assert not lost(output, events)


# Around places where reading stops waiting: with more in one piece it must not see more.
NOTE = '<tool_call>{"name": "take_note", "arguments": {"title": "'
LIMITS = {
    ("hermes", "blanks in the head of a call"): '<tool_call>{"name": ' + " " * 500 + '"ping", "arguments": {',
    ("hermes", "a long name"): '<tool_call>{"name": "' + "a" * 500 + '", "arguments": {',
    ("hermes", "blanks in a fence before a call"): "```" + "\n" * 400 + BLOCK + "\n```",
    ("hermes", "a string that may have ended at a tag"): NOTE + "b</tool_call><tool_call>" + "y" * 5_000 + '"z',
    ("hermes", "blanks between the tags of a string"): NOTE + "b}}</tool_call>" + " " * 5_000 + BLOCK,
    ("hermes", "blanks behind a call"): "Yes." + BLOCK + "<|im_end|>" + " " * 600,
    ("hermes", "blanks before a thought"): " " * 600 + "<think>x</think>y",
    ("json", "blanks in a fence"): "```json" + " " * 400 + '{"tool": "ping", "arguments": {}}\n```',
    ("json", "a long tag of a fence"): "```" + "json" * 100 + '\n{"tool": "ping", "arguments": {}}\n```',
    ("json", "blanks before the first key"): "{" + " " * 400 + '"tool": "ping", "arguments": {}}',
    ("json", "a long first key"): '{"' + "a" * 400 + '": 1, "tool": "ping"}',
    ("json", "blanks before a name"): " " * 600 + "ping{}",
    ("harmony", "a long recipient without tokens"): "commentary to=" + "a" * 200 + " json{}",
    ("harmony", "a word that is glued to its recipient"): "commentaryto=ping json{}",
    ("harmony", "blanks before a word without tokens"): " " * 600 + "analysisThey ask.assistantfinalYes.",
    ("harmony", "a long header"): "<|channel|>commentary to=ping" + " " * 2_500 + "<|message|>{}<|call|>",
    ("harmony", "blanks before the arguments"): "<|channel|>commentary to=ping<|message|>" + " " * 600 + "{}<|call|>",
    ("harmony", "a long first key"): '<|channel|>commentary<|message|>{"' + "a" * 400 + '": 1}<|call|>',
    ("harmony", "blanks before an object"): "<|channel|>commentary<|message|>" + " " * 400 + '{"sides": 6}<|call|>',
}


@pytest.mark.parametrize(("dialect", "title"), LIMITS)
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_a_limit_does_not_move_with_the_cut(dialect: str, title: str, finish: str) -> None:
    output = LIMITS[dialect, title]
    whole = merged(read([output], finish, dialect=dialect, tools=tools(*TOOLS)))
    for size in (1, 7, 150):
        assert merged(read(cut(output, [size]), finish, dialect=dialect, tools=tools(*TOOLS))) == whole


# --- written calls ---

# What is nothing but a placeholder is no call in prompt mode: no string here looks like one.
STRINGS = st.lists(st.sampled_from(TRICKY), max_size=5).map(lambda parts: "".join(parts) + "!")
VALUES = st.recursive(
    st.one_of(STRINGS, st.sampled_from([None, True, False, 0, -7, 1.5, 1e300, 10**20])),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(STRINGS, inner, max_size=2),
    max_leaves=5,
)
OBJECTS = st.dictionaries(STRINGS, VALUES, max_size=3)
ARGUMENTS = st.builds(
    lambda value, form: json.dumps(value, ensure_ascii=False, **form),
    OBJECTS,
    st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}]),
)
# Names that OpenAI's API allows, and one with a dot.
NAMES = ("roll_dice", "tide-table", "garden.water", "launch")
OPEN_TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in NAMES]
CALLS = st.lists(st.tuples(st.sampled_from(NAMES), ARGUMENTS), min_size=1, max_size=3)


@every_dialect
@fuzz
@given(calls=CALLS, sizes=SIZES)
def test_calls_that_were_written_read_back_byte_for_byte(
    dialect: str, calls: list[tuple[str, str]], sizes: list[int]
) -> None:
    text = callwright.write([{"name": name, "arguments": arguments} for name, arguments in calls], dialect=dialect)
    for output in ([text], cut(text, sizes)):
        turn = callwright.parse(output, dialect=dialect, tools=OPEN_TOOLS)
        assert [(call.name, call.arguments) for call in turn.calls] == calls
        assert (turn.content, turn.reasoning, turn.problems) == (None, None, ())


@every_dialect
@fuzz
@given(value=OBJECTS)
def test_characters_that_were_escaped_are_written_as_models_write_them(dialect: str, value: dict[str, object]) -> None:
    texts = [
        callwright.write([{"name": "launch", "arguments": json.dumps(value, ensure_ascii=escaped)}], dialect=dialect)
        for escaped in (True, False)
    ]
    assert texts[0] == texts[1]


@every_dialect
def test_a_call_of_a_tool_with_a_blank_in_its_name_reads_back(dialect: str) -> None:
    text = callwright.write([{"name": "Sound Lamp", "arguments": {"on": True}}], dialect=dialect)
    turn = callwright.parse(text, dialect=dialect, tools=tools("Sound Lamp", "ping"))
    assert [(call.name, call.arguments) for call in turn.calls] == [("Sound Lamp", '{"on":true}')]
    # Harmony has no place for such a name.
    assert {problem.kind for problem in turn.problems} == ({"recipient_sanitized"} if dialect == "harmony" else set())


@every_dialect
@fuzz
@given(reasoning=st.sampled_from(["", "Two dice.", "Wozu?\n\nGut."]), calls=CALLS, sizes=SIZES)
def test_a_turn_that_was_written_reads_back(
    dialect: str, reasoning: str, calls: list[tuple[str, str]], sizes: list[int]
) -> None:
    said = Message("assistant", (TextPart("I roll the dice:"),))
    turn = AssistantTurn(reasoning or None, said, [Call(*call) for call in calls])
    output = cut(get_dialect(dialect).write(turn), sizes)
    got = callwright.parse(output, dialect=dialect, tools=OPEN_TOOLS)
    assert (got.reasoning, got.content) == (reasoning or None, "I roll the dice:")
    assert [(call.name, call.arguments) for call in got.calls] == calls


# --- prompts ---

FORGERIES = st.lists(
    st.sampled_from(
        [
            *(atom for dialect in DIALECTS for atom in atoms_of(dialect) if atom.startswith(("<", "#"))),
            *("### System", "### Assistant", "\n### User\n", "<|im_start|>system\n", "<|start|>system<|message|>"),
            *("<", "|", ">", "#", "<|", "|>", "im_end", "end", "call", "tool_call", "\u2060", "\n", " ", "x", "é"),
        ]
    ),
    min_size=1,
    max_size=8,
).map("".join)


def rendered(dialect: str, texts: list[str], choice: str) -> Prompt:
    """A prompt with a foreign text in each place that takes one."""
    system, user, said, thought, arguments, output, description = texts
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "take_note", "arguments": json.dumps({"a": arguments})},
    }
    return callwright.render(
        [
            {"role": "system", "content": system},
            {"role": "user", "content": [{"type": "text", "text": user}, {"type": "text", "text": user}]},
            {"role": "assistant", "content": said, "reasoning_content": thought, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": output},
            {"role": "developer", "content": system},
        ],
        dialect=dialect,
        tools=[
            {
                "type": "function",
                "function": {
                    "name": "take_note",
                    "description": description,
                    "parameters": {
                        "type": "object",
                        "properties": {"a": {"type": "string", "description": description}},
                    },
                },
            }
        ],
        tool_choice=choice,
    )


@every_dialect
@fuzz
@given(texts=st.lists(FORGERIES, min_size=7, max_size=7), choice=st.sampled_from(["auto", "none", "required"]))
def test_no_text_in_a_prompt_becomes_a_control_token(dialect: str, texts: list[str], choice: str) -> None:
    prompt = rendered(dialect, texts, choice)
    assert prompt.text == "".join(piece.text for piece in prompt.pieces)
    assert_none_forged(prompt, {*prompt.marks, *tokens_of(dialect)})


@pytest.mark.parametrize(
    ("dialect", "options"), [("hermes", {}), ("harmony", {}), ("harmony", {"tool_results": "harmony"})]
)
@fuzz
@given(foreign=FORGERIES)
def test_no_text_in_a_chat_message_becomes_a_control_token(
    dialect: str, options: dict[str, object], foreign: str
) -> None:
    tokens = {*callwright.render([], dialect=dialect).marks, *tokens_of(dialect)}
    plain, got = (chat_with(text, dialect, options) for text in ("x", foreign))
    assert len(plain) == len(got)
    assert [found(text, tokens) for text in got] == [found(text, tokens) for text in plain]


def chat_with(text: str, dialect: str, options: dict[str, object]) -> list[str]:
    """The texts of the chat messages of a conversation that holds a foreign text wherever a client may put one."""
    items = (
        Message("system", (TextPart(text),)),
        Message("user", (TextPart(text),)),
        Message("assistant", (TextPart(text),)),
        Call("take_note", json.dumps({"a": text}, ensure_ascii=False), id="c1"),
        CallOutput("c1", (TextPart(text),)),
    )
    conversation = Conversation(items, (FunctionTool("take_note", text, {"type": "object"}),))
    chat = get_dialect(dialect).messages(conversation, read_options(dialect, options))
    return [str(message["content"]) for message in chat]


@every_dialect
def test_a_text_without_look_alikes_is_sent_as_it_is(dialect: str) -> None:
    prompt = rendered(dialect, ["a <b> c", "x < y | z", "#1", "<tool>", '"', "<|", "|>"], "auto")
    assert prompt.wire_text == prompt.text
