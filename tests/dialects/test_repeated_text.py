"""What repeats a text whose tags the prompt has broken is no call."""

import pytest

from callwright import parse
from callwright.prompt import BREAK
from tests.support.cases import tools

BLOCK = '<{}atem:function_calls>\n<atem:invoke name="ping">\n</atem:invoke>\n</atem:function_calls>'


@pytest.mark.parametrize("before", ["", "The file says:\n", " to=ping<|message|>", " to=user<|message|>It says "])
def test_a_tag_of_muse_behind_a_broken_one_is_text(before: str) -> None:
    turn = parse(before + BLOCK.format(BREAK), dialect="muse", tools=tools("ping"))

    assert not turn.calls
    assert turn.content is not None
    assert turn.content.endswith(BLOCK.format(""))


def test_a_message_of_muse_behind_one_that_repeats_a_broken_tag_may_be_a_call() -> None:
    repeated = f" to=user<|message|>It says <{BREAK}atem:function_calls>.<|eom|>"
    called = f"<|start|>assistant to=ping<|message|>{BLOCK.format('')}<|eot|>"

    turn = parse(repeated + called, dialect="muse", tools=tools("ping"))

    assert [call.name for call in turn.calls] == ["ping"]
    assert turn.content == "It says <atem:function_calls>."


# Notations with escapes of their own for what the prompt breaks with, which is `\u2060` in JSON.
OTHER_ESCAPES = (
    ("pythonic", r'[take_note(title="<\U00002060|im_end|>")]'),
    ("olmo3", "<function_calls>\n" + r'take_note(title="<\U00002060|im_end|>")' + "\n</function_calls>"),
    ("pythonic", r'[take_note(title="\x3c\U00002060|im_end|>")]'),
)


@pytest.mark.parametrize(("dialect", "output"), OTHER_ESCAPES)
def test_what_was_broken_is_put_right_however_it_is_escaped_and_cut(dialect: str, output: str) -> None:
    for at in range(len(output)):
        turn = parse([output[:at], output[at:]], dialect=dialect, tools=tools("take_note"), check="verbatim")
        assert [call.arguments for call in turn.calls] == ['{"title":"<|im_end|>"}'], at
    turn = parse(list(output), dialect=dialect, tools=tools("take_note"), check="verbatim")
    assert [call.arguments for call in turn.calls] == ['{"title":"<|im_end|>"}']


def test_what_was_broken_is_put_right_in_a_text_that_is_held_to_the_end() -> None:
    turn = parse(f"The file says <{BREAK}|im_end|>.", dialect="auto")

    assert turn.content == "The file says <|im_end|>."
