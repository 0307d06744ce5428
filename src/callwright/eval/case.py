"""A case: what a model is asked, and what must hold when it has answered. Data, as a line of JSON or a table of TOML.

Messages, tools, choice and format stand as Chat Completions has them, so that each way of asking gets the same.
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
    """What must hold; all that is given. `calls`: these and no others, in any order; none at all where it is empty.
    `may`: tools that may be called beside, because they only read. `some`: at least one call. `state`: the tables of
    the world afterwards. `answer`: the schema that the last text fits as JSON; `value`: what that JSON is; `text`: what
    the last text is, as a predicate.
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
    """One case. `id` is its own, `group` what it is counted with. `steps`: how often the model is asked at most, its
    calls run in between. `effects` say what the tools do in a world that begins with `tables`.
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
        """What tells two cases of one id apart."""
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
