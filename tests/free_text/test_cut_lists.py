"""A list of calls that was cut anywhere after the first: those that have an end are made, the cut one is named."""

import pytest

from callwright import parse

TOOL = {
    "name": "name_boat",
    "parameters": {"type": "object", "properties": {"boat": {"type": "string"}}, "required": ["boat"]},
}
FIRST = '{"name": "name_boat", "arguments": {"boat": "Petrel"}}'
SECOND = '{"name": "name_boat", "arguments": {"boat": "Heron"}}'
LISTS = {
    "envelope": ('{"tool_calls": [', ", ", "]}"),
    "lines": ('{\n  "tool_calls": [\n    ', ",\n    ", "\n  ]\n}"),
    "bare": ("[", ", ", "]"),
    "fence": ("```json\n[", ",\n", "]\n```"),
}


@pytest.mark.parametrize("form", LISTS)
def test_the_calls_before_the_cut_are_made(form: str) -> None:
    begin, between, end = LISTS[form]
    before, whole = begin + FIRST, begin + FIRST + between + SECOND
    for at in range(len(before + between), len(whole) + 1):
        turn = parse(whole[:at], dialect="json", tools=[{"type": "function", "function": TOOL}], finish_reason="length")
        done = [call.arguments for call in turn.calls if call.complete]
        assert done[0] == '{"boat": "Petrel"}', whole[:at]
        is_begun = len(before + between) < at < len(whole) - 1  # the last brace may be the model's, or put there
        assert is_begun <= ("incomplete_arguments" in {problem.kind for problem in turn.problems}), whole[:at]
    assert len(parse(whole + end, dialect="json", tools=[{"type": "function", "function": TOOL}]).calls) == 2


@pytest.mark.parametrize("rest", ['{"boat": "Heron"', '{"boat": "Heron"}]', "{}]", '"Heron"]', "{} 1"])
def test_a_list_that_goes_on_with_data_is_none_of_calls(rest: str) -> None:
    turn = parse(
        f"[{FIRST}, {rest}", dialect="json", tools=[{"type": "function", "function": TOOL}], finish_reason="length"
    )
    assert not turn.calls
    assert turn.content == f"[{FIRST}, {rest}"
