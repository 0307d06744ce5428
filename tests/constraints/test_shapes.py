"""What an answer may look like, in each dialect: what it writes itself, and nothing else. llguidance is the judge."""

import json

import msgspec
import pytest

import callwright
from callwright.calls.custom_tools import custom_tool, input_arguments
from callwright.calls.toolset import Toolset
from callwright.constraints.constraint import Constraint
from callwright.constraints.lark import Vocabulary, lark
from callwright.constraints.shape import sentence
from callwright.constraints.tree import TextUntil
from callwright.conversation import AssistantTurn, Call, FunctionTool, NamedTool
from callwright.dialects.base import dialect_names, get_dialect
from callwright.grammar.grammar import Grammar
from tests.support.constraint_cases import (
    AUTO,
    DIVERSE,
    ENVELOPES,
    FITTING,
    PARIS,
    SHAPED,
    TIME,
    TOOLS,
    WEATHER,
    answer,
    call,
    closers,
    constraint,
    rendered,
    shape,
    single,
    wrong_calls,
)
from tests.support.examples import share
from tests.support.grammar_engines import Llguidance

HARMONY = ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>")
# It reads no call behind the reasoning that it writes.
READS_NO_CALL_BEHIND_REASONING = ("functionary_v32",)
UNREASONED = ("functiongemma", "pythonic")  # they write no reasoning
FEW = ("harmony", "hermes", "qwen3_coder", "kimi_k2", "deepseek_v32")


def judge(given: Constraint, controls: tuple[str, ...] = ()) -> Llguidance:
    node = sentence(shape(given), stop=True)
    assert node is not None
    return Llguidance(lark(node, Vocabulary({control: control for control in controls})), controls)


def test_every_dialect_has_a_shape() -> None:
    assert set(SHAPED) == set(dialect_names())


@pytest.mark.parametrize("name", SHAPED)
def test_what_the_dialect_writes_for_calls_that_fit_is_accepted(name: str) -> None:
    given = constraint(name)
    accepts = judge(given).accepts
    for fitting in FITTING:
        assert accepts(answer(given, call(*fitting))), fitting


@pytest.mark.parametrize("name", SHAPED)
def test_calls_that_do_not_fit_are_rejected(name: str) -> None:
    given = constraint(name)
    accepts = judge(given).accepts
    for what, wrong in wrong_calls(name).items():
        assert not accepts(answer(given, call(*wrong))), what
    for text in ("", "Paris is sunny.", answer(given, call("get_time", {}))[:-1]):
        assert not accepts(text), text


@pytest.mark.parametrize("what", DIVERSE)
@pytest.mark.parametrize("name", SHAPED)
def test_so_it_is_for_tools_of_all_kinds(name: str, what: str) -> None:
    tool, fitting, wrong = DIVERSE[what]
    given = constraint(name, tools=(tool,))
    accepts = judge(given).accepts
    assert accepts(answer(given, call(tool.name, fitting)))
    assert not accepts(answer(given, call(f"{tool.name}s", fitting)))
    if name not in ENVELOPES:
        assert not accepts(answer(given, call(tool.name, wrong)))


@pytest.mark.parametrize("name", SHAPED)
def test_several_calls_are_accepted_where_they_may_be_parallel(name: str) -> None:
    given = constraint(name)
    three = answer(given, call("get_weather", PARIS), call("get_time", {}), call("save", {"lines": []}))
    assert judge(given).accepts(three) == shape(given).several
    assert shape(given).several == (name != "harmony")
    assert not judge(single(given)).accepts(three)
    assert judge(single(given)).accepts(answer(given, call("get_weather", PARIS)))


@pytest.mark.parametrize("name", SHAPED)
def test_reasoning_may_come_before_a_call(name: str) -> None:
    given = constraint(name)
    found = shape(given)
    reasoned = answer(given, call("get_time", {}), reasoning="Hm, I <think> so.\nLet us see.")
    assert judge(given).accepts(reasoned) == (found.reasoning is not None or name in UNREASONED)
    assert found.reasoning is not None or given.prefill or name in UNREASONED


@pytest.mark.parametrize("name", SHAPED)
def test_tools_that_may_not_be_called_are_rejected(name: str) -> None:
    given = msgspec.structs.replace(constraint(name), tools=(TIME,))
    accepts = judge(given).accepts
    assert accepts(answer(given, call("get_time", {})))
    assert not accepts(answer(given, call("get_weather", PARIS)))


@pytest.mark.parametrize("name", SHAPED)
def test_a_named_tool_is_called_behind_what_the_prompt_has_begun(name: str) -> None:
    prompt = rendered(name, NamedTool("get_weather"))
    given = Constraint(name, (WEATHER,), start=prompt.start, prefill=prompt.prefill)
    accepts = judge(given).accepts
    assert accepts(answer(given, call("get_weather", PARIS)))
    assert accepts(answer(given, call("get_weather", {"city": "Paris"}))) == isinstance(
        shape(given).calls[0].arguments, TextUntil
    )
    assert not accepts(answer(given, call("get_time", {})))


@pytest.mark.parametrize("name", SHAPED)
def test_what_the_grammar_allows_is_read_as_calls_that_fit(name: str) -> None:
    given = constraint(name)
    judged = judge(given)
    tools = Toolset(TOOLS)
    dicts = [tool.as_openai() for tool in TOOLS]
    read = 0
    for seed in range(max(4, share(12))):
        text = judged.sample(seed, closers(given))
        if text is None or (name in READS_NO_CALL_BEHIND_REASONING and text.startswith("<think>")):
            continue
        turn = callwright.parse(
            given.prefill + text, dialect=name, tools=dicts, tool_choice="required", start=given.start
        )
        assert turn.calls, text
        repeated = {problem.call for problem in turn.problems if problem.kind == "argument_repeated"}
        for index, made in enumerate(turn.calls):
            assert made.name in tools, text
            if index in repeated:  # a grammar may give a name twice, with two values: nobody knows which counts
                continue
            assert name in ENVELOPES or not tools.faults(made.name, json.loads(made.arguments)), text
        read += 1
    assert read


@pytest.mark.parametrize("name", AUTO)
def test_where_every_tool_is_strict_text_is_free_and_calls_are_not(name: str) -> None:
    given = constraint(name, demanded=False)
    accepts = judge(given).accepts
    good = answer(given, call("get_weather", PARIS))
    assert accepts(good)
    assert accepts(answer(given, said="It is sunny in Paris."))
    assert not accepts(answer(given, call("get_wether", PARIS)))
    assert accepts(answer(given, call("get_weather", {"city": "Paris"}))) == isinstance(
        shape(given).calls[0].arguments, TextUntil
    )
    if shape(given).answer is None:
        assert accepts(answer(given, call("get_weather", PARIS), said="One moment."))


def test_control_tokens_are_tokens_where_the_vocabulary_has_them() -> None:
    given = constraint("harmony")
    judged = judge(given, HARMONY)
    assert judged.accepts(answer(given, call("get_weather", PARIS)))
    sentences = [judged.sample(seed) for seed in range(5)]
    assert all(text and text.endswith("<|call|>") for text in sentences)
    free = judge(msgspec.structs.replace(given, prefill=""), HARMONY)
    assert free.accepts(get_dialect("harmony").write(_thoughtful()))


def _thoughtful() -> AssistantTurn:
    return AssistantTurn("A < b, surely.", None, [call("get_weather", PARIS)])


@pytest.mark.parametrize("name", FEW)
def test_a_prompt_that_begins_a_call_another_way_has_no_sentence(name: str) -> None:
    assert sentence(shape(msgspec.structs.replace(constraint(name), prefill="[call:"))) is None


@pytest.mark.parametrize("name", ["harmony", "hermes", "llama3_json", "mistral_v3"])
def test_the_regular_expression_of_a_custom_tool_holds_in_json(name: str) -> None:
    tools = (custom_tool("note", None, Grammar("regex", r'[a-z]{2,5} "[0-9]+"')),)
    given = constraint(name, tools=tools)
    accepts = judge(given).accepts
    assert accepts(answer(given, _input('abc "42"')))
    assert not accepts(answer(given, _input("abc 42")))
    assert not accepts(answer(given, _input('xabcde "42"')))


def _input(text: str) -> Call:
    return Call("note", input_arguments(text))


@pytest.mark.parametrize("name", FEW)
def test_any_text_goes_for_a_custom_tool_with_a_grammar_that_json_cannot_hold(name: str) -> None:
    given = constraint(name, tools=(custom_tool("note", None, Grammar("lark", 'start: "a" "b"')),))
    assert judge(given).accepts(answer(given, _input("something else")))


@pytest.mark.parametrize("name", ["qwen3_coder", "kimi_k3", "glm45", "hermes"])
@pytest.mark.parametrize(
    "parameters",
    [{"type": "object"}, {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}],
    ids=["anything", "others"],
)
def test_a_tool_that_takes_any_parameter_leaves_the_others_held(name: str, parameters: dict[str, object]) -> None:
    given = constraint(name, tools=(FunctionTool("f", None, parameters), WEATHER))
    accepts = judge(given).accepts
    assert accepts(answer(given, call("f", {"x": "1", "y": "words"}), call("get_weather", PARIS)))
    assert not accepts(answer(given, call("g", {"x": "1"})))
    assert not accepts(answer(given, call("get_weather", {"city": "Paris"})))


@pytest.mark.parametrize("name", ["qwen3_coder", "glm45", "hermes"])
def test_null_is_of_an_enum_whose_types_have_it(name: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"], "enum": ["x", "y"]}}}
    given = constraint(name, tools=(FunctionTool("f", None, schema),))
    accepts = judge(given).accepts
    assert accepts(answer(given, call("f", {"a": None})))
    assert accepts(answer(given, call("f", {"a": "y"})))
    assert not accepts(answer(given, call("f", {"a": "z"})))


@pytest.mark.parametrize("name", ["qwen3_coder", "glm45", "minimax_m2", "deepseek_v32"])
def test_a_union_of_types_is_written_in_the_way_of_each(name: str) -> None:
    union = {"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"k": {"type": "integer"}}}]}
    schema = {"type": "object", "properties": {"a": union, "b": {}}, "required": ["a"]}
    given = constraint(name, tools=(FunctionTool("f", None, schema),))
    accepts = judge(given).accepts
    for fitting in ({"a": 7}, {"a": {"k": 7}}, {"a": 7, "b": [1]}, {"a": 7, "b": "words"}, {"a": 7, "b": None}):
        assert accepts(answer(given, call("f", fitting))), fitting
    for wrong in ({"a": "words"}, {"b": 1}):
        assert not accepts(answer(given, call("f", wrong))), wrong


# --- arguments that look like a program ---

QUOTED = ("pythonic", "lfm2", "olmo3")
DELIMITED = {"gemma4": '<|"|>', "functiongemma": "<escape>"}
PROGRAMS = (*QUOTED, *DELIMITED)
BOUNDED = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
        "word": {"type": "string", "minLength": 2, "maxLength": 5},
        "two": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 2},
        "few": {"type": "integer", "minimum": 1, "maximum": 3},
        "more": {"type": "integer", "minimum": 0},
        "fixed": {"const": {"b": [None, "x"], "A": {}}},
    },
    "additionalProperties": False,
}
TEXTS = (
    *("", '"', "'", "\\", "\\\\\"'", "a\nb\tc\r", "\x00\x1b\x7f\x85", "é東🙂\u200b", ")]}", '")', "',b=1)", '"]'),
    *("x, y=[1", "{'k': True}", "None", "</function_calls>", "<|tool_call_end|>", "\\u0041\\x", "a\\"),
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_any_text_may_be_a_value_and_is_read_as_it_was(name: str, text: str) -> None:
    arguments = {"city": text, "unit": "kelvin"}, {"lines": [text, text], "note": text}, {"options": {"force": True}}
    given = constraint(name)
    calls = [call("get_weather", arguments[0]), call("save", arguments[1]), call("save", arguments[2])]
    whole = answer(given, *calls)
    assert judge(given).accepts(whole)
    turn = callwright.parse(whole, dialect=name, tools=[tool.as_openai() for tool in TOOLS])
    assert [json.loads(made.arguments) for made in turn.calls] == list(arguments)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_value_ends_where_its_notation_ends_it(name: str) -> None:
    given = constraint(name)
    accepts = judge(given).accepts
    before, _, behind = answer(given, call("get_weather", PARIS)).partition("Paris")
    quotes = [DELIMITED[name]] if name in DELIMITED else ['"', "'"]
    before, behind = before.removesuffix(DELIMITED.get(name, before[-1])), behind.removeprefix(quotes[0]).lstrip("'")
    for quote in quotes:
        assert accepts(f"{before}{quote}Paris{quote}{behind}")
        assert not accepts(f"{before}{quote}Par{quote}is{quote}{behind}")
        assert accepts(f"{before}{quote}Paris\\{quote}{behind}") == (name in DELIMITED)


@pytest.mark.parametrize(
    ("fitting", "wrong"),
    [
        ({"code": "AB-123"}, {"code": "AB-1234"}),
        ({"word": "\n'\"é\\"}, {"word": "a"}),
        ({"word": "ab"}, {"word": "abcdef"}),
        ({"two": [1, -2.5e-7]}, {"two": [1, 2, 3]}),
        ({"two": [0.1]}, {"two": []}),
        ({"few": 3, "more": 12345}, {"few": 4}),
        ({"more": 0}, {"more": -1}),
        ({"fixed": {"b": [None, "x"], "A": {}}}, {"fixed": {"b": [None, "y"], "A": {}}}),
        ({}, {"other": 1}),
    ],
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_bounds_hold_in_programs(name: str, fitting: dict[str, object], wrong: dict[str, object]) -> None:
    given = constraint(name, tools=(FunctionTool("f", None, BOUNDED),))
    accepts = judge(given).accepts
    assert accepts(answer(given, call("f", fitting)))
    assert not accepts(answer(given, call("f", wrong)))


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": True},
        {"$ref": "#/$defs/any", "$defs": {"any": {"type": "object", "additionalProperties": True}}},
        {"anyOf": [{"type": "object", "properties": {"b": {"type": "string"}}}, {"type": "object"}]},
    ],
    ids=["anything", "others", "a reference", "a union"],
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_where_any_parameter_goes_any_value_does(name: str, parameters: dict[str, object]) -> None:
    given = constraint(name, tools=(FunctionTool("f", None, parameters), WEATHER))
    accepts = judge(given).accepts
    anything = {"a.b-c": 1, "größe": {"k": [None, True, {"2026": "'"}], "l": {}}, "x_1": []}
    whole = answer(given, call("f", anything), call("get_weather", PARIS))
    assert accepts(whole)
    turn = callwright.parse(whole, dialect=name, tools=[tool.as_openai() for tool in given.tools])
    assert [json.loads(made.arguments) for made in turn.calls] == [anything, PARIS]
    assert not accepts(answer(given, call("f", anything), call("get_weather", {"city": "Paris"})))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_regular_expression_of_a_custom_tool_holds_in_programs(name: str) -> None:
    given = constraint(name, tools=(custom_tool("note", None, Grammar("regex", "[a-z]{2,5} [0-9]+")),))
    accepts = judge(given).accepts
    assert accepts(answer(given, _input("abc 42")))
    assert not accepts(answer(given, _input("abc")))
