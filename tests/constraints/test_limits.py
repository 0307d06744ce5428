"""A constrained call ends, whichever characters a model prefers; and no bound excludes a value that a schema wants."""

import json
from random import Random
from typing import Any, Final

import pytest
from llguidance import LLMatcher

from callwright.constraints.compile import compiled, constraint_key
from callwright.constraints.constraint import Constraint
from callwright.constraints.gbnf_writer import gbnf
from callwright.constraints.schema_subset import SPACING, Engine, limits_of, projected
from callwright.constraints.tree import Json, TextRule, TextUntil
from callwright.conversation import FunctionTool
from callwright.prompt import Text
from callwright.schema import validate
from tests.constraints.test_schema import of
from tests.support.grammar_engines import Llguidance, xgrammar_judge

TOKENS: Final = 384
MOST: Final = 6_000  # bytes: four for a character, and the text around the values
TEXT: Final = {"type": "string"}
NODE: Final = {
    "type": "object",
    "properties": {"name": TEXT, "inner": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
    "required": ["name", "inner"],
    "additionalProperties": False,
}
ENDLESS: Final[dict[str, dict[str, Any]]] = {
    "text": of(TEXT),
    "texts": of({"type": "array", "items": TEXT}),
    "integers": of({"type": "array", "items": {"type": "integer"}}),
    "numbers": of({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}),
    "pattern": of({"type": "string", "pattern": "^([a-z]+ ?)+$"}),
    "no anchors": of({"type": "string", "pattern": "[0-9]"}),
    "tree": of({"$ref": "#/$defs/node"}, **{"$defs": {"node": NODE}}),
    "map": of({"type": "object", "additionalProperties": TEXT}),
    "anything": of({}),
    "undeclared": {"type": "object", "properties": {"v": TEXT}, "required": ["v"]},
}
PREFERRED: Final = (b"1", b" ", b",", b"[", b"aZ", b"\\", b"0e.", bytes(range(128, 256)))


def _walk(grammar: str, preferred: bytes, seed: int) -> tuple[bytes, bool]:
    """The text of a writer that never chooses the end, and whether it had to end."""
    reading, random = Llguidance(grammar)._base.deep_copy(), Random(seed)
    out = bytearray()
    while len(out) < MOST and not reading.is_stopped():
        bias = reading.compute_logit_bias()
        allowed = [byte for byte in range(256) if bias[byte]]
        if not allowed:
            return bytes(out), True
        best = [byte for byte in allowed if byte in preferred] or [byte for byte in allowed if byte not in b'"}]']
        byte = random.choice(best or allowed)
        assert reading.try_consume_tokens([byte]) == 1
        out.append(byte)
    return bytes(out), reading.is_stopped()


@pytest.mark.parametrize("name", ENDLESS)
def test_a_writer_that_never_chooses_the_end_ends(name: str) -> None:
    schema = ENDLESS[name]
    bounded = projected(schema, "llguidance", limits_of([schema], TOKENS))
    grammar = LLMatcher.grammar_from_json_schema({**bounded, **SPACING})
    for preferred in PREFERRED:
        text, ended = _walk(grammar, preferred, len(preferred))
        assert ended, text[:300]
        assert validate.is_valid(schema, json.loads(text)), text[:300]


DEMANDED: Final[dict[str, tuple[dict[str, Any], Any]]] = {
    "many items": (of({"type": "array", "items": TEXT, "minItems": 200}), {"v": ["a"] * 200}),
    "a long text": (of({"type": "string", "minLength": 1500}), {"v": "a" * 1500}),
    "a long constant": (of({"const": "abc " * 900}), {"v": "abc " * 900}),
    "a large number": (of({"type": "integer", "minimum": 10**17}), {"v": 10**17}),
    "a small number": (of({"type": "number", "exclusiveMinimum": 0, "maximum": 1e-10}), {"v": 1e-11}),
    "a long pattern": (of({"type": "string", "pattern": "^[a-z]{700}$"}), {"v": "a" * 700}),
    "a tuple": (of({"type": "array", "prefixItems": [TEXT, {"type": "number"}], "minItems": 2}), {"v": ["a", 1.5]}),
    "a price": (of({"type": "number", "multipleOf": 0.01}), {"v": 19.99}),
}


@pytest.mark.processes
@pytest.mark.parametrize("name", DEMANDED)
def test_no_bound_excludes_what_a_schema_demands(name: str) -> None:
    schema, value = DEMANDED[name]
    limits, text = limits_of([schema], TOKENS), json.dumps(value).replace("1e-11", "0.00000000001")
    held = Llguidance(LLMatcher.grammar_from_json_schema({**projected(schema, "llguidance", limits), **SPACING}))
    assert held.accepts(text)
    assert validate.is_valid(schema, value)
    if name != "a long pattern":
        assert xgrammar_judge()(gbnf(Json(schema, limits=limits)).grammar)(text)


@pytest.mark.parametrize("target", ["llamacpp", "xgrammar"])
@pytest.mark.parametrize("dialect", ["hermes", "qwen3_coder", "lfm2", "gemma4", "kimi_k2"])
def test_no_repetition_of_a_grammar_is_without_end(dialect: str, target: Engine) -> None:
    tools = tuple(FunctionTool(name, parameters=schema) for name, schema in ENDLESS.items() if name != "no anchors")
    held = Constraint(dialect, tuple(tool for tool in tools if tool.name.isalpha()), tokens=TOKENS)
    found = compiled(held, target, constraint_key(held))
    assert found is not None
    plain = found.text.replace('"*"', "").replace('"+"', "")
    assert not [at for at in (")*", "]*", "char*", "]+ ", ")+") if at in plain]


def test_more_tokens_give_more_room() -> None:
    schema = ENDLESS["texts"]
    limits = [limits_of([schema], tokens) for tokens in (64, 400, 4_000, 40_000, None)]
    texts = [one.characters for one in limits[:4]]
    assert texts == sorted(texts)
    assert limits[0] != limits[3]


@pytest.mark.parametrize("value", [19.99, 0.07, 1e10 + 0.01, -4.35, 0.3])
def test_multiples_of_a_decimal_are_judged_in_decimals(value: float) -> None:
    assert validate.is_valid({"multipleOf": 0.01}, value)
    assert not validate.is_valid({"multipleOf": 0.01}, value + 0.005 if value < 1e6 else 0.005)


ENDS: Final = ("<|end|>", "\n</p>\n", "</a></b>", "##", ">")


@pytest.mark.processes
@pytest.mark.parametrize("end", ENDS)
def test_a_text_goes_up_to_its_first_end(end: str) -> None:
    make, random = xgrammar_judge(), Random(end)
    judge = make(gbnf(TextUntil((Text(end),), TextRule(0, 12))).grammar)
    for _ in range(300):
        text = "".join(random.choice(end[:2] + "x" + end) for _ in range(random.randrange(13)))
        assert judge(text + end) == ((text + end).index(end) == len(text)), text
    judge = make(gbnf(TextUntil((Text(end),), TextRule(2, 12))).grammar)
    for text in ("xx", "x" * 12, "é\U0001f600 x"):
        assert judge(text + end), text
    for text in ("", "x", "x" * 13):
        assert not judge(text + end), text


@pytest.mark.processes
def test_a_text_holds_parts_of_its_end() -> None:
    judge = xgrammar_judge()(gbnf(TextUntil((Text("\n</p>\n"),), TextRule(0, 12))).grammar)
    for text in ("a\n", "a\n\n\nb\n\n", "</p>", "\n</p", "\n</\n</x\n", "<" * 12):
        assert judge(f"{text}\n</p>\n"), text
    assert not judge("\n" * 40 + "\n</p>\n")
    assert not judge("x\n" * 13 + "\n</p>\n")
