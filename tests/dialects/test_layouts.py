"""Layouts of turns: slots, groups and conditions."""

import pytest

from callwright.dialects.prompts.layouts import compile_layout
from callwright.prompt import Control, PromptBuilder, Text

VALUES = {"text": " a ", "calls": lambda out: out.text("f()"), "name": 'x"&y', "none": "", "open": True, "off": False}
CASES = {
    "$text": " a ",
    "[$text:trim]": "[a]",
    "$text:json": '" a "',
    "$name:attribute": "x&quot;&amp;y",
    "«<$none>»": "",
    "«<$text>»": "< a >",
    "«<$text$none>»": "",
    "«none¦yes¦no»": "no",
    "«text calls¦+»": "+",
    "«text !none¦+»": "+",
    "«none|open¦+»": "+",
    "«none|off¦+»": "",
    "«open¦«off¦1¦2»«none¦3»»4": "24",
    "$calls, $none.": "f(), .",
    "${x} $Text": "${x} $Text",
}


@pytest.mark.parametrize("layout", CASES)
def test_a_layout_is_filled(layout: str) -> None:
    assert compile_layout(layout).text(VALUES) == CASES[layout]


def test_control_tokens_are_those_of_the_layout_only() -> None:
    out = PromptBuilder()
    compile_layout("<|a|>$text<|b|>«text¦<|a|>»", ("<|a|>", "<|b|>")).put(out, {"text": "<|a|>"})
    assert out.pieces() == (Control("<|a|>"), Text("<|a|>"), Control("<|b|><|a|>"))


def test_what_surrounds_a_slot_is_found() -> None:
    layout = compile_layout("«<think>$thought</think>\n»$text«text calls¦\n\n»$calls")
    assert layout.around("thought") == ("<think>", "</think>\n")
    assert layout.around("text") is None
    assert layout.between("text", "calls") == "\n\n"


def test_a_slot_that_nobody_fills_is_an_error() -> None:
    with pytest.raises(KeyError):
        compile_layout("$tolls").text(VALUES)


@pytest.mark.parametrize("layout", ["«a", "a»"])
def test_a_group_that_is_open_is_an_error(layout: str) -> None:
    with pytest.raises(AssertionError):
        compile_layout(layout)
