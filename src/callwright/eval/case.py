"""A case: a request to a model and the expectations on its answer. Data, as a line of JSON or a table of TOML.

Messages, tools, choice and format are those of Chat Completions, so that each way of asking gets the same.
"""

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeAlias

from msgspec import Struct

from callwright.eval.world import Effect, Tables
from callwright.tolerant_json.codec import encode

Json: TypeAlias = Mapping[str, Any]


class WantedCall(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A call that must be made: its arguments by value or by predicate, see `callwright.eval.wanted`. A custom tool has
    one argument, `input`.
    """

    name: str
    arguments: Mapping[str, Any] = {}


class Must(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The expectations of a case; all that are given must hold. `calls`: exactly these, in any order; no call if empty.
    `may`: tools that may be called in addition, because they only read. `some`: at least one call. `state`: the tables
    of the world afterwards. `answer`: the schema that the last text fits as JSON; `value`: the value of that JSON;
    `text`: the last text, as a predicate.
    """

    calls: tuple[WantedCall, ...] | None = None
    may: tuple[str, ...] = ()
    some: bool = False
    state: Tables | None = None
    answer: Json | None = None
    value: Any = None
    text: Any = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is demanded."""
        return not self.some and all(
            given is None for given in (self.calls, self.state, self.answer, self.value, self.text)
        )


class Case(Struct, frozen=True, dict=True, forbid_unknown_fields=True, omit_defaults=True):
    """One case. `id` is unique; results are counted by `group`. `steps`: the maximum number of requests to the model,
    with its calls run in between. `effects` define the tools' actions in a world that begins with `tables`.
    """

    id: str
    messages: tuple[Json, ...]
    must: Must
    group: str = "own"
    tools: tuple[Json, ...] = ()
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    response_format: Json | None = None
    steps: int = 1
    tables: Tables = {}
    effects: Mapping[str, Effect] = {}

    @cached_property
    def digest(self) -> str:
        """Fingerprint of the whole case: differs between two cases with one id."""
        return hashlib.blake2s(encode(self), digest_size=8).hexdigest()

    def request(self) -> dict[str, Any]:
        """The body of a chat request, without the model."""
        given = {
            "tools": list(self.tools) or None,
            "tool_choice": self.tool_choice,
            "parallel_tool_calls": self.parallel_tool_calls,
            "response_format": self.response_format,
        }
        said = {name: value for name, value in given.items() if value is not None}
        return {"messages": [dict(message) for message in self.messages], **said}
