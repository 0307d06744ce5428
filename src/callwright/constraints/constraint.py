"""The requirements on an answer, independent of any engine."""

import msgspec

from callwright.conversation import FunctionTool, JsonObject


class AnswerForm(msgspec.Struct, frozen=True):
    """The form of an answer's text: JSON by a `schema`, or else one of these `words`."""

    schema: JsonObject | None = None
    words: tuple[str, ...] = ()


class Constraint(msgspec.Struct, frozen=True):
    """The requirements on an answer, independent of any engine: `tools` are those that may be called.

    `demanded`: one of them must be called, otherwise text is an answer, too. `start` and `prefill` are the prompt's;
    the start of a chat server's answer is `message`. `form`: the form of a text that is an answer; None: any text.
    `tokens`: about the token limit of the request, which bounds texts, lists and numbers; None: it has none.
    """

    dialect: str
    tools: tuple[FunctionTool, ...]
    demanded: bool = True
    parallel: bool = True
    start: str = "assistant"
    prefill: str = ""
    form: AnswerForm | None = None
    tokens: int | None = None
