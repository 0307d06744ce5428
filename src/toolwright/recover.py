"""Finds calls in free text: replies of models that were asked in words to write a call as JSON.

The form alone is no evidence. A candidate must name an offered tool and its arguments must fit; then the place
counts (a reply of its own, a fence, the end of the reply) against what speaks for an example, a quotation, a
question or a record. In doubt the text stays text: one executed example costs more than ten calls that are asked
for again.
"""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, TypeAlias

import msgspec

from toolwright.coerce import text_of
from toolwright.conversation import NamedTool
from toolwright.events import Problem
from toolwright.fitting import Fitted, fit_arguments, json_problems, step_problems, tools_taking
from toolwright.forms import Form, read_forms
from toolwright.jsonfind import TRAILING, JsonPlace, json_places
from toolwright.jsontree import Node
from toolwright.schema.keywords import properties
from toolwright.toolset import Toolset

__all__ = ["Found", "Piece", "Prose", "recover"]

# Words that speak against a call. They help in English only; form, fit and place work in every language.
_TEACHING = re.compile(
    r"\b(for example|e\.g\.|example|looks? like|would (?:send|write|call|be)|the form(?:at)? is|format|usage|syntax"
    r"|placeholder|could (?:send|write|call)|you can (?:send|write|call))\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(instead of|rather not|rather than|without (?:calling|using|running|sending)"
    r"|(?:will not|won't|do not|don't|cannot|can't|must not|never) (?:\w+ )?"
    r"(?:call|use|run|send|invoke|make|need)\w*)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(earlier|previous(?:ly)?|before that|last time|i called|i ran|was called|had called|changed the)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"\b(you wrote|your message|the (?:file|page|document|text|log) (?:contains|says|shows))\b", re.IGNORECASE
)
_ASKING = re.compile(
    r"\?\s*\Z|\b(shall i|should i|may i|which one|please confirm|let me know|do you want|would you like)\b",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"\s*(?:\.{3}|…|<[^<>]{1,60}>|\{[^{}\":]{1,60}\}|\[your [^\]]*\]|YOUR_\w+)\s*\Z", re.IGNORECASE
)
_TYPE_NAMES: Final = frozenset(("string", "integer", "number", "boolean", "object", "array", "null"))
_SENTENCE_ENDS: Final = ":.!…。：！"
_NEAR = 240  # characters of prose before a candidate that may be about it
_FAR = 2_000  # and behind it


class Prose(msgspec.Struct, frozen=True):
    """Text that is no call, and what is wrong with the call that it may have been."""

    text: str
    problem: Problem | None = None


class Found(msgspec.Struct, frozen=True):
    """A call, the text it was read from with its fence or marks, and what was repaired in it."""

    name: str
    arguments: str
    text: str
    problems: tuple[Problem, ...] = ()


Piece: TypeAlias = Prose | Found


class _Call(msgspec.Struct, frozen=True):
    """A form that is good enough for a call."""

    form: Form
    fitted: Fitted


class _Candidate(msgspec.Struct):
    """A place and what it holds: calls in order, and what is wrong with what else stands there."""

    place: JsonPlace
    calls: list[_Call]
    problems: list[Problem]


def recover(text: str, tools: Toolset, *, before: str = "", cut: bool = False) -> list[Piece]:
    """The calls of a reply and the text around them, white space included, in order; one `Prose` with the whole text
    when there is no call.

    `before` is what was said already. `cut`: the reply ended because of its limit, so that its last value may go on.
    """
    if tools.choice == "none" or not len(tools):
        return [Prose(text)]
    candidates: list[_Candidate] = []
    doubt: Problem | None = None
    for place in json_places(text, whole=not before.strip(), names=tools.names()):
        candidate = _candidate(place, tools, cut=cut, alone=not before.strip() and _is_all(text, place))
        if candidate.calls:
            candidates.append(candidate)
        elif candidate.problems:
            doubt = doubt or candidate.problems[0]
    around = _Surroundings(text, before, [candidate.place for candidate in candidates])
    meant = [candidate for number, candidate in enumerate(candidates) if _is_meant(candidate, *around.of(number))]
    return _pieces(text, meant) if meant else [Prose(text, doubt)]


def _pieces(text: str, candidates: Sequence[_Candidate]) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    for candidate in candidates:
        place = candidate.place
        if text[at : place.begin]:
            pieces.append(Prose(text[at : place.begin]))
        for number, call in enumerate(candidate.calls):
            if call.form.content:
                pieces.append(Prose(call.form.content))
            problems = [*(json_problems(place.repairs) if not number else []), *_steps(call)]
            problems += candidate.problems if not number else []
            written = "" if number else text[place.begin : place.end]
            pieces.append(Found(call.form.name, call.fitted.text, written, tuple(problems)))
        at = place.end
    if text[at:]:
        pieces.append(Prose(text[at:]))
    return pieces


def _steps(call: _Call) -> list[Problem]:
    renamed = [] if call.form.exact else [Problem("tool_name_repaired", f"the name {call.form.name!r} in other words")]
    return renamed + step_problems(call.fitted.steps)


# --- what a place holds ---


def _candidate(place: JsonPlace, tools: Toolset, *, cut: bool, alone: bool) -> _Candidate:
    candidate = _Candidate(place, [], [])
    if "ellipsis" in place.repairs:  # a placeholder
        return candidate
    for node in _split(place.nodes, tools):
        forms = read_forms(node, tools) or _inferred(node, tools, alone=alone)
        if not forms and isinstance(tools.choice, NamedTool) and place.place == "whole" and node.kind == "object":
            forms = [Form(tools.choice.name, node, explicit=False, closed=node.closed)]
        if not forms:
            return _Candidate(place, [], [])
        for form in forms:
            judged = _judged(form, place, tools, cut=cut)
            if isinstance(judged, _Call):
                candidate.calls.append(judged)
            elif judged is None:
                return _Candidate(place, [], [])
            else:
                candidate.problems.append(judged)
    return candidate


def _split(nodes: Sequence[Node], tools: Toolset) -> list[Node]:
    """The values of a place, and of a list of calls its items."""
    found: list[Node] = []
    for node in nodes:
        items = [item.value for item in node.items]
        found += items if items and all(read_forms(item, tools) for item in items) else [node]
    return found


def _inferred(node: Node, tools: Toolset, *, alone: bool) -> list[Form] | None:
    """A bare object of arguments that exactly one tool takes, or one under the name of its tool."""
    if not alone or node.kind != "object" or not node.members:
        return None
    names = {member.name for member in node.members}
    if len(node.members) == 1:
        (name,) = names
        if name in tools and not tools.declares(name) and node.members[0].value.kind == "object":
            return [Form(name, node.members[0].value, explicit=True, closed=node.closed)]
    if names & {"tool", "name"} and not all(tools.declares(name) for name in names & {"tool", "name"}):
        return None
    fitting = [name for name, _ in tools_taking(node, tools)]
    if isinstance(tools.choice, NamedTool) and tools.choice.name in fitting:
        fitting = [tools.choice.name]
    return [Form(fitting[0], node, explicit=False, closed=node.closed)] if len(fitting) == 1 else None


def _judged(form: Form, place: JsonPlace, tools: Toolset, *, cut: bool) -> _Call | Problem | None:
    """A form as a call, what is wrong with it, or None when nothing says that it is a call."""
    tool = tools.get(form.name)
    if tool is None:
        return Problem("unknown_tool", f"no tool is called {form.name!r}") if form.explicit else None
    if not form.closed and (cut or place.cut):
        return Problem("incomplete_arguments", f"the output was cut in a call of {form.name!r}")
    if form.arguments is None:
        if tools.requires_something(form.name):
            return Problem("invalid_arguments", f"a call of {form.name!r} without arguments")
        return _Call(form, Fitted(Node("object"), [], []))
    fitted = fit_arguments(form.arguments, form.name, tools)
    if fitted.faults:
        told = "; ".join(f"{fault.path}: {fault.message}" for fault in fitted.faults[:3])
        problem = Problem("invalid_arguments", f"the arguments of {form.name!r} do not fit: {told}")
        return problem if form.explicit else None
    own = properties(tool.parameters)
    if form.flat and not {member.name for member in fitted.node.members} <= own.keys():
        return None
    return None if _is_placeholder(fitted.node, own) else _Call(form, fitted)


def _is_placeholder(arguments: Node, own: object) -> bool:
    """Whether the arguments are an example: a placeholder among them, nothing but names of types, or a schema."""
    values = [member.value for member in arguments.members]
    texts = [text for value in values if (text := text_of(value)) is not None]
    if values and len(texts) == len(values) and all(text in _TYPE_NAMES for text in texts):
        return True
    names = {member.name for member in arguments.members}
    echoed = {"type", "properties"} <= names and not (isinstance(own, dict) and {"type", "properties"} & own.keys())
    return echoed or any(_PLACEHOLDER.match(text) for text in texts)


# --- whether it is meant ---


class _Surroundings:
    """The prose around places: other places are no prose."""

    def __init__(self, text: str, before: str, places: Sequence[JsonPlace]) -> None:
        begins = [place.begin for place in places] + [len(text)]
        ends = [0] + [place.end for place in places]
        parts = [text[end:begin] for end, begin in zip(ends, begins, strict=True)]
        self._starts = list(accumulate(map(len, parts)))
        self._before = before
        self._prose = "".join(parts)

    def of(self, number: int) -> tuple[str, str]:
        """What stands before a place and behind it, as far as it is near; of the end of the reply always some."""
        at = self._starts[number]
        before = self._prose[max(0, at - _NEAR) : at]
        behind = self._prose[at : at + _FAR]
        last = self._prose[max(at + _FAR, len(self._prose) - _NEAR) :]
        return before if number else self._before + before, behind + last


def _is_meant(candidate: _Candidate, before: str, after: str) -> bool:
    """Whether the prose around a candidate leaves it a call."""
    where = candidate.place.place
    if where == "whole":
        return True
    if where == "scan" and not all(call.form.explicit for call in candidate.calls):
        return False
    near = before[-_NEAR:]
    rest = after[TRAILING.match(after).end() :].strip()  # type: ignore[union-attr]  # matches always
    if _NEGATED.search(near) or _PAST.search(near) or _QUOTED.search(near) or _TEACHING.search(near):
        return False
    if _ASKING.search(rest) or _ASKING.search(near[-120:]):
        return False
    if not rest:
        return True
    if where == "scan" and before.strip() and not all(call.form.exact for call in candidate.calls):
        return False
    if where == "scan":
        return not _in_a_sentence(before.rpartition("\n")[2].rstrip(), after.partition("\n")[0].lstrip())
    return True


def _in_a_sentence(before: str, after: str) -> bool:
    """Whether what stands between two parts of a line is a part of one sentence."""
    if not before or not after:
        return False
    return before[-1] not in _SENTENCE_ENDS or after[0].islower() or not after[0].isalpha()


def _is_all(text: str, place: JsonPlace) -> bool:
    """Whether a place is the whole reply, but for a fence around it."""
    return place.place == "whole" or (place.place == "fence" and not (text[: place.begin] + text[place.end :]).strip())
