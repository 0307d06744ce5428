"""What a program does before and after the model and the tools: look, change, refuse, end the run.

A guardrail is a hook that raises `EndRun`. Hooks are called in the order in which an agent has them; each may be async.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from callwright.agent.given import check_function
from callwright.errors import RequestError

# Hooks that give what they are given; `before_tool` may give other things, and answers are of any type.
_ALIKE: Final = ("before_model", "after_model", "after_tool")


class EndRun(Exception):  # noqa: N818  # what the program wants
    """Raised by a hook or a tool: the run ends with `stopped`, and with these words as its detail."""


class Hooks(Struct, frozen=True, kw_only=True):
    """Functions around the model and the tools. What one returns takes the place of what it was given; None = as it is.

    `before_model(conversation, context)`: a `Conversation`, as the model would be asked; the history of the run keeps
    the one it has. `after_model(turn, context)`: a `Turn`, before its calls run; of a run that streams, text has gone
    out. `context` is a `RunContext`.

    `before_tool(call, context)`: a `CallReady`, whose arguments hold; hidden ones are not among them. It may return
    other arguments, which are checked, or a `Result`: then the tool does not run. `Retry` and `Failed` tell the model.
    `after_tool(ended, context)`: a `ToolEnded`, before the model reads it. `context` is the `Context` of the call.

    `after_output(value, context)`: the answer, whose type holds. `Retry` asks the model again. What it returns is
    the output.
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
    """What the hooks of this name make of a value, one after the other."""
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
