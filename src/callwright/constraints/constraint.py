"""What is asked of an answer, before anything is known of an engine."""

import msgspec

from callwright.conversation import FunctionTool

__all__ = ["Constraint"]


class Constraint(msgspec.Struct, frozen=True):
    """What is asked of an answer, whatever the engine: `tools` are those that may be called.

    `demanded`: one of them has to be, else text is an answer, too. `start` and `prefill` are the prompt's; the start of
    a chat server's answer is `message`.
    """

    dialect: str
    tools: tuple[FunctionTool, ...]
    demanded: bool = True
    parallel: bool = True
    start: str = "assistant"
    prefill: str = ""
