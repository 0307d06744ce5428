"""Hooks before and after the model and the tools: they observe, change, refuse, or end the run.

A guardrail is a hook that raises `EndRun`. Hooks are called in the order in which an agent has them; each may be async.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from callwright.agent.given import check_function
from callwright.errors import RequestError

# Hooks that return the type of their argument; `before_tool` may return other types, and answers have any type.
_ALIKE: Final = ("before_model", "after_model", "after_tool")


class EndRun(Exception):  # noqa: N818  # control flow, not an error
    """Raised by a hook or a tool: the run ends with `stopped`, and with this text as its detail."""


class Hooks(Struct, frozen=True, kw_only=True):
    """Functions around the model and the tools. A returned value replaces the given one; None changes nothing.

    `before_model(conversation, context)`: the `Conversation` for this request; the history of the run is unchanged.
    `after_model(turn, context)`: a `Turn`, before its calls run; in a stream, text has been sent. `context` is a
    `RunContext`.

    `before_tool(call, context)`: a `CallReady` with valid arguments, without hidden ones. It may return other
    arguments, which are validated, or a `Result`: then the tool does not run. `Retry` and `Failed` inform the model.
    `after_tool(ended, context)`: a `ToolEnded`, before the model reads it. `context` is the `Context` of the call.

    `after_output(value, context)`: the valid answer. `Retry` makes the model answer again. The returned value is the
    output.
    """

    before_model: Callable[..., Any] | None = None
    after_model: Callable[..., Any] | None = None
    before_tool: Callable[..., Any] | None = None
    after_tool: Callable[..., Any] | None = None
    after_output: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            hook = getattr(self, name)
            if hook is not None:
                check_function(f"Hooks({name}=…)", hook, "a function of two arguments, or None", 2)


async def apply(hooks: Sequence[Hooks], name: str, value: Any, context: object) -> Any:
    """Pass a value through the hooks of this name, in order, and return the result."""
    for one in hooks:
        hook = getattr(one, name)
        if hook is None:
            continue
        made = hook(value, context)
        made = await made if inspect.isawaitable(made) else made
        if made is None:
            continue
        if name in _ALIKE and not isinstance(made, type(value)):
            raise RequestError(
                f"Hooks({name}=…): expected a {type(value).__name__} or None, got {type(made).__name__}.",
                param=f"hooks.{name}",
            )
        value = made
    return value
