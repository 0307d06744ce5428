"""The rate limits of keys, shared by several gateways, which exchange their counts through the store.

Far below its limits, no request waits for the store; see `rate_limits`. While the store does not answer, each gateway
applies its share of the limits.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from callwright.gateway.access.keys import Keys
from callwright.gateway.access.rate_limits import Bucket
from callwright.gateway.store.limits import Spent
from callwright.gateway.store.store import Store, StoreError

log = logging.getLogger("callwright.gateway")
# The interval for reporting new usage, and the timeout of the store.
_SAID_EVERY_S: Final = 1.0
_ANSWER_S: Final = 1.0
# Every how many intervals a limit that this gateway does not use is refreshed.
_HEARD_EVERY: Final = 5
_LAST_WORD_S: Final = 2.0


class SharedLimits:
    """Shares the limits of keys with all gateways that use a store. `gateway` names this one; its workers are one."""

    def __init__(self, keys: Keys, store: Store, gateway: str) -> None:
        self._store = store
        self._gateway = gateway
        self._taking = asyncio.Lock()
        self.change(keys)

    def change(self, keys: Keys) -> None:
        """Share the limits of these keys from now on. Keys without limits share nothing."""
        self._outage = keys.outage
        self._buckets = [(who.name, bucket) for who in keys.limited for bucket in who.buckets.values()]
        for who in keys.limited:
            who.takes = self._take

    async def run(self) -> None:
        """Report usage and read the totals periodically, until cancelled."""
        turn = 0
        while True:
            due = [
                (key, bucket)
                for key, bucket in self._buckets
                if bucket.unsaid or (turn % _HEARD_EVERY == 0 and bucket.remaining() < bucket.per_minute)
            ]
            if self._buckets and (due or self._outage.is_now or turn % _HEARD_EVERY == 0):
                await self._say(due)
            turn += 1
            await asyncio.sleep(_SAID_EVERY_S)

    async def close(self) -> None:
        """Report the remaining usage, and deregister this gateway."""
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_LAST_WORD_S):
                if self._buckets:
                    await self._say([(key, bucket) for key, bucket in self._buckets if bucket.unsaid])
                await self._store.leave_limits(self._gateway)

    async def _take(self, key: str, bucket: Bucket) -> bool:
        """Take one unit of a limit, by the total of all gateways; by our share if the store does not answer."""
        async with self._taking:  # after the wait, the limit may be used up, or the store not needed
            if bucket.wait_s(1) > 0:
                return False
            if bucket.is_to_be_asked and (granted := await self._say([(key, bucket)], wants=True)) is not None:
                return granted
            if bucket.wait_s(1) > 0:
                return False
            bucket.use(1)
            return True

    async def _say(self, due: Sequence[tuple[str, Bucket]], *, wants: bool = False) -> bool | None:
        """Report usage of these limits. Returns whether the wanted unit was granted; None without an answer."""
        said = [bucket.say() for _, bucket in due]
        spent = [
            Spent(key, bucket.kind, bucket.per_minute, number, wants)
            for (key, bucket), number in zip(due, said, strict=True)
        ]
        try:
            async with asyncio.timeout(_ANSWER_S):
                used, granted, gateways = await self._store.spend(self._gateway, spent)
        except (StoreError, TimeoutError) as error:
            for (_, bucket), number in zip(due, said, strict=True):
                bucket.unheard(number)  # a late count is counted twice: errs towards too few requests
            self._fails(error)
            return None
        except asyncio.CancelledError:  # the store still completes its transaction
            for (_, bucket), number in zip(due, said, strict=True):
                bucket.unheard(number)
            raise
        for (_, bucket), number, by_all in zip(due, said, used, strict=True):
            bucket.set_total(by_all, number)
        if self._outage.ends(gateways):
            log.warning("limits of keys are counted together again, by %d gateways", gateways)
        return all(granted) if wants else True

    def _fails(self, error: Exception) -> None:
        if self._outage.begins():
            gateways = self._outage.gateways
            for _, bucket in self._buckets:
                bucket.share(gateways)
            log.warning(
                "limits of keys cannot be counted together, each of %d gateways keeps to its share: %s",
                gateways,
                str(error) or "the store did not answer in time",
            )
