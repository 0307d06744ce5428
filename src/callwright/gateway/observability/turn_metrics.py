"""The metrics of turns.

Most turns are of a few kinds, and those of a kind increase the same numbers by one. Which these are is found out once:
a turn counts as one more of its kind, and only its seconds and tokens are added up one by one.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeAlias

from prometheus_client import Counter, Histogram

from callwright.calls.tool_search import SEARCH_TOOL
from callwright.conversation import NamedTool
from callwright.errors import RequestError, UpstreamError, is_unmet
from callwright.gateway.observability.tallies import Tallies
from callwright.turn.call_outcome import WITHHELD, call_outcome
from callwright.turn.fallback import reason_to_fall_back
from callwright.turn.observe import Ended, Observation, Observer, RequestedTurn
from callwright.upstreams.affinity import shared_words
from callwright.upstreams.timings import States

# Source: the buckets of OpenTelemetry's semantic conventions for generative AI, November 2026.
SECONDS: Final = tuple(0.01 * 2**step for step in range(14))
FIRST_SECONDS: Final = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
OVERHEAD_SECONDS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_TOKEN_SECONDS: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5)
_TOOLS: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)

MakeCounter: TypeAlias = Callable[..., Counter]  # of a name, a description, and labels
MakeHistogram: TypeAlias = Callable[..., Histogram]  # the same, with buckets before the labels


class TurnMetrics:
    """Counts turns. `of` has the numbers; where these do not wait, nothing waits here. `pools` gets the servers of each
    model.
    """

    def __init__(self, counter: MakeCounter, histogram: MakeHistogram, of: Tallies, pools: dict[str, States]) -> None:
        self.of = of
        self.pools = pools
        self._kinds: dict[tuple[Any, ...], _Kind] = {}
        self.prompts = RepeatedPrompts()
        self.turn_seconds = histogram("turn_seconds", "One turn of a model, with all retries.", SECONDS, "model")
        self.first_seconds = histogram(
            "first_event_seconds", "From the start of a turn to the first event sent.", FIRST_SECONDS, "model"
        )
        self.held_seconds = histogram(
            "held_seconds",
            "Streams: from the first piece of the upstream to the first event that goes out.",
            FIRST_SECONDS,
            "model",
        )
        self.token_seconds = histogram(
            "output_token_seconds", "Between two tokens of an answer, by its upstream's count.", _TOKEN_SECONDS, "model"
        )
        self.queue_seconds = histogram(
            "queue_seconds", "How long a place at a model with max_requests was waited for.", OVERHEAD_SECONDS, "model"
        )
        self.upstream_seconds = histogram(
            "upstream_seconds", "From the sending of a generation to its last piece.", SECONDS, "model"
        )
        self.tokens = counter("tokens", "Tokens, as the upstream counts them.", "model", "kind")
        self.repeated = counter(
            "repeated_tokens", "Tokens of prompts that the prompt before in the conversation had, too.", "model", "kind"
        )
        self.upstream_errors = counter("upstream_errors", "Failures of the upstream.", "model", "fault")
        self.finished = counter("turns", "Turns by how they ended.", "model", "reason")
        self.calls = counter("calls", "Calls by how well they were made.", "model", "dialect", "outcome")
        self.problems = counter("problems", "Problems of answers, by kind.", "model", "kind")
        self.retries = counter("retries", "Retries, by the problem of the answer.", "model", "reason")
        self.ambiguous = counter(
            "ambiguous_calls",
            "Answers whose model was asked whether it meant a call, by its reply.",
            "model",
            "outcome",
        )
        self.fallbacks = counter(
            "fallbacks",
            "How often another model or another server of a pool was asked, or the same one in another way.",
            "model",
            "to",
            "reason",
        )
        self.searches = counter("searches", "Searches for tools that models have made.", "model")
        self.choices = counter("choices", "Turns by tool_choice, and whether it was met.", "model", "choice", "kept")
        self.constraints = counter("constraints", "Generations with tools by whose grammar held them.", "model", "by")
        self.tools = histogram("tools_offered", "Tools in a request.", _TOOLS, "model")

    def observer(self, model: str) -> Observer:
        """An observer that counts the turns of a model; `model` is its name in the configuration."""

        def begin(seen: Observation) -> Ended:
            return partial(self._count, model, seen)

        return begin

    def add(self) -> None:
        """Add what waits to the numbers."""
        for kind in self._kinds.values():
            kind.add()

    def _count(self, model: str, seen: Observation) -> None:
        known = _kind_of(seen) if self.of.deferred else None
        if known is None:
            kind = _Kind(self, model, seen)
            kind.count(seen)
            kind.add()
            return
        key = (model, *known)
        if (found := self._kinds.get(key)) is None:
            found = self._kinds[key] = _Kind(self, model, seen)
        found.count(seen)


def _kind_of(seen: Observation) -> tuple[Any, ...] | None:
    """All that makes a difference to which numbers a turn increases; None if it is of none of the usual few kinds."""
    conversation, calls = seen.conversation, seen.calls
    if len(seen.asked) != 1 or seen.problems or seen.error is not None or seen.ambiguous is not None or len(calls) > 1:
        return None
    (asked,) = seen.asked
    timings, choice = asked.timings, conversation.tool_choice
    if asked.again is not None or asked.failure is not None or asked.fallback is not None or type(choice) is not str:
        return None
    called: tuple[bool, bool] | None = None
    for call in calls.values():
        called = call.complete, call.name == SEARCH_TOOL.name
    return (
        seen.reason,
        seen.dialect,
        asked.mode,
        called,
        choice,
        bool(conversation.tools),
        conversation.allowed_tools is None,
        timings.constraint is None,
        timings.servers,
        seen.first_s is None,
        seen.usage is None,
    )


class _Kind:
    """Turns that increase the same numbers by one, as the turn does by which this is made."""

    __slots__ = (
        "_first",
        "_metrics",
        "_model",
        "_numbers",
        "_tokens",
        "_tools",
        "_turn",
        "_upstream",
        "_waits",
    )

    def __init__(self, metrics: TurnMetrics, model: str, seen: Observation) -> None:
        of = metrics.of
        self._metrics = metrics
        self._model = model
        self._waits = 0
        self._numbers = [of[key] for key in _increased(metrics, model, seen)]
        self._turn = of[metrics.turn_seconds, model]
        self._tools = of[metrics.tools, model]
        self._first = None if seen.first_s is None else of[metrics.first_seconds, model]
        self._upstream: Any = of[metrics.upstream_seconds, model] if seen.asked else None
        kinds = ("input", "output", "cached", "reasoning")
        self._tokens = None if seen.usage is None else [of[metrics.tokens, model, kind] for kind in kinds]

    def count(self, seen: Observation) -> None:
        """One more of them is over."""
        assert seen.ended_s is not None
        self._waits += 1
        self._turn.observe(seen.ended_s - seen.begun_s)
        self._tools.observe(len(seen.conversation.tools))
        if self._first is not None and seen.first_s is not None:
            self._first.observe(seen.first_s - seen.begun_s)
        for asked in seen.asked:
            self._count_asked(asked)
        if seen.streamed and seen.asked:
            self._count_pace(seen)
        if self._tokens is not None and (usage := seen.usage) is not None:
            given, written, cached, reasoned = self._tokens
            given.inc(usage.prompt_tokens)
            written.inc(usage.completion_tokens)
            if usage.cached_tokens:
                cached.inc(usage.cached_tokens)
            if usage.reasoning_tokens:
                reasoned.inc(usage.reasoning_tokens)
            self._count_repeated(seen, usage.prompt_tokens, usage.cached_tokens)

    def add(self) -> None:
        """Add what waits to the numbers."""
        if self._waits:
            for number in self._numbers:
                number.inc(self._waits)
            self._waits = 0

    def _count_asked(self, asked: RequestedTurn) -> None:
        timings = asked.timings
        self._upstream.observe(timings.waited_s)
        if timings.queued_s:
            self._metrics.of[self._metrics.queue_seconds, self._model].observe(timings.queued_s)
        if timings.states is not None:
            self._metrics.pools[self._model] = timings.states

    def _count_pace(self, seen: Observation) -> None:
        """For a stream: the time between tokens, and how long the first event was held back."""
        metrics, timings = self._metrics, seen.asked[0].timings
        if timings.first_s is None:
            return
        if seen.first_s is not None:
            metrics.of[metrics.held_seconds, self._model].observe(max(0.0, seen.first_s - timings.first_s))
        tokens = seen.usage.completion_tokens if seen.usage is not None else 0
        if len(seen.asked) == 1 and tokens > 1 and timings.ended_s is not None:
            per_token_s = (timings.ended_s - timings.first_s) / (tokens - 1)
            metrics.of[metrics.token_seconds, self._model].observe(per_token_s)

    def _count_repeated(self, seen: Observation, tokens: int, cached: int) -> None:
        """Count the tokens repeated from the previous prompt, and how many of them the server had not cached."""
        words = shared_words(seen.conversation, seen.fields)
        metrics, model = self._metrics, self._model
        if words is not None and (repeated := metrics.prompts.repeated((model, *words), tokens)):
            metrics.of[metrics.repeated, model, "all"].inc(repeated)
            metrics.of[metrics.repeated, model, "read_again"].inc(max(0, repeated - cached))


def _increased(metrics: TurnMetrics, model: str, seen: Observation) -> Iterator[tuple[Any, ...]]:
    """The counters that a turn increments: a metric with its labels for each increment."""
    yield metrics.finished, model, _reason(seen)
    if seen.ambiguous is not None:
        yield metrics.ambiguous, model, seen.ambiguous
    before: RequestedTurn | None = None
    for asked in seen.asked:
        if asked.again is not None:
            yield metrics.retries, model, asked.again
        if before is not None and (other := asked.fallback) is not None and other is not before.fallback:
            yield metrics.fallbacks, model, other.model, other.reason
        elif before is not None and asked.again is None:
            yield metrics.fallbacks, model, "mode", _reason_of(before.failure)
        for _ in range(1, asked.timings.servers):
            yield metrics.fallbacks, model, "server", ""
        before = asked
    # Also failures that an earlier answer made up for.
    for failure in (*[asked.failure for asked in seen.asked], seen.error if is_unmet(seen.error) else None):
        if isinstance(failure, UpstreamError):
            yield metrics.upstream_errors, model, failure.fault
    yield from _increased_by_calls(metrics, model, seen)
    for problem in seen.problems:
        yield metrics.problems, model, problem.kind
    if seen.conversation.tools:
        choice, is_kept = _choice(seen)
        yield metrics.choices, model, choice, "yes" if is_kept else "no"
        for asked in seen.asked:
            ours = "gateway" if asked.timings.constraint is not None else "none"
            yield metrics.constraints, model, "server" if asked.mode == "native" else ours


def _reason_of(failure: UpstreamError | RequestError | None) -> str:
    return (reason_to_fall_back(failure, is_fallback=False) or "") if failure is not None else ""


def _increased_by_calls(metrics: TurnMetrics, model: str, seen: Observation) -> Iterator[tuple[Any, ...]]:
    dialect = seen.dialect or "none"
    for call in seen.calls.values():
        yield metrics.calls, model, dialect, call_outcome(call)
        if call.name == SEARCH_TOOL.name:
            yield metrics.searches, model
    for problem in seen.problems:
        if problem.call is None and problem.kind in WITHHELD:
            is_cut = seen.reason == "length" and problem.kind != "call_not_allowed"
            yield metrics.calls, model, dialect, "truncated" if is_cut else "refused"
    if is_unmet(seen.error):
        yield metrics.calls, model, dialect, "refused"


def _reason(seen: Observation) -> str:
    if seen.reason is not None:
        return seen.reason
    if seen.error is None:
        return "stop"
    return "failed" if isinstance(seen.error, Exception) else "left"


def _choice(seen: Observation) -> tuple[str, bool]:
    choice = seen.conversation.tool_choice
    if isinstance(choice, NamedTool):
        return "named", any(call.name == choice.name for call in seen.calls.values())
    has_called = bool(seen.calls)
    is_kept = {"auto": True, "none": not has_called, "required": has_called}[choice]
    return ("allowed" if seen.conversation.allowed_tools is not None and choice != "none" else choice), is_kept


_MOST_CONVERSATIONS: Final = 4_096


class RepeatedPrompts:
    """Knows the tokens of the latest prompt of each conversation; of many, the latest ones."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[int, int] = OrderedDict()

    def repeated(self, words: tuple[str, ...], tokens: int) -> int:
        """The tokens of a prompt that may be repeated from the previous one; 0 for the first of a conversation, whose
        requests share these `words`.
        """
        key = hash(words)  # stores no content
        before = self._tokens.pop(key, 0)
        self._tokens[key] = tokens
        if len(self._tokens) > _MOST_CONVERSATIONS:
            self._tokens.popitem(last=False)
        return min(before, tokens)
