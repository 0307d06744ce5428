"""Calls in the markup of another family, and outputs whose format nobody has named."""

import json
import pickle
from typing import Any

import msgspec
import pytest

import callwright
from callwright.dialects.base import FORMATS, dialect_names, get_dialect
from tests.support import certainty
from tests.support.certainty import SHAPES
from tests.support.parsing import lost, merged, pieces, read

# In these an answer begins with a header, before any text.
HEADED = ("inkling", "muse", "beam", "harmony")
# By the opening of a call: the dialects that write it.
OPENINGS = {
    opening: written
    for opening, ways in FORMATS.openings.items()
    if (written := [way.form.name for way in ways if way.form.name in dialect_names() and way.is_sure])
}
SHAPE = SHAPES[0]
TOOLS = certainty.tools_of(SHAPE)
names = pytest.mark.parametrize("name", dialect_names())
foreign = pytest.mark.parametrize("name", sorted({name for written in OPENINGS.values() for name in written}))
readers = pytest.mark.parametrize("reader", ["json", "hermes", "llama3_json", "qwen3_coder", "gemma4"])


def _calls(turn: callwright.Turn) -> list[tuple[str, object]]:
    return [(call.name, json.loads(call.arguments)) for call in turn.calls]


@names
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_the_format_of_an_output_is_found(name: str, shape: certainty.Shape) -> None:
    written = certainty.write(shape, name)
    turn = callwright.parse(written, dialect="auto", tools=certainty.tools_of(shape))
    assert _calls(turn) == list(shape.calls)


def test_a_text_without_markup_is_a_text() -> None:
    turn = callwright.parse(["It rains ", "in <Oslo>."], dialect="auto", tools=TOOLS)
    assert turn.content == "It rains in <Oslo>."
    assert not turn.calls
    assert not turn.problems


@foreign
@readers
@pytest.mark.parametrize("lead", ["", "I'll look that up.\n"])
def test_calls_of_another_family_are_read_and_named(name: str, reader: str, lead: str) -> None:
    written = lead + certainty.write(SHAPE, name)
    if lead and name in HEADED and not written.startswith("<", len(lead)):
        pytest.skip("a header behind text was said before it is known to be one: see below")
    if name == reader or not any(opening in written for opening in OPENINGS):
        pytest.skip("its own format")
    turn = callwright.parse(written, dialect=reader, tools=TOOLS)
    if "foreign_format" in {problem.kind for problem in turn.problems}:
        assert (turn.content or "").strip() == lead.strip()
    assert _calls(turn) == list(SHAPE.calls), written
    whole = merged(read([written], dialect=reader, tools=TOOLS))
    assert merged(read(list(written), dialect=reader, tools=TOOLS)) == whole
    assert merged(read(pieces(written, 3), dialect=reader, tools=TOOLS)) == whole


@foreign
@readers
@pytest.mark.parametrize(
    "behind", [" ", "\n", "\n\nThat is all. ", " <b>Two \t\n", "<tool_call> \n", "\n \u00a0x\u00a0"]
)
def test_of_what_stands_behind_them_no_character_is_lost(name: str, reader: str, behind: str) -> None:
    written = certainty.write(SHAPE, name) + behind
    asked: dict[str, Any] = {"dialect": reader, "tools": TOOLS, "tool_choice": "none"}
    events = read([written], **asked, check="verbatim")
    assert not lost(written, events), events
    assert merged(read(list(written), **asked, check="verbatim")) == merged(events)


@pytest.mark.parametrize("name", HEADED)
def test_one_with_a_header_behind_text_is_at_least_asked_about(name: str) -> None:
    turn = callwright.parse("Roll.\n" + certainty.write(SHAPE, name), dialect="hermes", tools=TOOLS)
    assert not turn.calls
    assert turn.content
    assert turn.problems or name == "beam"  # whose arguments mean nothing without their header


@pytest.mark.parametrize("said", ["Let me look.\n", "Let me look.\nNow. "])
def test_text_before_a_format_with_headers_is_content(said: str) -> None:
    written = certainty.write(SHAPE, "harmony")
    turn = callwright.parse(said + written, dialect="auto", tools=TOOLS)
    assert (turn.content, turn.reasoning) == (said.rstrip(), None)
    assert _calls(turn) == list(SHAPE.calls)
    for size in range(len("<|channel|>"), written.index("<|message|>")):
        cut = callwright.parse(said + written[:size], dialect="auto", tools=TOOLS)
        assert (cut.content, cut.reasoning) == (said.rstrip(), None)


@pytest.mark.parametrize("mark", ["<|tool_call|>", "<function_call>", "[TOOL_REQUEST]"])
def test_a_marker_that_is_no_own_tag_is_named(mark: str) -> None:
    call = json.dumps({"name": SHAPE.calls[0][0], "arguments": SHAPE.calls[0][1]})
    closers = {"<function_call>": "</function_call>", "[TOOL_REQUEST]": "[END_TOOL_REQUEST]"}
    turn = callwright.parse(mark + call + closers.get(mark, ""), dialect="hermes", tools=TOOLS)
    assert _calls(turn) == [SHAPE.calls[0]]
    assert [problem.kind for problem in turn.problems] == ["foreign_format"]


@foreign
def test_one_that_is_talked_about_is_not_made(name: str) -> None:
    shown = f"The docs say that one writes {certainty.write(SHAPE, name)} to do that, which is a lot."
    turn = callwright.parse(shown, dialect="json", tools=TOOLS)
    assert not turn.calls
    assert "lot" in (turn.content or "")


@foreign
def test_a_mention_of_an_opening_is_text(name: str) -> None:
    for opening in (opening for opening, written in OPENINGS.items() if name in written):
        said = f"It begins with {opening} and then archive_folder follows."
        turn = callwright.parse(said, dialect="json", tools=TOOLS)
        assert turn.content == said
        assert not turn.calls


@names
def test_a_dialect_is_sent_to_another_process(name: str) -> None:
    dialect = get_dialect(name)
    assert pickle.loads(pickle.dumps(dialect)) is dialect
    assert dialect.name == name


def test_a_dialect_of_ones_own_is_read_and_sent() -> None:
    mine = msgspec.structs.replace(get_dialect("hermes"), name="mine")
    sent = pickle.loads(pickle.dumps(mine))
    turn = callwright.parse(certainty.write(SHAPE, "hermes"), dialect=sent, tools=TOOLS)
    assert _calls(turn) == list(SHAPE.calls)
    with pytest.raises(TypeError):
        msgspec.structs.replace(mine, stopps=())


def test_an_unknown_format_is_read_however_long_the_answer_is_and_however_it_is_cut() -> None:
    block = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>\n'
    text = "line of a log\n" * 340_000  # more than any reader holds
    streamed = [block, *(text[at : at + 500_000] for at in range(0, len(text), 500_000))]
    offered = [{"type": "function", "function": {"name": "ping"}}]
    for output in (streamed, "".join(streamed)):
        turn = callwright.parse(output, dialect="auto", tools=offered)
        assert [call.name for call in turn.calls] == ["ping"]
        assert (turn.content or "").strip() == text.strip()


@pytest.mark.parametrize("dialect", dialect_names())
def test_words_between_the_tags_of_broken_calls_end_no_reading_in_an_error(dialect: str) -> None:
    # The recorder of spans finds no position for a tag that is content and is in the output twice.
    output = (
        '<tool_call>\n{"name": "plant", "arguments": {"bed"例如：\n<tool_call>\n: "north"}}\n</tool_call>\nThat is all.'
    )
    for written in ([output], list(output)):
        turn = callwright.parse(written, dialect=dialect, tools=TOOLS)
        assert turn.calls or turn.content or turn.problems


@names
@pytest.mark.parametrize(
    "output", ['find_berth(harbour="Cuxhaven")', "<find_berth><harbour>Cuxhaven</harbour></find_berth>"]
)
def test_a_call_in_a_form_of_no_dialect_is_reported(name: str, output: str) -> None:
    properties = {"harbour": {"type": "string"}}
    tool = {"name": "find_berth", "parameters": {"type": "object", "properties": properties}}
    turn = callwright.parse(output, dialect=name, tools=[{"type": "function", "function": tool}])
    assert turn.calls or turn.problems
    assert turn.calls or turn.content == output
