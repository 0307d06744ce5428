"""The hooks of a configuration."""

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Final

import msgspec

from callwright.errors import ConfigError, did_you_mean
from callwright.gateway.config.config import ANY_MODEL, Config
from callwright.gateway.config.hooks import HookConfig
from callwright.gateway.config.urls import check_header, check_url
from callwright.gateway.hooks.judge import Asks, Judged, JudgingHook, Outcome, compile_patterns
from callwright.gateway.hooks.policies import ToolPolicies
from callwright.gateway.hooks.turns import HookedTurns
from callwright.gateway.hooks.ways import FunctionHook, HttpHook, OwnHook
from callwright.gateway.request_context import current
from callwright.hooks import Hook, Place
from callwright.turn.model import Model
from callwright.upstreams.base_urls import without_credentials

_ENTRY_POINTS: Final = "callwright.hooks"
_POLICIES: Final = "policies"


def build_hooks(config: Config, counted: Judged) -> HookedTurns:
    """The hooks of a configuration. Policies are asked first: they are quick. `counted` gets each outcome. Raises
    `ConfigError`.
    """

    def count(name: str, place: Place, outcome: Outcome) -> None:
        counted(name, place, outcome)
        if outcome != "allow" and (context := current()) is not None:
            told = f"{name}.{outcome}"
            context.hooks = {**context.hooks, told: context.hooks.get(told, 0) + 1}

    hooks = []
    if config.policies:
        own = ToolPolicies(config.policies)
        hooks.append(
            JudgingHook(_POLICIES, OwnHook(own), places=own.places, judged=count, models=own.models, keys=own.keys)
        )
    names = [hook.name for hook in config.hooks]
    for number, given in enumerate(config.hooks):
        if given.name in names[:number] or (given.name == _POLICIES and config.policies):
            raise ConfigError(f"hooks[{number}]: the name {given.name!r} is taken. Each hook needs its own.")
        hooks.append(
            JudgingHook(
                given.name,
                _asks(given),
                places=given.places,
                judged=count,
                models=given.models,
                keys=given.keys,
                deadline_s=given.deadline_s,
                is_open=given.on_failure == "open",
                max_parallel=given.max_parallel,
            )
        )
    return HookedTurns(hooks)


def with_hooks(models: Mapping[str, Model], hooks: HookedTurns) -> dict[str, Model]:
    """The models, whose turns are asked about."""
    return {name: msgspec.structs.replace(model, hooks=hooks) for name, model in models.items()}


def idle_rules(config: Config) -> Iterator[str]:
    """Warnings about hooks and policies that are for a key or a model that the configuration does not have."""
    keys = [key.name for key in config.keys]
    models = [model.name for model in config.models]
    rules = [(f"hooks[{number}]", hook.keys, hook.models) for number, hook in enumerate(config.hooks)]
    rules += [(f"policies[{number}]", rule.keys, rule.models) for number, rule in enumerate(config.policies)]
    for where, of_keys, of_models in rules:
        yield from _find_unmatched(f"{where}.keys", "key", of_keys, keys)
        if ANY_MODEL not in models:
            yield from _find_unmatched(f"{where}.models", "model", of_models, models)


def _find_unmatched(where: str, kind: str, patterns: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    for pattern in patterns:
        if pattern != "*" and not any(map(compile_patterns((pattern,)).match, names)):
            yield f"{where}: no {kind} matches {pattern!r}, so this has no effect.{did_you_mean(pattern, names)}"


def _asks(given: HookConfig) -> Asks:
    if (given.function is None) == (given.url is None):
        got = "neither" if given.url is None else "both"
        raise ConfigError(f"Hook {given.name!r}: expected a function or a url, got {got}.")
    if given.url is None:
        for field in ("api_key_env", "secret_env"):
            if getattr(given, field) is not None:
                raise ConfigError(f"Hook {given.name!r}: {field} is for a url. Remove it, or write a url.")
        assert given.function is not None
        return FunctionHook(_function(given.name, given.function))
    check_url(
        given.url,
        f"Hook {given.name!r}: url {without_credentials(given.url)!r}: expected one such as http://host/check",
    )
    headers: dict[str, str] = {}
    if given.api_key_env is not None:
        headers["authorization"] = f"Bearer {_variable(given.name, given.api_key_env)}"
        check_header("authorization", headers["authorization"], f"Hook {given.name!r}: api_key_env")
    secret = None if given.secret_env is None else _variable(given.name, given.secret_env).encode()
    return HttpHook(given.url, headers, given.deadline_s, secret)


def _variable(hook: str, name: str) -> str:
    if not (value := os.environ.get(name)):
        raise ConfigError(f"Hook {hook!r}: the environment variable {name} is not set.")
    return value


def _function(hook: str, given: str) -> Hook:
    try:
        found = _load(hook, given)
    except ConfigError:
        raise
    except Exception as error:  # the module is the user's
        way_out = " Install it, or name its folder in PYTHONPATH." if isinstance(error, ModuleNotFoundError) else ""
        raise ConfigError(
            f"Hook {hook!r}: {given!r} cannot be loaded: {type(error).__name__}: {error}.{way_out}"
        ) from error
    if isinstance(found, type):
        found = found()
    if not callable(found):
        raise ConfigError(f"Hook {hook!r}: expected a function at {given!r}, got {type(found).__name__}.")
    return found  # type: ignore[no-any-return]  # its answers are checked


def _load(hook: str, given: str) -> Any:
    module, colon, name = given.partition(":")
    if colon:
        found: object = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found
    points = {point.name: point for point in entry_points(group=_ENTRY_POINTS)}
    if given not in points:
        known = f" Installed: {', '.join(points)}." if points else ""
        raise ConfigError(
            f"Hook {hook!r}: expected 'package.module:name' or an entry point of {_ENTRY_POINTS}, got {given!r}."
            f"{did_you_mean(given, points)}{known}"
        )
    return points[given].load()
