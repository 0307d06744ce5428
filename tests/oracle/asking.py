"""The conversations of conversations.json, for our renderer and for a model's chat template."""

import json
from pathlib import Path
from typing import Any

from msgspec import Struct

__all__ = ["CONVERSATIONS", "FOLDER", "Told", "behind"]

FOLDER = Path(__file__).parent
_GIVEN = json.loads((FOLDER / "conversations.json").read_text(encoding="utf-8"))
CONVERSATIONS: tuple[str, ...] = tuple(_GIVEN["conversations"])


class Told(Struct, frozen=True):
    """One conversation. `reasoning` is the key of reasoning in a message. `ids`: the form of the ids of calls, `call`
    or `functions`, which is Kimi's. `named`: outputs name their tool, which the Chat API does not know. `system`:
    the system message where there is none, for templates that would else add one of their own. `objects`: arguments
    are objects, as templates want them, not JSON texts.
    """

    name: str
    reasoning: str = "reasoning_content"
    ids: str = "call"
    named: bool = False
    system: str = ""
    objects: bool = False

    def tools(self) -> list[dict[str, Any]] | None:
        """The tools in the Chat shape."""
        names = [name for turn in self._turns() for name in turn.get("tools", ())]
        return [{"type": "function", "function": {"name": name, **_GIVEN["tools"][name]}} for name in names] or None

    def messages(self) -> list[dict[str, Any]]:
        """The messages in the Chat shape."""
        made: list[dict[str, Any]] = []
        if self.system and not any(turn.get("role") == "system" for turn in self._turns()):
            made.append({"role": "system", "content": self.system})
        written = answered = 0
        calls: list[tuple[str, str]] = []
        for turn in self._turns():
            if "result" in turn:
                id_, name = calls[turn.get("of", answered)]
                answered += 1
                name_of = {"name": name} if self.named else {}
                made.append({"role": "tool", "tool_call_id": id_, **name_of, "content": turn["result"]})
            elif "tools" not in turn:
                message = {"role": turn.get("role", "assistant"), "content": turn.get("content", "")}
                if "reasoning" in turn:
                    message[self.reasoning] = turn["reasoning"]
                if "calls" in turn:
                    message["tool_calls"] = []
                    for name, arguments, *own in turn["calls"]:
                        calls.append((self._own_id(own[0]) if own else self._id(name, written), name))
                        message["tool_calls"].append(self._call(calls[-1][0], name, arguments))
                        written += 1
                made.append(message)
        return made

    def _turns(self) -> list[dict[str, Any]]:
        turns: list[dict[str, Any]] = _GIVEN["conversations"][self.name]
        return turns

    def _id(self, name: str, number: int) -> str:
        return f"functions.{name}:{number}" if self.ids == "functions" else f"call{number:05}"

    def _own_id(self, given: str | dict[str, str]) -> str:
        """An id that a conversation gives: a foreign one, or one of the format, for each form of ids."""
        return given if isinstance(given, str) else given[self.ids]

    def _call(self, id_: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        given = arguments if self.objects else json.dumps(arguments, ensure_ascii=False)
        return {"id": id_, "type": "function", "function": {"name": name, "arguments": given}}


def behind(prompt: str, marker: str) -> str:
    """A prompt from the first `marker` on; all of it without one."""
    return prompt[prompt.index(marker) :]
