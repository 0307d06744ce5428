"""Our prompts for Command 4 and 5 against those of Cohere's own encoder, our readings against its parser's."""

import json
import re
from typing import Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from callwright import parse, render, write
from callwright.dialects.detect import by_name, options_by_name
from tests.oracle.cohere import prompt_of, reading_of
from tests.oracle.generated import ARGUMENTS, Generated, conversations
from tests.support.examples import examples

VERSIONS: Final = {4: ("cohere_command", {"flavour": "command4"}), 5: ("cohere_command5", {})}
EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# Numbers that Rust writes otherwise than Python.
ODD_NUMBER: Final = re.compile(r"\de[-+]?\d")
TOOLS: Final = [{"type": "function", "function": {"name": "f"}}]


@pytest.mark.parametrize("version", VERSIONS)
@given(conversations(beside_calls=False, parts=False), st.sampled_from([None, *EFFORTS]))
@examples(400)
def test_a_prompt_is_what_coheres_own_encoder_makes(version: int, asked: Generated, effort: str | None) -> None:
    results = json.dumps([message["content"] for message in asked.messages if message["role"] == "tool"])
    assume(version == 4 or "<|" not in results)  # which could begin a token and stays escaped here
    dialect, options = VERSIONS[version]
    told = {} if effort is None else {"reasoning_effort": effort}
    ours = render(asked.messages, tools=asked.tools, dialect=dialect, **options, **told).text
    theirs = prompt_of(version, asked.messages, asked.tools, thinks=effort != "none")
    assume(not ODD_NUMBER.search(theirs))
    if version == 4 and effort is not None:  # the encoder leaves this to the chat template of the model
        theirs += "<|START_THINKING|><|END_THINKING|>" if effort == "none" else "<|START_THINKING|>"
    assert ours == theirs


@given(st.lists(ARGUMENTS, min_size=1, max_size=3))
@examples(400)
def test_what_is_written_is_read_as_coheres_own_parser_reads_it(arguments: list[dict[str, Any]]) -> None:
    assume(not any("cofl" in json.dumps(each) for each in arguments))
    text = write([{"name": "f", "arguments": json.dumps(each)} for each in arguments], dialect="cohere_command5")
    output = f"<|START_THINKING|>Now.<|END_THINKING|>{text}<|END_OF_TURN_TOKEN|>"
    turn = parse(output, dialect="cohere_command5", tools=TOOLS)
    reasoning, content, calls = reading_of(output.removesuffix("<|END_OF_TURN_TOKEN|>"))
    assert (turn.reasoning or "", turn.content or "") == (reasoning, content)
    assert [(call.name, json.loads(call.arguments)) for call in turn.calls] == calls
    assert [json.loads(call.arguments) for call in turn.calls] == arguments
    assert not turn.problems


def called(inner: str) -> str:
    return f'<cofl:tool_calls><cofl:tool_call id="0" name="f">{inner}</cofl:tool_call></cofl:tool_calls>'


@pytest.mark.parametrize(
    "inner",
    [
        '<cofl:value name="k" type="raw">a & b &amp; <i>c</i></cofl:value>',
        '<cofl:value name="k" type="raw"> blanks \n</cofl:value>',
        '<cofl:value name="k" type="raw"></cofl:value>',
        '<cofl:value name="k" type="raw">12</cofl:value>',
        '<cofl:value name="k">12</cofl:value>',
        '<cofl:value name="k" type="json"></cofl:value>',
        '<cofl:value name="k" type="json">{"a": [1, null]}</cofl:value>',
        '<cofl:value name="k" type="json">"quoted"</cofl:value>',
        '<cofl:value name="a&quot;b&lt;" type="json">-0.5</cofl:value>',
        '<cofl:value name="k" type="dict"></cofl:value><cofl:value name="l" type="list"></cofl:value>',
        '<cofl:value name="k" type="dict"><cofl:value name="a" type="list"><cofl:value type="dict">'  # noqa: ISC004
        '<cofl:value name="b" type="raw">x</cofl:value></cofl:value><cofl:value type="json">true</cofl:value>'
        "</cofl:value></cofl:value>",
        '\n  <cofl:value name="k" type="list">\n    <cofl:value type="raw">a</cofl:value>\n  </cofl:value>\n',
        "",
    ],
)
def test_an_output_means_what_coheres_own_parser_reads(inner: str) -> None:
    output = f"<|START_THINKING|>Now.<|END_THINKING|>{called(inner)}"
    turn = parse(output, dialect="cohere_command5", tools=TOOLS)
    assert ("Now.", "", [(call.name, json.loads(call.arguments)) for call in turn.calls]) == reading_of(output)
    assert all(call.complete for call in turn.calls)


@pytest.mark.parametrize(
    ("model", "dialect", "options"),
    [
        ("CohereLabs/c4ai-command-r7b-12-2024", "cohere_command", {}),
        ("CohereLabs/command-a-reasoning-08-2025", "cohere_command", {}),
        ("CohereLabs/command-a-plus-05-2026", "cohere_command", {"flavour": "command4", "thinking": "open"}),
        ("CohereLabs/North-Mini-Code-1.0", "cohere_command", {"flavour": "command4", "thinking": "open"}),
        ("CohereLabs/Command-5", "cohere_command5", {}),
        ("command-5", "cohere_command5", {}),
    ],
)
def test_a_name_tells_the_options(model: str, dialect: str, options: dict[str, Any]) -> None:
    found = by_name(model)
    assert found is not None
    assert found.dialect == dialect, found.reason
    assert dict(options_by_name(dialect, model)) == options
