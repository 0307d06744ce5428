"""Targets of a measurement: a server, a file, the models of a configuration, the simulated model; each in some ways."""

import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from callwright.cli.options import checked, told_as_options
from callwright.doctor.examine import probe
from callwright.doctor.recommend import server_kind_of, server_of
from callwright.errors import ConfigError, RequestError, UpstreamError, did_you_mean
from callwright.eval.ask import Asker, ModelAsker
from callwright.eval.same_output import TELLING, SameOutputs
from callwright.eval.ways import DIRECT, REREAD, Way, candidates, read_way
from callwright.eval.wires import WireAsker, WireName
from callwright.gateway.config.build_models import build_models, link_fallbacks
from callwright.gateway.config.config import (
    ANY_MODEL,
    Config,
    ModelConfig,
    ServerConfig,
    load_config,
    simulated_config,
)
from callwright.gateway.config.urls import check_url
from callwright.turn.model import Model, open_models
from callwright.upstreams.base_urls import possible_base_urls, without_credentials

_PROBING_S = 60.0
_SHORT: Final = {"messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 8}
# The server's own parsing, which the `reread` ways are compared with.
_BESIDE: Final = f"{DIRECT}:chat"


class Asked(Struct, frozen=True):
    """Options for all ways: `fields` go into each request, `api_key_env` is the variable of the server's key."""

    ways: tuple[Way, ...] = ()
    model: str | None = None
    dialect: str | None = None
    api_key_env: str | None = None
    fields: dict[str, Any] = {}

    @property
    def headers(self) -> dict[str, str]:
        """The key as a header. Raises `ConfigError` if the variable is not set."""
        if self.api_key_env is None:
            return {}
        key = os.environ.get(self.api_key_env)
        if not key:
            raise ConfigError(f"--key-env: the environment variable {self.api_key_env} is not set.")
        return {"authorization": f"Bearer {key}"}


class Target(Struct):
    """A target: its name, and the asker and the configuration entry of each way. `others` are the entries of models
    that are only asked as fallbacks. `together` are ways that parse the same answers.
    """

    name: str
    askers: dict[str, Asker]
    entries: Mapping[str, ModelConfig] = {}
    models: Mapping[str, Model] = {}
    others: tuple[ModelConfig, ...] = ()
    together: tuple[str, ...] = ()

    async def open(self) -> None:
        """Load the models. Raises `ConfigError`."""
        await open_models(self.models)

    async def close(self) -> None:
        """Close connections, and free memory."""
        for asker in self.askers.values():
            await asker.close()
        for other in self.others:
            await self.models[other.name].close()


def simulated_target(asked: Asked, faults: str) -> Target:
    """The simulated model: in the given ways, or in the four that the gateway has."""
    if not asked.ways:
        return models_target("simulated", simulated_config(ServerConfig(), faults).models, asked)
    entries = [_entry(way, {"upstream": "simulated", "faults": faults, "media": "tell"}, None) for way in asked.ways]
    return models_target("simulated", entries, asked)


def config_target(path: Path, asked: Asked) -> Target:
    """The models of a configuration, with their settings; `--model` selects one."""
    if asked.ways or asked.dialect or asked.api_key_env:
        raise ConfigError("--config says how each model is asked: leave out --way, --dialect and --key-env.")
    models = every = load_config(path).models
    names = [model.name for model in models]
    if asked.model is not None:
        models = tuple(model for model in models if model.name == asked.model)
        if not models:
            near = did_you_mean(asked.model, names)
            raise ConfigError(f"--model: {path} has no model {asked.model!r}.{near} It has: {', '.join(names)}.")
    if unnamed := [model for model in models if model.name == ANY_MODEL and model.model is None]:
        raise ConfigError(f"{path}: {unnamed[0].name!r} means any model. Give the entry a model, or choose others.")
    return models_target(str(path), models, asked, fallbacks_of(models, every))


def fallbacks_of(some: Sequence[ModelConfig], every: Sequence[ModelConfig]) -> tuple[ModelConfig, ...]:
    """The entries of the fallbacks of some models that are not among them. Their own fallbacks are not asked."""
    wanted = {name for one in some for name in one.fallback} - {one.name for one in some}
    return tuple(msgspec.structs.replace(other, fallback=()) for other in every if other.name in wanted)


def file_target(path: str, asked: Asked) -> Target:
    """A model in a file, loaded once: by its template, with and without grammars, or in the given ways."""
    ways = asked.ways or (read_way("raw:auto"), read_way("raw:auto+constrain=off"))
    if others := [way.name for way in ways if way.mode != "raw"]:
        raise ConfigError(f"--way {others[0]}: a model in a file is asked in mode raw only.")
    entries = [_entry(way, {"upstream": path}, None) for way in ways]
    target = models_target(Path(path).name, entries, asked)
    (_, first), *_rest = target.models.items()
    shared = {name: msgspec.structs.replace(model, upstream=first.upstream) for name, model in target.models.items()}
    return _asked_by(target.name, shared, entries, asked)


async def url_target(url: str, asked: Asked) -> Target:
    """The server at a URL, in the ways that doctor finds, or in the given ones. Raises `ConfigError` for a server that
    cannot be asked.
    """
    check_url(url, f"{without_credentials(url)!r}: expected a URL such as http://localhost:8000/v1, or a model.gguf")
    depth: Any = "mode" if asked.ways else "all"
    found = await probe(
        url, model=asked.model, headers=asked.headers, dialect=asked.dialect, timeout_s=_PROBING_S, depth=depth
    )
    base = next(one for one in possible_base_urls(url) if without_credentials(one) == found.url)
    name = asked.model or found.model
    ways = asked.ways
    if not ways and name is not None:
        tells = found.dialect is not None and await _tells(WireAsker(base, name, "chat", asked.headers, TELLING))
        ways = tuple(candidates(found, tells=tells))
    if not ways or name is None:
        why = (found.message or "no way to ask it works").rstrip(".")
        raise ConfigError(f"{found.url}: {why}. `callwright doctor {without_credentials(url)}` shows more.")
    key = {"api_key_env": asked.api_key_env} if asked.api_key_env else {}
    server = server_of(found)
    entries = [
        _entry(
            way,
            {"upstream": base, "server": server_kind_of(server) if way.mode == "raw" else server, **key},
            name,
        )
        for way in ways
        if way.mode not in (DIRECT, REREAD)
    ]
    target = models_target(f"{found.url} {name}", entries, asked)
    direct = _direct(base, name, ways, asked)
    order = {way.name: {**direct, **target.askers}[way.name] for way in ways}
    together = [way.name for way in ways if way.mode == REREAD]
    if together and _BESIDE in order:
        together.append(_BESIDE)
    return msgspec.structs.replace(target, askers=order, together=tuple(together))


async def _tells(server: WireAsker) -> bool:
    """Whether a server returns the model's raw output on request."""
    try:
        _, written = await server.ask_for_written(_SHORT, "")
    except (UpstreamError, RequestError):
        return False
    finally:
        await server.close()
    return written is not None


def _direct(base: str, name: str, ways: Sequence[Way], asked: Asked) -> dict[str, Asker]:
    """The askers for the server itself; for `reread` ways it also returns the model's raw output."""
    reread = [way for way in ways if way.mode == REREAD]
    found: dict[str, Asker] = {
        way.name: WireAsker(base, name, _wire(way), asked.headers, asked.fields)
        for way in ways
        if way.mode == DIRECT and not (reread and way.name == _BESIDE)
    }
    if reread:
        server = WireAsker(base, name, "chat", asked.headers, {**asked.fields, **TELLING})
        outputs = SameOutputs(server, date.today().isoformat())
        if any(way.name == _BESIDE for way in ways):
            found[_BESIDE] = outputs.own()
        found |= {way.name: outputs.ours(way.of or "") for way in reread}
    return found


def _wire(way: Way) -> WireName:
    wires: tuple[WireName, ...] = ("chat", "responses", "messages")
    return next(wire for wire in wires if wire == way.of)


def _entry(way: Way, server: Mapping[str, Any], model: str | None) -> ModelConfig:
    """The configuration entry of a way."""
    if way.mode in (DIRECT, REREAD):
        raise ConfigError(f"--way {way.name}: only a server can be asked directly. Give its URL.")
    named = {} if model is None else {"model": model}
    return checked({**server, **named, **way.model_settings(), "name": way.name}, ModelConfig)


def models_target(
    name: str, entries: Sequence[ModelConfig], asked: Asked, others: Sequence[ModelConfig] = ()
) -> Target:
    """The target for configured models. `others` are only asked as their fallbacks."""
    config = Config(models=(*entries, *others))
    with told_as_options():
        models = link_fallbacks(build_models(config), config)
    return _asked_by(name, models, entries, asked, others)


def _asked_by(
    name: str,
    models: Mapping[str, Model],
    entries: Sequence[ModelConfig],
    asked: Asked,
    others: Sequence[ModelConfig] = (),
) -> Target:
    today = date.today().isoformat()
    whole = {way.name for way in asked.ways if not way.streamed}
    askers: dict[str, Asker] = {
        entry.name: ModelAsker(models[entry.name], today, asked.fields, streamed=entry.name not in whole)
        for entry in entries
    }
    return Target(name, askers, {entry.name: entry for entry in entries}, models, tuple(others))
