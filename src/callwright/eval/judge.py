"""Judges the answers of a model to a case. Pure: the calls were executed, the world is as they left it.

Each call is validated again, by strict JSON, the tool's schema and its grammar: the gateway's own verdict does not
count.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from callwright.conversation import Call, FunctionTool
from callwright.eval.case import Case, WantedCall
from callwright.eval.wanted import misfit
from callwright.eval.world import World
from callwright.openai_format.tools import read_tools
from callwright.reading.collect import Turn
from callwright.schema.validate import validator_of
from callwright.tolerant_json.codec import NotJsonError, decode

_INPUT: Final = "input"


class Verdict(Struct, frozen=True, omit_defaults=True):
    """The verdict on a case. `right`: all requirements hold; `why` is the first one that does not.

    `wanted` and `made` count calls. Of the made ones `false` were not wanted, `wrong` have other arguments than
    wanted, `invalid` violate their schema, or name no tool; of the wanted ones `lost` were not made.
    `problems`: the problems of the answers, by kind; `asked_again`: the number of retries because of them.
    """

    right: bool
    why: str = ""
    wanted: int = 0
    made: int = 0
    false: int = 0
    lost: int = 0
    wrong: int = 0
    invalid: int = 0
    problems: Mapping[str, int] = {}
    asked_again: int = 0

    @property
    def clean(self) -> bool:
        """Right as the model wrote it: without repairs and retries."""
        return self.right and not self.problems and not self.asked_again


class Checked(Struct, frozen=True):
    """A call that was made, with its arguments as far as they parse. `fault`: why it is invalid, if it is."""

    call: Call
    arguments: Any
    fault: str = ""


class Tools:
    """The tools of a case; validates calls against them."""

    def __init__(self, case: Case) -> None:
        self._tools: dict[str, FunctionTool] = {tool.name: tool for tool in read_tools(list(case.tools))}

    def check(self, call: Call) -> Checked:
        """Validate a call against its tool. An argument equal to its schema's default counts as left out."""
        tool = self._tools.get(call.name)
        if tool is None:
            return Checked(call, None, f"no tool is called {call.name!r}")
        if not call.complete:
            return Checked(call, None, "its arguments have no end")
        if tool.custom is not None:
            grammar = tool.custom.grammar
            fits = grammar is None or grammar.accepts(call.arguments)
            return Checked(call, {_INPUT: call.arguments}, "" if fits else "its input does not fit the grammar")
        try:
            arguments = decode(call.arguments or "{}")
        except NotJsonError as error:
            return Checked(call, None, f"its arguments are not valid JSON: {error}")
        if not isinstance(arguments, dict):
            return Checked(call, arguments, "its arguments are not an object")
        faults = validator_of(tool.parameters or {"type": "object"}).faults(arguments, 1)
        if faults:
            return Checked(call, arguments, f"{faults[0].path}: {faults[0].message}")
        return Checked(call, arguments)

    def explicit_arguments(self, checked: Checked) -> Mapping[str, Any]:
        """The arguments of a valid call that differ from the schema's defaults."""
        tool = self._tools[checked.call.name]
        places = (tool.parameters or {}).get("properties") or {}
        return {
            name: value
            for name, value in checked.arguments.items()
            if "default" not in places.get(name, {}) or places[name]["default"] != value
        }


def judge(
    case: Case,
    turns: Sequence[Turn],
    checked: Sequence[Checked],
    world: World,
    *,
    asked_again: int = 0,
) -> Verdict:
    """The verdict on a case that is over. `checked` are all calls of all turns."""
    tools = Tools(case)
    must = case.must
    valid = [(one.call.name, tools.explicit_arguments(one)) for one in checked if not one.fault]
    faults = [f"{one.call.name}: {one.fault}" for one in checked if one.fault]
    counted = _Matched(must.calls, [one for one in valid if one[0] not in must.may], faults)
    whys = [
        *counted.whys,
        *([] if not must.some or valid else ["no call was made"]),
        *_state_whys(case, world),
        *_text_whys(case, turns),
    ]
    # With several steps, an invalid call is no failure if the model corrected it after the error.
    if faults and (case.steps == 1 or must.state is None):
        whys = faults + whys
    return Verdict(
        right=not whys,
        why=whys[0] if whys else "",
        wanted=len(must.calls or ()),
        made=len(checked),
        false=counted.false,
        lost=counted.lost,
        wrong=counted.wrong,
        invalid=len(faults),
        problems=dict(Counter(problem.kind for turn in turns for problem in turn.problems)),
        asked_again=asked_again,
    )


class _Matched:
    """The wanted calls paired with those that were made, as many as there can be."""

    def __init__(
        self, wanted: Sequence[WantedCall] | None, made: Sequence[tuple[str, Any]], faults: Sequence[str]
    ) -> None:
        self.false = self.lost = self.wrong = 0
        self.whys: list[str] = []
        if wanted is None:
            return
        pairs = _paired(wanted, made)
        lost = [one for number, one in enumerate(wanted) if number not in pairs.values()]
        left = [one for number, one in enumerate(made) if number not in pairs]
        for name, arguments in list(left):
            near = next((one for one in lost if one.name == name), None)
            if near is not None:
                self.wrong += 1
                self.whys.append(f"{name}: {misfit(dict(near.arguments), arguments)}")
                lost.remove(near)
                left.remove((name, arguments))
        self.false, self.lost = len(left), max(0, len(lost) - len(faults))
        self.whys += [f"{one.name} was not called" for one in lost]
        asked = {one.name for one in wanted}
        extra = ("was called, and nobody asked for it", "was called more often than was asked for")
        self.whys += [f"{name} {extra[name in asked]}" for name, _ in left]


def _paired(wanted: Sequence[WantedCall], made: Sequence[tuple[str, Any]]) -> dict[int, int]:
    """The number of the wanted call for each made one that fits it: a largest matching, by augmenting paths."""
    fits = [
        [n for n, (name, given) in enumerate(made) if name == one.name and not misfit(dict(one.arguments), given)]
        for one in wanted
    ]
    pairs: dict[int, int] = {}

    def place(number: int, tried: set[int]) -> bool:
        for other in fits[number]:
            if other not in tried:
                tried.add(other)
                if other not in pairs or place(pairs[other], tried):
                    pairs[other] = number
                    return True
        return False

    for number in range(len(wanted)):
        place(number, set())
    return pairs


def _state_whys(case: Case, world: World) -> list[str]:
    if case.must.state is None:
        return []
    said = misfit({name: dict(rows) for name, rows in case.must.state.items()}, world.tables, "the world")
    return [said] if said else []


def _text_whys(case: Case, turns: Sequence[Turn]) -> list[str]:
    must = case.must
    text = (turns[-1].content or "") if turns else ""
    whys: list[str] = []
    if must.text is not None and (said := misfit(must.text, text, "the text")):
        whys.append(said)
    if must.answer is None and must.value is None:
        return whys
    try:
        value = decode(text)
    except NotJsonError:
        return [*whys, "the text is not valid JSON"]
    if must.answer is not None and (faults := validator_of(must.answer).faults(value, 1)):
        whys.append(f"the answer, {faults[0].path}: {faults[0].message}")
    if must.value is not None and (said := misfit(must.value, value, "the answer")):
        whys.append(said)
    return whys
