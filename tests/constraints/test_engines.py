"""The grammars at the engines that they are for: xgrammar (vLLM, SGLang) and llama.cpp."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import pytest

import callwright
from callwright.calls.custom_tools import custom_tool
from callwright.calls.toolset import Toolset
from callwright.constraints.compile import compiled, constraint_key
from callwright.constraints.constraint import Constraint
from callwright.constraints.gbnf_writer import gbnf
from callwright.constraints.schema_subset import Engine
from callwright.constraints.structural_tag import structural_tag
from callwright.constraints.text_values import input_words
from callwright.constraints.tree import Json, TextUntil
from callwright.conversation import NamedTool
from callwright.dialects.base import get_dialect
from callwright.gateway.config.config import ModelConfig
from callwright.grammar.grammar import Grammar
from callwright.prompt import Text as PlainText
from tests.conftest import Served
from tests.constraints.test_schema import CASES, texts
from tests.support.constraint_cases import (
    AUTO,
    DIVERSE,
    ENVELOPES,
    FITTING,
    PARIS,
    SAVE,
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
from tests.support.grammar_engines import xgrammar_judge
from tests.support.http_client import ask
from tests.support.outputs import QUESTION
from tests.support.tiny_llama import TinyLlama

Judge: TypeAlias = Callable[[str], Callable[[str], bool]]
ENGINES: tuple[Engine, ...] = ("xgrammar", "llamacpp")
FEW = ("harmony", "hermes", "qwen3_coder", "deepseek_v32", "glm45", "kimi_k2", "mistral_v11", "lfm2", "gemma4")


@pytest.fixture(scope="module")
def judge() -> Judge:
    return xgrammar_judge()


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> TinyLlama:
    return TinyLlama(tmp_path_factory.mktemp("llama"))


def told(given: Constraint, engine: Engine) -> str:
    found = compiled(given, engine, constraint_key(given))
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


@pytest.mark.parametrize("what", DIVERSE)
@pytest.mark.parametrize("name", FEW)
def test_so_they_do_for_tools_of_all_kinds(judge: Judge, name: str, what: str) -> None:
    tool, fitting, wrong = DIVERSE[what]
    given = constraint(name, tools=(tool,))
    for engine in ENGINES:
        accepts = judge(told(given, engine))
        assert accepts(answer(given, call(tool.name, fitting), stop=False)), engine
        assert not accepts(answer(given, call(f"{tool.name}s", fitting), stop=False)), engine
        assert not accepts(answer(given, call(tool.name, wrong), stop=False)), engine


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
    given, stops = constraint(name), get_dialect(name).stops
    asked: dict[str, Any] = {"prompt": "Hi", "grammar": told(given, "llamacpp"), "n_predict": 200}
    asked["preserved_tokens"] = list(rendered(name).marks)
    for seed in range(3):
        answered = llama.complete(**asked, seed=seed)
        assert "error" not in answered, answered
        text = answered["content"]
        # Of random text: half an inline code hides what follows on its line.
        broken = any(mark in text for mark in ("<think>", "`", "\N{REPLACEMENT CHARACTER}"))
        if answered["stop_type"] == "limit" or broken:
            continue
        offered = [tool.as_openai() for tool in TOOLS]
        # The server leaves out the stop token, in which a call may have its only end.
        each = (callwright.parse(given.prefill + text + end, dialect=name, tools=offered) for end in ("", *stops))
        turn = next((turn for turn in each if turn.calls and all(call.complete for call in turn.calls)), None)
        assert turn is not None, text
        if name in ENVELOPES:
            continue
        for made in turn.calls:
            assert not Toolset(TOOLS).faults(made.name, json.loads(made.arguments)), text


@pytest.mark.parametrize("name", AUTO)
def test_llama_cpp_takes_the_lazy_grammar(llama: TinyLlama, name: str) -> None:
    given = constraint(name, demanded=False)
    found = compiled(given, "llamacpp", constraint_key(given))
    assert found is not None
    assert bool(found.trigger) == (shape(given).answer is None)
    asked: dict[str, Any] = {"prompt": "Hi", "grammar": found.text, "n_predict": 4}
    if found.trigger:
        asked |= {"grammar_lazy": True, "grammar_triggers": [{"type": 1, "value": found.trigger}]}
    assert "error" not in llama.complete(**asked, preserved_tokens=list(rendered(name).marks))


@pytest.mark.parametrize("name", CASES)
def test_llama_cpp_takes_the_grammar_of_every_schema(llama: TinyLlama, name: str) -> None:
    assert "error" not in llama.complete(prompt="Hi", grammar=gbnf(Json(CASES[name][0])).grammar, n_predict=4)


def _variants(name: str) -> dict[str, Constraint]:
    """A constraint for each kind of choice."""
    every = constraint(name)
    prompt = rendered(name, NamedTool("save"))
    return {
        "named": Constraint(name, (SAVE,), start=prompt.start, prefill=prompt.prefill),
        "not parallel": single(every),
        "allowed": msgspec.structs.replace(every, tools=every.tools[1:]),
        "in reasoning": msgspec.structs.replace(every, start="reasoning", prefill=""),
        "a message": msgspec.structs.replace(every, start="message", prefill=""),
        "tools of all kinds": constraint(name, tools=tuple(tool for tool, _, _ in DIVERSE.values())),
    }


@pytest.mark.parametrize("name", SHAPED)
def test_llama_cpp_takes_the_grammar_of_every_choice(llama: TinyLlama, name: str) -> None:
    for what, given in _variants(name).items():
        found = compiled(given, "llamacpp", constraint_key(given))
        if found is not None:
            assert "error" not in llama.complete(prompt="Hi", grammar=found.text, n_predict=4), what


@pytest.mark.parametrize("name", SHAPED)
def test_xgrammar_takes_the_tag_of_every_choice(judge: Judge, name: str) -> None:
    for given in _variants(name).values():
        found = compiled(given, "xgrammar", constraint_key(given))
        assert found is None or callable(judge(found.text))


SCHEMA = {
    "type": "object",
    "properties": {"unit": {"enum": ["c", "k"]}, "days": {"type": "integer", "minimum": 0}},
    "required": ["unit", "days"],
    "additionalProperties": False,
}
WAYS: dict[str, dict[str, Any]] = {
    "raw": {"mode": "raw", "dialect": "hermes"},
    "prompt json": {"mode": "prompt", "dialect": "json"},
    "prompt qwen3_coder": {"mode": "prompt", "dialect": "qwen3_coder"},
}
CHOICES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "required": ("required", ("one", "two", "three")),
    "named": ({"type": "function", "function": {"name": "two"}}, ("two",)),
    "allowed": (
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": name}} for name in ("one", "three")],
            },
        },
        ("one", "three"),
    ),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("way", WAYS)
def test_random_weights_make_the_call_that_is_demanded(
    llama: TinyLlama, serve: Served, way: str, choice: str, stream: bool
) -> None:
    models = [ModelConfig(name=name, upstream=llama.url, server="llamacpp", retries=0, **WAYS[name]) for name in WAYS]
    gateway = serve(*models)
    tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("one", "two", "three")]
    given, names = CHOICES[choice]
    for seed in range(3):
        body = {"model": way, "messages": [QUESTION], "tools": tools, "tool_choice": given, "seed": seed}
        said = ask(gateway, {**body, "parallel_tool_calls": False, "max_tokens": 400}, stream=stream)
        ((name, arguments),) = said.calls
        assert name in names
        assert arguments.keys() == {"unit", "days"}


# --- inputs of custom tools ---

HELD: dict[str, tuple[str, str]] = {
    "classes": ("regex", r"[A-Z]{2}-\d{3}( (red|blue))?"),
    "what JSON escapes": ("regex", r'"[\\"\n\t]{1,4}"\\x'),
    "anchors, any case": ("regex", r"^(?i)(yes|no)[^a-z\s]{1,3}$"),
    "groups and codes": ("regex", r"(?:\x41|\u{42})(?P<rest>[c-e&]+|[^\W\d]{2})"),
    "a dot": ("regex", r"a.{2,5}z"),
    "a sum": (
        "lark",
        'start: "total " sum\nsum: NUMBER (OP NUMBER)~1..3\nOP: " + " | " \\"-\\" "\nNUMBER: /[0-9]{1,4}/\n',
    ),
    "ignored blanks": (
        "lark",
        'start: "a"i [NAME] INT\nNAME: "x".."z"\n%import common.INT\n%import common.WS_INLINE\n%ignore WS_INLINE',
    ),
    "recursion": ("lark", 'start: value\n?value: "[" [value ("," value)*] "]"\n  | WORD -> word\nWORD: /[ab]{1,3}/'),
    "lines": (
        "lark",
        'start: begin line+ end\nbegin: "*** A" LF\nline: /[+ -][^\\n]{0,5}/ LF\nend: "*** End" LF?\n%import common.LF',
    ),
    "imports": ("lark", 'start: (A | CNAME){1,3}\nA: NUMBER ";"\n%import common (NUMBER, CNAME)\n'),
}
UNSAYABLE: dict[str, tuple[str, str]] = {
    "a class of Unicode": ("regex", r"\p{Greek}+"),
    "a union of classes": ("regex", r"[a-z&&[^b]]+"),
    "too many": ("regex", r"[ab]{2000000}"),
    "a call of itself at its begin": ("lark", 'start: start "a" | "b"'),
    "the same behind what may be empty": ("lark", 'start: x\nx: "c"? y "a" | "b"\ny: x?'),
}


def inputs(syntax: str, definition: str) -> tuple[Json, TextUntil]:
    """An input in JSON, and as a text up to its end."""
    tool = custom_tool("write", None, Grammar(syntax, definition))
    words = input_words(tool)
    assert tool.parameters is not None
    return Json(tool.parameters, words), TextUntil((PlainText("\n</input>"),), words)


@pytest.mark.parametrize("case", HELD)
def test_gbnf_holds_inputs_to_their_grammar(llama: TinyLlama, case: str) -> None:
    grammar = Grammar(*HELD[case])
    in_json, as_text = inputs(*HELD[case])
    complete = 0
    for seed in range(8):
        answered = [
            llama.complete(prompt="Hi", grammar=gbnf(node).grammar, n_predict=200, seed=seed)
            for node in (in_json, as_text)
        ]
        assert not [answer["error"] for answer in answered if "error" in answer]
        found = [answer["content"].removesuffix("<|im_end|>") for answer in answered if answer["stop_type"] != "limit"]
        texts_ = [
            json.loads(text)["input"] if text.startswith("{") else text.removesuffix("\n</input>") for text in found
        ]
        complete += len(texts_)
        assert not [text for text in texts_ if "\N{REPLACEMENT CHARACTER}" not in text and not grammar.accepts(text)]
    assert complete > 1


@pytest.mark.parametrize("case", ["classes", "what JSON escapes", "a sum", "recursion"])
@pytest.mark.parametrize("name", ["pythonic", "functiongemma"])
def test_gbnf_holds_inputs_in_programs(llama: TinyLlama, name: str, case: str) -> None:
    tool = custom_tool("write", None, Grammar(*HELD[case]))
    given = single(constraint(name, tools=(tool,)))
    complete = 0
    for seed in range(8):
        answered = llama.complete(prompt="Hi", grammar=told(given, "llamacpp"), n_predict=200, seed=seed)
        assert "error" not in answered, answered
        text = answered["content"]
        if answered["stop_type"] == "limit" or "\N{REPLACEMENT CHARACTER}" in text:
            continue
        (made,) = callwright.parse(text, dialect=name, tools=[tool.as_openai()], tool_choice="required").calls
        assert Grammar(*HELD[case]).accepts(json.loads(made.arguments)["input"]), text
        complete += 1
    assert complete > 1


@pytest.mark.parametrize("case", UNSAYABLE)
def test_what_gbnf_cannot_say_is_free(llama: TinyLlama, case: str) -> None:
    for node in inputs(*UNSAYABLE[case]):
        held, free = gbnf(node).grammar, gbnf(msgspec.structs.replace(node, words=None)).grammar
        assert held == free
        assert "error" not in llama.complete(prompt="Hi", grammar=held, n_predict=4)
