"""What is asked of an answer, before anything is known of an engine."""

import msgspec

from callwright.conversation import FunctionTool, JsonObject


class AnswerForm(msgspec.Struct, frozen=True):
    """What the text of an answer has to be: JSON by a `schema`, or else one of these `words`."""

    schema: JsonObject | None = None
    words: tuple[str, ...] = ()


class Constraint(msgspec.Struct, frozen=True):
    """What is asked of an answer, whatever the engine: `tools` are those that may be called.

    `demanded`: one of them has to be, else text is an answer, too. `start` and `prefill` are the prompt's; the start of
    a chat server's answer is `message`. `form`: what a text has to be that is an answer; None = any text.
    """

    dialect: str
    tools: tuple[FunctionTool, ...]
    demanded: bool = True
    parallel: bool = True
    start: str = "assistant"
    prefill: str = ""
    form: AnswerForm | None = None
