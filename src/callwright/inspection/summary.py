"""One turn in a row of a list: its model, outcome and cost. Of its contents only `asked` and `called`."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from callwright.errors import CallwrightError, RefusedByServerError, RequestError, UpstreamError
from callwright.turn.call_outcome import WITHHELD, call_outcome
from callwright.turn.observe import Observation, SeenCall
from callwright.turn.records import Record, TurnEnd, end_by_reason, end_of, words_asked

# How a turn ended: with calls that were right at once; with text alone; with what was mended; after the model was asked
# again; after it was asked whether it meant a call; with a call that does not hold; with an error; before any turn; or
# without a client. Empty while it is under way.
TurnOutcome: TypeAlias = Literal[
    "", "right", "text", "mended", "asked_again", "ambiguous", "invalid", "failed", "refused", "left"
]
OUTCOMES: Final[tuple[TurnOutcome, ...]] = get_args(TurnOutcome)[1:]
# The number of called tools in a row, and the characters of each name.
_MAX_CALLED: Final = 16
_NAME_CHARS: Final = 100
_WRONG: Final = frozenset(("truncated", "unknown_tool", "invalid"))


class TurnSummary(Struct, kw_only=True):
    """A turn, or a request that was refused before there was one. `at` is when it began, in Unix seconds; `first_s` and
    `seconds` are since then. `calls`: how many went out. `again_of` is the turn that was asked again by hand.
    `reasoning_put_back`: so many turns of its history got the reasoning back that the client had dropped.
    `conversation` is the same for the turns of one conversation of a key. `asked` are the last words of the user, cut
    off, and `called` the first tools that were called, in order: both empty if `has_contents` is false.
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


def ended(row: TurnSummary, seen: Observation) -> None:
    """The turn is over."""
    row.over = True
    row.mode, row.dialect = seen.mode, seen.dialect
    row.ended = end_of(seen)
    row.called = _named(seen.calls.values()) if row.has_contents else []
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
    row.error = _code(seen.error)
    withheld = any(problem.call is None and problem.kind in WITHHELD for problem in seen.problems)
    row.outcome = _outcome(
        error="failed" if isinstance(seen.error, Exception) else "left" if seen.error is not None else None,
        calls=list(seen.calls.values()),
        withheld=withheld,
        has_problems=bool(seen.problems),
        retries=seen.retries,
        was_ambiguous=seen.ambiguous is not None,
    )


def summary_of_record(record: Record, id_: str) -> TurnSummary:
    """The row of a recorded turn."""
    calls = record.calls or _calls(record.attempts[-1].events if record.attempts else (), record.problems)
    used = record.usage or {}
    end: TurnEnd = "failed" if record.error is not None else end_by_reason(record.finish_reason, has_calls=bool(calls))
    left = record.error is not None and (not record.attempts or record.attempts[-1].ended == "left")
    return TurnSummary(
        id=id_,
        at=datetime.fromisoformat(record.time).timestamp() - record.seconds,
        request_id=record.request_id or "",
        endpoint=record.endpoint or "",
        model=record.model,
        mode=record.attempts[-1].mode if record.attempts else "",
        dialect=record.attempts[-1].dialect if record.attempts else None,
        tools=len(record.tools),
        calls=len(calls),
        streamed=record.streamed,
        over=True,
        outcome=_outcome(
            error=None if record.error is None else "left" if left else "failed",
            calls=calls,
            withheld=any(problem.get("call") is None and problem["kind"] in WITHHELD for problem in record.problems),
            has_problems=bool(record.problems),
            retries=sum(attempt.again is not None for attempt in record.attempts[1:]),
            was_ambiguous=record.ambiguous is not None,
        ),
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
        ended=record.ended or end,
        asked=record.asked,
        called=_named(calls),
    )


def _outcome(
    *,
    error: TurnOutcome | None,
    calls: Sequence[SeenCall],
    withheld: bool,
    has_problems: bool,
    retries: int,
    was_ambiguous: bool,
) -> TurnOutcome:
    if error is not None:
        return error
    if withheld or any(call_outcome(call) in _WRONG for call in calls):
        return "invalid"
    if was_ambiguous:
        return "ambiguous"
    if retries:
        return "asked_again"
    if has_problems:
        return "mended"
    return "right" if calls else "text"


def _named(calls: Iterable[SeenCall]) -> list[str]:
    return [call.name[:_NAME_CHARS] for call in islice(calls, _MAX_CALLED)]


def _code(error: BaseException | None) -> str | None:
    """What failed, without its words: they may repeat what was said."""
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


def _calls(events: Sequence[Mapping[str, object]], problems: Sequence[Mapping[str, object]]) -> list[SeenCall]:
    """The calls of an older record, by its last attempt."""
    found: dict[object, SeenCall] = {}
    for event in events:
        if event["type"] == "CallStarted":
            found[event["index"]] = SeenCall(str(event["name"]))
        elif event["type"] == "CallEnded" and event["index"] in found:
            found[event["index"]].complete = bool(event["complete"])
    for problem in problems:
        if (call := found.get(problem.get("call"))) is not None:
            call.problems.append(str(problem["kind"]))
    return list(found.values())
