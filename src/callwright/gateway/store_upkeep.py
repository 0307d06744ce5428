"""The background work of a gateway on its store: it erases old responses, sends heartbeats while it runs background
responses, and ends the responses of dead processes.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable
from typing import Final

from callwright.gateway.store.store import Store, StoreError

log = logging.getLogger("callwright.gateway")
_PRUNED_EVERY_S: Final = 3_600.0
# The interval of heartbeats while background responses run; and the number of intervals between two searches for the
# responses of dead processes.
_BEAT_S: Final = 5.0
_BEATS_BETWEEN: Final = 2


async def prune(store: Store) -> None:
    """Erase responses older than the retention, now and every hour."""
    while True:
        try:
            await store.prune(int(time.time()))
        except StoreError as error:
            log.warning("old responses could not be erased: %s", error)
        await asyncio.sleep(_PRUNED_EVERY_S)


async def tend(store: Store, makes_some: Callable[[], bool]) -> None:
    """Send heartbeats while background responses run, and end the responses of dead processes."""
    for beat in itertools.count(1):
        await asyncio.sleep(_BEAT_S)
        try:
            if makes_some():
                await store.beat()
        except StoreError as error:
            log.warning("that this process lives could not be noted: %s", error)
        if beat % _BEATS_BETWEEN == 0:
            await end_left(store)


async def end_left(store: Store) -> None:
    """End what dead processes were making."""
    try:
        if ended := await store.end_left():
            log.warning("%d responses in the background were ended: the process that made them is gone", ended)
    except StoreError as error:
        log.warning("responses of ended processes could not be looked for: %s", error)
