"""The models of a revision, of which an earlier one may have parts with equal settings, see `parts`.

A model has two parts. The server is what holds connections or loaded weights, and depends on few settings. The model
beside it depends on nearly all: its templates and dialect were read, and in mode `auto` its server is probed. The limit
of a model is made anew for each revision, with the counts of its server.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from callwright.gateway.access.concurrency import LimitCounts
from callwright.gateway.config.build_models import build_models, mode_of
from callwright.gateway.config.config import Config, ModelConfig, file_of
from callwright.gateway.parts import RevisionParts
from callwright.turn.model import Model, open_models
from callwright.upstreams.base import Upstream

# The settings of a model that its server depends on; unless it runs here, also whether it is asked in mode raw, ...
SERVER_SETTINGS: Final = (
    *("name", "upstream", "server", "headers", "api_key_env", "connect_timeout_s", "idle_timeout_s", "balance"),
    *("engine", "faults"),
)
# ... and those that neither of the two parts depends on.
OTHER_SETTINGS: Final = ("budget", "context_length", "fallback", "max_requests", "price", "queue_s")
AddsLimit: TypeAlias = Callable[[Model, ModelConfig, LimitCounts], Model]


class _Server(Struct, eq=False):
    upstream: Upstream
    counts: LimitCounts

    async def close(self) -> None:
        await self.upstream.close()


class _Built(Struct, eq=False):
    model: Model

    async def close(self) -> None:
        if self.model.mode_selector is not None:
            await self.model.mode_selector.close()


class ModelParts:
    """Builds the models of a configuration from their `parts`, and opens the new ones. `add_limit` gives a model the
    limit of its configuration.
    """

    def __init__(self, config: Config, parts: RevisionParts, add_limit: AddsLimit) -> None:
        self._config = config
        self._parts = parts
        self._add_limit = add_limit
        self._servers: dict[str, _Server] = {}
        self._built: dict[str, _Built] = {}

    def build(self, models: Mapping[str, Model] | None) -> dict[str, Model]:
        """The models by name: `models`, if they have been built and opened already. Raises `ConfigError`."""
        if models is None:
            return build_models(self._config, self._take)
        return {
            given.name: self._take(given, partial(models.__getitem__, name))
            for given, name in zip(self._config.models, models, strict=True)
        }

    async def open(self, models: Mapping[str, Model], new: set[int]) -> None:
        """Open the servers whose `id` is among the new parts, and start to probe. Raises `ConfigError`."""
        await open_models({name: models[name] for name, server in self._servers.items() if id(server) in new})
        for built in self._built.values():
            if id(built) in new and built.model.mode_selector is not None:
                built.model.mode_selector.start()

    def _take(self, given: ModelConfig, build: Callable[[], Model]) -> Model:
        bounds, values = self._config.limits.max_answer_bytes, msgspec.structs.asdict(given)
        model_settings = {name: value for name, value in values.items() if name not in OTHER_SETTINGS}
        depends = model_settings, bool(self._config.keys), bounds
        built = self._built[given.name] = self._parts.get("model", depends, lambda: _Built(build()))
        of_client = None if file_of(given) else (mode_of(given) == "raw", bounds)
        depends_server = [values[name] for name in SERVER_SETTINGS], of_client
        make = lambda: _Server(built.model.upstream, LimitCounts())  # noqa: E731
        server = self._servers[given.name] = self._parts.get("server", depends_server, make)
        model = msgspec.structs.replace(built.model, upstream=server.upstream)
        return self._add_limit(model, given, server.counts)
