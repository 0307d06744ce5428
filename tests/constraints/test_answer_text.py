"""The grammar of an answer whose text has a form: in every dialect, what the model would write is of it."""

import pytest

from callwright.constraints.compile import compiled, constraint_key
from callwright.constraints.constraint import AnswerForm, Constraint
from callwright.conversation import AssistantTurn, Call, FunctionTool, Message, TextPart
from callwright.dialects.base import dialect_names, get_dialect
from tests.support.grammar_engines import Llguidance

SIGHT = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "height": {"type": "integer"}},
    "required": ["place", "height"],
    "additionalProperties": False,
}
GOOD = '{"place": "Eiffel Tower", "height": 330}'
TOOL = FunctionTool("get_weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}})
FORMS = {"json": AnswerForm(SIGHT), "words": AnswerForm(words=("RUN", "SHOWN"))}
dialects = pytest.mark.parametrize("dialect", dialect_names())


def grammar_of(dialect: str, form: AnswerForm, *tools: FunctionTool) -> Llguidance:
    constraint = Constraint(dialect, tools, demanded=False, start="assistant", form=form)
    found = compiled(constraint, "llguidance", constraint_key(constraint))
    assert found is not None
    return Llguidance(found.text)


def written(dialect: str, text: str, reasoning: str | None = None) -> str:
    """What the model writes, without the token at which it stops."""
    known = get_dialect(dialect)
    whole = known.write(AssistantTurn(reasoning, Message("assistant", (TextPart(text),))))
    for stop in known.stops:
        whole = whole.removesuffix(stop)
    return whole


@dialects
@pytest.mark.parametrize("kind", FORMS)
def test_an_answer_in_the_form_is_of_the_grammar_and_no_other(dialect: str, kind: str) -> None:
    grammar = grammar_of(dialect, FORMS[kind])
    good, bad = (GOOD, "It is 330 m high.") if kind == "json" else ("RUN", "RUNNING")
    for reasoning in (None, "Hm, let me think."):
        assert grammar.accepts(written(dialect, good, reasoning))
        assert not grammar.accepts(written(dialect, bad, reasoning))


# Its calls begin as JSON does: an engine that takes the longest lexeme cannot tell them from an answer in JSON.
BARE = "llama3_json"


@pytest.mark.parametrize("dialect", [name for name in dialect_names() if name != BARE])
def test_beside_calls_both_are_of_the_grammar(dialect: str) -> None:
    grammar = grammar_of(dialect, FORMS["json"], TOOL)
    assert grammar.accepts(written(dialect, GOOD))
    assert not grammar.accepts(written(dialect, "It is 330 m high."))
    assert grammar.accepts(get_dialect(dialect).write(AssistantTurn(calls=[Call("get_weather", '{"city": "Oslo"}')])))


@dialects
@pytest.mark.parametrize("target", ["xgrammar", "llamacpp"])
@pytest.mark.parametrize("tools", [(), (TOOL,)], ids=["alone", "with tools"])
def test_every_engine_is_told_the_form(dialect: str, target: str, tools: tuple[FunctionTool, ...]) -> None:
    constraint = Constraint(dialect, tools, demanded=False, start="assistant", form=FORMS["json"])
    found = compiled(constraint, "xgrammar" if target == "xgrammar" else "llamacpp", constraint_key(constraint))
    assert found is not None
    assert "height" in found.text
    assert '"value":""' not in found.text


def test_what_an_engine_cannot_tell_apart_is_left_to_the_check() -> None:
    constraint = Constraint(BARE, (TOOL,), demanded=False, start="assistant", form=FORMS["json"])
    assert compiled(constraint, "llguidance", constraint_key(constraint)) is None


def test_a_chat_server_marks_its_answers_itself() -> None:
    constraint = Constraint("harmony", (), demanded=False, start="message", form=FORMS["words"])
    found = compiled(constraint, "llamacpp", constraint_key(constraint))
    assert found is not None
    assert "channel" not in found.text


def test_behind_opened_reasoning_the_answer_waits_for_its_end() -> None:
    constraint = Constraint("hermes", (), demanded=False, start="reasoning", form=FORMS["json"])
    found = compiled(constraint, "llguidance", constraint_key(constraint))
    assert found is not None
    assert Llguidance(found.text).accepts(f"Hm.\n</think>\n\n{GOOD}")
    assert not Llguidance(found.text).accepts(GOOD)


def test_forms_that_differ_are_kept_apart() -> None:
    keys = {
        constraint_key(Constraint("hermes", (), demanded=False, form=form))
        for form in (*FORMS.values(), AnswerForm({"type": "object"}), None)
    }
    assert len(keys) == 4
