"""What follows arguments that came whole in one delta is no part of them: what has gone out stays valid JSON."""

import json

import pytest

from callwright.calls.streaming_arguments import StreamingArguments
from callwright.calls.toolset import Toolset
from callwright.openai_format.tool_catalog import read_tool_catalog

TOOLS = [
    {
        "type": "function",
        "function": {"name": "note", "parameters": {"type": "object", "properties": {"words": {"type": "string"}}}},
    }
]


@pytest.mark.parametrize(
    ("behind", "problems"),
    [
        ([" "], []),
        (["\n", "}"], []),
        (["{}"], ["arguments_trailing_text"]),
        (['", "x": "'], ["arguments_trailing_text"]),
        (["so ", "be it"], ["arguments_trailing_text"]),
    ],
)
@pytest.mark.parametrize("words", ["", "tea", "a } b", 'q"', "\n"])
def test_arguments_stay_as_they_went_out_whatever_follows(words: str, behind: list[str], problems: list[str]) -> None:
    reader = StreamingArguments("note", Toolset(read_tool_catalog(TOOLS).tools, "auto"))
    whole = json.dumps({"words": words})
    sent = "".join([*map(reader.feed, [whole, *behind]), reader.finish(cut=False)])
    assert sent == reader.text == whole
    assert reader.complete
    assert [problem.kind for problem in reader.problems] == problems
