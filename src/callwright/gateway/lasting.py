"""The objects that a process has once, for all revisions: store, counters, observers, background responses."""

import asyncio
import platform
import time
from pathlib import Path

from callwright.database.makers import this_process
from callwright.gateway.access.admission import AdmissionControl
from callwright.gateway.access.clients import Clients
from callwright.gateway.access.key_counters import KeyCounters
from callwright.gateway.access.keys import Keys, caller
from callwright.gateway.access.middleware import Access
from callwright.gateway.access.shared_limits import SharedLimits
from callwright.gateway.body_budget import BodyBudget
from callwright.gateway.config.config import Config, StoreConfig
from callwright.gateway.connections import Connections
from callwright.gateway.endpoints.background import BackgroundResponses
from callwright.gateway.free_memory import give_back_behind_storms
from callwright.gateway.http import cancel_quietly
from callwright.gateway.inspection.siblings import SharedTurns
from callwright.gateway.inspection.turn_source import RecordedTurns
from callwright.gateway.kept_items.keeper import ItemKeeper
from callwright.gateway.observability.observability import Observability
from callwright.gateway.parts import Parts
from callwright.gateway.spending.budgets import budgets_of
from callwright.gateway.spending.ledger import Ledger
from callwright.gateway.store.store import Store
from callwright.gateway.store_upkeep import end_left, prune, tend


class Lasting:
    """Opened and closed once. `config_error`: why the latest change of the configuration was not taken."""

    def __init__(
        self,
        config: Config,
        counters: KeyCounters | None,
        worker: int,
        folder: Path | None,
        records: RecordedTurns | None,
    ) -> None:
        """See `callwright.gateway.app.create_app`."""
        self.records = records
        self.started = int(time.time())
        self.parts: Parts = {}
        self.config_error: str | None = None
        self.counters = counters or KeyCounters()
        self.clients = Clients(config.limits, config.keys, self.counters, worker)
        self.access = Access(self.clients)
        self.admission = AdmissionControl(config.server.max_requests, self.clients)
        self.connections = Connections(config.limits.max_connections)
        self.watch = Observability(config, lambda: self.access.keys.remaining(), worker)
        self.bodies = BodyBudget(config.limits.max_bodies_bytes, self.watch.metrics.body_bytes)
        store = config.store or StoreConfig(url="sqlite://")
        told = self.watch.metrics.store_operation
        self.store = (
            None if store.url == "none" else Store(store.url, store.retention_days, lambda: caller().name, told=told)
        )
        self.keeper = ItemKeeper(self.store)
        self.ledger = Ledger(self.store)
        self.background = BackgroundResponses(self.store, self.admission)
        self.limits: SharedLimits | None = None
        if store.shared_limits and self.store is not None:  # the workers of one gateway have a folder in common
            gateway = this_process().id if folder is None else f"{platform.node()} {folder.name}"
            self.limits = SharedLimits(Keys(()), self.store, gateway)
        self.shared_turns: SharedTurns | None = None
        if folder is not None and config.server.workers > 1:
            self.shared_turns = SharedTurns(folder, worker, config.server.workers)
        self._tasks: list[asyncio.Task[None]] = []

    def change(self, config: Config, keys: Keys) -> None:
        """Apply the limits and keys of another configuration from now on. The counts stay."""
        self.clients.change(config.limits, config.keys)
        self.access.change(keys, (*config.server.hosts, config.server.host))
        self.admission.change(config.server.max_requests)
        self.connections.most = config.limits.max_connections
        self.bodies.most = config.limits.max_bodies_bytes
        self.ledger.change(list(budgets_of(config)))
        if self.limits is not None:
            self.limits.change(keys)

    async def open(self) -> None:
        """Open the store, and begin the work in the background. Raises `ConfigError`."""
        self.watch.open()
        self._tasks = [asyncio.create_task(give_back_behind_storms(lambda: self.admission.running))]
        if self.shared_turns is not None:
            await self.shared_turns.open()
        if self.store is not None:
            await self.store.open()
            await end_left(self.store)
            tended = tend(self.store, lambda: self.background.makes_some)
            self._tasks += [asyncio.create_task(work) for work in (prune(self.store), tended)]
            self._tasks.append(asyncio.create_task(self.keeper.forget()))
            self._tasks.append(asyncio.create_task(self.ledger.run()))
            if self.limits is not None:
                self._tasks.append(asyncio.create_task(self.limits.run()))

    async def end_requests(self) -> None:
        """End all answers and background responses, which still need the store and the models."""
        self.admission.end()
        await self.background.close()

    async def close(self) -> None:
        """Close everything. No request runs any more."""
        for task in self._tasks:
            await cancel_quietly(task)
        if self.limits is not None:
            await self.limits.close()
        await self.ledger.close()
        if self.shared_turns is not None:
            await self.shared_turns.close()
        if self.store is not None:
            await self.store.close()
        await self.watch.close()
