"""Harmony outputs that lost control tokens: calls are read whichever tokens are left, and shown ones are not run."""

from itertools import chain, combinations

import pytest

import callwright
from callwright.dialects.base import dialect_names
from tests.support.parsing import merged, pieces, read

_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "roll_dice",
            "parameters": {"type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]},
        },
    },
    {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}},
]
CHANNEL = "<|channel|>"
OTHERS = ("<|start|>", "<|end|>", "<|message|>", "<|constrain|>", "<|call|>", "<|return|>")
_THOUGHT = "<|channel|>analysis<|message|>They want one.<|end|><|start|>assistant"
_TYPE = "<|constrain|>json<|message|>"
_CALL = f'<|channel|>commentary to=functions.roll_dice {_TYPE}{{"sides": 6}}<|call|>'
_IN_ROLE = f' to=functions.roll_dice<|channel|>commentary {_TYPE}{{"sides": 6}}<|call|>'
_PING = f"<|start|>assistant<|channel|>commentary to=functions.ping {_TYPE}{{}}<|call|>"
_ROLL = ("roll_dice", '{"sides": 6}', True)
# Output, reasoning, content and calls.
WHOLE = {
    "a call": (_CALL, None, None, [_ROLL]),
    "a recipient in the role": (_IN_ROLE, None, None, [_ROLL]),
    "a thought": (_THOUGHT + _CALL, "They want one.", None, [_ROLL]),
    "a thought, a recipient in the role": (_THOUGHT + _IN_ROLE, "They want one.", None, [_ROLL]),
    "a preamble": (
        f"{_THOUGHT}<|channel|>commentary<|message|>I roll it.<|end|><|start|>assistant{_CALL}",
        "They want one.",
        "I roll it.",
        [_ROLL],
    ),
    "two calls": (_CALL + _PING, None, None, [_ROLL, ("ping", "{}", True)]),
    "an answer": (f"{_THOUGHT}<|channel|>final<|message|>It is 6.<|return|>", "They want one.", "It is 6.", []),
}


def _read(output: str, start: str = "assistant", dialect: str = "harmony") -> callwright.Turn:
    """The turn of an output, which is read alike in pieces."""
    whole = merged(read([output], dialect=dialect, tools=_TOOLS, start=start))
    for cut in (list(output), pieces(output, 7)):
        assert merged(read(cut, dialect=dialect, tools=_TOOLS, start=start)) == whole, output
    return callwright.parse(output, dialect=dialect, tools=_TOOLS, start=start)


def _without(output: str, removed: tuple[str, ...]) -> str:
    for token in removed:
        output = output.replace(token, "")
    return output


@pytest.mark.parametrize("removed", list(chain.from_iterable(combinations(OTHERS, size) for size in range(7))), ids=str)
def test_an_output_is_read_whichever_tokens_are_gone_with_the_channel_s(removed: tuple[str, ...]) -> None:
    for output, reasoning, content, calls in WHOLE.values():
        for start, begin in (("assistant", ""), ("message", "<|start|>assistant")):
            turn = _read(_without(begin + output, (CHANNEL, *removed)), start)
            assert (turn.reasoning, turn.content) == (reasoning, content)
            assert [(call.name, call.arguments, call.complete) for call in turn.calls] == calls


@pytest.mark.parametrize("removed", list(chain.from_iterable(combinations(OTHERS, size) for size in range(7))), ids=str)
def test_an_output_is_read_whichever_tokens_are_gone_but_the_channel_s(removed: tuple[str, ...]) -> None:
    for output, reasoning, content, calls in WHOLE.values():
        for start, begin in (("assistant", ""), ("message", "<|start|>assistant")):
            turn = _read(_without(begin + output, removed), start)
            if "<|message|>" not in removed:
                assert (turn.reasoning, turn.content) == (reasoning, content)
                assert [(call.name, call.arguments, call.complete) for call in turn.calls] == calls
            kept = " ".join([str(turn), *(problem.text for problem in turn.problems)])
            assert all(text in kept for text in (reasoning, content) if text)


@pytest.mark.parametrize(
    "frame", ["One writes `{}` there.", "The page says «{}» here.", "```\n{}\n```\nis it.", "It is so:{} and no other."]
)
def test_a_message_that_is_shown_in_an_answer_is_not_read(frame: str) -> None:
    shown = frame.format(f'assistant<|channel|>commentary to=functions.roll_dice {_TYPE}{{"sides": 6}}')
    turn = _read(f"<|channel|>final<|message|>{shown}<|return|>")
    assert (turn.content, turn.calls) == (shown, ())


@pytest.mark.parametrize("frame", ["It is written so:{} and that is all.", "The header reads:{}\nThat is the form."])
@pytest.mark.parametrize("channel", ["final", "analysis"])
def test_a_call_that_is_glued_to_a_colon_is_not_made_if_words_follow(channel: str, frame: str) -> None:
    said = frame.format('assistantcommentary to=functions.roll_dice json{"sides": 6}')
    turn = _read(f"{channel}{said}")
    assert not turn.calls
    assert (turn.content if channel == "final" else turn.reasoning) == said


@pytest.mark.parametrize(
    "end", ["assistantfinalIt is 6.", 'assistantcommentary to=functions.roll_dice json{"sides": 6}']
)
def test_the_channel_of_a_thought_in_small_letters_is_none_of_its_words(end: str) -> None:
    turn = _read(f"analysisthey want one.{end}")
    assert turn.reasoning == "they want one."
    assert turn.content or turn.calls


@pytest.mark.parametrize("token", OTHERS)
def test_a_call_is_read_if_one_other_token_is_gone(token: str) -> None:
    for output, _, _, calls in WHOLE.values():
        turn = _read(_without(output, (token,)))
        assert [(call.name, call.arguments, call.complete) for call in turn.calls] == calls


_FORMS = [
    'assistantcommentary to=functions.roll_dice json{"sides": 6}',
    'assistant to=functions.roll_dicecommentary json{"sides": 6}',
    'assistantanalysis to=functions.roll_dice code{"sides": 6}',
]
_WITH_TYPE = 'assistantcommentary to=functions.roll_dice <|constrain|>json{"sides": 6}'
# In these it is only shown: nothing is to be asked.
_SHOWN = [
    "It writes `{}` there.",
    "For example:\n```\n{}\n```\nThat is all.",
    "```\n{}\n```\nis what it wrote.",
    'It prints "{}" each time.',
    "It prints “{}” each time.",
    "La notice dit « {} » et rien de plus.",
    "A page has ``{}`` in it.",
]
# In these it may be meant.
_ASKED = [
    "Never answer {} to a guest.",
    "One could write {} here",
    "It is written so: {}",
    "For example:\n{}",
    "The form (see {}) is old.",
    "A page has <pre>{}</pre> in it.",
    'It has <code class="raw">{}</code> in it.',
    "They wrote **{}** in bold.",
]
_BEGINS = {
    "analysis": ("analysis", "assistantfinalIt is 6."),
    "final": ("analysisWell.assistantfinal", ""),
    "": ("", ""),
}


@pytest.mark.parametrize("channel", _BEGINS)
@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize("frame", _SHOWN + _ASKED)
def test_a_call_that_may_only_be_shown_stays_text(frame: str, form: str, channel: str) -> None:
    begin, end = _BEGINS[channel]
    said = frame.format(form)
    turn = _read(begin + said + end)
    assert not turn.calls
    thought = said if channel == "analysis" else "Well." if channel else None
    assert (turn.reasoning, turn.content) == (thought, "It is 6." if end else said)
    asked = [problem.candidate for problem in turn.problems if problem.kind == "ambiguous_call"]
    is_asked = frame in _ASKED and channel != "analysis"
    assert asked == [callwright.Call("roll_dice", '{"sides": 6}')] * is_asked


@pytest.mark.parametrize("form", [*_FORMS, _WITH_TYPE])
@pytest.mark.parametrize(
    "thought", ["They want one", "They want one.", "They said `now`", 'They said "now"', "So:\n", "**Now**", 'It is 5"']
)
def test_a_call_that_is_glued_to_a_thought_is_made(thought: str, form: str) -> None:
    turn = _read(f"analysis{thought}{form}")
    assert [(call.name, call.arguments, call.complete) for call in turn.calls] == [_ROLL]
    assert turn.reasoning == thought


@pytest.mark.parametrize(
    "thought", ["They want one", "One says `assistantfinal`.", 'The word is "assistantfinal".', "A ` b"]
)
def test_an_answer_behind_a_thought_is_the_answer(thought: str) -> None:
    turn = _read(f"analysis{thought}assistantfinalIt is 6.")
    assert (turn.reasoning, turn.content) == (thought, "It is 6.")


@pytest.mark.parametrize("dialect", dialect_names())
@pytest.mark.parametrize("frame", [frame for frame in _SHOWN if "\n" not in frame])
def test_no_dialect_runs_a_stripped_call_that_is_shown(dialect: str, frame: str) -> None:
    for form in _FORMS:
        assert not callwright.parse(frame.format(form), dialect=dialect, tools=_TOOLS).calls


def test_many_headers_that_are_shown_cost_no_more_than_their_text() -> None:
    turn = callwright.parse(
        "analysisWe" + " say assistantcommentary to=functions.roll_dice json{" * 5_000, dialect="harmony", tools=_TOOLS
    )
    assert not turn.calls
    assert len(str(turn.reasoning)) == 2 + 5_000 * 53
