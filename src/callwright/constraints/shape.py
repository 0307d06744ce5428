"""The shape of an answer that must call a tool, or may: one shape for all engines.

It is derived from the dialect's declaration: the layout of its calls and the marks of its turns. If no engine can
enforce the notation of arguments, they are free text up to their end.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from callwright.constraints.constraint import Constraint, arguments_schema
from callwright.constraints.format import Delimited, delimited, frame_of, splitter_of
from callwright.constraints.format_pieces import Fixed, Splitter, fixed_text, without_start
from callwright.constraints.limits import Limits
from callwright.constraints.literal_values import Notation, notation_of
from callwright.constraints.text_values import TextCalls, input_words
from callwright.constraints.tree import (
    Alternatives,
    Concatenation,
    GrammarNode,
    Json,
    Literal,
    Optional,
    Repeat,
    TextRule,
    TextUntil,
    Triggered,
)
from callwright.constraints.tree import Text as FreeText
from callwright.conversation import FunctionTool
from callwright.dialects.base import get_dialect
from callwright.layout.calls import (
    CallLayout,
    ElementArguments,
    JsonArguments,
    TaggedArguments,
    TypedArguments,
)
from callwright.prompt import Control, Text

# A text of at least this length is a mark.
_MARKED: Final = 8


class CallShape(msgspec.Struct, frozen=True):
    """One call of one tool."""

    name: str
    begin: Fixed
    arguments: GrammarNode
    end: Fixed


class AnswerShape(msgspec.Struct, frozen=True):
    """An answer: reasoning, a preamble (both optional), then calls, the first of which has begun with `prefill`.

    `in_reasoning`: the prompt has opened it. `answer`: the marks of a text that is the answer. `stop` is the stop token
    after the last call, which only some engines require.
    """

    calls: tuple[CallShape, ...]
    open: Fixed = ()
    separator: Fixed = ()
    close: Fixed = ()
    stop: Fixed = ()
    several: bool = False
    limits: Limits | None = None
    prefill: str = ""
    reasoning: Delimited | None = None
    in_reasoning: bool = False
    preamble: Delimited | None = None
    demanded: bool = True
    answer: Delimited | None = None


def shape_of(constraint: Constraint) -> AnswerShape | None:
    """The shape of the requested answers; None if the format has none."""
    if not constraint.tools:
        return None
    dialect = get_dialect(constraint.dialect)
    layout, marks, cut = dialect.calls.layout, dialect.prompt.marks, splitter_of(dialect)
    limits = constraint.limits
    notation = notation_of(layout, cut, limits)
    calls: list[CallShape] = []
    for tool in constraint.tools:
        call = _call(layout, cut, tool, notation, limits)
        if call is None:
            return None
        calls.append(call)
    frame = frame_of(layout, cut, "")
    reasoning = delimited(marks.thought, cut)
    in_reasoning = constraint.start == "reasoning"
    if (in_reasoning and reasoning is None) or (constraint.prefill and not constraint.demanded):
        return None
    shape = AnswerShape(
        calls=tuple(calls),
        open=frame.open,
        separator=frame.separator,
        close=frame.close,
        stop=frame.stop,
        several=frame.several and constraint.parallel,
        limits=limits,
        prefill=constraint.prefill,
        reasoning=reasoning if not constraint.prefill else None,
        in_reasoning=in_reasoning,
        preamble=delimited(marks.said, cut) if not constraint.prefill else None,
        demanded=constraint.demanded,
        answer=delimited(marks.answer, cut) if not constraint.demanded else None,
    )
    return shape if constraint.demanded or shape.answer or _trigger(shape) else None


def _call(
    layout: CallLayout, cut: Splitter, tool: FunctionTool, notation: Notation | None, limits: Limits
) -> CallShape | None:
    frame = frame_of(layout, cut, tool.name)
    arguments = _arguments(layout, cut, tool, notation, limits)
    if arguments is not None:
        return CallShape(tool.name, frame.begin, arguments, frame.end)
    if not _closes(frame.end):
        return None
    return CallShape(tool.name, frame.begin, TextUntil(frame.end, TextRule(most=limits.characters)), ())


def _arguments(
    layout: CallLayout, cut: Splitter, tool: FunctionTool, notation: Notation | None, limits: Limits
) -> GrammarNode | None:
    """The arguments of a tool; None where no engine holds how they are written."""
    match layout.arguments:
        case JsonArguments():
            return Json(arguments_schema(tool), input_words(tool, limits), limits)
        case TaggedArguments() | ElementArguments() | TypedArguments() as tagged:
            return TextCalls(tagged, cut, tool, limits).arguments()
    return notation.arguments(arguments_schema(tool), tool) if notation else None


def _closes(end: Fixed) -> bool:
    """Whether this can end a free text: it is unlikely to occur in one."""
    return any(isinstance(piece, Control) for piece in end) or len(fixed_text(end) or "") >= _MARKED


def marks_answers(name: str) -> bool:
    """Whether a text that is the answer has marks in this dialect: then its messages have headers."""
    return get_dialect(name).prompt.marks.answer is not None


def reasoning_opener(name: str) -> str:
    """The text with which this dialect begins reasoning; empty if it writes none."""
    thought = get_dialect(name).prompt.marks.thought
    return thought[0] if thought else ""


# --- as a tree ---


def sentence(shape: AnswerShape, *, stop: bool = False) -> GrammarNode | None:
    """The tree of a shape, with its stop token if the engine wants to see it; None when the prompt begins a call in
    another way.
    """
    calls = _calls(shape)
    if calls is None:
        return None
    head = _head(shape)
    end = Literal(shape.stop if stop else ())
    if shape.demanded:
        return _row([*head, calls, end])
    if shape.answer is not None:
        closed = shape.answer.end
        text = Concatenation((Literal(shape.answer.begin), TextUntil(closed) if closed else FreeText()))
        return _row([*head, Alternatives((_row([calls, end]), text))])
    return _row([*head, _triggered(shape)]) if shape.in_reasoning else _triggered(shape)


def _triggered(shape: AnswerShape) -> GrammarNode:
    """Free text with calls in it: with one list of calls, or with calls one by one."""
    trigger = _trigger(shape)
    firsts = [(call, without_start(shape.open + call.begin, trigger) or ()) for call in shape.calls]
    if not shape.open:
        ends = {call.end for call in shape.calls}
        end = ends.pop() if len(ends) == 1 else ()
        inner = [_row([Literal(begin), call.arguments, Literal(() if end else call.end)]) for call, begin in firsts]
        rest = _choice(inner)
        return Triggered(trigger, rest, end, _more(shape) if shape.several else None)
    first = _choice([_one(call, begin) for call, begin in firsts])
    rest = _row([first, _more(shape)]) if shape.several else first
    return Triggered(trigger, rest, shape.close, None)


def _head(shape: AnswerShape) -> list[GrammarNode]:
    """Reasoning and preamble."""
    nodes: list[GrammarNode] = []
    at_line_start = not isinstance((shape.open + shape.calls[0].begin)[0], Control)
    if shape.reasoning is not None:
        inner = _text_until(shape.reasoning.end, shape.limits, at_line_start=at_line_start)
        begin = Literal(_stripped(shape.reasoning.begin, front=False))
        nodes.append(inner if shape.in_reasoning else Optional(Concatenation((begin, inner))))
    if shape.preamble is not None:
        nodes.append(
            Optional(
                Concatenation(
                    (Literal(shape.preamble.begin), _text_until(shape.preamble.end, shape.limits, at_line_start=False))
                )
            )
        )
    return nodes


def _text_until(end: Fixed, limits: Limits | None, *, at_line_start: bool) -> GrammarNode:
    """Free text up to its end mark, no longer than a preamble may be.

    Line feeds around that are free, except one that the next piece requires.
    """
    text = fixed_text(end) or ""
    marks = _stripped(end)
    at = 1 if isinstance(marks[0], Control) else len(marks)
    line_feed = Literal((Text("\n"),))
    blanks: list[GrammarNode] = [Optional(line_feed)] * 2 if text != text.rstrip() or at == len(marks) else []
    if at_line_start and text.endswith("\n"):
        blanks[0] = line_feed
    words = TextRule(most=limits.preamble) if limits is not None else None
    return _row([TextUntil(marks[:at], words), Literal(marks[at:]), *blanks])


def _stripped(fixed: Fixed, *, front: bool = True) -> Fixed:
    """Without the blanks at its end, and those at its front."""
    pieces = list(fixed)
    for at, strip in ((0, str.lstrip), (-1, str.rstrip))[0 if front else 1 :]:
        piece = pieces[at]
        if isinstance(piece, Text):
            pieces[at] = Text(strip(piece.text))
    return tuple(piece for piece in pieces if piece != Text(""))


def _trigger(shape: AnswerShape) -> str:
    """The control token with which all calls begin; empty if they begin with anything that may occur in a text."""
    firsts = {(shape.open + call.begin)[0] for call in shape.calls}
    first = firsts.pop()
    return first.text if isinstance(first, Control) and not firsts else ""


def _calls(shape: AnswerShape) -> GrammarNode | None:
    """All calls, without the part of the first that is in the prompt."""
    rests = [(call, without_start(shape.open + call.begin, shape.prefill)) for call in shape.calls]
    firsts = [_one(call, begin) for call, begin in rests if begin is not None]
    if not firsts:
        return None
    more = [_more(shape)] if shape.several else []
    return _row([_choice(firsts), *more, Literal(shape.close)])


def _more(shape: AnswerShape) -> GrammarNode:
    """The calls after the first.

    The separator is a part of each: engines that split a text into lexemes would take a line feed alone for the start
    of the mark that closes all calls.
    """
    most = shape.limits.calls if shape.limits is not None else None
    return Repeat(_choice([_one(call, shape.separator + call.begin) for call in shape.calls]), most)


def _one(call: CallShape, begin: Fixed) -> GrammarNode:
    return _row([Literal(begin), call.arguments, Literal(call.end)])


def _row(nodes: Sequence[GrammarNode]) -> GrammarNode:
    kept = tuple(node for node in nodes if not (isinstance(node, Literal) and not node.fixed))
    return kept[0] if len(kept) == 1 else Concatenation(kept)


def _choice(nodes: Sequence[GrammarNode]) -> GrammarNode:
    return nodes[0] if len(nodes) == 1 else Alternatives(tuple(nodes))
