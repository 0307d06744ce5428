"""Turns with hooks: the request and new results before the turn, prompts on their way to a server, calls before they
are sent.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import aclosing
from typing import Any, Final
from weakref import WeakValueDictionary

from msgspec.structs import replace

from callwright.conversation import Call, CallOutput, Conversation, FunctionTool, Item, MediaPart, TextPart
from callwright.errors import RequestError, UpstreamError
from callwright.events import Event, Problem, Usage
from callwright.gateway.access.keys import caller
from callwright.gateway.hooks.calls import CallFilter
from callwright.gateway.hooks.judge import SHORTEST_SECRET, HookFailed, JudgingHook
from callwright.gateway.request_context import current
from callwright.hooks import ALLOW, CallInput, HookInput, Place, PromptInput, RequestInput, ResultInput, Verdict
from callwright.tolerant_json.codec import encode
from callwright.turn.model import Events, Model, ModeSelector, RunsTurn
from callwright.turn.observe import Observation
from callwright.upstreams.base import Deltas, GenerationRequest
from callwright.upstreams.wrapped import WrappedUpstream

# Verdicts about results are remembered: the same results come with each request of a conversation.
_MOST_RESULTS: Final = 10_000
_MOST_RESULT_CHARS: Final = 16_777_216
_WITHHELD: Final = "The output of this tool was withheld"
_OF_HOOKS: Final = frozenset(("call_denied", "call_changed"))


class HookedTurns:
    """Asks hooks in the order of the configuration. The first that denies decides."""

    def __init__(self, hooks: Sequence[JudgingHook]) -> None:
        self._hooks = hooks
        self._results = _KnownResults()
        self._requests: WeakValueDictionary[str, _RequestVerdicts] = WeakValueDictionary()

    def turn(self, model: Model, conversation: Conversation, run: RunsTurn) -> Events:
        """The events of a turn that `run` begins. They raise `RequestError` if a hook denies it."""
        key = caller().name
        hooks = [hook for hook in self._hooks if hook.keys.match(key)]
        if hooks:
            names = [model.name, *(other.name for other in model.fallbacks)]
            hooks = [hook for hook in hooks if hook.is_for(names)]
        return self._turn(hooks, model, conversation, run) if hooks else run(model, conversation)

    async def _turn(
        self, hooks: Sequence[JudgingHook], model: Model, conversation: Conversation, run: RunsTurn
    ) -> Events:
        context = current()
        shared = _RequestVerdicts() if context is None else self._requests.setdefault(context.id, _RequestVerdicts())
        turn = _Turn(hooks, self._results, shared, model)
        await turn.request(conversation)
        conversation = await turn.results(conversation)
        calls = CallFilter(conversation, turn.judge_call) if turn.has("call") else None
        async with aclosing(run(turn.guard(model), conversation)) as events:
            async for batch in events:
                if calls is None:
                    yield batch
                    continue
                async for now in calls.take(batch):
                    turn.note(now)
                    yield now

    async def close(self) -> None:
        """Release the resources of the hooks."""
        for hook in self._hooks:
            await hook.close()


class _Turn:
    """The `hooks` of one turn. `model` is the one that was asked; another may answer. `shared` are the verdicts of the
    turns of its request that run at the same time, one for each choice.
    """

    def __init__(
        self, hooks: Sequence[JudgingHook], known: "_KnownResults", shared: "_RequestVerdicts", model: Model
    ) -> None:
        self._all = hooks
        self._known = known
        self._shared = shared
        self._key = caller().name
        self._model = model.name
        context = current()
        self._about = {"key": self._key, "model": self._model, "request_id": "" if context is None else context.id}
        self._is_first = context is None or not context.turns.number
        self._secrets: set[str] = set()
        self._seen: Observation | None = None

    def has(self, place: Place) -> bool:
        """Whether any hook is asked at this place, whichever of its models answers."""
        return any(place in hook.places for hook in self._all)

    def guard(self, model: Model) -> Model:
        """The model, which asks no server without the hooks of the place `prompt`."""
        observers = (self._observe, *model.observers)  # first, so that the others know its secrets
        if not self.has("prompt"):
            return replace(model, observers=observers)
        others = tuple(self._with_guard(other) for other in model.fallbacks)
        return replace(self._with_guard(model), fallbacks=others, observers=observers)

    def note(self, batch: Sequence[Event | Usage]) -> None:
        """Add the calls that were denied or changed to the observation of the turn."""
        if self._seen is not None:
            self._seen.problems += [one for one in batch if type(one) is Problem and one.kind in _OF_HOOKS]

    async def request(self, conversation: Conversation) -> None:
        """Ask about a request, once for all its rounds and choices. Raises `RequestError` if it may not be asked."""
        if self._is_first and self.has("request"):
            await self._admit(RequestInput(conversation=conversation, **self._about), (self._model,), "")

    async def results(self, conversation: Conversation) -> Conversation:
        """The conversation with the results of tools as the hooks want them."""
        if not self.has("result"):
            return conversation
        calls: dict[str, Call] = {}
        items: list[Item] = []
        for item in conversation.items:
            if type(item) is Call:
                calls[item.id] = item
            items.append(await self._result(item, calls.get(item.call_id)) if type(item) is CallOutput else item)
        return replace(conversation, items=tuple(items))

    async def judge_call(self, call: Call, arguments: Any, tool: FunctionTool | None) -> Verdict:
        """The verdict about a call: that of the first hook that denies it, or the arguments after all changes."""
        found = ALLOW
        for hook in self._hooks("call", self._answering()):
            given = CallInput(call=call, arguments=arguments, tool=tool, **self._about)
            try:
                verdict = await self._ask(hook, given)
            except HookFailed as error:
                return Verdict("deny", str(error))
            if verdict.action in ("deny", "ask"):
                return verdict
            if verdict.action == "replace":
                found, arguments = verdict, verdict.arguments
                text = arguments if call.kind == "custom" else encode(arguments).decode()
                call = replace(call, arguments=text, complete=True)
        return found

    async def admit_prompt(self, generation: GenerationRequest, model: Model) -> None:
        """Ask about a prompt. Raises `RequestError` if it may not go to the server."""
        given = PromptInput(
            **{**self._about, "model": model.name},
            upstream=model.upstream.name,
            upstream_model=generation.model,
            prompt=None if generation.prompt is None else generation.prompt.text,
            messages=generation.messages,
            tools=generation.tools,
        )
        await self._admit(given, (model.name,), given.prompt or encode((given.messages, given.tools)))

    def _with_guard(self, model: Model) -> Model:
        selector = model.mode_selector
        return replace(
            model,
            upstream=_GuardedUpstream(model, self.admit_prompt),
            mode_selector=None if selector is None else _GuardedSelector(selector, self._with_guard),
        )

    def _observe(self, seen: Observation) -> None:
        self._seen = seen
        seen.secrets = self._secrets  # more may be added while the turn runs

    def _answering(self) -> Sequence[str]:
        """The models of the answer: the one that was asked, and the one in its place."""
        other = self._seen.fallback if self._seen is not None else None
        return (self._model,) if other is None else (self._model, other.model)

    def _hooks(self, place: Place, models: Sequence[str]) -> list[JudgingHook]:
        return [hook for hook in self._all if place in hook.places and hook.is_for(models)]

    async def _ask(self, hook: JudgingHook, given: HookInput, shared_by: Hashable = None) -> Verdict:
        """The verdict of a hook. What is `shared_by` the choices of a request is asked once."""
        if shared_by is None:
            verdict = await hook.judge(given)
        else:
            verdict = await self._shared.once((hook.name, given.place, shared_by), lambda: hook.judge(given))
        self._secrets.update(one for one in verdict.secrets if len(one) >= SHORTEST_SECRET)
        return verdict

    async def _admit(self, given: RequestInput | PromptInput, models: Sequence[str], text: str | bytes) -> None:
        for hook in self._hooks(given.place, models):
            try:
                verdict = await self._ask(hook, given, (models, text))
            except HookFailed as error:
                raise RequestError(str(error), code="hook_failed", status=503, type_="server_error") from error
            if verdict.action == "deny":
                why = verdict.message or "A rule of this gateway does not allow this request."
                raise RequestError(why, code="denied_by_hook", status=403)

    async def _result(self, item: CallOutput, call: Call | None) -> CallOutput:
        name = call.name if call is not None else ""
        text = item.text
        for hook in self._hooks("result", (self._model,)):
            about = (hook.name, self._key, self._model, name, call.arguments if call is not None else "", text)
            verdict = self._known.get(about)
            if verdict is None:
                given = ResultInput(name=name, text=text, call=call, **self._about)
                try:
                    verdict = await self._ask(hook, given, about)
                except HookFailed as error:
                    return CallOutput(item.call_id, (TextPart(f"{_WITHHELD}: {error}"),))
                self._known.keep(about, verdict)
            self._secrets.update(one for one in verdict.secrets if len(one) >= SHORTEST_SECRET)
            if verdict.action == "deny":
                return CallOutput(item.call_id, (TextPart(f"{_WITHHELD}: {verdict.message or 'a rule forbids it'}"),))
            if verdict.action == "replace":
                text = verdict.text or ""
        if text == item.text:
            return item
        media = tuple(part for part in item.parts if isinstance(part, MediaPart))
        return CallOutput(item.call_id, (TextPart(text), *media))


class _RequestVerdicts:
    """Verdicts for all choices of a request: each question is asked once."""

    def __init__(self) -> None:
        self._asking: dict[Hashable, asyncio.Lock] = {}
        self._known: dict[Hashable, Verdict | HookFailed] = {}

    async def once(self, question: Hashable, judge: Callable[[], Awaitable[Verdict]]) -> Verdict:
        """The verdict of `judge`, or that of an earlier call for the same question. Raises `HookFailed`."""
        async with self._asking.setdefault(question, asyncio.Lock()):
            if (known := self._known.get(question)) is None:
                try:
                    known = await judge()
                except HookFailed as error:
                    known = error.with_traceback(None)
                self._known[question] = known
        if isinstance(known, HookFailed):
            raise HookFailed(str(known))
        return known


class _KnownResults:
    """The latest verdicts about results, by the hash of all that they may depend on."""

    def __init__(self) -> None:
        self._verdicts: OrderedDict[bytes, Verdict] = OrderedDict()
        self._chars = 0

    def get(self, about: tuple[str, ...]) -> Verdict | None:
        """The verdict about this result, if it is known."""
        hashed = _hash(about)
        if (found := self._verdicts.get(hashed)) is not None:
            self._verdicts.move_to_end(hashed)
        return found

    def keep(self, about: tuple[str, ...], verdict: Verdict) -> None:
        """Remember a verdict."""
        self._verdicts[_hash(about)] = verdict
        self._chars += _size(verdict)
        while len(self._verdicts) > _MOST_RESULTS or self._chars > _MOST_RESULT_CHARS:
            _, old = self._verdicts.popitem(last=False)
            self._chars -= _size(old)


def _hash(about: tuple[str, ...]) -> bytes:
    return hashlib.sha256(repr(about).encode("utf-8", "surrogatepass")).digest()


def _size(verdict: Verdict) -> int:
    return len(verdict.text or "") + sum(map(len, verdict.secrets))


class _GuardedUpstream(WrappedUpstream):
    """The server of a model, which gets only the prompts that `admit` lets through."""

    def __init__(self, model: Model, admit: Callable[[GenerationRequest, Model], Awaitable[None]]) -> None:
        super().__init__(model.upstream)
        self._model = model
        self._admit = admit

    async def stream(self, generation: GenerationRequest) -> Deltas:
        await self._admit(generation, self._model)
        async with aclosing(self._upstream.stream(generation)) as batches:
            async for batch in batches:
                yield batch


class _GuardedSelector:
    """A selector of modes whose models are guarded, too."""

    def __init__(self, selector: ModeSelector, guard: Callable[[Model], Model]) -> None:
        self._selector = selector
        self._guard = guard

    def start(self) -> None:
        self._selector.start()

    async def choose(self, model: Model) -> Model:
        chosen = await self._selector.choose(model)
        return model if chosen is model else self._guard(chosen)

    async def instead(self, model: Model, failure: RequestError | UpstreamError | Problem) -> Model | None:
        other = await self._selector.instead(model, failure)
        return None if other is None else self._guard(other)

    async def close(self) -> None:
        await self._selector.close()
