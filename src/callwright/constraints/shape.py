"""What an answer may look like that has to call a tool, or may: one shape for all engines.

A dialect may say it itself, as `shape(constraint) -> Shape | None`; for all others it is derived from what they write.
Not every format has a shape: then there is no constraint, and the check alone holds.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from callwright.constraints.constraint import Constraint
from callwright.constraints.format import (
    MARK,
    Frame,
    Span,
    answer_span,
    frame_of,
    preamble_span,
    reasoning_span,
)
from callwright.constraints.format_pieces import Fixed, Splitter, text_of, without_start
from callwright.constraints.literal_values import Notation, notation_of
from callwright.constraints.text_values import TextCalls, input_words
from callwright.constraints.tree import (
    Choice,
    Json,
    Literal,
    Maybe,
    Node,
    Repeated,
    Row,
    Triggered,
    Until,
)
from callwright.constraints.tree import Text as FreeText
from callwright.conversation import Call, Conversation, FunctionTool, JsonObject, Message, TextPart
from callwright.dialects.base import Dialect, get_dialect
from callwright.prompt import Control, Text

__all__ = ["CallShape", "Shape", "arguments_schema", "marks_answers", "reasoning_opener", "sentence", "shape_of"]

# A text of so many characters is a mark.
_MARKED: Final = 8
# Where a tool is declared without parameters it takes none.
_NOTHING: Final[JsonObject] = {"type": "object", "properties": {}, "additionalProperties": False}


class CallShape(msgspec.Struct, frozen=True):
    """One call of one tool."""

    name: str
    begin: Fixed
    arguments: Node
    end: Fixed


class Shape(msgspec.Struct, frozen=True):
    """An answer: reasoning, a preamble (both optional), then calls, of which the first has begun with `prefill`.

    `in_reasoning`: the prompt has opened it. `answer`: how a text is marked that is the answer. `stop` is the stop
    token behind the last call, which only some engines want to see.
    """

    calls: tuple[CallShape, ...]
    open: Fixed = ()
    separator: Fixed = ()
    close: Fixed = ()
    stop: Fixed = ()
    several: bool = False
    prefill: str = ""
    reasoning: Span | None = None
    in_reasoning: bool = False
    preamble: Span | None = None
    demanded: bool = True
    answer: Span | None = None


def shape_of(constraint: Constraint) -> Shape | None:
    """The shape of the answers that are asked for; None where the format has none."""
    dialect = get_dialect(constraint.dialect)
    own = getattr(dialect, "shape", None)
    if own is not None:
        shape: Shape | None = own(constraint)
        return shape
    if not constraint.tools:
        return None
    cut = Splitter(_controls(constraint.dialect))
    notation = notation_of(dialect, cut)
    found: list[tuple[CallShape, Frame]] = []
    for tool in constraint.tools:
        call = _call(dialect, cut, tool, notation)
        if call is None or (found and call[1].outside != found[0][1].outside):
            return None
        found.append(call)
    frame = found[0][1]
    sample = Call(constraint.tools[0].name, MARK)
    reasoning = reasoning_span(dialect, cut, sample)
    in_reasoning = constraint.start == "reasoning"
    if (in_reasoning and reasoning is None) or (constraint.prefill and not constraint.demanded):
        return None
    shape = Shape(
        calls=tuple(call for call, _ in found),
        open=frame.open,
        separator=frame.separator,
        close=frame.close,
        stop=frame.stop,
        several=frame.several and constraint.parallel,
        prefill=constraint.prefill,
        reasoning=reasoning if not constraint.prefill else None,
        in_reasoning=in_reasoning,
        preamble=preamble_span(dialect, cut, sample) if not constraint.prefill else None,
        demanded=constraint.demanded,
        answer=answer_span(dialect, cut) if not constraint.demanded else None,
    )
    return shape if constraint.demanded or shape.answer or _trigger(shape) else None


def _call(
    dialect: Dialect, cut: Splitter, tool: FunctionTool, notation: Notation | None
) -> tuple[CallShape, Frame] | None:
    call = Call(tool.name, MARK)
    frame = frame_of(dialect, cut, call, MARK)
    arguments: Node | None = Json(arguments_schema(tool), input_words(tool))
    end: Fixed | None = None
    if frame is None:
        texts = TextCalls(dialect, cut, tool)
        frame = frame_of(dialect, cut, call, texts.mark) if texts.mark else None
        arguments = notation.arguments(arguments_schema(tool), tool) if notation else texts.arguments()
        if frame is not None and arguments is None and _closes(frame.end):
            arguments, end = Until(frame.end), ()
    if frame is None or arguments is None:
        return None
    return CallShape(tool.name, frame.begin, arguments, frame.end if end is None else end), frame


def _closes(end: Fixed) -> bool:
    """Whether this can end a free text: something that hardly stands in one."""
    return any(isinstance(piece, Control) for piece in end) or len(text_of(end) or "") >= _MARKED


def arguments_schema(tool: FunctionTool) -> JsonObject:
    """The schema of a tool's arguments, which are an object whatever it says."""
    if tool.parameters is None:
        return _NOTHING
    return {**tool.parameters, "type": "object"}


@lru_cache(256)
def marks_answers(name: str) -> bool:
    """Whether a text that is the answer has marks in this dialect: then its messages have headers."""
    return answer_span(get_dialect(name), Splitter(_controls(name))) is not None


@lru_cache(256)
def reasoning_opener(name: str) -> str:
    """The text with which this dialect begins reasoning; empty where it writes none."""
    span = reasoning_span(get_dialect(name), Splitter(_controls(name)), Call("f", MARK))
    return (text_of(span.begin) or "") if span is not None else ""


@lru_cache(256)
def _controls(name: str) -> tuple[str, ...]:
    """The control tokens of a family, as its prompts name them."""
    dialect = get_dialect(name)
    asked = Conversation((Message("user", (TextPart("?"),)),))
    return tuple(sorted({*dialect.render(asked, dialect.Options()).controls, *dialect.stops}))


# --- as a tree ---


def sentence(shape: Shape, *, stop: bool = False) -> Node | None:
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
        text = Row((Literal(shape.answer.begin), Until(closed) if closed else FreeText()))
        return _row([*head, Choice((_row([calls, end]), text))])
    return _row([*head, _triggered(shape)]) if shape.in_reasoning else _triggered(shape)


def _triggered(shape: Shape) -> Node:
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


def _head(shape: Shape) -> list[Node]:
    """Reasoning and preamble."""
    nodes: list[Node] = []
    at_line_start = not isinstance((shape.open + shape.calls[0].begin)[0], Control)
    if shape.reasoning is not None:
        inner = _ended(shape.reasoning.end, at_line_start=at_line_start)
        begin = Literal(_stripped(shape.reasoning.begin, front=False))
        nodes.append(inner if shape.in_reasoning else Maybe(Row((begin, inner))))
    if shape.preamble is not None:
        nodes.append(Maybe(Row((Literal(shape.preamble.begin), _ended(shape.preamble.end, at_line_start=False)))))
    return nodes


def _ended(end: Fixed, *, at_line_start: bool) -> Node:
    """Free text up to its end mark. Line feeds around that are free, but one where what follows has to begin a line."""
    text = text_of(end) or ""
    marks = _stripped(end)
    at = 1 if isinstance(marks[0], Control) else len(marks)
    line_feed = Literal((Text("\n"),))
    blanks: list[Node] = [Maybe(line_feed)] * 2 if text != text.rstrip() or at == len(marks) else []
    if at_line_start and text.endswith("\n"):
        blanks[0] = line_feed
    return _row([Until(marks[:at]), Literal(marks[at:]), *blanks])


def _stripped(fixed: Fixed, *, front: bool = True) -> Fixed:
    """Without the blanks at its end, and those at its front."""
    pieces = list(fixed)
    for at, strip in ((0, str.lstrip), (-1, str.rstrip))[0 if front else 1 :]:
        piece = pieces[at]
        if isinstance(piece, Text):
            pieces[at] = Text(strip(piece.text))
    return tuple(piece for piece in pieces if piece != Text(""))


def _trigger(shape: Shape) -> str:
    """The control token with which all calls begin; empty when they begin with something that may stand in a text."""
    firsts = {(shape.open + call.begin)[0] for call in shape.calls}
    first = firsts.pop()
    return first.text if isinstance(first, Control) and not firsts else ""


def _calls(shape: Shape) -> Node | None:
    """All calls, without what of the first stands in the prompt."""
    rests = [(call, without_start(shape.open + call.begin, shape.prefill)) for call in shape.calls]
    firsts = [_one(call, begin) for call, begin in rests if begin is not None]
    if not firsts:
        return None
    more = [_more(shape)] if shape.several else []
    return _row([_choice(firsts), *more, Literal(shape.close)])


def _more(shape: Shape) -> Node:
    """The calls behind the first."""
    again = _choice([_one(call, call.begin) for call in shape.calls])
    return Repeated(_row([Literal(shape.separator), again]))


def _one(call: CallShape, begin: Fixed) -> Node:
    return _row([Literal(begin), call.arguments, Literal(call.end)])


def _row(nodes: Sequence[Node]) -> Node:
    kept = tuple(node for node in nodes if not (isinstance(node, Literal) and not node.fixed))
    return kept[0] if len(kept) == 1 else Row(kept)


def _choice(nodes: Sequence[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Choice(tuple(nodes))
