"""Calls whose arguments are broken, in every format: none is complete as what was not meant, and nothing is silent."""

import json
import re
from typing import Any, Final

import pytest

import callwright
from callwright.dialects.base import dialect_names, get_dialect
from tests.support.parsing import pieces

_STRING: Final = {"type": "string"}


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


SHELF: Final = _tool("find_book", title=_STRING, copies={"type": "integer"}, shelf={"type": ["string", "null"]})
REST: Final = _tool("close_library")
CHANGE: Final = _tool("change", path=_STRING, edits={"type": "array", "items": {"type": "object"}})
SAY: Final = _tool("say", words=_STRING)
NAMES: Final = dialect_names()
every_dialect = pytest.mark.parametrize("dialect", NAMES)


def _write(dialect: str, name: str = "find_book", tool: Any = SHELF, /, **arguments: Any) -> str:
    return callwright.write([{"name": name, "arguments": arguments}], tools=[tool], dialect=dialect)


def _read(output: str, dialect: str, tool: Any = SHELF) -> callwright.Turn:
    """The turn of an output, which is the same however the output is cut."""
    turn = callwright.parse(output, dialect=dialect, tools=[tool])
    for cut in (list(output), *(pieces(output, seed) for seed in range(2))):
        again = callwright.parse(cut, dialect=dialect, tools=[tool])
        assert (again.content, again.calls, again.problems) == (turn.content, turn.calls, turn.problems)
    return turn


def _complete(turn: callwright.Turn) -> list[Any]:
    return [json.loads(call.arguments) for call in turn.calls if call.complete]


def _markers(dialect: str) -> tuple[str, str, str] | None:
    """What stands before the only parameter of a call, the parameter, and what stands behind it."""
    empty, written = _write(dialect), _write(dialect, title="Emma")
    begin = next((at for at, (a, b) in enumerate(zip(empty, written, strict=False)) if a != b), len(empty))
    begin = written.rfind("<", 0, begin + 1) if written[begin : begin + 1] != "<" and "</" in written else begin
    size = len(written) - len(empty)
    taken = written[begin : begin + size]
    return (
        (written[:begin], taken, written[begin + size :])
        if written[:begin] + written[begin + size :] == empty
        else None
    )


TAGGED: Final = [
    name for name in NAMES if re.search(r"Emma\n?(</|\]<\]|<\|close|<\|tool_arg)", _write(name, title="Emma"))
]


@pytest.mark.parametrize("dialect", TAGGED)
@pytest.mark.parametrize(
    "words",
    ["<title>Emma</title>", "<arg name='title'>Emma</arg>", "<param=title>Emma</param>", 'title="Emma"', "title: Emma"],
)
def test_parameters_in_another_form_leave_no_call_without_them(dialect: str, words: str) -> None:
    found = _markers(dialect)
    if found is None:
        pytest.skip("a call without parameters is written in another way")
    before, _, behind = found
    turn = _read(f"{before}{words}\n{behind.lstrip()}", dialect)
    assert all(arguments == {"title": "Emma"} for arguments in _complete(turn))
    said = [turn.content or "", *(call.name + call.arguments for call in turn.calls)]
    assert "Emma" in " ".join([*said, *(problem.detail + problem.text for problem in turn.problems)])
    assert turn.problems


@every_dialect
@pytest.mark.parametrize("behind", ["", ","])
def test_a_stop_token_in_arguments_leaves_them_unfinished(dialect: str, behind: str) -> None:
    written = _write(dialect, title="Emma", copies=4217)
    for stop in get_dialect(dialect).stops:
        at = written.index("4217") + 2
        for output in (written[:at] + stop, written[: at + 2] + behind + stop):
            assert not _complete(_read(output, dialect))


@every_dialect
@pytest.mark.parametrize("word", ["none", "None", "nil", "NULL", "nONE"])
def test_a_word_for_null_stays_text_where_text_is_allowed(dialect: str, word: str) -> None:
    turn = _read(_write(dialect, title="Emma", shelf=word), dialect)
    assert _complete(turn) == [{"title": "Emma", "shelf": word}]
    assert not turn.problems


@pytest.mark.parametrize("dialect", TAGGED)
@pytest.mark.parametrize(("form", "number"), [("007", 7), ("+7", 7), ("0x10", 16), ("1_000", 1000), ("-0b11", -3)])
def test_a_number_in_another_form_is_read_and_named(dialect: str, form: str, number: int) -> None:
    turn = _read(_write(dialect, title="Emma", copies=4217).replace("4217", form), dialect)
    assert _complete(turn) == [{"title": "Emma", "copies": number}]
    assert {problem.kind for problem in turn.problems} == {"argument_coerced"}


@pytest.mark.parametrize("dialect", TAGGED)
def test_json_that_is_begun_again_is_never_whole_as_it_stands(dialect: str) -> None:
    edits = [{"old": "x", "new": "y"}]
    written = _write(dialect, "change", CHANGE, path="b.md", edits=edits)
    begin = written.find('[{"')
    if begin < 0:
        pytest.skip("values are nested elements")
    opening = re.split(r"b\.md\n?(?:</[^>]*>|<\|close\|>\w+<\|sep\|>|<\|tool_arg:end\|>)\s*", written[:begin])[1]
    for begun in ('[{"old": "x",\n', '[{"old": "x", "new": "z"},\n', "[{"):
        turn = _read(written[:begin] + begun + opening + written[begin:], dialect, CHANGE)
        assert all(arguments == {"path": "b.md", "edits": edits} for arguments in _complete(turn))
        assert turn.problems


@every_dialect
@pytest.mark.parametrize("key", ["argumentz", "aguments", "reason", "paramters"])
def test_an_envelope_of_another_key_gives_a_tool_without_parameters_no_arguments(dialect: str, key: str) -> None:
    written = _write(dialect, "close_library", REST)
    for own in ("arguments", "parameters", "args"):
        if f'"{own}"' in written:
            turn = _read(written.replace(f'"{own}"', f'"{key}"'), dialect, REST)
            assert all(arguments == {} for arguments in _complete(turn))
            assert turn.problems or not turn.calls  # where nothing marks a call, it is text


@pytest.mark.parametrize("dialect", ["harmony", "kimi_k2", "deepseek_v3", "deepseek_v31", "plamo3"])
@pytest.mark.parametrize("torn", ['words": "so be it"}', '"words": "so be it"}', 'so be it"}', 'words": "so'])
def test_a_part_of_json_is_not_the_only_text_parameter(dialect: str, torn: str) -> None:
    written = _write(dialect, "say", SAY, words="so be it")
    output = written.replace('{"words":"so be it"}', torn)
    assert output != written
    turn = _read(output, dialect, SAY)
    assert not _complete(turn)
    assert turn.problems


@every_dialect
def test_a_text_that_took_in_another_member_is_in_doubt(dialect: str) -> None:
    written = _write(dialect, title="Emma", copies=4217, shelf="b2")
    if '"title":"Emma","copies":4217' not in written or dialect == "json":  # text that is judged without a schema
        pytest.skip("arguments are no JSON")
    for broken in ('"title":"Emma"",copies":4217', '"title":"Em"ma"",copies":4217'):
        turn = _read(written.replace('"title":"Emma","copies":4217', broken), dialect)
        assert all("copies" in arguments for arguments in _complete(turn))
        assert turn.problems


@pytest.mark.parametrize("dialect", ["gemma4", "functiongemma", "pythonic", "lfm2", "olmo3"])
def test_empty_places_between_commas_are_named(dialect: str) -> None:
    tool = _tool("sort", rows={"type": "array"}, size={"type": "integer"})
    written = _write(dialect, "sort", tool, rows=[31, 42], size=7)
    for old, new in (("31", "31,"), ("42", "42,,"), ("]", "],"), ("31", ",31")):
        turn = _read(written.replace(old, new, 1), dialect, tool)
        if new == ",31":
            assert not _complete(turn)
        elif new != "],":
            assert _complete(turn) == [{"rows": [31, 42], "size": 7}]
        assert "json_repaired" in {problem.kind for problem in turn.problems}


@pytest.mark.parametrize(("begin", "end"), [("<tool_call>", "</tool_call>")])
@pytest.mark.parametrize("dialect", ["qwen3_coder", "hermes", "glm45", "ling3"])
def test_an_empty_pair_of_tags_is_a_malformed_call(dialect: str, begin: str, end: str) -> None:
    for output in (f"{begin}{end}", f"{begin}\n{end}"):
        turn = _read(output, dialect)
        assert not turn.content
        assert not turn.calls
        assert [problem.kind for problem in turn.problems] == ["malformed_call"]


@pytest.mark.parametrize(
    ("dialect", "begin", "end"),
    [
        ("qwen3_coder", "<tool_call>\n", "\n</tool_call>"),
        ("seed_oss", "<seed:tool_call>\n", "\n</seed:tool_call>"),
        ("minimax_m2", "<minimax:tool_call>\n", "\n</minimax:tool_call>"),
    ],
)
def test_json_in_the_block_of_tags_is_read_or_named(dialect: str, begin: str, end: str) -> None:
    right = '{"name": "find_book", "arguments": {"title": "Emma"}}'
    assert _complete(_read(f"{begin}{right}{end}", dialect)) == [{"title": "Emma"}]
    for broken in (right[:-1], right.replace('"name": ', '"name='), right.replace(": {", " {")):
        turn = _read(f"{begin}{broken}{end}", dialect)
        assert all(arguments == {"title": "Emma"} for arguments in _complete(turn))
        assert turn.problems


# --- a value in place of the arguments ---

WAIT: Final = _tool("wait", seconds={"type": "integer"}, why=_STRING)
WAIT["function"]["parameters"]["required"] = ["seconds"]
FORCED: Final = {"type": "function", "function": {"name": "wait"}}


def _value_for_arguments(dialect: str, value: str) -> str:
    """A call whose arguments are a value, up to the stop token; skips formats whose arguments are not JSON."""
    written = _write(dialect, "wait", WAIT, seconds=4217)
    output = re.sub(r'\{\s*"seconds"\s*:\s*4217\s*\}', value, written)
    if output == written:
        pytest.skip("arguments are no JSON")
    if dialect == "functionary_v32":
        pytest.skip("arguments begin with a brace")
    return output + (get_dialect(dialect).stops[0] if dialect == "mistral_v11" else "")


@every_dialect
@pytest.mark.parametrize("choice", ["auto", FORCED])
def test_a_value_in_place_of_the_arguments_is_that_of_the_one_that_is_required(dialect: str, choice: Any) -> None:
    output = _value_for_arguments(dialect, "4217")
    turn = callwright.parse(output, dialect=dialect, tools=[WAIT], tool_choice=choice)
    assert _complete(turn) == [{"seconds": 4217}]
    assert ("argument_coerced", "value to parameter at $") in {(each.kind, each.detail) for each in turn.problems}
    assert callwright.parse(list(output), dialect=dialect, tools=[WAIT]).calls == turn.calls


@every_dialect
def test_a_value_that_fits_no_parameter_is_named_with_what_is_expected(dialect: str) -> None:
    output = _value_for_arguments(dialect, "42.5")
    turn = callwright.parse(output, dialect=dialect, tools=[WAIT], tool_choice=FORCED)
    faults = [each.detail for each in turn.problems if each.kind == "invalid_arguments"]
    assert faults == ["the arguments of 'wait' do not fit: $: expected an object with 'seconds', got a number"]


@every_dialect
def test_a_text_in_place_of_several_arguments_is_one_of_them_only_if_the_call_is_demanded(dialect: str) -> None:
    tool = _tool("look", city=_STRING, unit=_STRING)
    tool["function"]["parameters"]["required"] = ["city"]
    written = _write(dialect, "look", tool, city="Oslo")
    output = re.sub(r'\{\s*"city"\s*:\s*"Oslo"\s*\}', '"Oslo"', written)
    if output == written or dialect == "functionary_v32":
        pytest.skip("arguments are no JSON")
    assert not [call for call in _complete(_read(output, dialect, tool)) if call != "Oslo"]
    choice = {"type": "function", "function": {"name": "look"}}
    assert _complete(callwright.parse(output, dialect=dialect, tools=[tool], tool_choice=choice)) == [{"city": "Oslo"}]
