"""The limit of a model whose usage is counted: a generation needs room in its budgets, and its tokens have a price."""

import asyncio
from collections.abc import Callable, Sequence
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
# What ends a generation if its client leaves.
_LEAVES: Final = (asyncio.CancelledError, GeneratorExit)


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
        self.model = given.name
        self.price = None if given.price is None else Price(given.price)
        self._count_cost = count_cost

    def place(self, generation: GenerationRequest) -> Place:
        """See `ConcurrencyLimit`. To enter it raises `RequestError` (429) if a budget is used up, too."""
        return _CountingPlace(self, generation)

    async def check(self) -> None:
        """See `Limit`: raises `RequestError` (429) if a budget is used up."""
        if meters := self.ledger.meters_of(caller().name, self.model, is_priced=self.price is not None):
            await self.ledger.check(meters)

    def wishes(self, generation: GenerationRequest, meters: Sequence[Meter], prompt_tokens: int) -> Wishes:
        """The amounts that a generation may use of these budgets, by the estimate of its prompt."""
        prompt, output = prompt_tokens + self.counts.excess, self._output_tokens(generation)
        cost = 0 if self.price is None else self.price.cost(Usage(prompt, output))
        return {meter: cost if meter.budget.unit == "cost" else prompt + output for meter in meters}

    def count(self, generation: GenerationRequest, usage: Usage, prompt_tokens: int, wishes: Wishes) -> None:
        """Count the usage of a generation that is over, in place of its `wishes`. `prompt_tokens`: the estimate of its
        prompt, 0 without one.
        """
        self.counts.largest_output = max(self.counts.largest_output, usage.completion_tokens)
        if prompt_tokens:
            self.counts.excess = max(self.counts.excess, usage.prompt_tokens - prompt_tokens)
        key, cost = caller().name, 0
        if self.price is not None:
            cost = self.price.cost(usage)
            self._count_cost(key, self.model, cost)
            if generation.timings is not None:
                generation.timings.cost = cost
        self.ledger.add(key, self.model, usage, cost, wishes)

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
        has_answer = generation.messages is not None or generation.prompt is not None  # not embeddings
        return choices * (self.counts.largest_output or _OUTPUT_TOKENS * has_answer)


def _prompt_tokens(generation: GenerationRequest) -> int:
    """About how many tokens a prompt has."""
    if generation.messages is None and generation.prompt is None:  # a forwarded request
        return len(encode(generation.fields)) // _CHARACTERS_PER_TOKEN
    return estimated_prompt(generation.conversation, is_native=generation.dialect is None)


class _CountingPlace(CountedPlace):
    """A place whose generation has its usage counted, entered once all budgets have room for it. If the client leaves
    before the server has sent its counts, they are estimated: the prompt as for budgets, and a token for each delta.
    """

    _limit: SpendingLimit
    _wishes: Wishes = MappingProxyType({})
    _prompt_tokens = 0

    async def __aenter__(self) -> Self:
        limit = self._limit
        if meters := limit.ledger.meters_of(caller().name, limit.model, is_priced=limit.price is not None):
            self._prompt_tokens = _prompt_tokens(self._generation)
            wishes = limit.wishes(self._generation, meters, self._prompt_tokens)
            await limit.ledger.admit(wishes)
            self._wishes = wishes
        try:
            return await super().__aenter__()
        except BaseException:
            limit.ledger.release(self._wishes)
            raise

    async def __aexit__(self, *error: object) -> None:
        generation, limit = self._generation, self._limit
        if self.usage is None and self.failure is None and isinstance(error[1], _LEAVES):
            was_sent = generation.timings is None or generation.timings.sent_s is not None
            self.usage = Usage(_prompt_tokens(generation), self.deltas) if was_sent else None
        await super().__aexit__(*error)
        if self.usage is None:
            limit.ledger.release(self._wishes)
        else:
            limit.count(generation, self.usage, self._prompt_tokens, self._wishes)
