"""One case while it is played: the next request, the answers, the calls executed, until there is a verdict.

Knows no model: the caller asks one, and passes its turns to `Play.take`.
"""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from callwright.conversation import Call
from callwright.eval.case import Case
from callwright.eval.judge import Checked, Tools, Verdict, judge
from callwright.eval.world import World
from callwright.reading.collect import Turn
from callwright.tolerant_json.codec import encode


class Play:
    """A case being played. `turns` are the answers so far, `asked_again` counts the retries reported for them."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.turns: list[Turn] = []
        self.asked_again = 0
        self._tools = Tools(case)
        self._world = World(case.tables, case.effects)
        self._checked: list[Checked] = []
        self._body = case.request()
        self._ids: set[str] = set()

    @property
    def is_over(self) -> bool:
        """Whether the case is finished, without another request to the model."""
        return bool(self.turns) and (not self.turns[-1].calls or len(self.turns) >= self.case.steps)

    def request(self) -> dict[str, Any]:
        """The next chat request, without the model."""
        return dict(self._body)

    def take(self, turn: Turn, *, asked_again: int = 0) -> None:
        """Add an answer and execute its calls; a call that cannot run gets an error such as a client would send."""
        step = len(self.turns)
        calls = [self._with_unique_id(call, f"call_{step}_{number}") for number, call in enumerate(turn.calls)]
        turn = replace(turn, calls=tuple(calls))
        self.turns.append(turn)
        self.asked_again += asked_again
        checked = [self._tools.check(call) for call in calls]
        self._checked += checked
        outputs = [self._output(one) for one in checked if one.call.complete]
        if outputs:
            self._body["messages"] = [*self._body["messages"], turn.to_chat_message(), *outputs]

    def verdict(self) -> Verdict:
        """The verdict, once the case is finished."""
        return judge(self.case, self.turns, self._checked, self._world, asked_again=self.asked_again)

    @property
    def calls(self) -> Sequence[Call]:
        """All calls that were made."""
        return [one.call for one in self._checked]

    def _with_unique_id(self, call: Call, id_: str) -> Call:
        """The call with the server's id for it, unless an earlier call has the same."""
        taken = call.id in self._ids or not call.id
        self._ids.add(call.id)
        return replace(call, id=id_) if taken else call

    def _output(self, checked: Checked) -> dict[str, Any]:
        call = checked.call
        text = encode({"error": checked.fault}).decode() if checked.fault else ""
        said = text or self._world.run(call.name, checked.arguments)
        return {"role": "tool", "tool_call_id": call.id, "content": said}
