"""Repeats a recorded turn with another model, mode or dialect."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import date
from typing import get_args

import msgspec
from msgspec import Struct

from callwright.dialects.base import get_dialect
from callwright.errors import ConfigError, RequestError, UpstreamError
from callwright.gateway.config.build_models import build_models
from callwright.gateway.config.config import ANY_MODEL, Config, ModelConfig, file_of
from callwright.gateway.observability.inspector import Inspector
from callwright.gateway.observability.observability import Observability
from callwright.gateway.parts import Uses
from callwright.turn.model import Mode, Model
from callwright.turn.observe import Observation, Observer
from callwright.turn.run import run_turn
from callwright.upstreams.completions import CHAT_ONLY


class Again(Struct, frozen=True):
    """The changes for repeating a turn; omitted fields stay unchanged."""

    model: str | None = None
    mode: Mode | None = None
    dialect: str | None = None


class RunAgain:
    """Repeats recorded turns. `find_model` as the endpoints use it; `uses` counts what runs."""

    def __init__(
        self,
        watch: Observability,
        inspector: Inspector,
        find_model: Callable[[str], Model],
        config: Config,
        uses: Uses,
    ) -> None:
        self._watch = watch
        self._inspector = inspector
        self._find_model = find_model
        self._given = {one.name: one for one in config.models}
        self._bounds = config.limits
        self._uses = uses

    async def run(self, id_: str, asked: Again) -> str | None:
        """Ask the model. Returns the id of the new turn after it has ended, even if it failed. None if the turn is not
        recorded here with its contents. Raises `RequestError` if it cannot be repeated.
        """
        kept = self._inspector.turns.get(id_)
        if kept is None or (seen := kept.seen) is None:
            return None
        if seen.operation != "chat":
            raise RequestError("Only turns of a conversation can be run again.", code="invalid_value")
        ids: list[str] = []
        inspecting = self._inspector.observer(again_of=id_, told=ids.append)
        with self._uses:
            await self._repeat(seen, asked, inspecting, ids)
        return ids[0]

    async def _repeat(self, seen: Observation, asked: Again, inspecting: Observer, ids: Sequence[str]) -> None:
        async with self._model(seen, asked) as (label, model):
            model = self._watch.observed(label, msgspec.structs.replace(model, observers=(), fallbacks=()), inspecting)
            turn = run_turn(model, seen.conversation, seen.fields, today=date.today().isoformat())
            try:
                async with aclosing(turn):
                    async for _ in turn:
                        pass
            except (RequestError, UpstreamError):
                if not ids:
                    raise  # else the new turn records the error

    @asynccontextmanager
    async def _model(self, seen: Observation, asked: Again) -> AsyncIterator[tuple[str, Model]]:
        """The model to ask, with its name in the configuration: one of the gateway's as it is, or built for this turn
        alone.
        """
        name = asked.model or seen.model
        model = self._find_model(name)
        if asked.model is None and asked.mode is None and asked.dialect is None:
            asked = Again(mode=_mode(seen.mode), dialect=seen.dialect)
        mode = asked.mode or (model.mode if asked.model else _mode(seen.mode))
        dialect = asked.dialect or (model.dialect if asked.model else seen.dialect)
        if mode == "native":
            dialect = None
        elif dialect is None:
            raise RequestError(f"Mode {mode!r} needs a dialect: name one.", param="dialect", code="missing_required")
        else:
            get_dialect(dialect)
        label = name if name in self._given else ANY_MODEL
        if (mode, dialect) == (model.mode, model.dialect) and model.mode_selector is None:
            yield label, model
            return
        built = self._built(self._given[label], mode, dialect, model)
        try:
            yield label, built
        finally:
            if built.upstream is not model.upstream:
                await built.close()

    def _built(self, given: ModelConfig, mode: Mode, dialect: str | None, model: Model) -> Model:
        if file_of(given) is not None:  # its weights are loaded once
            if mode != "raw":
                raise RequestError("A model in a file is asked in mode 'raw' only.", param="mode", code="invalid_value")
            return msgspec.structs.replace(model, dialect=dialect)
        is_same = dialect == given.dialect
        variant = msgspec.structs.replace(
            given,
            name=model.name,
            fallback=(),
            model=model.upstream_model,
            mode=mode,
            dialect=dialect,
            template=None,
            response_template=None,
            options=given.options if is_same else {},
            constrain="auto",
            arguments=given.arguments if mode == "native" else "text",
        )
        if mode == "raw":
            fields = {name: value for name, value in given.fields.items() if name not in CHAT_ONLY}
            variant = msgspec.structs.replace(variant, fields=fields)
        try:
            (built,) = build_models(Config(models=(variant,), limits=self._bounds)).values()
        except ConfigError as error:
            raise RequestError(f"It cannot be asked like this: {error}", code="invalid_value") from error
        return built


def _mode(name: str) -> Mode:
    return next((mode for mode in get_args(Mode) if mode == name), "native")
