"""One turn in a row of a list: its model, outcome and cost. Of its contents only `asked` and `called`."""

from collections import Counter
from datetime import datetime
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from callwright.errors import CallwrightError, RefusedByServerError, RequestError, UpstreamError
from callwright.turn.call_outcome import TurnEnd, TurnOutcome, turn_end, turn_outcome
from callwright.turn.observe import Observation
from callwright.turn.records import Record, words_asked

# The number of called tools in a row, and the characters of each name.
_MAX_CALLED: Final = 16
_NAME_CHARS: Final = 100


class TurnSummary(Struct, kw_only=True):
    """A turn, or a request that was refused before there was one.

    `at` is when it began, in Unix seconds; `first_s` and `seconds` are since then. `calls`: the number of calls sent.
    `again_of` is the turn that was repeated by hand. `reasoning_put_back`: number of earlier turns whose reasoning the
    client had dropped and the gateway restored. `conversation` is the same for the turns of one conversation of a key.
    `asked` are the last words of the user, cut off, and `called` the first tools that were called, in order: both empty
    if `has_contents` is false.
    """

    id: str
    at: float
    request_id: str = ""
    key: str = ""
    endpoint: str = ""
    model: str = ""
    mode: str = ""
    dialect: str | None = None
    tools: int = 0
    calls: int = 0
    streamed: bool = False
    over: bool = False
    outcome: TurnOutcome = ""
    problems: dict[str, int] = {}
    attempts: int = 0
    first_s: float | None = None
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    reasoning_put_back: int = 0
    error: str | None = None
    again_of: str | None = None
    has_contents: bool = False
    conversation: str = ""
    ended: TurnEnd = ""
    asked: str = ""
    called: list[str] = []

    def without_contents(self) -> "TurnSummary":
        """The row for a reader who may not see contents."""
        return replace(self, asked="", called=[]) if self.asked or self.called else self


def summary_of(seen: Observation, id_: str, at: float, *, has_contents: bool = False) -> TurnSummary:
    """The row of a turn that begins. `has_contents`: its contents are stored."""
    return TurnSummary(
        id=id_,
        at=at,
        model=seen.model,
        mode=seen.mode,
        dialect=seen.dialect,
        tools=len(seen.conversation.tools),
        streamed=seen.streamed,
        has_contents=has_contents,
        asked=words_asked(seen.conversation) if has_contents else "",
    )


def end_row(row: TurnSummary, seen: Observation) -> None:
    """The turn is over."""
    row.over = True
    row.mode, row.dialect = seen.mode, seen.dialect
    if row.has_contents:
        row.called = [call.name[:_NAME_CHARS] for call in islice(seen.calls.values(), _MAX_CALLED)]
    row.calls, row.attempts = len(seen.calls), len(seen.asked)
    row.problems = dict(Counter(problem.kind for problem in seen.problems)) if seen.problems else {}
    row.first_s = None if seen.first_s is None else seen.first_s - seen.begun_s
    row.seconds = (seen.ended_s or seen.begun_s) - seen.begun_s
    row.finish_reason = seen.reason
    if (used := seen.usage) is not None:
        row.input_tokens, row.output_tokens, row.cached_tokens = (
            used.prompt_tokens,
            used.completion_tokens,
            used.cached_tokens,
        )
    row.error = None if seen.error is None else _code(seen.error)
    row.outcome, row.ended = turn_outcome(seen), turn_end(seen)


def summary_of_record(record: Record, id_: str) -> TurnSummary:
    """The row of a recorded turn."""
    used = record.usage or {}
    return TurnSummary(
        id=id_,
        at=datetime.fromisoformat(record.time).timestamp() - record.seconds,
        request_id=record.request_id or "",
        endpoint=record.endpoint or "",
        model=record.model,
        mode=record.attempts[-1].mode if record.attempts else "",
        dialect=record.attempts[-1].dialect if record.attempts else None,
        tools=len(record.tools),
        calls=len(record.calls),
        streamed=record.streamed,
        over=True,
        outcome=record.outcome,
        problems=dict(Counter(str(problem["kind"]) for problem in record.problems)),
        attempts=len(record.attempts),
        first_s=record.first_s,
        seconds=record.seconds,
        input_tokens=used.get("prompt_tokens"),
        output_tokens=used.get("completion_tokens"),
        cached_tokens=used.get("cached_tokens"),
        finish_reason=record.finish_reason,
        reasoning_put_back=record.reasoning_put_back,
        error=record.error,
        has_contents=True,
        conversation=record.conversation,
        ended=record.ended,
        asked=record.asked,
        called=[call.name[:_NAME_CHARS] for call in record.calls[:_MAX_CALLED]],
    )


def _code(error: BaseException) -> str | None:
    """Code of an error, without its message, which may quote contents."""
    match error:
        case UpstreamError():
            return error.fault
        case RefusedByServerError():
            return "request_refused"
        case RequestError():
            return error.code or error.type
        case CallwrightError() | Exception():
            return type(error).__name__
    return None
