"""Restrictions of OpenAI on a regular expression, checked part by part: escapes, classes, groups, repetitions.

The syntax is that of Rust's `regex` crate, always for the whole text. The engine refuses invalid expressions; this
module finds features that it silently accepts (lazy repetition, verbose mode) and those that it refuses without a
place. The meaning of an expression is not known here.

Source: OpenAI's guide to custom tools; https://docs.rs/regex, November 2026.
"""

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

_Kind: TypeAlias = Literal["open", "flags", "close", "or", "repetition", "escape", "class", "broken", "character"]


class RegexFault(NamedTuple):
    """A fault `at` an offset of the expression, and the correction."""

    at: int
    fault: str
    way_out: str


class _Part(NamedTuple):
    kind: _Kind
    at: int
    text: str
    group: re.Match[str] | None = None


_ESCAPE: Final = re.compile(r"\\(?:[pP]\{[^}]*\}|[pP].|[xuU]\{[^}]*\}|b\{[^}]*\}|.)", re.DOTALL)
_GROUP: Final = re.compile(
    r"\((?:\?(?:"
    r"(?P<look><?[=!])|(?P<atomic>>)|(?P<conditional>\()|(?P<comment>\#)|(?P<back>P=)|P?<[^>]*>"
    r"|(?P<flags>[A-Za-z]*)(?:-[A-Za-z]*)?(?P<end>[:)])"
    r"))?"
)
_REPETITION: Final = re.compile(r"(?:[*+?]|\{[^{}]*\})\??")
# The engine needs 1 GB for 100,000 characters, each of them optional; at this limit 70 MB.
_MAX_CHARACTERS: Final = 20_000
_LINE_BREAK: Final = re.compile(r"[\r\n]")

_LOOKS: Final = {"=": "lookahead", "!": "negative lookahead", "<=": "lookbehind", "<!": "negative lookbehind"}
_FLAGS: Final = {
    "m": ("many lines", "An expression matches the whole text; write line feeds as \\n."),
    "U": ("greed swapped", "Leave it out: what a repetition takes first makes no difference here."),
    "x": ("verbose", "Write the expression on one line, without white space and comments."),
}


def regex_fault(pattern: str, flags: str = "") -> RegexFault | None:
    """The first part of an expression that is refused. `flags` are those after the slashes in a Lark grammar."""
    if broken := _LINE_BREAK.search(pattern):
        return RegexFault(broken.start(), "line break in a regular expression", "Write it as \\n or \\r, on one line.")
    if len(pattern) > _MAX_CHARACTERS:
        too_long = f"regular expression of {len(pattern):,} characters is too long"
        return RegexFault(0, too_long, f"One may have {_MAX_CHARACTERS:,}; a terminal may be made of several.")
    anchors = _Anchors()
    for part in _parts(pattern):
        if fault := _of_part(part) or anchors.read(part):
            return fault
    return _of_flags(flags, len(pattern) + 1)


def _parts(pattern: str) -> Iterator[_Part]:
    at = 0
    while at < len(pattern):
        part = _part(pattern, at)
        yield part
        at += len(part.text)


def _part(pattern: str, at: int) -> _Part:
    mark = pattern[at]
    if mark == "(":
        group = _GROUP.match(pattern, at)
        assert group is not None  # the bracket is enough for a match
        return _Part("flags" if group["end"] == ")" else "open", at, group[0], group)
    if mark == "\\":
        escape = _ESCAPE.match(pattern, at)
        return _Part("escape", at, escape[0]) if escape else _Part("broken", at, mark)
    if mark == "[":
        end = _class_end(pattern, at)
        return _Part("broken", at, mark) if end is None else _Part("class", at, pattern[at:end])
    if repetition := _REPETITION.match(pattern, at):
        return _Part("repetition", at, repetition[0])
    return _Part("close" if mark == ")" else "or" if mark == "|" else "character", at, mark)


def _class_end(pattern: str, at: int) -> int | None:
    """The offset after the bracket that closes the class at this place; classes may be nested."""
    depth = 0
    while at < len(pattern):
        mark = pattern[at]
        at += 2 if mark == "\\" else 1
        if mark == "[":
            depth += 1
            at += pattern.startswith("^", at)
            dashes = at
            while pattern.startswith("-", at):
                at += 1
            at += at == dashes and pattern.startswith("]", at)  # a first ] is a character
        elif mark == "]":
            depth -= 1
            if not depth:
                return at
    return None


class _Branch:
    """The alternative that is read, in its group."""

    __slots__ = ("before", "consumed", "consumes", "end", "ends", "first")

    def __init__(self, first: bool, before: _Part | None) -> None:
        self.first = first  # nothing precedes the group
        self.before = before  # an end of the text that precedes it
        self.consumes = False  # something in the alternative takes characters
        self.consumed = False  # or in one before it
        self.end: _Part | None = None  # an end of the text in the alternative
        self.ends: _Part | None = None  # or in one before it


class _Anchors:
    """Finds anchors inside of the text.

    Anchors are accepted if nothing can be beyond them, in alternatives and groups too (`^a|^b`, `(^|,)a`), because the
    engine does so: it ignores them.
    """

    def __init__(self) -> None:
        self._branches = [_Branch(first=True, before=None)]

    def read(self, part: _Part) -> RegexFault | None:
        branch = self._branches[-1]
        if part.kind == "open":
            self._branches.append(_Branch(branch.first and not branch.consumes, branch.end or branch.before))
        elif part.kind == "or":
            branch.consumes, branch.consumed = False, branch.consumes or branch.consumed
            branch.end, branch.ends = None, branch.end or branch.ends
        elif part.kind == "close":
            if len(self._branches) == 1:
                return RegexFault(part.at, "')' without '('", "Write \\) for the character.")
            self._branches.pop()
            outer = self._branches[-1]
            outer.consumes = outer.consumes or branch.consumes or branch.consumed
            outer.end = branch.end or branch.ends or outer.end
        elif part.text in ("^", "\\A"):
            if branch.consumes or not branch.first:
                return _inside(part, "start")
        elif part.text in ("$", "\\z"):
            branch.end = part
        elif part.kind in ("escape", "class", "character"):
            if passed := branch.end or branch.before:
                return _inside(passed, "end")
            branch.consumes = True
        return None


def _inside(anchor: _Part, where: str) -> RegexFault:
    return RegexFault(
        anchor.at,
        f"'{anchor.text}' is not at the {where} of the expression",
        f"An expression matches the whole text without it; write \\{anchor.text[-1]} for the character."
        if anchor.kind == "character"
        else "Leave it out: an expression matches the whole text.",
    )


def _of_part(part: _Part) -> RegexFault | None:
    if part.kind == "broken":
        if part.text == "[":
            return RegexFault(part.at, "class '[' is not closed", "Close it with ], or write \\[ for the character.")
        return RegexFault(part.at, "'\\' at the end of a regular expression", "Write \\\\ for the character.")
    if part.kind == "escape":
        return _of_escape(part)
    if part.kind == "repetition":
        return _of_repetition(part)
    return _of_group(part, part.group) if part.group else None


def _of_escape(part: _Part) -> RegexFault | None:
    name = part.text[1]
    if name in "bB<>":
        way_out = "Describe the text next to the word with a class or another rule."
        return _unsupported(part, "word boundary", way_out)
    if name in "0123456789kg":
        return _unsupported(part, "back-reference", "Write the expression again in its place.")
    if name == "Z":
        return _unsupported(part, "anchor", "Leave it out: an expression matches the whole text.")
    return None


def _of_repetition(part: _Part) -> RegexFault | None:
    if not part.text[1:].endswith("?"):
        return None
    way_out = f"Write {part.text[:-1]}, and let a class leave out what ends the text: [^>]* instead of .*?."
    return _unsupported(part, "lazy repetition", way_out)


def _of_group(part: _Part, group: re.Match[str]) -> RegexFault | None:
    if group["look"]:
        way_out = "Describe the text that may be there in the expression or in another rule."
        return _unsupported(part, _LOOKS[group["look"]], way_out)
    if group["atomic"]:
        return _unsupported(part, "atomic group", "Write (?: instead: nothing is ever matched twice.")
    if group["conditional"]:
        return _unsupported(part, "conditional group", "Write its cases as alternatives.")
    if group["comment"]:
        return _unsupported(part, "comment", "Leave it out.")
    if group["back"]:
        return _unsupported(part, "back-reference", "Write the expression again in its place.")
    return _of_flags(group["flags"] or "", part.at + 2)


def _of_flags(flags: str, at: int) -> RegexFault | None:
    for offset, flag in enumerate(flags):
        if flag in _FLAGS:
            what, way_out = _FLAGS[flag]
            return RegexFault(at + offset, f"flag '{flag}' ({what}) is not supported", way_out)
    return None


def _unsupported(part: _Part, what: str, way_out: str) -> RegexFault:
    return RegexFault(part.at, f"{what} '{part.text}' is not supported in a regular expression", way_out)
