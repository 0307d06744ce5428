"""The first look of a started gateway at its upstreams: is one itself, down, at another URL, or without the model?

A thread of its own asks, so that neither the start nor a client waits.
"""

import asyncio
import logging
import os
import secrets
import signal
import sys
import threading
from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from callwright.doctor.examine import probe
from callwright.doctor.findings import Findings
from callwright.gateway.config.build_models import upstream_headers
from callwright.gateway.config.config import ANY_MODEL, Config, ModelConfig, servers_of
from callwright.gateway.process.own_address import ask_health, is_own, own_address_error, server_urls
from callwright.turn.model import AUTO
from callwright.upstreams.base_urls import without_credentials
from callwright.wire.server import INSTANCE_VARIABLE

log = logging.getLogger("callwright.gateway")
_PROBING_S: Final = 9.0
# Between two looks at an upstream that is not there; ever longer, so that one that never starts costs nothing.
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 30.0


class FirstLook:
    """Looks at each upstream of a configuration until it answers. `shown` are the models about whose servers the
    user was warned already.
    """

    def __init__(self, config: Config, *, shown: Collection[str] = ()) -> None:
        self._models = {url: [one for one in config.models if url in servers_of(one)] for url in server_urls(config)}
        self._shown = shown
        self._own: str | None = None
        # Workers are processes that this one starts: they have its environment.
        os.environ[INSTANCE_VARIABLE] = secrets.token_hex(16)

    def start(self) -> None:
        """Begin to look. To be called once the gateway accepts requests."""
        if self._models:
            threading.Thread(target=lambda: asyncio.run(self._look()), name="first-look", daemon=True).start()

    def check(self) -> None:
        """Raises `ConfigError` if an upstream was the gateway itself. To be called when the gateway has ended."""
        if self._own is not None:
            raise own_address_error(self._own)

    async def _look(self) -> None:
        await asyncio.gather(*(self._look_at(url) for url in self._models))

    async def _look_at(self, url: str) -> None:
        fault, pause_s = None, _FIRST_PAUSE_S
        while True:
            before, fault = fault, await self.fault_of(url)
            if self._own is not None:
                return
            if fault is None:
                if before is not None:
                    log.info("upstream %s answers now", without_credentials(url))
                return
            if fault != before:
                log.warning("upstream %s cannot be used yet: %s", without_credentials(url), fault)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def fault_of(self, url: str) -> str | None:
        """Why an upstream cannot be used; None if it can."""
        health = await ask_health(url)
        if is_own(health):
            self._own = url
            _end_this_process()
            return None
        if health.fault:  # nothing is known: it may be this gateway, too busy to answer
            return health.fault
        models = self._models[url]
        found = await probe(url, headers=upstream_headers(models[0]), timeout_s=_PROBING_S, depth="models")
        if found.message and not found.models:
            return found.message
        if found.url != without_credentials(url.rstrip("/")) and any(model.mode != AUTO for model in models):
            return f"it answers at {found.url}, which is its base URL. Give this instead."
        self._warn(found, [model for model in models if model.name not in self._shown])
        return None

    def _warn(self, found: Findings, models: Sequence[ModelConfig]) -> None:
        """Warn of probable mistakes in the settings of these models."""
        named = [msgspec.structs.replace(found, model=_name_there(model)) for model in models]
        for warning in dict.fromkeys(warning for one in named for warning in one.warnings()):
            log.warning("upstream %s: %s", found.asked_url, warning)


def _name_there(model: ModelConfig) -> str | None:
    """The server's name for a model; None if any may be asked for."""
    name = model.model or model.name
    return None if name == ANY_MODEL else name


def _end_this_process() -> None:
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGTERM)
    else:  # to the main thread, which may wait: a signal that another thread takes would not wake it
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
