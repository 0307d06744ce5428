"""One turn of a model as a generator: no I/O, no clock, no async.

It yields steps and gets their results by `.send()`; a failure of the model's server is thrown in at the `Ask`. Retries
follow `callwright.turn.retry`; the model is asked about ambiguous calls (`callwright.turn.ask_ambiguous`).
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from itertools import dropwhile
from typing import Any, Final, TypeAlias, final

from msgspec import Struct
from msgspec.structs import replace

from callwright.conversation import Conversation, Item
from callwright.errors import RequestError, UpstreamError
from callwright.events import Event, Markup, Problem, Usage
from callwright.turn.ask_ambiguous import SILENT, AmbiguousCalls, AmbiguousReply, question
from callwright.turn.bounded_values import find_bounded_values
from callwright.turn.fallback import REFUSED, Fallback, Rounds, reason_to_fall_back
from callwright.turn.model import Model, OfFallback
from callwright.turn.observe import FLOWING, Observation
from callwright.turn.output import GenerationReader
from callwright.turn.plan import build_generation_request, is_large, is_slow
from callwright.turn.retry import DemandNotMet, RetryPolicy
from callwright.upstreams.base import GenerationRequest
from callwright.upstreams.timings import RequestTimings

_MARKUP: Final = frozenset((Markup,))
# The end of a longer output is read in a thread: text without an end is parsed once more.
_MANY: Final = 100_000


@final
class Ask(Struct):
    """Ask the server of `model` for `reader.generation`. `reader` reads the answer, `TurnLoop.push` gets its events."""

    model: Model
    reader: GenerationReader


@final
class Question(Struct):
    """Ask whether calls are meant. The result is an `AmbiguousReply`."""

    model: Model
    generation: GenerationRequest
    timeout_s: float


@final
class ChooseMode(Struct):
    """Choose the mode of a model that has a selector; after a `failure` another one. The result is the model, or None
    if its mode is not to blame.
    """

    model: Model
    failure: RequestError | UpstreamError | None = None


@final
class Beside(Struct):
    """Call `work` in a thread: the event loop serves other requests. The result is its return value. `is_slow`: it may
    take seconds, so clients share the threads for it.
    """

    work: Callable[[], Any]
    is_slow: bool = False


@final
class Emit(Struct):
    """Send these events now."""

    events: Sequence[Event | Usage]


Step: TypeAlias = Ask | Question | ChooseMode | Beside | Emit
# Shortens a request that the server refuses: returns its new conversation and fields, or None. The last argument is
# whether part of an answer was sent already.
Fit: TypeAlias = Callable[
    [RequestError, Conversation, Mapping[str, Any], bool], tuple[Conversation, Mapping[str, Any]] | None
]
_Steps: TypeAlias = Generator[Step | None, Any, None]


class _Resort(Struct):
    """An answer that does not hold, and is sent if no other model gives any."""

    model: Model
    retry: RetryPolicy
    ambiguous: AmbiguousCalls | None
    conversation: Conversation
    reader: GenerationReader
    told: tuple[Problem, ...]
    fallback: Fallback | None


class TurnLoop:
    """One turn. `seen` is its observation, if it is observed; `told` is a problem for the client, before any other
    event. `fit` shortens a request that is too long. `rounds` is shared with the other rounds of this turn.
    `of_fallback` returns the conversation for a fallback, if it is another. `now` is the time in seconds.
    """

    def __init__(
        self,
        model: Model,
        conversation: Conversation,
        fields: Mapping[str, Any],
        *,
        today: str,
        streamed: bool,
        seen: Observation | None,
        told: Problem | None,
        fit: Fit | None,
        rounds: Rounds,
        of_fallback: OfFallback | None = None,
        now: Callable[[], float],
    ) -> None:
        self._given = conversation, fields
        self._conversation = conversation
        self._fields = fields
        self._today = today
        self._streamed = streamed
        self._seen = seen
        self._told: tuple[Problem, ...] = () if told is None else (told,)
        self._fit = fit
        self._rounds = rounds
        self._of_fallback = of_fallback
        self._now = now
        self._usage: Usage | None = None
        self._has_sent = False
        self._until_s = 0.0
        self._name = model.name
        self._fallbacks = model.fallbacks  # those that were not asked yet
        self._fallback: Fallback | None = None
        self._failure: RequestError | UpstreamError | None = None  # the first, if there is no answer at all
        self._resort: _Resort | None = None
        self._begin(model)

    def _begin(self, model: Model) -> None:
        """Nothing was asked yet of this model."""
        asked = self._conversation
        self._shown = asked
        self._model = model
        self._retry = RetryPolicy(asked, retries=model.retries, streamed=self._streamed)
        may_ask = model.ask_ambiguous and asked.tools and asked.tool_choice == "auto"
        self._ambiguous = AmbiguousCalls(asked, model.hints) if may_ask else None

    def push(self, events: Sequence[Event], reader: GenerationReader) -> Sequence[Event]:
        """Take the events of an answer; returns those that may be sent now."""
        certain = events
        if not _MARKUP.isdisjoint(map(type, events)):
            certain = [event for event in events if type(event) is not Markup]
        if self._retry.holds:
            certain = self._retry.push(certain, is_constrained=self._retry.needs_form and reader.is_constrained)
        ambiguous = self._ambiguous
        if ambiguous is not None and (ambiguous.held or not SILENT.issuperset(map(type, certain))):
            certain = ambiguous.push(certain)
        if not certain:
            return certain
        if reader.metadata is not None:
            certain = [*reader.take_metadata(), *certain]
        if self._told:
            certain, self._told = [*self._told, *certain], ()
        seen = self._seen
        if seen is not None and (seen.first_s is None or not FLOWING.issuperset(map(type, certain))):
            seen.events(certain)
        self._has_sent = True
        return certain

    def steps(self) -> _Steps:
        """The steps, in order, and None at the end. Raises `UpstreamError` and `RequestError`, as `run_turn` does."""
        if self._rounds.fallback is not None:
            yield from self._stay_with(self._rounds.fallback)
        elif self._model.mode_selector is not None:
            self._begin(_in_mode(self._model, (yield ChooseMode(self._model))))
        self._until_s = self._now() + self._model.retry_s
        more: Sequence[Item] | None = ()
        reader: GenerationReader | None = None
        while more is not None:
            if more:
                self._shown = replace(self._shown, items=(*self._shown.items, *more))
            build = partial(build_generation_request, self._model, self._shown, self._fields, self._today)
            slow = is_slow(self._model)
            try:
                if slow or is_large(self._shown):  # rendered in a thread
                    generation = yield Beside(partial(_with_wire_text, build), slow)
                else:
                    generation = build()
            except RequestError as error:
                if reader is None:  # of the first model: it is the request that is wrong
                    raise
                more, reader = yield from self._after(error, reader, REFUSED, ())
                continue
            reader = self._reader(generation)
            try:
                yield Ask(self._model, reader)
            except (RequestError, UpstreamError) as error:
                if self._seen is not None:
                    self._seen.failed(error)
                rest = reader.abandoned()
                if (yield from self._is_made_fit(error)):
                    more = ()
                else:
                    reason = reason_to_fall_back(error, is_fallback=self._fallback is not None)
                    more, reader = yield from self._after(error, reader, reason, rest)
                continue
            is_long = reader.parser is not None and reader.parser.source.pushed > _MANY
            rest = (yield Beside(reader.finish)) if is_long else reader.finish()
            if certain := self.push(rest, reader):
                yield Emit(certain)
            self._count(reader.usage)
            more = self._retry.next_attempt(in_time=self._now() < self._until_s) if self._retry.holds else None
            if more is None and self._fallbacks and (failing := self._retry.failing) is not None:
                more = yield from self._fall_back(failing, reader)
        assert reader is not None
        yield from self._end(reader)
        yield None

    def _stay_with(self, answered: Fallback) -> Generator[Step, Any, None]:
        """Begin with the model that answered the round before, which the client knows."""
        told, others = self._told, self._fallbacks
        self._fallbacks = tuple(dropwhile(lambda other: other.name != answered.model, others))
        if (model := (yield from self._next_model(answered.reason))) is not None:
            self._begin(model)
        if self._fallback == answered:
            self._told = told

    def _is_made_fit(self, error: RequestError | UpstreamError) -> Generator[Step, Any, bool]:
        """Whether the model can be asked in another mode, or for a shorter request, after this failure."""
        model = self._model
        if model.mode_selector is not None and not self._has_sent:
            other: Model | None = yield ChooseMode(model, error)
            if other is not None:
                self._begin(_in_mode(model, other))
                return True
        return not self._retry.has_earlier and self._is_shorter(error)

    def _after(
        self,
        error: RequestError | UpstreamError,
        reader: GenerationReader,
        reason: str | None,
        rest: Sequence[Event],
    ) -> Generator[Step, Any, tuple[Sequence[Item] | None, GenerationReader]]:
        """After a failure: the items to ask another model with, for this `reason`, or None if there is an answer all
        the same; and the reader of the answer. Raises an error if there is neither. `rest`: the last events of the
        answer that failed.
        """
        if self._retry.fall_back():  # on the answer before a retry, which does not hold
            return (yield from self._fall_back(reason, reader)), reader
        if not self._has_sent and (other := (yield from self._next_model(reason))) is not None:
            self._failure = self._failure or error.with_traceback(None)
            self._begin(other)
            return (), reader
        if (resort := self._resort) is not None and not self._has_sent:
            self._model, self._retry, self._ambiguous = resort.model, resort.retry, resort.ambiguous
            self._shown, self._told = resort.conversation, resort.told
            self._note(resort.fallback)
            return None, resort.reader
        if certain := self.push(rest, reader):
            yield Emit(certain)
        if self._fallbacks and self._retry.break_off() and self._retry.failing is not None:
            more = yield from self._fall_back(reason, reader)
            if more is not None:
                return more, reader
        first, self._failure = self._failure or error, None
        try:
            raise error if self._has_sent else first
        finally:  # the error holds this frame
            del error, first

    def _fall_back(self, reason: str | None, reader: GenerationReader) -> Generator[Step, Any, Sequence[Item] | None]:
        """Ask the next model in place of an answer that does not hold. Returns the items to do so with: none if nothing
        was sent, else those that report the problems; or None if there is no other model.
        """
        resort = _Resort(self._model, self._retry, self._ambiguous, self._shown, reader, self._told, self._fallback)
        other = yield from self._next_model(reason)
        if other is None:
            return None
        if self._has_sent:
            self._model = other
            return self._retry.continue_with(other.retries)
        self._resort = resort
        self._begin(other)
        return ()

    def _next_model(self, reason: str | None) -> Generator[Step, Any, Model | None]:
        """The next fallback whose server may get the conversation; from here on it answers. None if there is no reason
        or no fallback is left.
        """
        conversation, fields = self._given
        while self._fallbacks and reason is not None:
            other, *left = self._fallbacks
            self._fallbacks = tuple(left)
            if self._of_fallback is not None:
                conversation = self._of_fallback(other)
            try:
                items, _ = other.passes.items_passed(conversation.items)
            except RequestError:
                continue
            retried = self._shown.items[len(self._conversation.items) :]
            self._conversation = replace(conversation, items=items)
            self._shown = replace(conversation, items=(*items, *retried))
            self._fields, _ = other.passes.fields_passed(fields)
            fallback = Fallback(other.name, reason)
            self._note(fallback)
            told = [problem for problem in self._told if problem.kind != "model_replaced"]
            self._told = (*told, fallback.problem(self._name))
            self._until_s = self._now() + other.retry_s
            return other if other.mode_selector is None else _in_mode(other, (yield ChooseMode(other)))
        return None

    def _note(self, fallback: Fallback | None) -> None:
        """Note which other model answers."""
        self._fallback = self._rounds.fallback = fallback
        if self._seen is not None:
            self._seen.fallback = fallback

    def _is_shorter(self, error: RequestError | UpstreamError) -> bool:
        """Whether `fit` has shortened the request that the server refuses with this error."""
        if self._fit is None or not isinstance(error, RequestError):
            return False
        fitting = self._fit(error, self._conversation, self._fields, self._has_sent)
        if fitting is None:
            return False
        self._conversation, self._fields = fitting
        self._begin(self._model)
        return True

    def _reader(self, generation: GenerationRequest) -> GenerationReader:
        """The reader of the answer to this request, which is noted."""
        model, seen = self._model, self._seen
        # the timings record whether a grammar was sent; an observation has its own
        needs_timings = seen is None and (self._retry.needs_form or generation.constraint is not None)
        timings = RequestTimings() if needs_timings else None
        generation = replace(generation, streamed=self._streamed, timings=timings)
        if seen is None:
            return GenerationReader(model, generation)
        generation, raw = seen.asks(generation, self._retry.again_for)
        return GenerationReader(model, generation, raw)

    def _end(self, reader: GenerationReader) -> _Steps:
        """Send the remaining events, the tokens last."""
        unmet: DemandNotMet | None = None
        left: Sequence[Event] = ()
        try:
            if self._retry.holds:
                left = self._retry.finish()
                constraint = reader.generation.constraint
                if constraint is not None and reader.has_grammar:
                    bounded = find_bounded_values(constraint, self._retry.calls)
                    left = [*left[:-1], *bounded, *left[-1:]]
        except DemandNotMet as error:
            unmet = error
        if (ambiguous := self._ambiguous) is not None:
            if left:
                left = ambiguous.push(left)
            if ambiguous.held:
                in_time_s = self._until_s - self._now() if unmet is None else 0.0
                is_meant = yield from self._is_meant(ambiguous, in_time_s)
                left = [*left, *ambiguous.release(run=is_meant)]
        if left and self._told:
            left = [*self._told, *left]
        last: list[Event | Usage] = [*reader.take_metadata(), *left] if reader.metadata is not None else [*left]
        if self._usage is not None and (unmet is None or self._has_sent):
            last.append(self._usage)
        if last:
            if self._seen is not None:
                self._seen.events(last)
            yield Emit(last)
        if unmet is not None:
            raise UpstreamError(str(unmet), fault="unmet", upstream=self._model.upstream.name) from unmet

    def _is_meant(self, ambiguous: AmbiguousCalls, in_time_s: float) -> Generator[Step, Any, bool]:
        """Whether the model confirms the ambiguous calls, if there is time to ask it."""
        if in_time_s <= 0 or not (calls := ambiguous.candidates):
            return False
        model = self._model
        build = partial(question, model, self._shown, self._fields, self._today, ambiguous.text, calls)
        generation = (yield Beside(build, is_slow(model))) if is_slow(model) or is_large(self._shown) else build()
        reply: AmbiguousReply = yield Question(model, generation, in_time_s)
        self._count(reply.usage)
        return reply.outcome == "run"

    def _count(self, more: Usage | None) -> None:
        """Count tokens of the turn, if the server has."""
        if more is not None:
            self._usage = more if self._usage is None else self._usage.plus(more)


def _in_mode(model: Model, chosen: Model) -> Model:
    """A model in the mode that was chosen for it."""
    return replace(chosen, limit=model.limit, mode_selector=model.mode_selector)


def _with_wire_text(build: Callable[[], GenerationRequest]) -> GenerationRequest:
    generation = build()
    if generation.prompt is not None:
        _ = generation.prompt.wire_text  # the prompt caches it for the upstream
    return generation
