"""Which tool each part of a request is for.

The words decide: those of the tool's name, of what its description begins with, of its parameters and their values.
Long descriptions go on with advice, which would fit any request.
"""

import re
from collections.abc import Sequence
from typing import Final

from callwright.conversation import FunctionTool
from callwright.upstreams.simulated.arguments import is_all_named
from callwright.upstreams.simulated.spans import quoted, spans
from callwright.upstreams.simulated.words import meaning, meanings, name_words, words

__all__ = ["demanded_first", "known_words", "score", "tasks"]

_ENOUGH: Final = 2  # a word of the tool's name, or two of its description
_NAME_WORTH: Final = 3
_VERB_WORTH: Final = 2
_MEMBER_WORTH: Final = 2
_SHORT: Final = 3  # each word of so short a description counts
_SHORT_WORTH: Final = 2
_VERBS: Final = meanings("create make new delete update edit search list send run execute read write open add".split())
_CONJUNCTION = re.compile(r"(?:[.;!?]\s+|,?\s+and\s+then\s+|,?\s+then\s+|,?\s+and\s+(?:also\s+)?|,\s+)", re.IGNORECASE)
_BEGIN_WORTH: Final = 2  # a request that begins with the word with which the description does
_FILE: Final = meaning("file")
# What the words of a first sentence are: up to a full stop or an empty line.
_FIRST_SENTENCE = re.compile(r".*?(?:[.!?](?=\s)|\n\s*\n|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"[^.;!?\n]+")
_MUST = re.compile(r"\b(?:must|need to|have to|required?|always)\b", re.IGNORECASE)
_BEFORE = re.compile(r"\b(?:before|first)\b", re.IGNORECASE)
_MAX_SENTENCE: Final = 1_000
_AFTER = re.compile(r"\bthen\b", re.IGNORECASE)


def tasks(tools: Sequence[FunctionTool], asked: str) -> list[tuple[FunctionTool, str]]:
    """The parts of a request with the tool for each. What is for no other tool belongs to the part before it; what is
    to be done then (`…, then …`) is a part of its own.
    """
    found: list[tuple[FunctionTool, int]] = []
    texts = quoted(asked)
    cuts = [cut for cut in _CONJUNCTION.finditer(asked) if not any(s.start <= cut.start() < s.end for s in texts)]
    begin = 0
    after = False
    for cut in (*cuts, None):
        tool = _best(tools, asked[begin : cut.start() if cut else len(asked)])
        if tool is not None and (not found or after or tool is not found[-1][0]):
            found.append((tool, begin if found else 0))
        if cut:
            begin, after = cut.end(), _AFTER.search(cut[0]) is not None
    if len(found) < 2:  # the whole says more than its parts
        whole = _best(tools, asked) or next((tool for tool in tools if _takes(tool, asked)), None)
        return [(whole, asked)] if whole is not None else []
    ends = [*(begin for _, begin in found[1:]), len(asked)]
    parts: list[tuple[FunctionTool, str]] = []
    file = ""
    for (tool, start), end in zip(found, ends, strict=True):
        part = asked[start:end]
        if files := _files(part):
            file = files[-1]
        elif file and _needs_file(tool):  # the one that was spoken of
            part = f"{part} in {file}"
        parts.append((tool, part))
    return parts


def demanded_first(tool: FunctionTool, tools: Sequence[FunctionTool]) -> FunctionTool | None:
    """The tool that has to be called before another, by that one's description: `You must Read the file before …`."""
    sentences = _SENTENCE.findall(tool.description or "")
    demands = [said for said in sentences if _MUST.search(said) and _BEFORE.search(said)]
    named = {name for said in demands for name in re.findall(r"\w+", said.lower())}
    return next((other for other in tools if other is not tool and other.name.lower() in named), None)


def known_words(tool: FunctionTool) -> frozenset[str]:
    """What the words mean with which a tool is called: they only say that it is wanted."""
    return meanings([*name_words(tool.name), *words(_about(tool))])


def score(tool: FunctionTool, asked: str) -> int:
    """How well a tool suits a request."""
    return _worth(tool, *_meant(asked))


def _about(tool: FunctionTool) -> str:
    """What a description says first."""
    found = _FIRST_SENTENCE.match((tool.description or "")[:_MAX_SENTENCE])
    return found[0] if found else ""


def _files(asked: str) -> list[str]:
    return [span.text for span in spans(asked) if span.kind == "path"]


def _needs_file(tool: FunctionTool) -> bool:
    required = (tool.parameters or {}).get("required")
    return any(_FILE in meanings(name_words(str(key))) for key in required or ())


def _best(tools: Sequence[FunctionTool], asked: str) -> FunctionTool | None:
    """The tool whose names and description share most words with a text; None where none shares enough."""
    meant = _meant(asked)
    tool = max(tools, key=lambda tool: _worth(tool, *meant))
    return tool if _worth(tool, *meant) >= _ENOUGH else None


def _takes(tool: FunctionTool, asked: str) -> bool:
    """Whether a text has all that a tool needs, though it says nothing of the tool itself."""
    return tool.parameters is not None and is_all_named(tool.parameters, asked)


def _meant(asked: str) -> tuple[frozenset[str], str, frozenset[str]]:
    """What the words of a request mean, its first word, and the texts that it quotes: these are values, and say nothing
    of a tool unless they are its name.
    """
    texts = quoted(asked)
    plain = asked
    for span in reversed(texts):
        plain = f"{plain[: span.start]} {plain[span.end :]}"
    said = words(plain)
    about = meanings(said, about=True)
    first = meaning(said[0]) if said else ""
    return about | {_FILE} if _files(asked) else about, first, frozenset(span.text for span in texts)


def _worth(tool: FunctionTool, said: frozenset[str], first: str, texts: frozenset[str]) -> int:
    name = meanings(name_words(tool.name))
    worth = sum(_VERB_WORTH if word in _VERBS and len(name) > 1 else _NAME_WORTH for word in name & said)
    parameters, members = _parameter_words(tool)
    about = words(_about(tool))
    told = meanings(about) - name
    worth += len(told & said) * (_SHORT_WORTH if len(told) <= _SHORT else 1)
    worth += _BEGIN_WORTH * bool(first in told and about and first == meaning(about[0]))
    worth += _NAME_WORTH * (tool.name in texts)
    return worth + len((parameters - told - name) & said) + _MEMBER_WORTH * len((members - name) & said)


def _parameter_words(tool: FunctionTool) -> tuple[frozenset[str], frozenset[str]]:
    """What the names of the parameters mean, and what the values mean that they may have."""
    properties = (tool.parameters or {}).get("properties")
    if not isinstance(properties, dict):
        return frozenset(), frozenset()
    members = [str(m) for part in properties.values() if isinstance(part, dict) for m in part.get("enum") or ()]
    return (
        meanings(word for key in properties for word in name_words(key)),
        meanings(word for member in members for word in name_words(member) or [member]),
    )
