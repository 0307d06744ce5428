"""Whether a model sees the reasoning that it wrote earlier: found out from how its dialect renders a conversation."""

from functools import lru_cache
from typing import Final, Literal, TypeAlias

from callwright.conversation import Call, CallOutput, Conversation, FunctionTool, Item, Message, Reasoning, TextPart
from callwright.dialects.base import get_dialect

# Of no turn; of those of the present task, after the last message of the user; of all turns.
PastReasoning: TypeAlias = Literal["none", "task", "all"]

_TOOL: Final = FunctionTool("look", "Looks.", {"type": "object", "properties": {}})
_THOUGHT: Final = Reasoning("I should look.")
_ASKED: Final = Message("user", (TextPart("Look around."),))
_CALLED: Final = (Call("look", "{}", id="call_1"), CallOutput("call_1", (TextPart("A lamp."),)))
_SAID: Final = Message("assistant", (TextPart("A lamp is there."),))


@lru_cache(maxsize=256)
def past_reasoning(dialect: str, *, is_raw: bool) -> PastReasoning:
    """Of which turns with calls a prompt of this dialect shows the reasoning; as chat messages where not `is_raw`."""

    def differs(*rest: Item) -> bool:
        with_it = Conversation((_ASKED, _THOUGHT, *_CALLED, *rest), (_TOOL,))
        without = Conversation((_ASKED, *_CALLED, *rest), (_TOOL,))
        if is_raw:
            return found.render(with_it, options).text != found.render(without, options).text
        return found.messages(with_it, options) != found.messages(without, options)

    found = get_dialect(dialect)
    options = found.options()
    if differs(_SAID, _ASKED):
        return "all"
    return "task" if differs() else "none"
