"""The grammars at the engines that they are for: xgrammar (vLLM, SGLang) and llama.cpp."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

import toolwright
from tests.asking import ask
from tests.conftest import Served
from tests.constraining import (
    AUTO,
    ENVELOPES,
    FITTING,
    PARIS,
    SHAPED,
    TOOLS,
    answer,
    call,
    constraint,
    rendered,
    shape,
    single,
    wrong_calls,
)
from tests.engines import xgrammar_judge
from tests.outputs import QUESTION
from tests.test_constraint_schema import CASES, texts
from tests.tiny_llama import TinyLlama
from toolwright.constraint.compile import compiled, key_of
from toolwright.constraint.gbnf import gbnf
from toolwright.constraint.project import Engine
from toolwright.constraint.sentence import Json
from toolwright.constraint.shape import Constraint
from toolwright.constraint.structural_tag import structural_tag
from toolwright.gateway.config import ModelConfig
from toolwright.toolset import Toolset

Judge: TypeAlias = Callable[[str], Callable[[str], bool]]


@pytest.fixture(scope="module")
def judge() -> Judge:
    return xgrammar_judge()


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> TinyLlama:
    return TinyLlama(tmp_path_factory.mktemp("llama"))


def told(given: Constraint, engine: Engine) -> str:
    found = compiled(given, engine, key_of(given))
    assert found is not None
    return found.text


@pytest.mark.parametrize("engine", ["xgrammar", "llamacpp"])
@pytest.mark.parametrize("name", SHAPED)
def test_tags_and_gbnf_accept_what_fits_and_nothing_else(judge: Judge, name: str, engine: Engine) -> None:
    given = constraint(name)
    accepts = judge(told(given, engine))
    for fitting in FITTING:
        assert accepts(answer(given, call(*fitting), stop=False)), fitting
    for what, wrong in wrong_calls(name).items():
        if (engine, what) != ("xgrammar", "an array that is none"):  # it takes a declared key for another one
            assert not accepts(answer(given, call(*wrong), stop=False)), what
    assert not accepts("Paris is sunny.")
    three = answer(given, call("get_weather", PARIS), call("get_time", {}), call("save", {"lines": []}), stop=False)
    assert accepts(three) == shape(given).several
    assert not judge(told(single(given), engine))(three)
    if shape(given).reasoning is not None:
        assert accepts(answer(given, call("get_time", {}), reasoning="A << b.\nSo <it> is.", stop=False))


@pytest.mark.parametrize("name", AUTO)
def test_tags_leave_text_free_where_every_tool_is_strict(judge: Judge, name: str) -> None:
    given = constraint(name, demanded=False)
    accepts = judge(told(given, "xgrammar"))
    assert accepts(answer(given, said="It is sunny in Paris.", stop=False))
    assert accepts(answer(given, call("get_weather", PARIS), stop=False))
    assert not accepts(answer(given, call("get_wether", PARIS), stop=False))


@pytest.mark.parametrize("name", CASES)
def test_schemas_in_tags_and_in_gbnf(judge: Judge, name: str) -> None:
    schema, fitting, wrong = CASES[name]
    node = Json(schema)
    for accepts in (judge(json.dumps(structural_tag(node))), judge(gbnf(node).grammar)):
        assert all(accepts(text) for value in fitting for text in texts(value))
        assert not any(accepts(text) for value in wrong for text in texts(value))


@pytest.mark.parametrize("name", SHAPED)
def test_llama_cpp_takes_the_grammar_and_what_it_makes_is_read(llama: TinyLlama, name: str) -> None:
    given = constraint(name)
    asked: dict[str, Any] = {"prompt": "Hi", "grammar": told(given, "llamacpp"), "n_predict": 200}
    asked["preserved_tokens"] = list(rendered(name).controls)
    for seed in range(3):
        answered = llama.complete(**asked, seed=seed)
        assert "error" not in answered, answered
        text = answered["content"]
        if answered["stop_type"] == "limit" or "<think>" in text or "\N{REPLACEMENT CHARACTER}" in text:
            continue
        turn = toolwright.parse(given.prefill + text, dialect=name, tools=[tool.as_openai() for tool in TOOLS])
        assert turn.calls, text
        if name in ENVELOPES:
            continue
        for made in turn.calls:
            assert not Toolset(TOOLS).faults(made.name, json.loads(made.arguments)), text


@pytest.mark.parametrize("name", AUTO)
def test_llama_cpp_takes_the_lazy_grammar(llama: TinyLlama, name: str) -> None:
    given = constraint(name, demanded=False)
    found = compiled(given, "llamacpp", key_of(given))
    assert found is not None
    assert bool(found.trigger) == (shape(given).answer is None)
    asked: dict[str, Any] = {"prompt": "Hi", "grammar": found.text, "n_predict": 4}
    if found.trigger:
        asked |= {"grammar_lazy": True, "grammar_triggers": [{"type": 1, "value": found.trigger}]}
    assert "error" not in llama.complete(**asked, preserved_tokens=list(rendered(name).controls))


@pytest.mark.parametrize("name", CASES)
def test_llama_cpp_takes_the_grammar_of_every_schema(llama: TinyLlama, name: str) -> None:
    assert "error" not in llama.complete(prompt="Hi", grammar=gbnf(Json(CASES[name][0])).grammar, n_predict=4)


@pytest.mark.parametrize("stream", [False, True])
def test_random_weights_make_the_call_that_is_demanded(llama: TinyLlama, serve: Served, stream: bool) -> None:
    gateway = serve(ModelConfig(name="tiny", upstream=llama.url, mode="raw", dialect="hermes", server="llamacpp"))
    schema = {
        "type": "object",
        "properties": {"unit": {"enum": ["c", "k"]}, "days": {"type": "integer", "minimum": 0}},
        "required": ["unit", "days"],
        "additionalProperties": False,
    }
    tools = [{"type": "function", "function": {"name": name, "parameters": schema}} for name in ("one", "two")]
    for seed in range(3):
        body = {"model": "tiny", "messages": [QUESTION], "tools": tools, "tool_choice": "required", "seed": seed}
        said = ask(gateway, {**body, "parallel_tool_calls": False, "max_tokens": 200}, stream=stream)
        ((name, arguments),) = said.calls
        assert name in ("one", "two")
        assert arguments.keys() == {"unit", "days"}
