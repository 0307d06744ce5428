"""The context window of each model in tokens, for the lists of models: clients use it to compact conversations in time.

It is configured, or requested from the model's server when a client lists models, with a short timeout: a server that
is down does not delay the list.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from callwright.errors import RequestError, UpstreamError
from callwright.gateway.config.config import ANY_MODEL, ModelConfig
from callwright.turn.model import Model

log = logging.getLogger("callwright.gateway")
_ANSWER_S: Final = 2.0
# A server may be started again with another window, or begin to answer.
_ASKED_EVERY_S: Final = 60.0


class ModelWindows:
    """The windows of a configuration's models."""

    def __init__(self, given: Sequence[ModelConfig], models: Mapping[str, Model]) -> None:
        self._given = {one.name: one.context_length for one in given}
        self._models = models
        self._asked_s: dict[str, float] = {}
        self._lock = asyncio.Lock()

    async def of(self, names: Iterable[str]) -> dict[str, int]:
        """The windows of models, as clients call them, as far as they are known."""
        names = list(names)
        behind = {name if name in self._models else ANY_MODEL for name in names}
        async with self._lock:  # concurrent callers use the same result
            now = time.monotonic()
            due = [name for name in behind if self._given.get(name) is None and self._is_due(name, now)]
            await asyncio.gather(*map(self._ask, due))
            self._asked_s |= dict.fromkeys(due, now)
        known = {name: self.window(name) for name in names}
        return {name: window for name, window in known.items() if window is not None}

    def window(self, name: str) -> int | None:
        """The window of a model, if it is known by now."""
        label = name if name in self._models else ANY_MODEL
        if (given := self._given.get(label)) is not None:
            return given
        model = self._models.get(label)
        if model is None:
            return None
        return model.upstream.window(model.upstream_model if label == name else name)

    def _is_due(self, name: str, now: float) -> bool:
        return name in self._models and now - self._asked_s.get(name, -_ASKED_EVERY_S) >= _ASKED_EVERY_S

    async def _ask(self, name: str) -> None:
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._models[name].upstream.models()
        except (TimeoutError, UpstreamError, RequestError) as error:
            log.debug("the window of %s is not known: %.200r", name, str(error))
