"""The limit of a model whose usage is counted: a generation needs room in its budgets, and its tokens have a price."""

import asyncio
from collections.abc import Callable
from types import MappingProxyType
from typing import Final, Self

from msgspec.structs import replace

from callwright.events import Usage
from callwright.gateway.access.admission import AdmissionControl
from callwright.gateway.access.concurrency import ConcurrencyLimit, CountedPlace, LimitCounts
from callwright.gateway.access.keys import caller
from callwright.gateway.config.config import ModelConfig
from callwright.gateway.spending.budgets import Meter
from callwright.gateway.spending.ledger import Ledger, Wishes
from callwright.gateway.spending.prices import Price
from callwright.tolerant_json.codec import encode
from callwright.turn.model import Model
from callwright.turn.place import Place
from callwright.upstreams.base import GenerationRequest
from callwright.wire.token_estimate import estimated_prompt

# The length of an answer, if neither the request nor an earlier answer has one.
_OUTPUT_TOKENS: Final = 1_024
_CHARACTERS_PER_TOKEN: Final = 4
_MOST_OUTPUT: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_CHOICES: Final = ("n", "best_of")


def with_limit(
    model: Model,
    given: ModelConfig,
    counts: LimitCounts,
    admission: AdmissionControl,
    ledger: Ledger | None,
    count_cost: Callable[[str, str, int], None],
) -> Model:
    """A model with the limit of its configuration, which counts its usage if there is a ledger."""
    server = model.upstream.name
    if ledger is None:
        return replace(model, limit=ConcurrencyLimit(server, admission, given.max_requests, given.queue_s, counts))
    return replace(model, limit=SpendingLimit(server, given, counts, admission, ledger, count_cost))


class SpendingLimit(ConcurrencyLimit):
    """A `ConcurrencyLimit` that also counts costs. `count_cost(key, model, cost)` is called after each generation of a
    model with a price; the cost is in millionths of the currency.
    """

    def __init__(
        self,
        server: str,
        given: ModelConfig,
        counts: LimitCounts,
        admission: AdmissionControl,
        ledger: Ledger,
        count_cost: Callable[[str, str, int], None],
    ) -> None:
        super().__init__(server, admission, given.max_requests, given.queue_s, counts)
        self.ledger = ledger
        self._model = given.name
        self._price = None if given.price is None else Price(given.price)
        self._count_cost = count_cost

    def place(self, generation: GenerationRequest) -> Place:
        """See `ConcurrencyLimit`. To enter it raises `RequestError` (429) if a budget is used up, too."""
        return _CountingPlace(self, generation)

    async def check(self) -> None:
        """See `Limit`: raises `RequestError` (429) if a budget is used up."""
        if meters := self._meters():
            await self.ledger.check(meters)

    def _meters(self) -> list[Meter]:
        """The budgets of the running request. A model without a price uses no money."""
        meters = self.ledger.meters_of(caller().name, self._model)
        return meters if self._price is not None else [each for each in meters if each.budget.unit == "tokens"]

    def wishes(self, generation: GenerationRequest, prompt_tokens: int) -> Wishes:
        """The amounts that a generation may use of its budgets, by the estimate of its prompt."""
        meters = self._meters()
        if not meters:
            return {}
        most = Usage(
            prompt_tokens=prompt_tokens + self.counts.excess, completion_tokens=self._output_tokens(generation)
        )
        if self._price is None:
            return dict.fromkeys(meters, most.total_tokens)
        cost = self._price.cost(most)
        return {meter: cost if meter.budget.unit == "cost" else most.total_tokens for meter in meters}

    def count(self, generation: GenerationRequest, usage: Usage, estimated: int) -> None:
        """Count the usage of a generation that is over; `estimated`: the tokens of its prompt, 0 if they were not."""
        self.counts.largest_output = max(self.counts.largest_output, usage.completion_tokens)
        if estimated:
            self.counts.excess = max(self.counts.excess, usage.prompt_tokens - estimated)
        key, cost = caller().name, 0
        if self._price is not None:
            cost = self._price.cost(usage)
            self._count_cost(key, self._model, cost)
            if generation.timings is not None:
                generation.timings.cost = cost
        self.ledger.add(key, self._model, usage, cost)

    def _output_tokens(self, generation: GenerationRequest) -> int:
        """The most tokens that a generation may write, about."""
        choices, limit = 1, -1
        for name, value in generation.fields.items():
            if type(value) is not int:
                continue
            if name in _MOST_OUTPUT:
                limit = max(0, limit, value)
            elif name in _CHOICES:
                choices = max(choices, value)
        if limit >= 0:
            return choices * limit
        return choices * (self.counts.largest_output or (0 if _is_forwarded(generation) else _OUTPUT_TOKENS))


def _prompt_tokens(generation: GenerationRequest) -> int:
    """About how many tokens a prompt has."""
    if _is_forwarded(generation):
        return len(encode(generation.fields)) // _CHARACTERS_PER_TOKEN
    return estimated_prompt(generation.conversation, is_native=generation.dialect is None)


def _is_forwarded(generation: GenerationRequest) -> bool:
    return generation.messages is None and generation.prompt is None


class _CountingPlace(CountedPlace):
    """A place whose generation has its usage counted, entered once all budgets have room for it. If the client leaves
    before the server has sent its counts, they are estimated: the prompt as for budgets, and a token for each delta.
    """

    _limit: SpendingLimit
    _wishes: Wishes = MappingProxyType({})
    _prompt_tokens = 0
    _is_left = False

    async def __aenter__(self) -> Self:
        limit, wishes = self._limit, self._wishes
        if limit.ledger.meters:
            self._prompt_tokens = _prompt_tokens(self._generation)
            if wishes := limit.wishes(self._generation, self._prompt_tokens):
                await limit.ledger.admit(wishes)
        try:
            await super().__aenter__()
        except BaseException:
            limit.ledger.release(wishes)
            raise
        self._wishes = wishes
        return self

    async def __aexit__(self, *error: object) -> None:
        self._limit.ledger.release(self._wishes)
        self._is_left = self.failure is None and isinstance(error[1], asyncio.CancelledError | GeneratorExit)
        await super().__aexit__(*error)

    def spend(self, usage: Usage | None) -> None:
        timings = self._generation.timings
        if usage is None and self._is_left and (timings is None or timings.sent_s is not None):
            usage = Usage(prompt_tokens=_prompt_tokens(self._generation), completion_tokens=self.deltas)
        super().spend(usage)
        if usage is not None:
            self._limit.count(self._generation, usage, self._prompt_tokens)
