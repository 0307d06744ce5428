"""Finds calls in free text: replies of models that were asked in words to write a call as JSON.

The form alone is no evidence. A candidate must name an offered tool and its arguments must fit; then its place in the
reply decides (`callwright.free_text.intent`). A possible call that may be an example stays text, with a problem that
contains the call, so that it can be confirmed with the model: one executed example costs more than ten questions.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

from callwright.calls.aliases import fold
from callwright.calls.coerce import node_text
from callwright.calls.fit import RepairedArguments, json_problems, repair_and_validate, step_problems, tools_taking
from callwright.calls.json_forms import NAME_KEYS, JsonCall, find_json_calls
from callwright.calls.toolset import Toolset
from callwright.conversation import NamedTool
from callwright.events import Call, Problem, ProblemKind
from callwright.free_text.intent import find_runs, verdict
from callwright.free_text.places import is_blank
from callwright.schema.keywords import properties
from callwright.schema.plain import tool_schema
from callwright.schema.resolve import TYPE_NAMES
from callwright.tolerant_json.find import JsonPlace, json_places
from callwright.tolerant_json.tree import Node, given_once
from callwright.tolerant_json.wrappers import without

_PLACEHOLDER = re.compile(
    r"\s*(?:\.{3}|…|x{3,}|<[^<>]{1,60}>|\{[^{}\":]{1,60}\}|\[your [^\]]*\]|YOUR_\w+)\s*\Z", re.IGNORECASE
)
# The text in brackets of any kind; a placeholder if it is the name of the parameter.
_BRACKETED = re.compile(r"\s*[$\[{<(%]{1,3}([^\[\]{}<>()%]{1,60})[\]}>)%]{1,3}\s*\Z")
# Keys that hardly any data has. With the others (`name`, `action`) an object without an argument key is mostly data.
_OWN_KEYS: Final = frozenset(("tool", "tool_name", "function_name", "tool_call", "recipient_name"))
# Reported wherever they are found: these calls cannot even be confirmed with the model.
_UNFINISHED: Final = ("incomplete_arguments", "argument_repeated", "malformed_call")
# The latest results are cached for texts of up to this many characters.
_MAX_KEPT: Final = 65_536
_CALL_TYPES: Final = frozenset(("function", "function_call", "tool", "tool_call", "tool_use", "call"))


class TextSegment(msgspec.Struct, frozen=True):
    """Text that is not a call, and the problem of the call that it may have been."""

    text: str
    problem: Problem | None = None


class RecoveredCall(msgspec.Struct, frozen=True):
    """A call, the text it was read from with its fence or marks, and its repairs.

    `complete` is False if a value of its arguments is in doubt. They are JSON even so, and the text is in a problem,
    not in `text`.
    """

    name: str
    arguments: str
    text: str
    problems: tuple[Problem, ...] = ()
    complete: bool = True


Segment: TypeAlias = TextSegment | RecoveredCall


class _Fitted(msgspec.Struct, frozen=True):
    """A form that is good enough for a call, its arguments ready to be sent, and its text."""

    form: JsonCall
    arguments: RepairedArguments
    text: str


class _Candidate(msgspec.Struct):
    """A place and its contents: calls in order, and the problems of everything else there, with its text."""

    place: JsonPlace
    calls: list[_Fitted]
    refused: list[Problem]


def recover(text: str, tools: Toolset, *, before: str = "") -> list[Segment]:
    """The calls of a reply and the text around them, white space included, in order.

    Without a call the texts of the segments together are the whole text: the first holds all of it, and each segment
    one problem, an `ambiguous_call` for each call that may be meant.

    `before` is the earlier text of the output. Anything the model did not close is incomplete, however the reply ended.
    """
    if tools.choice == "none" or not len(tools):
        return [TextSegment(text)]
    demanded = tools.choice == "required" or isinstance(tools.choice, NamedTool)
    find = _kept_candidates if len(text) <= _MAX_KEPT else _candidates
    candidates = find(text, tools, is_blank(before), demanded)
    found = find_runs(text, [(it.place.begin, it.place.end) for it in candidates], before)
    meant = [candidates[number] for run in found.runs for number in run]
    calls = [call for candidate in meant for call in candidate.calls]
    decided = verdict(
        found,
        demanded=demanded,
        names={call.form.name for call in calls},
    )
    if decided == "certain" and calls:
        return _pieces(text, meant)
    problems = [
        problem for candidate in meant for problem in _candidate_problems(candidate, certain=decided == "certain")
    ]
    first, *others = problems or (None,)
    return [TextSegment(text, first), *(TextSegment("", problem) for problem in others)]


def shown_problems(text: str, tools: Toolset, *, before: str = "") -> list[Problem]:
    """The problems of possible calls in a text that stays text, at whatever place."""
    problems = []
    for piece in recover(text, tools, before=before):
        if isinstance(piece, RecoveredCall):
            candidate = Call(piece.name, piece.arguments)
            problems.append(Problem("ambiguous_call", f"a call of {piece.name!r} in a text", candidate=candidate))
        elif piece.problem:
            problems.append(piece.problem)
    return problems


def _candidates(text: str, tools: Toolset, alone: bool, demanded: bool) -> Sequence[_Candidate]:
    """The parts of a text that may be calls. `alone`: no text precedes it. `demanded`: the request asks for a call."""
    candidates: list[_Candidate] = []
    for place in json_places(text, whole=alone, names=tools.names):
        candidate = _candidate(place, tools, alone=alone and _is_all(text, place))
        if (candidate.calls or candidate.refused) and (demanded or not all(map(tools.is_text, place.texts))):
            candidates.append(candidate)
    if alone and _is_nothing_else(text, [candidate.place for candidate in candidates]):
        return candidates
    return [kept for candidate in candidates if (kept := _in_text(candidate, respelled=demanded))]


# A text is read several times if it may be a call of several families.
_kept_candidates = lru_cache(maxsize=4)(_candidates)


def _is_nothing_else(text: str, places: Sequence[JsonPlace]) -> bool:
    """Whether places make up a whole reply."""
    ends = [0, *(place.end for place in places)]
    begins = [*(place.begin for place in places), len(text)]
    return all(is_blank(text[end:begin]) for end, begin in zip(ends, begins, strict=True))


def _in_text(candidate: _Candidate, *, respelled: bool) -> _Candidate | None:
    """The rest of a candidate among words: only a name key with the exact name of a tool counts there.

    `respelled`: a repaired name counts, too.
    """
    if candidate.place.place == "scan" and not all(call.form.explicit for call in candidate.calls):
        return None
    if respelled:
        return candidate
    calls = [call for call in candidate.calls if call.form.exact]
    unknown = [
        Problem("unknown_tool", f"no tool is called just so; {call.form.name!r} is close", text=call.text)
        for call in candidate.calls
        if not call.form.exact
    ]
    return _Candidate(candidate.place, calls, [*candidate.refused, *unknown])


def _candidate_problems(candidate: _Candidate, *, certain: bool) -> list[Problem]:
    """The problems of a candidate that stays text. A call in doubt is not asked about: a yes would not settle it."""
    asked = [
        _doubt_problem(call.form.name, candidate.place)
        if candidate.place.doubt
        else Problem(
            "ambiguous_call",
            f"a call of {call.form.name!r} that is meant, or only shown",
            candidate=Call(call.form.name, call.arguments.text),
        )
        for call in candidate.calls
    ]
    return asked + [_without_text(problem) for problem in candidate.refused if certain or problem.kind in _UNFINISHED]


def _pieces(text: str, candidates: Sequence[_Candidate]) -> list[Segment]:
    pieces: list[Segment] = []
    at = 0
    doubt: Problem | None = None  # the problem of a call that stays text
    for candidate in candidates:
        place = candidate.place
        if not candidate.calls:
            doubt = doubt or _without_text(candidate.refused[0])
            continue
        if text[at : place.begin]:
            pieces.append(TextSegment(text[at : place.begin], doubt))
            doubt = None
        for number, call in enumerate(candidate.calls):
            if call.form.content:
                pieces.append(TextSegment(call.form.content))
            problems = [
                *(json_problems(place.repairs, odd=place.odd) if not number else []),
                *call.form.name_problems(),
            ]
            problems += step_problems(call.arguments.steps)
            refused = [problem.text for problem in candidate.refused]
            written = "" if number else without(text[place.begin : place.end], refused)
            if place.doubt:
                problems.append(_doubt_problem(call.form.name, place, written))
            kept = "" if place.doubt else written
            pieces.append(RecoveredCall(call.form.name, call.arguments.text, kept, tuple(problems), not place.doubt))
        pieces += [TextSegment("", problem) for problem in candidate.refused]
        at = place.end
    if text[at:]:
        pieces.append(TextSegment(text[at:], doubt))
    return pieces


def _without_text(problem: Problem) -> Problem:
    """A problem without the text, which stays in the answer."""
    return msgspec.structs.replace(problem, text="")


# --- the contents of a place ---


def _candidate(place: JsonPlace, tools: Toolset, *, alone: bool) -> _Candidate:
    candidate = _Candidate(place, [], [])
    nodes = _split(place, tools)
    for node, text in nodes:
        forms = find_json_calls(node, tools) or _inferred(node, tools, alone=alone) or _demanded(node, place, tools)
        own = {key for form in forms or () if (tool := tools.get(form.name)) for key in properties(tool_schema(tool))}
        if not forms or (
            any(not form.explicit for form in forms) and _is_record(node, own, alone=alone, lone=len(nodes) == 1)
        ):
            return _Candidate(place, [], [])
        for form in forms:
            judged = _judge_form(form, place, tools)
            if isinstance(judged, RepairedArguments):
                candidate.calls.append(_Fitted(form, judged, text))
            elif judged is None:
                return _Candidate(place, [], [])
            else:
                candidate.refused.append(msgspec.structs.replace(judged, text=text))
    if place.doubt and candidate.calls and not _in_arguments(place, [call.form for call in candidate.calls]):
        candidate.refused += [_doubt_problem(call.form.name, place) for call in candidate.calls]
        candidate.calls = []
    return candidate


def _demanded(node: Node, place: JsonPlace, tools: Toolset) -> list[JsonCall]:
    """An object that is the whole text as the arguments of the one tool that may be called."""
    if not (isinstance(tools.choice, NamedTool) and tools.infer_bare_arguments):
        return []
    if place.place != "whole" or node.kind != "object":
        return []
    return [JsonCall(tools.choice.name, node, explicit=False, closed=node.closed)]


def _doubt_problem(name: str, place: JsonPlace, text: str = "") -> Problem:
    """The problem of a call whose JSON is ambiguous: it must not be run."""
    kind: ProblemKind = "argument_repeated" if "repeated_key" in place.repairs else "malformed_call"
    return Problem(kind, f"a call of {name!r} that is not certain: {place.doubt}", text=text)


def _in_arguments(place: JsonPlace, forms: Sequence[JsonCall]) -> bool:
    """Whether only values of arguments are in doubt: then the tool and the parameter names are certain."""
    if not {"repeated_key", "unquoted_text"} & place.repairs.keys():
        return False
    return not _gives_twice(place.nodes, {id(form.arguments) for form in forms})


def _gives_twice(nodes: Iterable[Node], left_out: Collection[int] = ()) -> bool:
    """Whether a name has two values in any of these, but for those whose `id()` is left out."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if id(node) in left_out:
            continue
        if given_once(node.members)[1]:
            return True
        waiting += [part.value for part in (*node.members, *node.items)]
    return False


def _split(place: JsonPlace, tools: Toolset) -> list[tuple[Node, str]]:
    """The values of a place, and of a list of calls its items, each with its text."""
    found: list[tuple[Node, str]] = []
    for node, text in zip(place.nodes, place.texts, strict=True):
        items = [item.value for item in node.items]
        # An item with a name at most is a call only if the items before it are.
        is_cut = len(items) > 1 and not items[-1].closed and len(items[-1].members) < 2
        if items and not is_cut and all(find_json_calls(item, tools) for item in items):
            found += [(item, item.text()) for item in items[:-1]]
            found.append((items[-1], _text_of_last(items, text)))
        else:
            found.append((node, text))
    return found


def _text_of_last(items: Sequence[Node], text: str) -> str:
    """The text of the last item of a list. If it was cut, with a key that has no value and is no part of the tree."""
    if not items[-1].closed and len(items) > 1:
        _, before, written = text.rpartition(items[-2].text())
        if before:
            return written.lstrip(", \t\r\n")
    return items[-1].text()


def _is_record(node: Node, own: Collection[str], *, alone: bool, lone: bool) -> bool:
    """Whether an object that names a tool, without an argument key, is data that happens to contain that word.

    `own` are the parameters of the tool. `alone`: it is the whole reply. `lone`: the only one there.
    """
    given = {member.name: member.value for member in node.members}
    keys = given.keys() - own
    if not keys & {*NAME_KEYS} or not any(given[key].kind in ("string", "word") for key in keys & {*NAME_KEYS}):
        return False
    if keys & {"role", "content", "index"} or (
        "type" in keys and (node_text(given["type"]) or "").strip().lower() not in _CALL_TYPES
    ):
        return True
    return not keys & _OWN_KEYS and ("id" in keys or not alone or (not lone and len(given) == 1))


def _inferred(node: Node, tools: Toolset, *, alone: bool) -> list[JsonCall] | None:
    """A bare object of arguments that exactly one tool takes, or one under the name of its tool."""
    if not tools.infer_bare_arguments or not alone or node.kind != "object" or not node.members:
        return None
    names = {member.name for member in node.members}
    if len(node.members) == 1:
        (name,) = names
        if name in tools and not tools.declares(name) and node.members[0].value.kind == "object":
            return [JsonCall(name, node.members[0].value, explicit=True, closed=node.closed)]
    if names & {"tool", "name"} and not all(tools.declares(name) for name in names & {"tool", "name"}):
        return None
    fitting = tools_taking(node, tools)
    ruled = {rule.tool for rule in tools.hints.inference if rule.keys <= names} & set(fitting)
    fitting = list(ruled) if len(fitting) > 1 and ruled else fitting
    if isinstance(tools.choice, NamedTool) and tools.choice.name in fitting:
        fitting = [tools.choice.name]
    return [JsonCall(fitting[0], node, explicit=False, closed=node.closed)] if len(fitting) == 1 else None


def _judge_form(form: JsonCall, place: JsonPlace, tools: Toolset) -> RepairedArguments | Problem | None:
    """The arguments of a form as a call, its problem, or None if nothing shows that it is a call."""
    tool = tools.get(form.name)
    if tool is None:
        return _unknown(form, tools)
    if not form.closed:
        return Problem("incomplete_arguments", f"the output was cut in a call of {form.name!r}")
    if form.arguments is None and tools.requires_something(form.name):
        return Problem("invalid_arguments", f"a call of {form.name!r} without arguments")
    fitted = repair_and_validate(form.arguments or Node("object"), form.name, tools)
    own = properties(tool_schema(tool))
    if "ellipsis" in place.repairs or _is_placeholder(fitted.node, own):
        problem = Problem("incomplete_arguments", f"the arguments of {form.name!r} contain a placeholder")
        return problem if form.explicit else None
    if fitted.faults and not (form.explicit and fitted.is_json_object and _gives_twice([fitted.node])):
        told = "; ".join(f"{fault.path}: {fault.message}" for fault in fitted.faults[:3])
        problem = Problem("invalid_arguments", f"the arguments of {form.name!r} do not fit: {told}")
        return problem if form.explicit else None
    if form.flat and not {member.name for member in fitted.node.members} <= own.keys():
        return None
    return fitted


def _unknown(form: JsonCall, tools: Toolset) -> Problem | None:
    """The problem of a form whose name is no tool's, if it is explicit or was cut in the name."""
    if not form.explicit and not form.closed and any(name.startswith(form.name) for name in tools.names):
        return Problem("incomplete_arguments", f"the output was cut in the name of a tool: {form.name!r}")
    return Problem("unknown_tool", f"no tool is called {form.name!r}") if form.explicit else None


def _is_placeholder(arguments: Node, own: object) -> bool:
    """Whether the arguments are an example: a placeholder among them, nothing but names of types, or a schema."""
    values = [member.value for member in arguments.members]
    texts = [text for value in values if (text := node_text(value)) is not None]
    if values and len(texts) == len(values) and all(text in TYPE_NAMES for text in texts):
        return True
    names = {member.name for member in arguments.members}
    echoed = {"type", "properties"} <= names and not (isinstance(own, dict) and {"type", "properties"} & own.keys())
    return echoed or any(
        _PLACEHOLDER.match(text) or ((inside := _BRACKETED.match(text)) and fold(inside[1]) == fold(member.name))
        for member in arguments.members
        if (text := node_text(member.value)) is not None
    )


def _is_all(text: str, place: JsonPlace) -> bool:
    """Whether a place is the whole reply, but for a fence around it."""
    return place.place == "whole" or (place.place == "fence" and _is_nothing_else(text, [place]))
