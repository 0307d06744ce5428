"""Counts usage and costs, and admits requests within budgets, together with all processes that use the same store.

Usage is added to the store within a second. A killed process loses that second at most; nothing is added twice. Of each
budget, a process has a grant in the store, which expires soon after the process is silent. Far below a limit the grant
has room for the next requests, which do not wait for the store; near it, each request asks. A request that may need
more than the rest waits until it is the only one. So all processes together exceed a budget by one request at most, if
no request needs more than its estimate.

While the store does not answer, each process counts for itself.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Final, TypeAlias

from callwright.database.makers import this_process
from callwright.events import Usage
from callwright.gateway.config.config import Config
from callwright.gateway.spending.budgets import Budget, Meter, budgets_of
from callwright.gateway.store.spending import LIVE_S, BudgetState, Spending
from callwright.gateway.store.store import Store, StoreError

log = logging.getLogger("callwright.gateway")
Wishes: TypeAlias = Mapping[Meter, int]
_REPORT_EVERY_S: Final = 1.0
_RENEW_EVERY_S: Final = 3.0
# After this a grant is not used any more, well before the others stop counting it.
_GRANT_S: Final = LIVE_S / 2
_ANSWER_S: Final = 5.0
_LAST_REPORT_S: Final = 2.0
# How long a request waits for the rest of a budget; how often it looks whether other gateways have left some.
_WAIT_S: Final = 30.0
_LOOK_EVERY_S: Final = 0.25
_NOTHING: Final[Wishes] = MappingProxyType({})
# The part of a limit that a process gets in advance.
_ADVANCE: Final = 20


def counts_spending(config: Config) -> bool:
    """Whether a configuration has a price or a budget."""
    return any(given.price for given in config.models) or next(budgets_of(config), None) is not None


class Ledger:
    """The spending of a gateway. Without a `store` nothing is counted together, and there may be no budgets.

    `clock` is in seconds since the epoch.
    """

    def __init__(self, store: Store | None, clock: Callable[[], float] = time.time) -> None:
        self.meters: list[Meter] = []
        self._of_models: Mapping[str, list[Meter]] = {}
        self._of_keys: Mapping[str, list[Meter]] = {}
        self._store = store
        self._clock = clock
        self._process = this_process().id
        self._day = -1  # since the epoch
        self.today = date.min
        self._unsent: dict[tuple[str, str, str], Spending] = {}
        self._sending: Sequence[Spending] = ()
        self._batch = 0
        self._touched: dict[Meter, None] = {}
        self._settling = asyncio.Lock()
        self._settled_s = -_GRANT_S  # when the grants were renewed
        self._is_down = False

    def change(self, budgets: Sequence[Budget]) -> None:
        """Apply these budgets from now on. What is used of those that stay is kept, and so is what requests reserve."""
        known = {meter.budget.id: meter for meter in self.meters}
        self.meters = [known.get(budget.id) or Meter(budget) for budget in budgets]
        for meter, budget in zip(self.meters, budgets, strict=True):
            meter.budget = budget
            meter.begin(self.today)
        self._of_models = self._by_name(lambda budget: (budget.name,) if budget.keys is None else ())
        self._of_keys = self._by_name(lambda budget: budget.keys or ())

    def _by_name(self, names: Callable[[Budget], Sequence[str]]) -> dict[str, list[Meter]]:
        found: dict[str, list[Meter]] = {}
        for meter in self.meters:
            for name in names(meter.budget):
                found.setdefault(name, []).append(meter)
        return found

    def meters_of(self, key: str, model: str, *, is_priced: bool = True) -> Sequence[Meter]:
        """The budgets of a request. A model without a price uses no money."""
        meters = [*self._of_keys.get(key, ()), *self._of_models.get(model, ())]
        return meters if is_priced else [meter for meter in meters if meter.budget.unit == "tokens"]

    def add(self, key: str, model: str, usage: Usage, cost: int, wishes: Wishes = _NOTHING) -> None:
        """Count the usage of one generation, and release its `wishes`. `cost` is in millionths of the currency."""
        self._begin_day()
        known = key, self.today.isoformat(), model
        if (row := self._unsent.get(known)) is None:
            row = self._unsent[known] = Spending(*known)
        row.requests += 1
        row.input_tokens += usage.prompt_tokens
        row.output_tokens += usage.completion_tokens
        row.cached_tokens += usage.cached_tokens
        row.cost += cost
        for meter, amount in wishes.items():
            meter.unsent += cost if meter.budget.unit == "cost" else usage.total_tokens
            meter.running -= amount
            meter.has_ended.set()
            self._touched[meter] = None

    async def check(self, meters: Sequence[Meter]) -> None:
        """Raises `RequestError` (429) if one of these budgets is used up, by the usage of all processes."""
        self._begin_day()
        self._refuse_exhausted(meters)
        if time.monotonic() - self._settled_s > _GRANT_S and not self._is_down:
            async with self._settling:
                await self._settle({}, meters)
            self._refuse_exhausted(meters)

    async def admit(self, wishes: Wishes) -> None:
        """Reserve these amounts until `release`. Waits if running requests may need the rest of a budget; raises
        `RequestError` (429) if it is used up, or after a long wait.
        """
        self._begin_day()
        if self._settling.locked() or not self._reserve_granted(wishes):  # grants may be replaced while it is locked
            self._refuse_exhausted(wishes)
            if not await self._ask(wishes):
                await self._wait(wishes)

    def release(self, wishes: Wishes) -> None:
        """A request is over that has used nothing."""
        for meter, amount in wishes.items():
            meter.running -= amount
            meter.has_ended.set()

    async def run(self) -> None:
        """Report usage and renew grants periodically, until cancelled."""
        while True:
            await asyncio.sleep(_REPORT_EVERY_S)
            self._begin_day()
            if self._has_news():
                async with self._settling:
                    await self._settle({}, list(self._touched))

    async def close(self) -> None:
        """Report the remaining usage."""
        if self._store is None:
            return
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_LAST_REPORT_S):
                while self._has_news() and await self.report():
                    pass
                await self._store.spending.leave(self._process)

    async def report(self) -> bool:
        """Add all usage so far to the store. Returns whether it answered."""
        async with self._settling:
            return await self._settle({}, list(self._touched)) is not None

    async def spending(self, since: date, key: str | None) -> list[Spending]:
        """The usage since a day, of all keys or of one, the latest day first. Raises `StoreError`."""
        if self._store is None:
            return []
        if self._has_news():
            await self.report()
        return await self._store.spending.rows(since.isoformat(), key)

    async def usage_of(self, meters: Sequence[Meter]) -> list[int]:
        """How much is used of these budgets by all. Raises `StoreError`."""
        self._begin_day()
        claims = [meter.claim(0, 0) for meter in meters]
        return [] if self._store is None else await self._store.spending.budget_usage(claims)

    @property
    def now(self) -> datetime:
        """The time, in UTC."""
        return datetime.fromtimestamp(self._clock(), UTC)

    # --- admission ---

    def _begin_day(self) -> None:
        if (day := int(self._clock() // 86_400)) == self._day:
            return
        self._day, self.today = day, self.now.date()
        for meter in self.meters:
            meter.begin(self.today)

    def _refuse_exhausted(self, meters: Iterable[Meter]) -> None:
        for meter in meters:
            if meter.total >= meter.budget.limit:
                raise meter.budget.exhausted_error(meter.total, self.now)

    def _reserve_granted(self, wishes: Wishes) -> bool:
        """Reserve these amounts if the grants have room for them, and no budget is used up."""
        if time.monotonic() - self._settled_s > _GRANT_S:
            return False
        for meter, wish in wishes.items():
            if wish + meter.outstanding >= min(meter.granted, meter.budget.limit - meter.used):
                return False
        self._reserve(wishes)
        return True

    def _reserve(self, wishes: Wishes) -> None:
        for meter, wish in wishes.items():
            meter.running += wish
            meter.is_active = True
            self._touched[meter] = None

    async def _ask(self, wishes: Wishes) -> bool:
        """Reserve these amounts, by the usage of all processes, or of this process if the store does not answer."""
        async with self._settling:
            self._refuse_exhausted(wishes)  # known only after the wait
            if self._reserve_granted(wishes):  # renewed for another request
                return True
            fits = None if self._is_down else await self._settle(wishes, list(wishes))
            if fits is None:
                fits = all(meter.fits_alone(wish) for meter, wish in wishes.items())
            self._refuse_exhausted(wishes)
            if fits:
                self._reserve(wishes)
            return fits

    async def _wait(self, wishes: Wishes) -> None:
        """Reserve these amounts as soon as they fit. Of those that wait for a budget, one looks at a time."""
        scarce = min(wishes, key=lambda meter: meter.budget.limit - meter.used - meter.outstanding - wishes[meter])
        try:
            async with asyncio.timeout(_WAIT_S), scarce.turnstile:
                while not await self._ask(wishes):
                    scarce.has_ended.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_LOOK_EVERY_S):
                            await scarce.has_ended.wait()
        except TimeoutError:
            raise scarce.budget.reserved_error() from None

    # --- with the store ---

    def _has_news(self) -> bool:
        if self._unsent or self._sending:
            return True
        is_due = time.monotonic() - self._settled_s > _RENEW_EVERY_S
        return any(meter.granted != meter.running or (meter.running and is_due) for meter in self._touched)

    async def _settle(self, wishes: Wishes, meters: Sequence[Meter]) -> bool | None:
        """Report usage, and renew the grants of these budgets, of which `wishes` are some. Returns whether the wishes
        fit; None if the store does not answer. Called with the lock `_settling`.

        A batch that may not have been added is sent again with its number.
        """
        if self._store is None:
            return None
        if not self._sending and self._unsent:
            self._sending, self._unsent = tuple(self._unsent.values()), {}
            self._batch += 1
            for meter in self._touched:
                meter.sending, meter.unsent = meter.unsent, 0
        claims = [meter.claim(wishes.get(meter, 0), _advance(meter, wishes)) for meter in meters]
        claimed = {claim.budget for claim in claims}
        others = {meter.budget.id: meter.granted for meter in self._touched if meter.granted}
        kept = {budget: granted for budget, granted in others.items() if budget not in claimed}
        settle = self._store.spending.settle
        begun_s = time.monotonic()
        try:
            async with asyncio.timeout(_ANSWER_S):
                states, fits = await settle(self._process, self._batch, self._sending, claims, kept)
        except (StoreError, TimeoutError) as error:
            self._fails(error)
            return None
        self._settled_s = begun_s
        self._sending = ()
        for meter in self._touched:
            meter.used, meter.sending = meter.used + meter.sending, 0
        for meter, claim, state in zip(meters, claims, states, strict=True):
            if claim.since == meter.since.isoformat():  # no new period has begun meanwhile
                self._take(meter, state)
        if self._is_down:
            self._is_down = False
            log.warning("budgets are counted together again")
        return fits

    def _take(self, meter: Meter, state: BudgetState) -> None:
        meter.used, meter.granted = state.used, state.granted
        meter.is_active = False
        if not (meter.outstanding or meter.granted):
            self._touched.pop(meter, None)

    def _fails(self, error: Exception) -> None:
        if not self._is_down:
            self._is_down = True
            log.warning(
                "budgets cannot be counted together, each process counts for itself: %s",
                str(error) or "the store did not answer in time",
            )


def _advance(meter: Meter, wishes: Wishes) -> int:
    """How much to ask for in advance: nothing for a budget that was not used lately."""
    return meter.budget.limit // _ADVANCE if meter in wishes or meter.is_active else 0
