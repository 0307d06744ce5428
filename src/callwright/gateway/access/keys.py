"""API keys: the caller, which models a key may use, and its rate limits per minute.

The gateway has only the hash of a key, and no error or log shows a key. Limits are counted in `KeyCounters`, which
several processes may share, and across gateways if a callback `takes` is set.
"""

import hashlib
import hmac
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from typing import Final, TypeAlias

from callwright.errors import ConfigError, RequestError, did_you_mean
from callwright.gateway.access.key_counters import LIMITS, KeyCounters
from callwright.gateway.access.rate_limits import Bucket, Outage
from callwright.gateway.access.shared_counters import SharedCounters
from callwright.gateway.config.config import ALL_MODELS, KeyConfig

_PREFIX: Final = "cw-"
_SECRET_BYTES: Final = 32
# Takes one unit of a key's limit, by its name, for all gateways; False if none is left.
Takes: TypeAlias = Callable[[str, Bucket], Awaitable[bool]]
wall_time_s: Callable[[], float] = time.time
_CHALLENGE: Final = {"www-authenticate": "Bearer"}


def new_key() -> str:
    """A new random key."""
    return _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def hash_of(key: str) -> str:
    """The SHA-256 of a key in hex, for the configuration. A key is random and long, so a plain hash does not give it
    away.
    """
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


class ApiKey:
    """A client with its key; requests run on its behalf. `is_limited`: it has rate limits."""

    def __init__(
        self,
        config: KeyConfig | None = None,
        clock: Callable[[], float] = time.monotonic,
        counters: SharedCounters | None = None,
        place: int = 0,
        state: Outage | None = None,
    ) -> None:
        """`counters` holds the numbers of this key from `place` on. `state`: of limits that several gateways share.
        Without `config`, it is an anonymous caller without limits.
        """
        self.name = config.name if config else ""
        self.falls_back = config.fallback if config else True
        self.is_operator = config.operator if config else True
        counted = counters or SharedCounters(LIMITS)
        self._models = config.models if config else (ALL_MODELS,)
        limits = (
            ("requests", config.requests_per_minute if config else None),
            ("tokens", config.tokens_per_minute if config else None),
        )
        self._buckets = {
            kind: Bucket(kind, most, clock, counted, place + Bucket.PLACES * number, state)
            for number, (kind, most) in enumerate(limits)
            if most is not None
        }
        self.is_limited = bool(self._buckets)
        self._expires = config.expires if config else None
        self.takes: Takes | None = None

    def may_use(self, model: str) -> bool:
        """Whether the key may use a model of this name."""
        return ALL_MODELS in self._models or model in self._models

    def check_expiry(self) -> None:
        """Raises `RequestError` (401) if the key has expired."""
        if self._expires is not None and self._expires.is_over(wall_time_s()):
            raise _no_access(f"This API key expired at {self._expires}. Use another one, or ask for a new one.")

    @property
    def buckets(self) -> Mapping[str, Bucket]:
        """Its limits, by their kind."""
        return self._buckets

    async def begin(self) -> None:
        """Count a request to a model, for all gateways if they share limits. Raises `RequestError` (429) if a rate
        limit is reached.
        """
        for bucket in self._buckets.values():
            if (wait_s := bucket.wait_s(1)) > 0:
                raise self._too_early(bucket, wait_s)
        if (requests := self._buckets.get("requests")) is None:
            return
        if self.takes is None or not requests.is_to_be_asked:
            requests.use(1)
        elif not await self.takes(self.name, requests):
            raise self._too_early(requests, requests.wait_s(1))

    def spend(self, tokens: int) -> None:
        """Count tokens, as the model's server reports them."""
        if (bucket := self._buckets.get("tokens")) is not None:
            bucket.use(tokens)

    def remaining(self) -> dict[str, float]:
        """The remaining amounts of the limits, by kind: `requests`, `tokens`."""
        return {kind: max(0.0, bucket.remaining()) for kind, bucket in self._buckets.items()}

    def headers(self) -> dict[str, str]:
        """The remaining amounts of the limits, as OpenAI's `x-ratelimit-*` headers."""
        told: dict[str, str] = {}
        for kind, bucket in self._buckets.items():
            told[f"x-ratelimit-limit-{kind}"] = str(bucket.per_minute)
            told[f"x-ratelimit-remaining-{kind}"] = str(max(0, math.floor(bucket.remaining())))
            told[f"x-ratelimit-reset-{kind}"] = _duration(bucket.wait_s(bucket.per_minute))
        return told

    def _too_early(self, bucket: Bucket, wait_s: float) -> RequestError:
        used = bucket.per_minute - math.floor(bucket.remaining())
        return RequestError(
            f"Rate limit reached for {bucket.kind} per minute: Limit {bucket.per_minute}, Used {used}. Please try "
            f"again in {_duration(wait_s)}.",
            status=429,
            type_=bucket.kind,
            code="rate_limit_exceeded",
            headers={"retry-after": str(math.ceil(wait_s)), **self.headers()},
        )


def _duration(seconds: float) -> str:
    """`350ms`, `7s`, `6m0s`: seconds as OpenAI's headers have them."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1_000)}ms"
    minutes, rest = divmod(math.ceil(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


NOBODY: Final = ApiKey()
_ASKING: Final[ContextVar[ApiKey]] = ContextVar("callwright_caller", default=NOBODY)


# The key on whose behalf this runs: a context variable, which every task of a request inherits.
caller: Final[Callable[[], ApiKey]] = _ASKING.get
# From this call on, this task and those that it starts run on behalf of this key.
asking: Final[Callable[[ApiKey], object]] = _ASKING.set


class Keys:
    """The API keys of a configuration. Without any, everybody is admitted."""

    def __init__(
        self,
        given: Sequence[KeyConfig],
        models: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
        counters: KeyCounters | None = None,
    ) -> None:
        """`models` are the names that a key may be limited to, with `*` if there may be any. `counters` may have counts
        of these keys already. Raises `ConfigError` for duplicate keys and unknown models.
        """
        for what in ("name", "sha256"):
            seen = [getattr(key, what).lower() for key in given]
            if twice := next((value for value in seen if seen.count(value) > 1), None):
                raise ConfigError(f"Two keys have the {what} {twice!r}: each needs its own.")
        for key in given:
            for model in key.models:
                if model not in models and ALL_MODELS not in (model, *models):
                    raise ConfigError(
                        f"Key {key.name!r}: unknown model {model!r}.{did_you_mean(model, models)} Expected one of: "
                        f"{', '.join((*models, ALL_MODELS))}."
                    )
        rows = counters or KeyCounters()
        rows.add(key.name for key in given)
        self.outage = Outage(rows.counters, 0)
        self._callers = [
            (key.sha256.lower().encode(), ApiKey(key, clock, rows.counters, rows.limits(key.name), self.outage))
            for key in given
        ]

    def __bool__(self) -> bool:
        return bool(self._callers)

    @property
    def limited(self) -> list[ApiKey]:
        """Those that have rate limits."""
        return [who for _, who in self._callers if who.is_limited]

    def remaining(self) -> dict[str, dict[str, float]]:
        """The remaining amounts of the limits, by the name of each limited key."""
        return {who.name: who.remaining() for who in self.limited}

    def caller(self, authorization: str | None, api_key: str | None = None) -> ApiKey:
        """The key in an `Authorization` header, or in Anthropic's `x-api-key`. Raises `RequestError` (401)."""
        if not self._callers:
            return NOBODY
        scheme, _, bearer = (authorization or "").partition(" ")
        given = [key for key in (bearer.strip() if scheme.lower() == "bearer" else "", (api_key or "").strip()) if key]
        if not given:
            raise _no_access(
                "You didn't provide an API key. You need to provide your API key in an Authorization header using "
                "Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
            )
        found: ApiKey | None = None
        for key in given:  # clients of Anthropic's API may send two, one of which is for another service
            digest = hash_of(key).encode()
            for known, who in self._callers:  # all of them, so that the time it takes reveals nothing
                if hmac.compare_digest(known, digest):
                    found = found or who
        if found is None:
            raise _no_access("Incorrect API key provided.")
        found.check_expiry()
        return found


def _no_access(message: str) -> RequestError:
    return RequestError(message, code="invalid_api_key", status=401, headers=_CHALLENGE)
