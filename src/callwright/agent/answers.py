"""The expected answer of a run: how each request asks for it, and how the model's answers are validated.

One run, no I/O. The next request contains an invalid answer and its error; the history of the run gets only the
accepted answer.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from callwright.agent.output import FINAL_TOOL, MisfitError, Output, Way
from callwright.conversation import Call, Conversation, Item, Message, TextPart

_CALL_IT: Final = f"Answer by a call of {FINAL_TOOL}."
_AGAIN: Final = {
    "tool": f"{_CALL_IT} Make it again, corrected.",
    "schema": "Answer again, with JSON only.",
    "text": "Answer again, with JSON only.",
}


class AnswerCheck:
    """The answer of one run. `value` is the accepted one. Without an `output` any text is valid. `is_native`: the mode
    of the model is native.
    """

    def __init__(self, output: Output | None, way: Way, retries: int, *, is_native: bool = False) -> None:
        self.output = output
        self.way = way
        self._is_native = is_native
        self._retries = retries
        self._failed = 0
        self._told = ""
        self._beside: Sequence[Item] = ()
        self.value: Any = None

    @property
    def by_call(self) -> bool:
        """Whether the answer is a call."""
        return self.output is not None and self.way == "tool"

    @property
    def words(self) -> str:
        """Text for the instructions. A native server renders the prompt, and may leave the schema out."""
        if self.output is None:
            return ""
        if self.by_call:
            return _CALL_IT
        return self.output.words if self.way == "text" or self._is_native else ""

    def shaped(self, conversation: Conversation, *, may_end: bool) -> Conversation:
        """The request for the next turn. `may_end`: an answer is allowed; if not, a call is required first."""
        items = (*conversation.items, *self._beside)
        self._beside = ()
        made = msgspec.structs.replace(conversation, items=items)
        if self.output is None or not may_end or self.way == "text":
            return made
        if self.way == "schema":
            return msgspec.structs.replace(made, response_format=self.output.form)
        allowed = made.allowed_tools if made.tool_choice != "none" else ()
        return msgspec.structs.replace(
            made,
            tools=(*made.tools, self.output.tool),
            tool_choice="required",
            allowed_tools=None if allowed is None else (*allowed, FINAL_TOOL),
        )

    def take_text(self, text: str) -> bool:
        """Accept a text as the answer if it is valid. Returns whether it was."""
        if self.output is None:
            self.value = text
            return True
        try:
            self.value = self.output.read(text)
        except MisfitError as error:
            self.refuse(str(error), text)
            return False
        return True

    def take_call(self, call: Call) -> bool:
        """Accept a call of the final tool as the answer if it is valid. Returns whether it was."""
        assert self.output is not None
        try:
            self.value = self.output.read_arguments(call.arguments)
        except MisfitError as error:
            self.refuse(str(error), call.arguments)
            return False
        return True

    def refuse(self, why: str, said: str) -> None:
        """Refuse an answer; the next request contains the reason."""
        answered = [Message("assistant", (TextPart(said),))] if said else []
        told = f"Error: your answer was not taken: {why.rstrip('.')}. {_AGAIN[self.way]}"
        self._beside = (*answered, Message("user", (TextPart(told),)))
        self._failed += 1
        self._told = why

    @property
    def maybe_end(self) -> str | None:
        """Why the model is not asked for the answer again, or None if it is."""
        return f"the answer is invalid: {self._told}" if self._failed > self._retries else None
