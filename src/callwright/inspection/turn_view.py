"""A whole turn: the request, the prompt, output and parsed result of each attempt, and the answer."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from callwright.inspection.prompt_view import PromptPiece, prompt_pieces
from callwright.inspection.reading import Reading, read_replay
from callwright.inspection.summary import TurnSummary
from callwright.reading.collect import collect
from callwright.turn.records import AttemptFacts, Record, RecordedAttempt, RecordedTool
from callwright.turn.reread import Replay, recorded_events, replays, reread

# Whether the contents are here: all of them; never stored; evicted; only for operators' keys.
Contents: TypeAlias = Literal["full", "metadata", "gone", "operators"]


class AttemptView(AttemptFacts, kw_only=True):
    """One request to the model.

    `differs`: differences between the recorded events and a parse by the installed version.
    """

    prompt: list[PromptPiece] | None = None
    constraint: dict[str, str] | None = None
    reading: Reading | None = None
    differs: list[str] = field(default_factory=list)


class Answer(Struct):
    """The answer as sent. A call: `name`, `arguments`, `complete`, `kind`."""

    content: str | None
    reasoning: str | None
    calls: list[dict[str, Any]]
    finish_reason: str | None


class TurnView(Struct, kw_only=True):
    """See the module's docstring. `request` is the client's body, without keys. `ambiguous` is what became of a text
    that may have been a call, and of which the model was asked.
    """

    row: TurnSummary
    contents: Contents
    request: Any = None
    tools: list[RecordedTool] = []
    tool_choice: str | dict[str, str] = "auto"
    attempts: list[AttemptView] = []
    answer: Answer | None = None
    problems: list[dict[str, Any]] = []
    error: str | None = None
    ambiguous: str | None = None


def bare_view(row: TurnSummary, contents: Contents, attempts: Sequence[RecordedAttempt] = ()) -> TurnView:
    """A turn without contents."""
    return TurnView(row=row, contents=contents, attempts=[_facts(attempt) for attempt in attempts])


def turn_view(row: TurnSummary, record: Record, *, compares: bool = False) -> TurnView:
    """A turn with its contents.

    `compares`: include the differences to a parse by the installed version. Raises `RecordError` for an invalid record.
    """
    again = replays(record, trace=True)
    then = reread(record) if compares else [None] * len(again)
    attempts = [
        _attempt(attempt, replay, record.tools, differing=one.differing if one else [])
        for attempt, replay, one in zip(record.attempts, again, then, strict=True)
    ]
    return TurnView(
        row=row,
        contents="full",
        request=record.request,
        tools=record.tools,
        tool_choice=record.tool_choice,
        attempts=attempts,
        answer=_answer(record),
        problems=record.problems,
        error=record.error,
        ambiguous=record.ambiguous,
    )


def _facts(attempt: RecordedAttempt) -> AttemptView:
    return AttemptView(**{name: getattr(attempt, name) for name in AttemptFacts.__struct_fields__})


def _attempt(
    attempt: RecordedAttempt, again: Replay | None, tools: Sequence[RecordedTool], *, differing: list[str]
) -> AttemptView:
    view = _facts(attempt)
    view.differs = differing
    if attempt.prompt is not None:
        view.prompt = prompt_pieces(attempt.prompt, attempt.controls, attempt.prefill, tools)
    if attempt.constraint is not None:
        view.constraint = dict(zip(("kind", "text"), attempt.constraint, strict=True))
    if again is not None:
        view.reading = read_replay(again)
    return view


def _answer(record: Record) -> Answer | None:
    """The answer as sent, from the last attempt; None if the record is cut."""
    if not record.attempts or record.attempts[-1].is_cut or record.is_cut:
        return None
    turn = collect(recorded_events(record.attempts[-1]))
    calls = [
        {"name": call.name, "arguments": call.arguments, "complete": call.complete, "kind": call.kind}
        for call in turn.calls
    ]
    return Answer(turn.content, turn.reasoning, calls, record.finish_reason)
