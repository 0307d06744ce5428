"""The part of the configuration with one's own rules: hooks, tool policies, redaction of records."""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from callwright.hooks import Place

_Text: TypeAlias = Annotated[str, Meta(min_length=1)]


class HookConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[hooks]]`: a [rule of your own](hooks.md), in Python or over HTTP."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9_.-]{1,64}$")]
    """Its name in errors, logs and metrics."""
    places: Annotated[tuple[Place, ...], Meta(min_length=1)]
    """Places at which it is asked: `request`, `prompt`, `call`, `result`."""
    function: _Text | None = None
    """A Python function, `package.module:name`, or the name of an entry point in the group `callwright.hooks`."""
    url: _Text | None = None
    """Instead of a `function`: an address that gets a POST with JSON."""
    api_key_env: str | None = None
    """For a `url`: environment variable that holds the key, sent as `Authorization: Bearer`."""
    secret_env: str | None = None
    """For a `url`: environment variable that holds a secret, by which each body is signed (HMAC SHA-256)."""
    models: Annotated[tuple[_Text, ...], Meta(min_length=1)] = ("*",)
    """Patterns of the names of models it is for, such as `["prod-*"]`."""
    keys: Annotated[tuple[_Text, ...], Meta(min_length=1)] = ("*",)
    """Patterns of the names of keys it is for."""
    deadline_s: Annotated[float, Meta(gt=0, le=3_600)] = 5.0
    """How long an answer may take."""
    on_failure: Literal["closed", "open"] = "closed"
    """If it fails, is too slow, or answers nonsense: `closed` denies, `open` allows."""
    max_parallel: Annotated[int, Meta(ge=1, le=1_024)] = 16
    """How often it may run at the same time; others wait within their deadline."""


class PolicyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[policies]]`: a rule about [calls and results of tools](hooks.md#tool-policies). The first that matches
    decides; a call that none matches is allowed.
    """

    tools: Annotated[tuple[_Text, ...], Meta(min_length=1)] = ("*",)
    """Patterns of the names of tools, such as `["read_*"]`."""
    keys: Annotated[tuple[_Text, ...], Meta(min_length=1)] = ("*",)
    """Patterns of the names of keys."""
    models: Annotated[tuple[_Text, ...], Meta(min_length=1)] = ("*",)
    """Patterns of the names of models."""
    arguments: dict[str, Any] = {}
    """A JSON Schema: the rule is for calls whose arguments match it. A rule that allows needs arguments that do; one
    that denies or asks also applies to arguments that cannot be read.
    """
    action: Literal["allow", "deny", "ask"] = "allow"
    """`deny` leaves the call out of the answer; `ask` too, with a note that a person must approve it."""
    message: str = ""
    """Message for the client about a call that is not allowed."""
    results: Literal["trusted", "untrusted"] = "trusted"
    """`untrusted` marks the results of these tools as data for the model, with instructions that it must not follow.
    """


class RedactConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[redact]`: secrets are masked in records and on the pages."""

    known: bool = True
    """Keys of well-known forms: AWS, GitHub, GitLab, Slack, Google, OpenAI, Anthropic, Hugging Face, Stripe; private
    keys, bearer tokens and JWTs.
    """
    patterns: tuple[_Text, ...] = ()
    """Regular expressions of your own."""
