"""Reads the header of a Harmony message, however bent: who speaks, on which channel, and to whom.

It gets the text between `<|start|>` (or the prompt's `<|start|>assistant`) and `<|message|>`, control tokens
included, and judges it against the offered tools. It never fails: what makes no sense is named in `problems`.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from callwright.calls.toolset import Toolset
from callwright.dialects.harmony.tokens import CHANNEL, CHANNELS, CONSTRAIN, START
from callwright.events import ProblemKind

# Pseudo tool of OpenAI models: its body holds several calls.
PARALLEL = "multi_tool_use.parallel"

# Longer than any name that a model bends: no tool is looked for in it.
_MAX_NAME = 256

_CONTROL = re.compile(r"(<\|(?:start|end|message|channel|constrain|return|call)\|>)")
_RECIPIENT = re.compile(
    r"(?:^|(?<=[\s>])|(?<=analysis)|(?<=commentary)|(?<=final)|(?<=assistant))to=((?:[^\s<]|<(?!\|))*)"
)
_FIRST_WORD = re.compile(r"\s*((?:[^\s<]|<(?!\|))*)")
_GLUED = re.compile(rf"(?:json|code|{'|'.join(CHANNELS)})+$|[^A-Za-z0-9_.\-]")
# A header as the model was taught it: most are.
_CLEAN = re.compile(
    rf"(?P<role>assistant)?(?: to=functions\.(?P<before>[\w.-]+))?<\|channel\|>(?P<channel>{'|'.join(CHANNELS)})"
    r"(?: to=functions\.(?P<name>[\w.-]+))?(?P<type> ?<\|constrain\|>json)?\Z"
)
NO_RECIPIENT = {"assistant", "user", "all", ""}
# Content types that models glue to the channel word.
_GLUED_CHANNEL = re.compile(rf"({'|'.join(CHANNELS)})(?:json|code|to=.*)?$")


class Header(Struct, frozen=True):
    """A header as read. `name` is the tool that is called, `""` when none is; `channel` one of the three or `""`.

    `hidden`: the name is in the place of another part, so that only a body of arguments makes it a call.
    `evidence`: something in it (a content type, `<|constrain|>`) means that the body is no plain text. `noise`: it
    contains unknown words. `spaced`: the detokeniser has put a space after `<|channel|>` (LLM-jp). `role`
    is `""` for the assistant.
    """

    role: str
    channel: str
    name: str
    hidden: bool
    evidence: bool
    noise: bool
    spaced: bool
    problems: tuple[ProblemKind, ...]


class _Pieces(Struct, frozen=True):
    """A header taken apart. `words` are the channel words, `constrained` the texts after `<|constrain|>`, `leftover`
    the words that belong to nothing. `channel` may be in the place of the role. `is_malformed`: a piece occurs twice
    or where another belongs.
    """

    role: str
    channel: str
    words: list[str]
    constrained: list[str]
    leftover: list[str]
    is_malformed: bool


def read_header(text: str, tools: Toolset, *, has_role: bool) -> Header:
    """Read a header; `has_role`: it begins with the role, as after `<|start|>`."""
    clean = _clean(text, tools, has_role=has_role)
    if clean is not None:
        return clean
    pieces = _pieces(text, has_role=has_role)
    words, leftover = pieces.words, pieces.leftover
    recipients = [found for found in _RECIPIENT.finditer(text) if found[1] not in NO_RECIPIENT]
    if recipients:
        name, problems = _recipient(text, recipients, words, tools)
        if " " in name:
            leftover = leftover[-1:]
    else:
        name, problems = _hidden_recipient(words, pieces.constrained, tools)
    noise = len(leftover) > 1 or any(not word.isalnum() for word in leftover)
    if noise or pieces.is_malformed:
        problems.append("malformed_header")
    if not pieces.channel and not name and pieces.role == "":
        problems.append("unknown_channel" if any(words) else "missing_channel")
    return Header(
        role=pieces.role,
        channel=pieces.channel,
        name=name,
        hidden=bool(name) and not recipients,
        evidence=bool(pieces.constrained or leftover),
        noise=noise,
        spaced=f"{CHANNEL} " in text,
        problems=tuple(dict.fromkeys(problems)),
    )


def _clean(text: str, tools: Toolset, *, has_role: bool) -> Header | None:
    """A header as the model was taught it, if it is one."""
    clean = _CLEAN.match(text)
    if clean is None or has_role != bool(clean["role"]):
        return None
    name = clean["before"] or clean["name"] or ""
    if name and (name not in tools or (clean["before"] and clean["name"])):
        return None
    is_typed = clean["type"] is not None
    return Header("", clean["channel"], name, hidden=False, evidence=is_typed, noise=False, spaced=False, problems=())


def _pieces(text: str, *, has_role: bool) -> _Pieces:
    first, *rest = _CONTROL.split(text)
    segments = list(zip(rest[::2], rest[1::2], strict=True))
    role, channel_as_role, loose = _role(first, has_role=has_role)
    doubled = len(re.findall("assistant", first)) > (1 if has_role else 0)
    words = [_word(segment) for token, segment in segments if token == CHANNEL]
    known = [channel for word in words if (channel := _channel(word))]
    constrained = [segment for token, segment in segments if token == CONSTRAIN]
    starts = any(token == START for token, _ in segments)
    return _Pieces(
        role,
        known[-1] if known else channel_as_role,
        words,
        constrained,
        [*loose, *(word for token, segment in segments for word in _leftover(token, segment))],
        is_malformed=bool(channel_as_role) or doubled or len(constrained) > 1 or starts,
    )


def _recipient(
    text: str, recipients: Sequence[re.Match[str]], words: Sequence[str], tools: Toolset
) -> tuple[str, list[ProblemKind]]:
    """The tool that the last recipient means, and the problems of its place."""
    last = recipients[-1]
    name, bent = resolve(last[1], tools, tail=text[last.start(1) :])
    problems = [bent] if bent else []
    if len(recipients) > 1:
        problems.append("duplicate_recipient")
    elif CHANNEL in text[: last.start()] and CHANNEL in text[last.end() :]:
        problems.append("recipient_sanitized")
    elif len(words) > 1:
        problems.append("malformed_header")
    if any(words) and not any(map(_channel, words)):
        problems.append("unknown_channel")
    return name, problems


def _hidden_recipient(words: list[str], constrained: list[str], tools: Toolset) -> tuple[str, list[ProblemKind]]:
    """The tool of a header without a recipient, if its name is where another thing belongs, and the problems of it."""
    name, kind = _hidden_name(words, constrained, tools)
    problems = [kind] if kind else []
    if not name and len(words) > 1:
        is_stray = _channel(words[0]) == "commentary" and len(set(words)) > 1
        problems.append("stray_header_prefix" if is_stray else "malformed_header")
    return name, problems


def resolve(written: str, tools: Toolset, *, tail: str = "") -> tuple[str, ProblemKind | None]:
    """The tool that a written recipient means, and how it was bent; an unknown name without its `functions.`.

    `tail` is the header from the recipient on: a name with blanks continues after the first word.
    """
    bare = written.removeprefix("functions.")
    for exact in (bare, written):
        if exact in tools:
            return exact, None
    rest = tail.removeprefix("functions.")
    with_blanks = [name for name in tools.names if " " in name and rest.startswith(name)]
    if with_blanks:
        return max(with_blanks, key=len), "recipient_sanitized"
    if bare == PARALLEL or len(bare) > _MAX_NAME:
        return bare, None
    if glued := _glued(bare, tools):
        return glued, "recipient_sanitized"
    _, dot, last = bare.partition(".")
    while dot:
        if last in tools:
            return last, "namespace_stripped"
        if glued := _glued(last, tools):
            return glued, "recipient_sanitized"
        _, dot, last = last.partition(".")
    return bare, None


def _glued(text: str, tools: Toolset) -> str:
    """The longest offered name that `text` begins with, if the rest cannot belong to a name."""
    names = (*tools.names, PARALLEL)
    fitting = [name for name in names if text.startswith(name) and _GLUED.match(text[len(name) :])]
    return max(fitting, key=len, default="")


def _role(first: str, *, has_role: bool) -> tuple[str, str, list[str]]:
    """Role (`""` = assistant), a channel word in its place, and loose words, from the part before any
    token.
    """
    words = _RECIPIENT.sub("", first).split()
    named = bool(words) and (has_role or words[0].startswith("assistant") or words[0] in CHANNELS)
    role = words[0].partition(":")[0] if named else ""
    rest = words[1:] if named else words
    while role.startswith("assistant"):
        role = role.removeprefix("assistant")
    if role in CHANNELS:
        return "", role, rest
    return role, "", rest


def _word(segment: str) -> str:
    found = _FIRST_WORD.match(segment)
    return found[1] if found else ""


def _channel(word: str) -> str:
    found = _GLUED_CHANNEL.match(word.lower())
    return found[1] if found else ""


def _leftover(token: str, segment: str) -> list[str]:
    """The words of a segment that are neither its own word nor a recipient: a content type, or noise."""
    words = _RECIPIENT.sub(" ", segment).split()
    return words[1:] if token in (CHANNEL, CONSTRAIN) and not segment.lstrip().startswith("to=") else words


def _hidden_name(words: list[str], constrained: list[str], tools: Toolset) -> tuple[str, ProblemKind | None]:
    """A tool's name in the place of another part: after `<|constrain|>`, or as a channel."""
    places: tuple[tuple[list[str], ProblemKind], ...] = (
        ([_word(segment) for segment in constrained], "recipient_from_constrain"),
        ([word for word in words if not _channel(word)], "recipient_from_channel"),
    )
    for candidates, kind in places:
        for word in candidates:
            name, _ = resolve(word, tools)
            if word and (name in tools or word.startswith("functions.")):
                return name, kind
    return "", None
