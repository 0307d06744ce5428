"""Annotations for the parameters and results of tools, and their readers.

def search(query: str, user: Annotated[str, Hidden], ctx: Context, db: Annotated[Db, From(get_db)]) -> Result: …
"""

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import Struct

from callwright.agent.given import check_function
from callwright.agent.nested import SubRuns
from callwright.conversation import Item
from callwright.errors import RequestError

_BOUNDS: Final = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern")
_BOUNDED: Final = {"string": str, "integer": int, "number": float, "array": list, "object": dict}


class Hidden:
    """Marks a parameter that the program fills, by its name in `hidden` of a run; the model never sees it."""


class From:
    """Marks a parameter that a function fills, called for each call: without arguments, or with the `Context` if it
    takes one. It may be async; else it runs on the event loop and should be quick.
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        if isinstance(make, type) and make.__module__ == "builtins":
            make = partial(lambda made: made(), make)  # `dict` and the like have no inspectable signature
        what = "a function that takes the Context or nothing"
        check_function("From(make=…)", make, what, 1, may_take_none=True)
        self.make = make


class Context:
    """Information about a call for its tool; a parameter of this type is filled and hidden.

    `turn` counts the model's turns from 1; `attempt` the retries of this tool in a row, from 0.
    `items` is the conversation up to this call, `hidden` the values of the run. `is_over` becomes true after the call
    was abandoned.
    """

    def __init__(
        self,
        *,
        tool: str,
        call_id: str,
        turn: int,
        attempt: int,
        items: Sequence[Item],
        hidden: Mapping[str, Any],
        report: Callable[[Any], None],
        sub_runs: SubRuns | None = None,
    ) -> None:
        self.tool = tool
        self.call_id = call_id
        self.turn = turn
        self.attempt = attempt
        self.items = tuple(items)
        self.hidden = hidden
        self.is_over = False
        self._report = report
        self._sub_runs = sub_runs

    def progress(self, value: Any) -> None:
        """Report progress: a `ToolProgress` of the run. From any thread; without effect when the call is over."""
        if not self.is_over:
            self._report(value)

    async def run(self, agent: Any, input: Any) -> Any:  # noqa: A002
        """Run another agent within this call and return its `RunResult`. Its usage counts towards this run, whose
        limits apply to it, and its events are emitted by this run.

        If it needs a person's decision, the whole run waits; then the tool is called again, and the nested run resumes.
        """
        if self._sub_runs is None:
            raise RequestError("Here no other agent can be run: this call is not one of an agent's run.")
        return await self._sub_runs.run(agent, input)

    def __repr__(self) -> str:
        return f"Context(tool={self.tool!r}, call_id={self.call_id!r})"  # the hidden values stay hidden


class RunContext(Struct, frozen=True):
    """Information about a run for functions of an agent: the agent's name, the conversation so far, and the `hidden`
    values of the run.
    """

    agent: str
    items: Sequence[Item]
    hidden: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"RunContext(agent={self.agent!r})"  # the hidden values stay hidden


class Retry(Exception):  # noqa: N818  # a request to the model, not an error
    """Raised by a tool: the model reads the reason and retries the call, at most `retries_per_tool` times."""


class Failed(Exception):  # noqa: N818
    """Raised by a tool that failed: the model reads the reason."""


class Result(Struct, frozen=True):
    """A result in parts.

    `content` is for the model: text, or parts in the Chat shape (`{"type": "image_url", …}`). `data` is the
    structured value, read by the model if there is no `content`. `app` is for the program only.
    """

    content: str | Sequence[str | Mapping[str, Any]] | None = None
    data: Any = None
    app: Any = None


def split_annotation(annotation: Any) -> tuple[Any, list[Any]]:
    """The annotation without its outer `Annotated`, and its notes."""
    plain, *notes = typing.get_args(annotation) if typing.get_origin(annotation) is Annotated else (annotation,)
    return plain, notes


def constraints(notes: Iterable[Any]) -> dict[str, Any]:
    """The constraints in notes of msgspec, pydantic and annotated-types.

    These are bounds, by msgspec's names for them, and `description`. Attributes are read by name, so that
    none of these is imported; a bare string is a description.
    """
    found: dict[str, Any] = {}
    for note in notes:
        inner = getattr(note, "metadata", None)  # pydantic's `Field` has its bounds there
        found |= constraints(inner) if isinstance(inner, list | tuple) else {}
        found |= {name: bound for name in _BOUNDS if (bound := getattr(note, name, None)) is not None}
        text = note if isinstance(note, str) else getattr(note, "description", None)
        found |= {"description": text} if isinstance(text, str) and text else {}
    return found


def constrained(schema: dict[str, Any], bounds: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with the bounds that apply to its type; in a union, each branch gets its own."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [constrained(branch, bounds) for branch in schema["anyOf"]]}
    made = dict(schema)
    for name, bound in bounds.items():
        try:
            meta = msgspec.Meta(**{name: getattr(bound, "pattern", bound)})  # a pattern may be compiled
            made |= msgspec.json.schema(Annotated[_BOUNDED[schema["type"]], meta])
        except (KeyError, TypeError):  # not a bound of this type
            continue
    return made
