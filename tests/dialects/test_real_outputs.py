"""Outputs of a trained model, which writes every broken call there is: nothing is lost, and cuts change nothing."""

import html
import json
import re
from typing import Any

import pytest

import callwright
from callwright.dialects.base import dialect_names
from callwright.reading.collect import Turn
from tests.support.examples import some
from tests.support.parsing import lost, merged, pieces, read
from tests.support.readings import missing_words, silent_calls
from tests.support.real_outputs import TOOLS, RealOutput, real_outputs

names = pytest.mark.parametrize("name", dialect_names())

_OUTPUTS = real_outputs()
# `auto` takes a header of this format, without its other marks, for words.
_NOT_IN_AUTO = {"beam"}
# These answer in messages with headers: text before a header is named.
_WITH_HEADERS = {"harmony", "beam", "muse", "inkling", "functionary_v32"}
_IN_FENCES = {"json", "llama3_json", "pythonic", "xlam", "cohere_command_r", "functionary_v32", "deepseek_v3"} | {
    "mistral_v3",
    "mistral_v11",
}
_SHOWING = (
    "The call is written like this:\n\n{}",
    "For example:\n{}",
    "I would write {}",
    "Here it is as a template. The format looks like this: {}",
    "So sieht ein Aufruf aus:\n\n{}",
    "Voici un exemple :\n\n{}",
    "Un ejemplo:\n\n{}",
    "例如：\n\n{}",
    "Например:\n{}",
)
_MEANT = (
    "I'll look for an example file now.\n\n{}",
    "Let me check the format of the file.\n\n{}",
    "The file is like this one. The user waits.\n\n{}",
)


def _tried(name: str) -> list[RealOutput]:
    outputs = [output for output in _OUTPUTS if output.dialect == name]
    return list(some(outputs, dialect_names().index(name))) if outputs else []


def _read(output: RealOutput, dialect: str) -> Turn:
    return callwright.parse(
        output.text,
        dialect=dialect,
        tools=TOOLS,
        finish_reason=output.end,  # type: ignore[arg-type]
        start=output.start,
    )


@names
def test_no_word_of_a_model_is_lost(name: str) -> None:
    for output in _tried(name):
        assert not missing_words(output.text, _read(output, name)), output


@names
def test_what_a_model_wrote_is_read_alike_however_it_is_cut(name: str) -> None:
    for output in _tried(name):
        request: dict[str, Any] = {"dialect": name, "tools": TOOLS, "start": output.start, "finish": output.end}
        whole = merged(read([output.text], **request))
        for cut in (list(output.text), pieces(output.text, 11)):
            assert merged(read(cut, **request)) == whole, output


@names
def test_a_call_without_a_problem_is_whole(name: str) -> None:
    for output in _tried(name):
        for call in silent_calls(_read(output, name)):
            arguments = json.loads(call.partition(" ")[2])
            assert all(str(value) in output.text for value in arguments.values()), output


@names
def test_a_format_that_is_found_is_read_as_much_as_one_that_is_known(name: str) -> None:
    for output in _tried(name) if name not in _NOT_IN_AUTO else ():
        known, found = _read(output, name), _read(output, "auto")
        assert len(found.calls) >= len(known.calls) or found.problems, output


def _call(name: str) -> str:
    return callwright.write([{"name": "get_weather", "arguments": {"city": "Oslo"}}], dialect=name, tools=TOOLS).strip()


@names
def test_a_call_that_an_announcement_shows_is_asked_about(name: str) -> None:
    for frame in _SHOWING if name not in _WITH_HEADERS else ():
        turn = callwright.parse(frame.format(_call(name)), dialect=name, tools=TOOLS)
        assert not turn.calls, frame
        assert turn.problems, frame


@names
def test_a_clause_that_only_has_such_a_word_shows_nothing(name: str) -> None:
    frames = () if name in {*_WITH_HEADERS, "functionary_v32", "json", "llama3_json", "pythonic", "xlam"} else _MEANT
    for frame in frames:
        turn = callwright.parse(frame.format(_call(name)), dialect=name, tools=TOOLS)
        assert [call.name for call in turn.calls if call.complete] == ["get_weather"], frame


@names
@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_call_in_a_fence_that_is_cut_is_asked_about(name: str, reason: str) -> None:
    if name in {*_WITH_HEADERS, *_IN_FENCES}:
        pytest.skip("its calls are read in fences, or have one, or it has headers")
    _asked_in_cut_fences(name, reason)


@pytest.mark.parametrize("name", ["mistral_v3", "mistral_v11", "deepseek_v3"])
@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_bracket_or_a_fence_of_a_call_does_not_close_the_fence_around_it(name: str, reason: str) -> None:
    _asked_in_cut_fences(name, reason)


def _asked_in_cut_fences(name: str, reason: str) -> None:
    for fence in ("```\n{}", "~~~\n{}\n", "```xml\n{}"):
        output = fence.format(_call(name))
        turn = callwright.parse(output, dialect=name, tools=TOOLS, finish_reason=reason)  # type: ignore[arg-type]
        assert not turn.calls, output
        assert turn.problems, output


@pytest.mark.parametrize(
    "name", ["glm45", "glm47", "hy_v3", "iquest_q1", "k2_horizon", "laguna", "ling3", "solar_open2"]
)
@pytest.mark.parametrize("before", ["", "Bergen"])
def test_a_value_that_is_opened_twice_is_named(name: str, before: str) -> None:
    written = _call(name)
    opening = written[: written.index("Oslo")]
    opening = opening[opening.rindex("<") :]
    turn = callwright.parse(written.replace("Oslo", f"{before}{opening}Oslo"), dialect=name, tools=TOOLS)
    assert ("markers_in_value" if before else "markup_repaired") in {problem.kind for problem in turn.problems}
    assert [call.complete for call in turn.calls] == [True]
    assert ('"Oslo"' in turn.calls[0].arguments) is not bool(before)


@pytest.mark.parametrize("name", ["inkling", "muse"])
def test_the_name_in_a_header_before_no_call_is_in_a_problem(name: str) -> None:
    written = callwright.write([{"name": "get_weather", "arguments": {"city": "Oslo"}}], dialect=name, tools=TOOLS)
    header = written[: written.index("get_weather", written.index("get_weather") + 1)]
    turn = callwright.parse(f"{header.rstrip()[:-3]}", dialect=name, tools=TOOLS, finish_reason="length")
    assert not turn.calls
    assert any("get_weather" in f"{problem.detail} {problem.text}" for problem in turn.problems)


def test_a_second_name_in_the_tag_of_a_call_is_in_a_problem() -> None:
    written = _call("muse").replace('name="get_weather"', 'name="get_weather" name="add_event"')
    turn = callwright.parse(written, dialect="muse", tools=TOOLS)
    assert any("add_event" in problem.detail for problem in turn.problems)


def test_a_found_format_asks_about_a_call_that_is_shown() -> None:
    turn = callwright.parse(_SHOWING[0].format(_call("pythonic")), dialect="auto", tools=TOOLS)
    assert [problem.kind for problem in turn.problems] == ["ambiguous_call"]


def test_a_found_format_reads_a_valid_call_before_an_invalid_one() -> None:
    lists = [f'[{{"name": "add_event", "arguments": {{"title": {title}}}}}]' for title in ('"Lunch"', "[1, 2]")]
    turn = callwright.parse("\n".join([*lists, '[{"name":']), dialect="auto", tools=TOOLS)
    assert [call.name for call in turn.calls] == ["add_event"] * 2
    assert turn.problems


def test_a_found_format_names_a_call_that_is_not_valid() -> None:
    turn = callwright.parse('Well.\n\n[get_weather(planet="Oslo", unit="C")]', dialect="auto", tools=TOOLS)
    assert turn.content == 'Well.\n\n[get_weather(planet="Oslo", unit="C")]'
    assert [problem.kind for problem in turn.problems] == ["incomplete_arguments"]


@names
@pytest.mark.parametrize("before", ["", "Let me look.\n\n"])
def test_a_call_in_a_misspelled_tag_is_named(name: str, before: str) -> None:
    written = _call(name)
    if not (tag := re.match(r"(?:\]<\]minimax\[>\[)?<[^<>\n]*>", written)):
        pytest.skip("its calls begin without a tag")
    letters = [at for at in range(tag.end()) if written[at].isalpha()]
    odd = {written[:at] + written[at] * 2 + written[at + 1 :] for at in letters}
    odd |= {written[:at] + written[at + 1 :] for at in letters}
    odd |= {html.escape(written, quote=False), written.replace(">", ' mark="1">', 1)}
    for output in sorted(odd):
        for dialect in (name, "auto"):
            turn = callwright.parse(before + output, dialect=dialect, tools=TOOLS)
            assert turn.calls or turn.problems, (dialect, output)


def test_tags_of_a_page_around_words_are_no_call() -> None:
    output = "<p class='city'>Oslo</p>\n<b>The tool get_weather</b> takes a city."
    assert not callwright.parse(output, dialect="hermes", tools=TOOLS).problems


@pytest.mark.parametrize(
    ("name", "mark"), [("kimi_k3", "<|close|>"), ("minimax_m3", "]<]minimax[>["), ("cohere_command5", "</cofl:")]
)
def test_a_doubled_mark_of_a_closer_is_named(name: str, mark: str) -> None:
    written = _call(name).replace(f"Oslo{mark}", f"Oslo{mark}{mark}")
    turn = callwright.parse(written, dialect=name, tools=TOOLS)
    assert turn.problems


@pytest.mark.parametrize("name", ["beam", "muse"])
@pytest.mark.parametrize("tool", ["user", "self", "commentary"])
def test_a_tool_may_have_the_name_of_a_reader(name: str, tool: str) -> None:
    function = {"name": tool, "parameters": {"type": "object", "properties": {"name": {"type": "string"}}}}
    tools = [{"type": "function", "function": function}]
    call = {"name": tool, "arguments": {"name": "Eve"}}
    written = callwright.write([call, call], dialect=name, tools=tools).strip()
    turn = callwright.parse(written, dialect=name, tools=tools)
    assert [(each.name, each.arguments, each.complete) for each in turn.calls] == [(tool, '{"name":"Eve"}', True)] * 2
    assert not turn.problems


@pytest.mark.parametrize("written", ["5", '"Oslo"', "Oslo", "[5]"])
@names
def test_arguments_that_are_no_object_are_named(name: str, written: str) -> None:
    call = _call(name)
    if not (found := re.search(r'\{"city": ?"Oslo"\}', call)):
        pytest.skip("its arguments are no JSON")
    output = call[: found.start()] + written + call[found.end() :]
    for dialect in (
        (name,) if name == "functionary_v32" else (name, "auto")
    ):  # without `>>>` its header is a line of text
        turn = callwright.parse(output, dialect=dialect, tools=TOOLS)
        assert turn.problems, output
        assert not missing_words(output, turn), output


def test_a_header_that_is_cut_is_in_a_problem() -> None:
    written = _call("muse")
    turn = callwright.parse(f"{written}<|start|>assistant to=add_event<|mess", dialect="muse", tools=TOOLS)
    assert any("add_event" in problem.text for problem in turn.problems)


@pytest.mark.parametrize("name", ["hermes", "xlam", "json", "cohere_command", "auto"])
@pytest.mark.parametrize("cut", ['"ho', '"hour', '"hour"', '"hour":', '"title": "Tea", "ho'])
def test_a_key_that_is_cut_after_a_whole_call_is_in_a_problem(name: str, cut: str) -> None:
    whole = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    output = f'[{whole}, {{"name": "add_event", "arguments": {{{cut}'
    turn = callwright.parse(output, dialect=name, tools=TOOLS, finish_reason="length")
    assert [call.name for call in turn.calls if call.complete] == ["get_weather"]
    assert not missing_words(output, turn)


@pytest.mark.parametrize("name", ["lfm2", "olmo3", "pythonic"])
def test_half_of_a_surrogate_pair_in_a_program_stays_as_it_is(name: str) -> None:
    written = _call(name).replace("Oslo", "\\ud83d Oslo \\ud83d\\ude00")
    turn = callwright.parse(written, dialect=name, tools=TOOLS)
    assert json.loads(turn.calls[0].arguments) == {"city": "\\ud83d Oslo \U0001f600"}


def test_arguments_in_the_tag_of_a_call_are_in_a_problem() -> None:
    written = _call("kimi_k3").replace('index="1"<|sep|>', 'index="1"')
    turn = callwright.parse(written, dialect="kimi_k3", tools=TOOLS)
    assert any('key="city"' in problem.text for problem in turn.problems)
    assert not any(call.complete for call in turn.calls)


@pytest.mark.parametrize("begun", ["<", "<function", "<｜tool▁c"])
@pytest.mark.parametrize("name", ["dots", "longcat", "iquest_q1"])
def test_a_mark_that_is_begun_twice_after_a_call_is_not_lost(name: str, begun: str) -> None:
    for first, second in (("kimi_k2", "olmo3"), ("deepseek_v3", "deepseek_v31")):
        output = _call(first).partition("}")[0] + "}" + begun + _call(second)
        assert not lost(output, read([output], dialect=name, tools=TOOLS, check="verbatim")), output
