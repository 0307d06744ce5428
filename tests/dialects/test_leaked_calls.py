"""Text that opens a call and names an offered tool: read, asked about or again, or named, but never silently text."""

import json
import re
from collections.abc import Iterator

import pytest

import callwright
from callwright.dialects.base import dialect_names
from tests.support.parsing import merged, read

TEXT = {"type": "string"}
TOOL = {
    "type": "function",
    "function": {
        "name": "plant",
        "parameters": {
            "type": "object",
            "properties": {"seed": TEXT, "bed": TEXT, "rows": {"type": "integer"}},
            "required": ["seed", "bed"],
        },
    },
}
TOOLS = [TOOL]
GIVEN = {"seed": "Möhre\nfrüh", "bed": "north"}
CLOSER = re.compile(r"früh(\n?)(</[^>]*>|<｜?/[^>]*>|<\|close\|>argument<\|sep\|>|<\|tool_arg:end\|>)")
READERS = ["json", "hermes", "qwen3_coder", "llama3_json", "glm47", "minimax_m2", "harmony"]
names = pytest.mark.parametrize("name", dialect_names())
# In these an answer is a message, and a JSON object without any header is its text.
HEADED = {"harmony", "beam", "muse"}


def _written(name: str, arguments: dict[str, str], tool: str = "plant") -> str:
    return callwright.write([{"name": tool, "arguments": arguments}], dialect=name)


def _blemished(name: str) -> Iterator[tuple[str, str]]:
    """What is wrong, and a call with it."""
    whole = _written(name, GIVEN)
    yield "nothing", whole
    yield "cut", whole[: len(whole) * 4 // 5]
    yield "a tool that is not offered", _written(name, GIVEN, "uproot")
    yield "an argument is missing", _written(name, {"seed": "Möhre"})
    if last := re.search(r"<[^<>]*>\s*\Z", whole):
        yield "the last tag is missing", whole[: last.start()]
    if closer := CLOSER.search(whole):
        yield "a closer twice", whole.replace(closer[2], closer[2] + closer[1] + closer[2], 1)
        yield "a closer of another tag", whole.replace(closer[2], "</seed>", 1)
    if '"seed"' in whole:
        yield "a brace is missing", whole[::-1].replace("}", "", 1)[::-1]


@names
@pytest.mark.parametrize("reader", READERS)
def test_a_leaked_call_is_never_silently_text(name: str, reader: str) -> None:
    for blemish, output in _blemished(name):
        turn = callwright.parse(output, dialect=reader, tools=TOOLS)
        assert turn.calls or turn.problems, (blemish, output)
        whole = merged(read([output], dialect=reader, tools=TOOLS))
        assert merged(read(list(output), dialect=reader, tools=TOOLS)) == whole, (blemish, output)
        if blemish in ("nothing", "the last tag is missing"):
            assert all("früh" in call.arguments or not call.complete for call in turn.calls), (blemish, turn.calls)


@names
def test_a_mended_call_is_whole(name: str) -> None:
    """A call goes out as complete with all that was written, and only then."""
    for blemish, output in _blemished(name):
        if blemish in ("an argument is missing", "a tool that is not offered"):
            turn = callwright.parse(output, dialect="json", tools=TOOLS)
            kinds = {problem.kind for problem in turn.problems}
            assert not turn.calls or kinds & {"invalid_arguments", "unknown_tool"}, (blemish, turn)


@names
@pytest.mark.parametrize("said", ["", "The bed is free. I will plant it.\n"])
def test_a_call_that_ends_a_closed_thought_and_the_answer_is_made(name: str, said: str) -> None:
    if name == "pythonic" or name in HEADED:
        pytest.skip("no tag opens its calls, or its thoughts have tags of their own")
    output = f"<think>\n{said}{_written(name, GIVEN)}\n</think>\n"
    turn = callwright.parse(output, dialect=name, tools=TOOLS)
    assert turn.calls or turn.problems
    if "call_in_thought" in {problem.kind for problem in turn.problems}:
        assert [call.name for call in turn.calls] == ["plant"]
        assert turn.finish_reason == "tool_calls"
    whole = merged(read([output], dialect=name, tools=TOOLS))
    assert merged(read(list(output), dialect=name, tools=TOOLS)) == whole


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "glm47", "kimi_k2", "minimax_m2", "json"])
@pytest.mark.parametrize("rest", ["Or rather not.\n</think>\n", "</think>\nThe bed is taken."])
def test_a_thought_with_words_behind_the_call_stays_one(name: str, rest: str) -> None:
    turn = callwright.parse(f"<think>\nPerhaps so:\n{_written(name, GIVEN)}\n{rest}", dialect=name, tools=TOOLS)
    assert not turn.calls
    assert "früh" in (turn.reasoning or "").replace("\\n", "\n")


FORMS = {
    "Claude": '<function_calls>\n<invoke name="plant">\n<parameter name="seed">Möhre</parameter>\n'
    '<parameter name="bed">north</parameter>\n</invoke>\n</function_calls>',
    "Claude without its block": '<invoke name="plant">\n<parameter name="seed">Möhre</parameter>\n'
    '<parameter name="bed">north</parameter>\n</invoke>',
    "function tags": '<function name="plant"><parameter name="seed">Möhre</parameter>'
    '<parameter name="bed">north</parameter></function>',
    "a tag with the name": '<tool_call name="plant">{"seed": "Möhre", "bed": "north"}</tool_call>',
    "Solar": "<|tool_calls|><|tool_call:begin|>k1<|tool_call:name|>plant<|tool_call:args|>"
    '{"seed": "Möhre", "bed": "north"}<|tool_call:end|>',
    "tags of the names": "<plant>\n<seed>Möhre</seed>\n<bed>north</bed>\n</plant>",
    "ReAct": 'Thought: the bed is free.\nAction: plant\nAction Input: {"seed": "Möhre", "bed": "north"}',
    "ReAct alone": 'Action: plant\nAction Input: {"seed": "Möhre", "bed": "north"}',
    "tool_code": '```tool_code\nplant(seed="Möhre", bed="north")\n```',
    "a tool_code tag": '<tool_code>\nplant(seed="Möhre", bed="north")\n</tool_code>',
    "tool_code that prints": '<tool_code>\nprint(default_api.plant(seed="Möhre", bed="north"))\n</tool_code>',
    "Python": 'plant(seed="Möhre", bed="north")',
    "a list in Python": '[plant(seed="Möhre", bed="north")]',
    "a note": '[Calling tool: plant({"seed": "Möhre", "bed": "north"})]',
    "Gemma without tokens": 'call:plant{seed:"Möhre",bed:"north"}',
    "Kimi without tokens": 'functions.plant:0{"seed": "Möhre", "bed": "north"}',
}
UNMISTAKABLE = {
    *("Claude", "Claude without its block", "function tags", "a tag with the name", "Solar"),
    *("tool_code", "a tool_code tag", "tool_code that prints"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reader", ["json", "hermes", "qwen3_coder", "llama3_json", "glm47", "auto"])
def test_a_form_of_no_dialect_is_read_or_asked_about(form: str, reader: str) -> None:
    turn = callwright.parse(FORMS[form], dialect=reader, tools=TOOLS)
    candidates = [problem.candidate for problem in turn.problems if problem.candidate]
    assert turn.calls or turn.problems
    if form in UNMISTAKABLE:
        assert [(call.name, call.complete) for call in turn.calls] == [("plant", True)]
    elif reader != "auto":
        assert not turn.calls
        assert "Möhre" in (turn.content or "")
    else:
        assert turn.calls or "Möhre" in (turn.content or "")
    for call in (*turn.calls, *candidates):
        assert "Möhre" in call.arguments
        assert "north" in call.arguments


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_no_dialect_in_a_sentence_is_text(form: str) -> None:
    shown = f"Some models would write `{FORMS[form]}` here, which nobody runs."
    turn = callwright.parse(shown, dialect="hermes", tools=TOOLS)
    assert not turn.calls
    assert turn.content == shown


def test_several_formats_in_one_answer_are_all_read() -> None:
    output = "\n".join(_written(name, GIVEN) for name in ("hermes", "qwen3_coder", "minimax_m2", "deepseek_v31"))
    for reader in ("auto", "json", "hermes", "minimax_m2"):
        turn = callwright.parse(output, dialect=reader, tools=TOOLS)
        assert [call.name for call in turn.calls] == ["plant"] * 4, reader
        assert not (turn.content or "").strip()


@pytest.mark.parametrize("bars", ["|DSML|", "||DSML||", "｜｜DSML｜｜", "‖DSML‖", "∣DSML∣", "|DSML｜"])
@pytest.mark.parametrize("reader", [reader for reader in READERS if reader not in HEADED])
@pytest.mark.parametrize("name", ["deepseek_v32", "deepseek_v4", "deepseek_v41"])
def test_dsml_between_other_bars_is_read_by_all(name: str, reader: str, bars: str) -> None:
    written = _written(name, GIVEN).lstrip().replace("｜DSML｜", bars)
    whole, cut = (read(output, dialect=reader, tools=TOOLS) for output in ([written], list(written)))
    assert merged(whole) == merged(cut)
    turn = callwright.parse(written, dialect=reader, tools=TOOLS)
    assert [(call.name, json.loads(call.arguments), call.complete) for call in turn.calls] == [("plant", GIVEN, True)]
    assert {problem.kind for problem in turn.problems} >= {"foreign_format", "markup_repaired"}
