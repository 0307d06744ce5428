"""Finds calls in free text: replies of models that were asked in words to write a call as JSON.

The form alone is no evidence. A candidate must name an offered tool and its arguments must fit; then the place
counts (a reply of its own, a fence, the end of the reply) against what speaks for an example, a quotation, a
question or a record. In doubt the text stays text: one executed example costs more than ten calls that are asked
for again.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal, TypeAlias

import msgspec

from toolwright.conversation import NamedTool
from toolwright.forms import Form, read_forms
from toolwright.jsonspan import JsonSpan
from toolwright.jsontext import NotJsonError, decode, encode
from toolwright.toolset import Toolset

__all__ = ["END_TOKENS", "JSON_TAGS", "OPENERS", "Found", "Piece", "Prose", "beside_values", "recover"]

Place: TypeAlias = Literal["whole", "fence", "marked", "scan"]

# Texts at which a call may begin, or something that must be skipped as a whole.
OPENERS: Final = ("```", "~~~", "`", "{", "[", "<tool_call>", "<|python_tag|>")
_MARKS: Final = ("<tool_call>", "[TOOL_CALLS]", "<|python_tag|>")
_CLOSING_MARKS: Final = ("</tool_call>",)
END_TOKENS: Final = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<|endoftext|>", "</s>")
JSON_TAGS: Final = frozenset(("", "json", "jsonc", "json5", "tool", "tool_call", "tool_calls", "tool_code"))

_TOKEN = re.compile(
    r"(?P<fence>^[ \t]*(?P<ticks>`{3,}|~{3,})[ \t]*(?P<tag>[\w+-]*))"
    r"|(?P<code>`+)"
    r"|(?P<mark>" + "|".join(map(re.escape, _MARKS)) + r")"
    r"|(?P<open>[{\[])",
    re.MULTILINE,
)
_TRAILING = re.compile(r"(?:\s|[}\],;]|`+|~+|" + "|".join(map(re.escape, (*END_TOKENS, *_CLOSING_MARKS))) + r")*")
_BETWEEN_VALUES = re.compile(r"[\s,;]*")
_QUOTED_LINE = re.compile(r"\s*[>|]")

# Words that speak against a call. They help in English only; form, fit and place work in every language.
_TEACHING = re.compile(
    r"\b(for example|e\.g\.|example|looks? like|would (?:send|write|call|be)|the form(?:at)? is|format|usage|syntax"
    r"|placeholder|template|could (?:send|write|call)|you can (?:send|write|call))\b",
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
_PLACEHOLDER = re.compile(r"\s*(?:\.{3}|…|<[^<>]{1,60}>|\{[^{}]{1,60}\}|\[your [^\]]*\]|YOUR_\w+)\s*\Z", re.IGNORECASE)
_TYPE_NAMES: Final = frozenset(("string", "integer", "number", "boolean", "object", "array", "null"))
_MAX_UNCLOSED = 16
_NEAR = 240  # characters of prose before a candidate that may be about it
_FAR = 2_000  # and behind it


class Prose(msgspec.Struct, frozen=True):
    """Text that is no call."""

    text: str


class Found(msgspec.Struct, frozen=True):
    """A call, and the text it was read from with its fence or marks."""

    name: str
    arguments: str
    text: str
    decoded: bool = False


Piece: TypeAlias = Prose | Found


class _Candidate(msgspec.Struct):
    begin: int
    end: int
    values: list[str]
    place: Place


def recover(text: str, tools: Toolset, *, before: str = "", cut: bool = False) -> list[Piece]:
    """The calls of a reply and the text around them, white space included, in order; one `Prose` with the whole text
    when there is no call.

    `before` is what was said already. `cut`: the reply ended because of its limit, so that its last value may go on.
    """
    choice = tools.choice
    if choice == "none" or not len(tools):
        return [Prose(text)]
    found: list[tuple[_Candidate, list[Form]]] = []
    for candidate in _candidates(text, tools, whole=not before.strip()):
        forms = _forms(candidate.values, tools, candidate.place)
        if isinstance(choice, NamedTool) and candidate.place == "whole" and not forms:
            forms = [Form(choice.name, candidate.values[0], explicit=False)]
        if forms and all(_fits(form, tools) for form in forms):
            found.append((candidate, forms))
    around = _Surroundings(text, before, [candidate for candidate, _ in found])
    calls = [entry for number, entry in enumerate(found) if _is_meant(entry[0], *around.of(number))]
    return _pieces(text, calls)


def beside_values(text: str, literal: str) -> int:
    """Where a literal stands that is no part of a JSON value; -1 when it does nowhere."""
    at = text.find(literal)
    if at < 0:
        return at
    values = [(candidate.begin, candidate.end) for candidate in _candidates(text, Toolset(), whole=False)]
    while at >= 0 and any(begin <= at < end for begin, end in values):
        at = text.find(literal, at + 1)
    return at


class _Surroundings:
    """The prose around candidates: other candidates are no prose."""

    def __init__(self, text: str, before: str, candidates: Sequence[_Candidate]) -> None:
        begins = [candidate.begin for candidate in candidates] + [len(text)]
        ends = [0] + [candidate.end for candidate in candidates]
        parts = [text[end:begin] for end, begin in zip(ends, begins, strict=True)]
        self._starts = list(accumulate(map(len, parts)))
        self._before = before
        self._prose = "".join(parts)

    def of(self, number: int) -> tuple[str, str]:
        """What stands before a candidate and behind it, as far as it is near; of the end of the reply always some."""
        at = self._starts[number]
        before = self._prose[max(0, at - _NEAR) : at]
        behind = self._prose[at : at + _FAR]
        last = self._prose[max(at + _FAR, len(self._prose) - _NEAR) :]
        return before if number else self._before + before, behind + last


def _pieces(text: str, calls: Sequence[tuple[_Candidate, list[Form]]]) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    for candidate, forms in calls:
        if text[at : candidate.begin]:
            pieces.append(Prose(text[at : candidate.begin]))
        for number, form in enumerate(forms):
            if form.content:
                pieces.append(Prose(form.content))
            whole_text = "" if number else text[candidate.begin : candidate.end]
            pieces.append(Found(form.name, form.arguments or "{}", whole_text, form.decoded))
        at = candidate.end
    if text[at:] or not pieces:
        pieces.append(Prose(text[at:]))
    return pieces


# --- candidates ---


def _candidates(text: str, tools: Toolset, *, whole: bool) -> Iterator[_Candidate]:
    """The places where JSON values stand that may be calls. Each character is read once."""
    if whole and (candidate := _whole_reply(text, tools)):
        yield candidate
        return
    at = unclosed = 0
    while found := _TOKEN.search(text, at):
        at = found.end()
        if found["fence"]:
            candidate, at, is_unclosed = _fenced(text, found, read=unclosed < _MAX_UNCLOSED)
            unclosed += is_unclosed
        elif found["code"]:
            close = text.find(found["code"], at)
            at = close + len(found["code"]) if close >= 0 else at
            continue
        else:
            begin = found.start()
            values, at = _values(text, found.end() if found["mark"] else begin)
            if not values:
                # A lone brace: what follows may still be read, but not again and again.
                unclosed += 1
                at = found.end() if unclosed < _MAX_UNCLOSED else max(at, found.end())
                continue
            place: Place = "marked" if found["mark"] else "scan"
            line = text[text.rfind("\n", 0, begin) + 1 : begin]
            if place == "scan" and _QUOTED_LINE.match(line):
                continue
            at = _closed_mark(text, at) if found["mark"] else at
            candidate = _Candidate(begin, _behind(text, at), values, place)
        if candidate:
            yield candidate


def _whole_reply(text: str, tools: Toolset) -> _Candidate | None:
    """The reply as one JSON value, or a run of them."""
    begin = len(text) - len(text.lstrip())
    if text.startswith(_MARKS, begin):
        return None
    for tag in ("json\n", "json "):  # the word of a fence whose marks were lost
        if text.startswith(tag, begin):
            begin += len(tag)
    decoded = _decoded(text[begin:])
    if decoded:
        return _Candidate(0, len(text), [decoded], "whole")
    glued = next((name for name in tools.names() if text.startswith(f"{name}{{", begin)), "")
    begin += len(glued)
    if not text.startswith(("{", "["), begin):
        return None
    values, end = _values(text, begin)
    if glued and len(values) == 1:
        values = [f'{{"name": {encode(glued).decode()}, "arguments": {values[0]}}}']
    end = _TRAILING.match(text, end).end()  # type: ignore[union-attr]  # matches always
    return _Candidate(0, len(text), values, "whole") if values and end == len(text) else None


def _decoded(text: str) -> str:
    """The JSON that a reply holds as a JSON string, or with every quote escaped; empty when it does neither."""
    text = text.strip()
    if text.startswith('{\\"'):
        text = f'"{text}"'
    try:
        inside = decode(text) if text.startswith('"') else None
    except NotJsonError:
        return ""
    return inside.strip() if isinstance(inside, str) and inside.strip()[:1] in ("{", "[") else ""


def _fenced(text: str, fence: re.Match[str], *, read: bool) -> tuple[_Candidate | None, int, bool]:
    """The JSON in a fence, where reading goes on, and whether there was JSON that is never closed.

    The fence's end is looked for behind the JSON: a file may hold fences. Unless `read`, the fence is skipped.
    """
    ticks = fence["ticks"]
    is_unclosed = False
    if read and fence["tag"].lower() in JSON_TAGS:
        values, end = _values(text, fence.end())
        if values:
            closing = re.compile(rf"\s*(?:{ticks[0]}{{3,}})?[ \t]*").match(text, end)
            end = _behind(text, closing.end() if closing else end)
            return _Candidate(fence.start(), end, values, "fence"), end, False
        is_unclosed = end > fence.end()
    close = re.compile(rf"^[ \t]*{re.escape(ticks)}[{ticks[0]}]*[ \t]*$", re.MULTILINE).search(text, fence.end())
    return None, close.end() if close else len(text), is_unclosed


def _values(text: str, at: int) -> tuple[list[str], int]:
    """The JSON values from `at` on, one behind the other, and where they end."""
    values: list[str] = []
    end = at
    while True:
        begin = _BETWEEN_VALUES.match(text, end).end()  # type: ignore[union-attr]  # matches always
        if not text.startswith(("{", "["), begin):
            return values, end
        stop, closed = JsonSpan().end(text, begin)
        if not closed:
            return values, stop if not values else end
        values.append(text[begin:stop])
        end = stop


def _behind(text: str, at: int) -> int:
    """Where a candidate ends: with the closers, fence rests and end tokens behind it when nothing else follows."""
    end = _TRAILING.match(text, at).end()  # type: ignore[union-attr]  # matches always
    return end if end == len(text) else at


def _closed_mark(text: str, at: int) -> int:
    found = re.compile(r"\s*</tool_call>").match(text, at)
    return found.end() if found else at


# --- judgement ---


def _forms(values: list[str], tools: Toolset, place: Place) -> list[Form]:
    """The calls that the values are, each of an offered tool; empty when one of them is none."""
    forms: list[Form] = []
    for value in values:
        read = read_forms(value, tools) or _inferred(value, tools, place)
        if not read or any(form.name not in tools for form in read):
            return []
        if place == "scan" and not all(form.explicit or not form.flat for form in read):
            return []
        forms += read
    return forms


def _inferred(value: str, tools: Toolset, place: Place) -> list[Form]:
    """A bare object of arguments that exactly one tool takes, or one under the name of its tool."""
    if place not in ("whole", "fence"):
        return []
    try:
        given = decode(value, dict[str, msgspec.Raw])
    except NotJsonError:
        return []
    if len(given) == 1 and place == "whole":
        (key,) = given
        if key in tools and not tools.declares(key):
            return [Form(key, bytes(given[key]).decode(), explicit=True)]
    if not given or given.keys() & {"tool", "name"}:
        return []
    fitting = tools.fitting(decode(value))
    return [Form(fitting[0], value, explicit=False)] if len(fitting) == 1 else []


def _fits(form: Form, tools: Toolset) -> bool:
    if not form.arguments:
        return not tools.requires_something(form.name)
    try:
        value = decode(form.arguments)
    except NotJsonError:
        return False
    return not tools.faults(form.name, value) and not _is_placeholder(value)


def _is_placeholder(arguments: object) -> bool:
    """Whether the arguments are an example: a placeholder among them, or nothing but names of types."""
    if not isinstance(arguments, dict) or not arguments:
        return False
    texts = [value for value in arguments.values() if isinstance(value, str)]
    types = len(texts) == len(arguments) and all(text in _TYPE_NAMES for text in texts)
    return types or any(_PLACEHOLDER.match(text) for text in texts)


def _is_meant(candidate: _Candidate, before: str, after: str) -> bool:
    """Whether the prose around a candidate leaves it a call."""
    if candidate.place == "whole":
        return True
    near = before[-_NEAR:]
    rest = after[_TRAILING.match(after).end() :].strip()  # type: ignore[union-attr]  # matches always
    if _NEGATED.search(near) or _PAST.search(near) or _QUOTED.search(near) or _TEACHING.search(near):
        return False
    if _ASKING.search(rest) or _ASKING.search(near[-120:]):
        return False
    if candidate.place == "scan" and rest:
        line_before = before.rpartition("\n")[2]
        return not line_before.strip() or not after.partition("\n")[0].strip()
    return True
