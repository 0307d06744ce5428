"""Quoted calls do not run, tokens that a sentence names stay in it, and calls that are meant run."""

import re

import pytest

import callwright
from callwright.dialects.base import dialect_names
from tests.support.parsing import merged, pieces, read

names = pytest.mark.parametrize("name", dialect_names())

_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "ring_bell",
            "parameters": {"type": "object", "properties": {"tower": {"type": "string"}}, "required": ["tower"]},
        },
    }
]
# These formats drop text after the end of a call.
_WITH_HEADERS = {"harmony", "beam", "muse"}
# Their calls need no mark, so without an announcement they are asked about.
_UNMARKED = {"json", "llama3_json", "pythonic", "xlam"}
# Each of these quotes a call.
FRAMES = {
    "angle quotes": "On page 4 you read «{}», which is a sample.",
    "other angle quotes": "La notice dit ‹{}› et rien de plus.",
    "typographic quotes": "She typed “{}” by mistake.",
    "German quotes": "Dort steht „{}“ als Muster.",
    "Japanese quotes": "本には「{}」と書いてある。",
    "straight quotes": 'It logs "{}" each time.',
    "quotes after a sentence": "She said “Ring it now. {}” and left.",
    "angle quotes after a sentence": "Sur la page : «Sonnez. {}». Rien d'autre.",
    "straight quotes after a sentence": 'He wrote "Do it! {}" on the wall, didn\'t he?',
    "brackets after a sentence": "(The note said: {} and no more.)",
    "an assignment": "reply = {} # as it was",
    "an argument": "print({})",
    "HTML": "<p>{}</p>",
    "code in HTML": "<pre><code>{}</code></pre>",
    "a log": "12:04:11 INFO reply={} took 4 ms",
    "CSV": "7,{},done",
    "a line of a diff": "- nothing\n+ {}\n",
    "indented code": "A sample:\n\n    {}\n\nThat is all.",
    "inline code": "let reply = `{}`; // as it was",
    "a quotation": "> {}\n\nis what they wrote.",
    "a shell": ">>> emit('{}')",
    "a sentence": "Never answer {} to a guest.",
    "a question": "Is {} the right form?",
}
# In these it is meant. The first three announce it.
MEANT = (
    "{}",
    "<think>The guest waits.</think>{}",
    "I'll check it now.\n\n{}",
    "Ich läute jetzt.\n{}",
    "Let me ring the bell: {}",
    "The guest has waited long enough.\n\n{}",
)


def _calls(output: str, name: str) -> list[tuple[str, bool]]:
    """The calls of an output, which is read alike in pieces."""
    whole = merged(read([output], dialect=name, tools=_TOOLS))
    for cut in (list(output), pieces(output, 7)):
        assert merged(read(cut, dialect=name, tools=_TOOLS)) == whole, output
    turn = callwright.parse(output, dialect=name, tools=_TOOLS)
    assert turn.calls or turn.content
    return [(call.name, call.complete) for call in turn.calls]


def _call(name: str) -> str:
    return callwright.write([{"name": "ring_bell", "arguments": {"tower": "north"}}], dialect=name).strip()


@names
def test_a_call_that_is_shown_is_not_run(name: str) -> None:
    if name in {*_WITH_HEADERS, "kimi_k3"}:
        pytest.skip("a text has a header of its own")
    wrong = [title for title, frame in FRAMES.items() if _calls(frame.format(_call(name)), name)]
    assert not wrong


@pytest.mark.parametrize(
    "frame", ["Such a call is written so:\n```\n{}\n```\nThat is all.", "A sample.\n```xml\n{}\n```"]
)
@names
def test_a_call_in_a_code_block_after_words_is_not_run(name: str, frame: str) -> None:
    if name in _WITH_HEADERS:
        pytest.skip("a text has a header of its own")
    assert not _calls(frame.format(_call(name)), name)


@names
def test_a_call_in_a_code_block_between_words_is_no_reason_to_ask_again(name: str) -> None:
    if name in _WITH_HEADERS:
        pytest.skip("a text has a header of its own")
    output = f"Such a call is written so:\n```\n{_call(name)}\n```\nThat is all."
    for pieces_ in ([output], list(output), pieces(output, 7)):
        turn = callwright.parse(pieces_, dialect=name, tools=_TOOLS)
        assert {problem.kind for problem in turn.problems} <= {"ambiguous_call"}


@names
def test_a_call_that_is_meant_is_run_without_a_question(name: str) -> None:
    if name in {*_WITH_HEADERS, "functionary_v32"}:
        pytest.skip("a text has a header of its own")
    frames = MEANT[:3] if name in _UNMARKED else MEANT
    wrong = [frame for frame in frames if _calls(frame.format(_call(name)), name) != [("ring_bell", True)]]
    assert not wrong


@names
def test_a_token_that_a_sentence_names_stays_in_it(name: str) -> None:
    if name in {*_WITH_HEADERS, "inkling"}:
        pytest.skip("its tokens end a text")
    for token in dict.fromkeys(re.findall(r"<[|｜][^<>\n]*[|｜]>|\[[A-Z_]+\]", _call(name))):
        for sentence in (f"The sign {token} stands there first.", f"Das Zeichen {token} kommt zuerst."):
            turn = callwright.parse(sentence, dialect=name, tools=_TOOLS)
            assert (turn.content, turn.calls) == (sentence, ())


@names
def test_a_call_without_its_control_tokens_is_named(name: str) -> None:
    call = _call(name)
    bare = re.sub(r"<[|｜][^<>\n]*[|｜]>|<｜[^<>\n]*>|\[[A-Z_]+\]", "", call).strip()
    for output in (bare, list(bare)):
        turn = callwright.parse(output, dialect=name, tools=_TOOLS)
        assert turn.calls or turn.problems


@pytest.mark.parametrize("thought", ["<think>The guest waits.</think>{}", "<think>The guest waits.</think>\n\n{}"])
@pytest.mark.parametrize("call", ['ring_bell\n{"tower": "north"}', "[ring_bell(tower='north')]"])
@names
def test_a_call_after_a_thought_is_read_or_named(name: str, call: str, thought: str) -> None:
    if name in _WITH_HEADERS:
        pytest.skip("a text has a header of its own")
    alone = callwright.parse(call, dialect=name, tools=_TOOLS)
    behind = callwright.parse(thought.format(call), dialect=name, tools=_TOOLS)
    if behind.reasoning is None:
        pytest.skip("its thoughts have other tags")
    assert behind.calls or behind.problems or not (alone.calls or alone.problems)


# Calls that need no mark.
_BARE = [
    ("kimi_k2", 'functions.ring_bell:0{"tower": "north"}'),
    *((name, "[ring_bell(tower='north')]") for name in ("pythonic", "lfm2", "olmo3")),
]


@pytest.mark.parametrize("end", ["", "</think>"])
@pytest.mark.parametrize(("name", "call"), [*((name, "") for name in dialect_names()), *_BARE])
def test_a_call_that_ends_a_thought_is_made_or_asked_about(name: str, call: str, end: str) -> None:
    output = f"<think>The guest waits.\n\n{call or _call(name)}{end}"
    turn = callwright.parse(output, dialect=name, tools=_TOOLS)
    if turn.reasoning is None or not turn.reasoning.startswith("The guest waits."):
        pytest.skip("its thoughts have other tags")
    assert merged(read(list(output), dialect=name, tools=_TOOLS)) == merged(read([output], dialect=name, tools=_TOOLS))
    made = [*turn.calls, *(problem.candidate for problem in turn.problems if problem.kind == "ambiguous_call")]
    assert [call and (call.name, call.complete) for call in made] == [("ring_bell", True)]
    assert turn.calls or not end
    assert turn.content is None


@pytest.mark.parametrize("before", ["", "analysisThe guest waits.", "I'll ring it.", "The guest waits.\n\n"])
@pytest.mark.parametrize("header", ["assistantcommentary to=functions.{} json", "commentary to=functions.{}"])
@names
def test_a_harmony_call_without_its_control_tokens_is_read_or_named(name: str, header: str, before: str) -> None:
    if before and name in _WITH_HEADERS:
        pytest.skip("a text has a header of its own")
    output = f'{before}{header.format("ring_bell")}{{"tower": "north"}}'
    for written in (output, list(output)):
        turn = callwright.parse(written, dialect=name, tools=_TOOLS)
        assert turn.problems
        assert [call.name for call in turn.calls] in ([], ["ring_bell"])
        assert turn.calls or "north" in str(turn.content)


@pytest.mark.parametrize(
    ("output", "is_named"),
    [
        ('The guest waits, and the tower is open.\n\nring_bell{"tower": "north"}', True),
        ('The guest waits, and the tower is open.\nring_bell json{ "tower": "north"}', False),
        ('The log has this line:\nring_bell{"tower": "north"}\nNothing else is in it.', False),
        ('The log has ring_bell{"tower": "north"}', False),
        ('```\nring_bell{"tower": "north"}\n```', True),
        ('```json\nring_bell\n{"tower": "north"}\n```\n', True),
        ('```\nring_bell{"tower": "north"}\n```\nis in the log.', False),
        ("```python\ndef ring_bell(tower):\n    ...\n```", False),
    ],
)
def test_a_call_without_its_control_tokens_is_named_at_the_end_of_a_text(output: str, is_named: bool) -> None:
    turn = callwright.parse(output, dialect="hermes", tools=_TOOLS)
    assert (turn.content, turn.calls) == (output, ())
    assert [problem.kind for problem in turn.problems] == ["malformed_call"] * is_named


@pytest.mark.parametrize(
    "prose",
    [
        "[ring_bell](https://bells.example/tower) is the page.",
        "function ring_bell(tower) {\n  return tower;\n}",
        "[ring_bell] The tower is closed.",
        "ring_bell tower north, they say.",
        "ring_bell: the tower is closed.",
        "functions.ring_bell takes a tower.",
        "ring_bell needs a `tower`.",
    ],
)
@names
def test_prose_that_begins_with_the_name_of_a_tool_is_prose(name: str, prose: str) -> None:
    turn = callwright.parse(prose, dialect=name, tools=_TOOLS)
    assert (turn.content, turn.calls) == (prose, ())
    assert not [problem for problem in turn.problems if problem.kind not in ("missing_header", "malformed_header")]


@pytest.mark.parametrize("size", [3, 700])
@names
def test_a_call_that_a_thought_only_mentions_is_no_problem(name: str, size: int) -> None:
    if name in {*_WITH_HEADERS, "kimi_k3"}:
        pytest.skip("its thoughts have tokens of their own")
    call = callwright.write([{"name": "ring_bell", "arguments": {"tower": "n" * size}}], dialect=name).strip()
    answer = f"<think>I could write {call} but it is late.</think>\n\nThe bell stays silent."
    turn = callwright.parse(answer, dialect=name, tools=_TOOLS)
    assert not turn.calls
    assert str(turn.content).endswith("The bell stays silent.")
    assert "control_tokens_stripped" not in [problem.kind for problem in turn.problems]
