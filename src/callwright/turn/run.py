"""One turn of a model: render, ask, parse, check, retry. The place where the pure core meets an upstream.

Events come as they become certain, in batches of what arrived together; token counts come last, as `Usage`. A failing
upstream raises out of the stream, before or after the first event. Retries follow `callwright.turn.retry`;
what may be a call and may not is asked about (`callwright.turn.ask_ambiguous`).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, nullcontext
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from callwright.conversation import Conversation, Item
from callwright.errors import RequestError, UpstreamError
from callwright.events import Event, Markup, Problem, Usage
from callwright.turn.ask_ambiguous import SILENT, AmbiguousCalls, AmbiguousReply, ask_ambiguous, question
from callwright.turn.fair_pool import SLOW
from callwright.turn.model import Model
from callwright.turn.observe import FLOWING, Observation, Raw
from callwright.turn.output import GenerationReader, RecordedReader, unread_call
from callwright.turn.plan import build_generation_request, is_large, is_slow
from callwright.turn.portions import PAUSE_S, portions
from callwright.turn.repeats import heed_repeats
from callwright.turn.retry import DemandNotMet, RetryPolicy
from callwright.upstreams.base import GenerationRequest
from callwright.upstreams.timings import RequestTimings

__all__ = ["Events", "run_turn"]

_MARKUP: Final = frozenset((Markup,))
# Of so many characters what has no end may take long to read once more.
_MANY: Final = 100_000
Events: TypeAlias = AsyncGenerator[Sequence[Event | Usage], None]


async def run_turn(
    model: Model, conversation: Conversation, fields: Mapping[str, Any], *, today: str, streamed: bool = True
) -> Events:
    """Ask the model; answers its checked events without `Markup`, then the `Usage` if the upstream counts tokens.

    `fields` are sampling and other fields of the request, `today` is a date as YYYY-MM-DD. `streamed`: events are sent
    on as they come; otherwise all may be held back for a retry.

    Raises `UpstreamError` if the upstream fails, or if the call or the form of the answer that is demanded did not come
    about (`fault="unmet"`; the `Usage` goes out before, if anything has), and `RequestError` if the server blames the
    request.
    """
    given = conversation.items
    loop: Problem | None = None
    if model.max_repeats:
        conversation, loop = heed_repeats(conversation, model.max_repeats)
    seen = _observed(model, replace(conversation, items=given), fields, streamed) if model.observers else None
    with seen or nullcontext():
        mode_selector = model.mode_selector
        if mode_selector is not None:
            model = await mode_selector.choose(model)
        asked = conversation
        retry = RetryPolicy(asked, retries=model.retries, streamed=streamed)
        may_ask = model.ask_ambiguous and bool(asked.tools) and asked.tool_choice == "auto"
        ambiguous = AmbiguousCalls(asked, model.hints) if may_ask else None
        deadline = time.monotonic() + model.retry_s
        counted: Usage | None = None
        has_sent = False
        more: list[Item] | None = []

        def passed(events: Sequence[Event]) -> Sequence[Event]:
            """Those of the events that may go out now."""
            nonlocal loop
            certain = events
            if not _MARKUP.isdisjoint(map(type, events)):
                certain = [event for event in events if type(event) is not Markup]
            if retry.holds:
                certain = retry.push(certain, is_constrained=retry.needs_form and _is_constrained(model, generation))
            if ambiguous is not None and (ambiguous.held or not SILENT.issuperset(map(type, certain))):
                certain = ambiguous.push(certain)
            if certain and attempt.metadata is not None:
                certain = [*attempt.take_metadata(), *certain]
            if certain and loop is not None:
                certain, loop = [loop, *certain], None
            if certain and seen is not None and (seen.first_s is None or not FLOWING.issuperset(map(type, certain))):
                seen.events(certain)
            return certain

        while more is not None:
            conversation = replace(conversation, items=(*conversation.items, *more))
            generation = await _built(model, conversation, fields, today)
            timings = RequestTimings() if retry.needs_form else None  # they say whether a grammar was sent
            generation = replace(generation, streamed=streamed, timings=timings)
            raw: Raw | None = None
            if seen is not None:
                generation, raw = seen.asks(generation, retry.again_for)
            attempt = GenerationReader(model, generation) if raw is None else RecordedReader(model, generation, raw)
            try:
                async with aclosing(model.upstream.stream(generation)) as batches:
                    reading_s = 0.0  # since the last pause; nobody waits while the server is waited for
                    async for batch in batches:
                        for portion in portions(batch):
                            begun_s = time.monotonic()
                            events = attempt.read(portion)
                            reading_s += time.monotonic() - begun_s
                            if mode_selector is not None and (unread := unread_call(events)):
                                # this answer is salvaged here, the next request goes out in the new mode
                                await mode_selector.instead(model, unread)
                            if events and (certain := passed(events)):
                                has_sent = True
                                yield certain
                            if reading_s > PAUSE_S:
                                await asyncio.sleep(0)
                                reading_s = 0.0
                # others wait for the loop, and what has no end is read once more when that is known
                is_long = attempt.source is not None and attempt.source.pushed > _MANY
                rest = await asyncio.to_thread(attempt.finish) if is_long else attempt.finish()
                if certain := passed(rest):
                    has_sent = True
                    yield certain
                counted = _sum(counted, attempt.usage)
            except (RequestError, UpstreamError) as error:
                if seen is not None:
                    seen.failed(error)
                other = await mode_selector.instead(model, error) if mode_selector is not None else None
                if other is not None and not has_sent:
                    model, conversation, more = other, asked, []
                    retry = RetryPolicy(asked, retries=model.retries, streamed=streamed)
                    ambiguous = AmbiguousCalls(asked, model.hints) if may_ask else None
                    continue
                if certain := passed(attempt.abandoned()):
                    yield certain
                if not retry.fall_back():
                    raise
                break
            more = retry.next_attempt(in_time=time.monotonic() < deadline) if retry.holds else None
        unmet: DemandNotMet | None = None
        try:
            left: Sequence[Event] = retry.finish() if retry.holds else ()
        except DemandNotMet as error:
            left, unmet = (), error
        if ambiguous is not None:
            left = ambiguous.push(left)
        if ambiguous is not None and ambiguous.held:
            reply = AmbiguousReply()
            in_time_s = deadline - time.monotonic()
            if unmet is None and in_time_s > 0 and (calls := ambiguous.candidates):
                asks = partial(question, model, conversation, fields, today, ambiguous.said, calls)
                generation = await _made(model, conversation, asks)
                reply = await ask_ambiguous(model, generation, in_time_s, seen)
                counted = _sum(counted, reply.usage)
            left = [*left, *ambiguous.release(run=reply.outcome == "run")]
        if left and loop is not None:
            left = [loop, *left]
        last: list[Event | Usage] = [*attempt.take_metadata(), *left]
        if counted is not None and (unmet is None or has_sent):
            last.append(counted)
        if seen is not None:
            seen.events(last)
        if last:
            yield last
        if unmet is not None:
            raise UpstreamError(str(unmet), fault="unmet", upstream=model.upstream.name) from unmet


async def _built(model: Model, conversation: Conversation, fields: Mapping[str, Any], today: str) -> GenerationRequest:
    """The request to the upstream."""
    return await _made(model, conversation, partial(_rendered, model, conversation, fields, today))


async def _made(model: Model, conversation: Conversation, make: Callable[[], GenerationRequest]) -> GenerationRequest:
    """A request that is made of this conversation: a large one beside the event loop, on which others wait."""
    if is_slow(model):
        return await SLOW.run(make)
    return await asyncio.to_thread(make) if is_large(conversation) else make()


def _rendered(model: Model, conversation: Conversation, fields: Mapping[str, Any], today: str) -> GenerationRequest:
    generation = build_generation_request(model, conversation, fields, today)
    if generation.prompt is not None:
        _ = generation.prompt.wire_text  # kept with the prompt, for who sends it
    return generation


def _sum(counted: Usage | None, more: Usage | None) -> Usage | None:
    """The tokens of a turn so far, where anybody counts them."""
    return counted.plus(more) if counted is not None and more is not None else more or counted


def _is_constrained(model: Model, generation: GenerationRequest) -> bool:
    """Whether the server holds its answer to the form that the request asks for."""
    if generation.prompt is None:
        return model.enforces_schema and "response_format" in generation.fields
    return generation.timings is not None and generation.timings.is_constrained


def _observed(model: Model, conversation: Conversation, fields: Mapping[str, Any], streamed: bool) -> Observation:
    return Observation(
        model=model.name,
        upstream=model.upstream.name,
        upstream_model=model.upstream_model,
        mode=model.mode,
        dialect=model.dialect,
        output_parser=model.output_parser,
        hints=model.hints,
        conversation=conversation,
        fields=fields,
        streamed=streamed,
    ).begin(model.observers)
