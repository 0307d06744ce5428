"""Harmony outputs that are longer than what a reader looks ahead: they read the same in every cut."""

import pytest

from callwright import ArgumentsDelta, CallEnded, CallStarted, Parser, Turn, collect
from tests.support.cases import tools
from tests.support.parsing import merged, pieces, read

TOOLS = tools("roll_dice", "take_note", "ping", "load_json")
CALL = "<|channel|>commentary to=functions.%s <|constrain|>json<|message|>"
NOTE = CALL % "take_note" + '{"title": "'

BLANKS = " " * 1_500


@pytest.mark.parametrize(
    "output",
    [
        f"{BLANKS}x<|channel|>final<|message|>Yes.",
        f"<|channel|>final<|message|>Yes.<|end|>{BLANKS}x<|channel|>final<|message|>No.",
        f"assistant{BLANKS}x<|channel|>final<|message|>Yes.",
        f" to=ping{BLANKS}!<|channel|>final<|message|>Yes.",
        f"<|channel|>final{BLANKS}!<|return|>",
        f"<|channel|>commentary to=ping{BLANKS}!<|return|>",
        f"assistantanalysis{BLANKS}x",
        f"assistantcommentary to=ping{BLANKS}x",
    ],
    ids=[
        "at the begin",
        "between",
        "behind a role",
        "role part",
        "no body",
        "no arguments",
        "stripped",
        "stripped call",
    ],
)
def test_many_blanks_in_a_header_read_the_same_in_every_cut(output: str) -> None:
    read_in_every_cut(output)


def read_in_every_cut(output: str, finish: str = "stop", start: str | None = None) -> Turn:
    """What an output means, when it means the same in every cut."""
    request = {"dialect": "harmony", "tools": TOOLS, "start": start}
    whole = read([output], finish, **request)
    for cut in (output, pieces(output, 1), pieces(output, 2)):
        assert merged(read(cut, finish, **request)) == merged(whole)
    return collect(whole)


LONG = "The tide comes in and goes out. " * 100


def test_a_long_last_answer_may_be_glued_to_its_channel_word() -> None:
    turn = read_in_every_cut(f"<|channel|>final{LONG}<|return|>")
    assert turn.content == LONG
    assert not turn.calls


def test_a_long_answer_may_lack_its_message_token() -> None:
    turn = read_in_every_cut(f"<|channel|>final {LONG}<|return|>")
    assert turn.content == LONG


@pytest.mark.parametrize("between", [" ", " json", " <|constrain|>json", " json "])
def test_a_call_with_long_arguments_may_lack_its_message_token(between: str) -> None:
    arguments = f'{{"title": "Tides", "body": "{LONG}"}}'
    turn = read_in_every_cut(f"<|channel|>commentary to=functions.take_note{between}{arguments}<|call|>")
    assert [(call.name, call.arguments) for call in turn.calls] == [("take_note", arguments)]
    assert turn.content is None


def test_a_name_lost_before_long_arguments_leaves_a_text_or_a_call() -> None:
    arguments = f'{{"title": "Tides", "body": "{LONG * 10}"}}'
    turn = read_in_every_cut(f"<|channel|>commentary<|message|>{arguments}<|call|>")
    assert turn.content == arguments or turn.calls[0].arguments == arguments


@pytest.mark.parametrize("length", [100, 2_000, 2_020, 2_040, 2_048, 2_060, 5_000])
@pytest.mark.parametrize("behind", [' b", "body": "c"}', '" b', '", "body": "c"}'])
def test_a_long_string_behind_a_stop_and_a_start_token_reads_the_same_in_every_cut(length: int, behind: str) -> None:
    turn = read_in_every_cut(f"{NOTE}a<|end|><|start|>{'x' * length}{behind}<|call|>")
    assert turn.calls[0].arguments.startswith('{"title": "a')
    if behind.startswith('",'):
        assert turn.calls[0].arguments.endswith('"body": "c"}')


def test_of_several_calls_in_one_each_goes_out_as_it_comes() -> None:
    uses = '{"tool_uses":[{"recipient_name":"functions.ping","parameters":{}},{"recipient_name":"functions.take_note",'
    parser = Parser(dialect="harmony", tools=TOOLS)

    first = parser.feed(f"<|channel|>commentary to=multi_tool_use.parallel <|constrain|>json<|message|>{uses}")
    second = parser.feed('"parameters":{"title": "Boats')

    assert [event.name for event in first if isinstance(event, CallStarted)] == ["ping"]
    assert [event.complete for event in first if isinstance(event, CallEnded)] == [True]
    assert [event.name for event in second if isinstance(event, CallStarted)] == ["take_note"]
    assert "".join(event.text for event in second if isinstance(event, ArgumentsDelta)) == '{"title": "Boats'
