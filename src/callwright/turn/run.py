"""One turn of a model: render, ask, parse, check, retry.

Connects the pure core with an upstream: it runs the steps of `callwright.turn.loop`.

Events are yielded as they become certain, in batches of those that arrived together; token counts are last, as `Usage`.
A failing upstream raises out of the stream, before or after the first event.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing, nullcontext
from functools import partial
from typing import Any, assert_never

from msgspec.structs import replace

from callwright.conversation import Conversation, Item
from callwright.errors import RequestError, UpstreamError
from callwright.events import Event, Problem
from callwright.turn.ask_ambiguous import ask_ambiguous
from callwright.turn.deferred_tools import defers_tools, run_with_search
from callwright.turn.fair_pool import SLOW
from callwright.turn.fallback import Rounds
from callwright.turn.loop import Ask, Beside, ChooseMode, Emit, Fit, Question, TurnLoop
from callwright.turn.model import Events, Model, ModeSelector, OfFallback, RunsTurn
from callwright.turn.observe import Observation
from callwright.turn.output import unread_call
from callwright.turn.place import Place
from callwright.turn.portions import PAUSE_S, portions
from callwright.turn.repeats import heed_repeats


def run_turn(
    model: Model,
    conversation: Conversation,
    fields: Mapping[str, Any],
    *,
    today: str,
    streamed: bool = True,
    fit: Fit | None = None,
    rounds: Rounds | None = None,
) -> Events:
    """Ask the model; yields its checked events without `Markup`, then the `Usage` if the upstream counts tokens.

    `fields` are sampling and other fields of the request, `today` is a date as YYYY-MM-DD. `streamed`: events are sent
    on arrival; otherwise all may be held back for a retry. `fit` shortens a request that the server refuses as too
    long. `rounds` is that of the earlier rounds, if this is one of several.

    Raises `UpstreamError` if the upstream fails, or if the demanded call or form of the answer is missing
    (`fault="unmet"`; the `Usage` is sent before, if anything was), and `RequestError` if the server blames the request.
    """
    run_round = partial(_run_turn, today=today, streamed=streamed, fit=fit, rounds=rounds or Rounds())
    run: RunsTurn = partial(run_round, fields=fields)
    for each in (model, *model.fallbacks):
        if each.defer_tools_above is not None and defers_tools(each, conversation):
            run = partial(run_with_search, run_round, fields=fields)
            break
    return run(model, conversation) if model.hooks is None else model.hooks.turn(model, conversation, run)


async def _run_turn(
    model: Model,
    conversation: Conversation,
    *,
    fields: Mapping[str, Any],
    today: str,
    streamed: bool,
    fit: Fit | None,
    rounds: Rounds,
    of_fallback: OfFallback | None = None,
) -> Events:
    given = conversation.items
    told: Problem | None = None
    if model.max_repeats:
        conversation, told = heed_repeats(conversation, model.max_repeats)
    seen = _observed(model, conversation, given, fields, streamed)
    with seen or nullcontext():
        loop = TurnLoop(
            model,
            conversation,
            fields,
            today=today,
            streamed=streamed,
            seen=seen,
            told=told,
            fit=fit,
            rounds=rounds,
            of_fallback=of_fallback,
            now=time.monotonic,
        )
        steps = loop.steps()
        step = next(steps)
        while step is not None:
            result: Any = None
            if type(step) is Emit:
                yield step.events
            elif type(step) is Ask:
                reader = step.reader
                limit = step.model.limit
                place = Place() if limit is None else limit.place(reader.generation)
                try:
                    async with place, aclosing(step.model.upstream.stream(reader.generation)) as batches:
                        working_s = 0.0  # since the last pause; waiting for the server blocks no other task
                        while place.failure is None and not reader.is_stopped:
                            place.task = asyncio.current_task()
                            batch = await anext(batches, None)
                            place.task = None
                            if batch is None:
                                break
                            place.deltas += len(batch)
                            for portion in portions(batch):
                                begun_s = time.monotonic()
                                events = reader.read(portion)
                                place.usage = reader.usage
                                if (selector := step.model.mode_selector) is not None:
                                    await _heed_unread(selector, step.model, events)
                                if events and (certain := loop.push(events, reader)):
                                    yield certain
                                working_s += time.monotonic() - begun_s  # with the writing of its events
                                if working_s > PAUSE_S:
                                    await asyncio.sleep(0)
                                    working_s = 0.0
                        if place.failure is not None:
                            raise place.failure
                except (RequestError, UpstreamError, asyncio.CancelledError) as error:
                    step = steps.throw(place.failed_with(error))
                    continue
            else:
                try:
                    result = await _done(step, seen)
                except RequestError as error:  # the prompt of a model cannot hold the conversation
                    step = steps.throw(error)
                    continue
            step = steps.send(result)


async def _heed_unread(selector: ModeSelector, model: Model, events: Sequence[Event]) -> None:
    """Choose another mode for the next request if the server could not parse a call. This answer is salvaged here."""
    if unread := unread_call(events):
        await selector.instead(model, unread)


async def _done(step: Beside | ChooseMode | Question, seen: Observation | None) -> Any:
    """The result of a step that is awaited."""
    if type(step) is Beside:
        return await (SLOW.run(step.work) if step.is_slow else asyncio.to_thread(step.work))
    if type(step) is Question:
        return await ask_ambiguous(step.model, step.generation, step.timeout_s, seen)
    if type(step) is ChooseMode:
        selector, failure = step.model.mode_selector, step.failure
        assert selector is not None
        return await (selector.choose(step.model) if failure is None else selector.instead(step.model, failure))
    assert_never(step)


def _observed(
    model: Model, conversation: Conversation, given: tuple[Item, ...], fields: Mapping[str, Any], streamed: bool
) -> Observation | None:
    """The observation of a turn, with the items that were `given`; None if there is no observer."""
    if not model.observers:
        return None
    return Observation(
        model=model.name,
        upstream=model.upstream.name,
        upstream_model=model.upstream_model,
        mode=model.mode,
        dialect=model.dialect,
        output_parser=model.output_parser,
        hints=model.hints,
        conversation=conversation if conversation.items is given else replace(conversation, items=given),
        fields=fields,
        streamed=streamed,
    ).begin(model.observers)
