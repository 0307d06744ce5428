"""An answer whose text has a form (JSON by a schema, one of a few words), alone or with calls, as one tree."""

from msgspec.structs import replace

from callwright.constraints.constraint import AnswerForm, Constraint
from callwright.constraints.format import Delimited, delimited, splitter_of
from callwright.constraints.format_pieces import Fixed, Splitter, fixed_text
from callwright.constraints.limits import Limits
from callwright.constraints.shape import sentence, shape_of
from callwright.constraints.tree import (
    Alternatives,
    Concatenation,
    GrammarNode,
    Json,
    Literal,
    Optional,
    TextRule,
    TextUntil,
)
from callwright.dialects.base import get_dialect
from callwright.prompt import Text


def answer_sentence(constraint: Constraint, form: AnswerForm, *, stop: bool, lexes: bool) -> GrammarNode | None:
    """The tree; None if the prompt has opened reasoning that the dialect does not close, or its calls have no shape.

    A chat server marks its answers itself, so after the start `message` the form is all. `lexes`: the engine splits a
    text into lexemes, of which the longest wins, so that a call that begins like JSON hides an answer in JSON.
    """
    calls: GrammarNode | None = None
    if constraint.tools:
        shape = shape_of(replace(constraint, form=None, demanded=True))
        if shape is None:
            return None
        begins = [fixed_text(shape.open + call.begin) or "" for call in shape.calls]
        if lexes and any(begin.startswith("{") for begin in begins):
            return None
        calls = sentence(replace(shape, preamble=None), stop=stop)  # a preamble looks like an answer
        if calls is None:
            return None
    answer = _form(form, constraint.limits)
    if constraint.start != "message":
        dialect = get_dialect(constraint.dialect)
        marks, cut = dialect.prompt.marks, splitter_of(dialect)
        if (span := delimited(marks.answer, cut)) is not None:
            answer = Concatenation((Literal(span.begin), answer, *_fixed(span.end)))
        thought = _stripped(marks.thought, cut)
        if constraint.start == "reasoning" and thought is None:
            return None
        if thought is not None:
            inner = _until(thought.end, TextRule(most=constraint.limits.preamble))
            head = (
                inner if constraint.start == "reasoning" else Optional(Concatenation((Literal(thought.begin), inner)))
            )
            answer = Concatenation((head, answer))
    return answer if calls is None else Alternatives((calls, answer))


def _form(form: AnswerForm, limits: Limits) -> GrammarNode:
    if form.schema is not None:
        return Json(form.schema, limits=limits)
    return Alternatives(tuple(Literal((Text(word),)) for word in form.words))


def _stripped(marks: tuple[str, str] | None, cut: Splitter) -> Delimited | None:
    """How reasoning before an answer is marked, without the blanks around; None when it is not."""
    begin, end = marks or ("", "")
    return delimited((begin.rstrip(), end.strip()), cut) if begin.strip() and end.strip() else None


def _until(end: Fixed, words: TextRule) -> GrammarNode:
    """Free text up to the first mark of its end, then the others; line feeds after that are free."""
    line_feed = Optional(Literal((Text("\n"),)))
    return Concatenation((TextUntil(end[:1], words), *_fixed(end[1:]), line_feed, line_feed))


def _fixed(fixed: Fixed) -> tuple[GrammarNode, ...]:
    """A fixed text, if there is one: engines refuse one of no characters."""
    return (Literal(fixed),) if fixed else ()
