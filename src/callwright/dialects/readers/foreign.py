"""Calls in the markup of another model family than the one that is read: models write what they saw in training.

Only openings that mean nothing else are known here, each with the dialects that write it. What is read counts if it is
a call of an offered tool, by its exact name, with arguments that hold as they stand.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from callwright.calls.toolset import Toolset
from callwright.dialects.base import get_dialect
from callwright.dialects.readers.trial import fitted_calls
from callwright.events import ArgumentsDelta, CallEnded, CallStarted, ContentDelta, Event, Problem
from callwright.stream_reader import StreamReader
from callwright.tolerant_json.markers import MARKS

__all__ = [
    "FOREIGN",
    "HEADED",
    "OPENINGS",
    "ForeignCalls",
    "WholeText",
    "counted_from",
    "foreign_to",
    "headers",
    "read_as",
    "read_foreign",
    "valid_calls",
]

# By the opening of a call or of a block of calls: the dialects that write it, the likelier first.
OPENINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "<TOOLCALL>": ("nemotron_nano_v2",),
    "<atem:function_calls>": ("muse",),
    "<dots_function_call>": ("dots",),
    '<function name="': ("minicpm5",),
    "<function=": ("qwen3_coder", "functionary_v31"),
    "<function_call>": ("granite_20b_fc",),
    "<function_calls>": ("olmo3",),
    "<ifm|tool_calls>": ("k2_horizon",),
    "<iquest_tool_call>": ("iquest_q1",),
    "<longcat_tool_call>": ("longcat",),
    "<minimax:tool_call>": ("minimax_m2",),
    "<seed:tool_call>": ("seed_oss",),
    "<start_function_call>": ("functiongemma",),
    "<tool_call>": ("hermes", "qwen3_coder", "glm45"),
    "<tool_calls>": ("hy_v3", "jamba"),
    "<|START_ACTION|>": ("cohere_command",),
    "<|action_start|>": ("internlm2",),
    "<|channel|>": ("harmony",),
    "<|content_invoke_tool_json|>": ("inkling",),
    "<|function_call|>": ("gigachat3",),
    "<|open|>": ("kimi_k3",),
    "<|plamo:begin_tool_requests:plamo|>": ("plamo3",),
    "<|python_tag|>": ("llama3_json", "pythonic"),
    "<|tool_call>": ("gemma4",),
    "<|tool_call|>": ("granite",),
    "<|tool_call:start|>": ("solar_open2",),
    "<|tool_call_begin|>": ("kimi_k2",),
    "<|tool_call_start|>": ("lfm2",),
    "<|tool_calls_section_begin|>": ("kimi_k2",),
    "<|tools_prefix|>": ("apertus",),
    "<｜DSML｜ calls>": ("deepseek_v41",),
    "<｜DSML｜function_calls>": ("deepseek_v32",),
    "<｜DSML｜tool_calls>": ("deepseek_v4",),
    "<｜GCML｜tool_calls>": ("gigachat35",),
    "<｜tool_calls_begin｜>": ("step3",),
    "<｜tool▁call▁begin｜>": ("deepseek_v31", "deepseek_v3"),
    "<｜tool▁calls▁begin｜>": ("deepseek_v31", "deepseek_v3"),
    "[TOOL_CALLS]": ("mistral_v11", "mistral_v3"),
    "]<]minimax[>[": ("minimax_m3",),
    "functools[": ("phi4_mini",),
}


# The dialects in which an answer may begin with a header that names the tool, and forms of it.
HEADED: Final = ("inkling", "muse", "beam", "harmony")
# Of texts of up to so many characters it is kept what was read last.
_MAX_KEPT: Final = 65_536
_HEADERS: Final = ("{}<|", "to={}<|", "to=functions.{}<|")

# Openings of calls that other families write, or any.
FOREIGN: Final = tuple(dict.fromkeys((*MARKS, *OPENINGS)))


@lru_cache(maxsize=64)
def headers(names: tuple[str, ...]) -> tuple[str, ...]:
    """How an answer may begin with the header of a call of one of these tools."""
    return tuple(header.format(name) for name in names for header in _HEADERS)


def foreign_to(tags: tuple[str, ...]) -> list[str]:
    """The openings of calls that are none of a format's own tags, and no longer or shorter form of one."""
    return [mark for mark in FOREIGN if not any(mark.startswith(tag) or tag.startswith(mark) for tag in tags)]


class ForeignCalls(msgspec.Struct, frozen=True):
    """The calls of a text as events, the dialect they were written in, and the text behind them."""

    dialect: str
    events: Sequence[Event]
    behind: str


def read_foreign(text: str, dialects: Sequence[str], tools: Toolset) -> ForeignCalls | None:
    """The calls with which a text begins, in the first of these dialects that reads some; None if none does."""
    return (_kept if len(text) <= _MAX_KEPT else _first_that_reads)(text, tuple(dialects), tools)


def _first_that_reads(text: str, dialects: tuple[str, ...], tools: Toolset) -> ForeignCalls | None:
    for name in dialects:
        try:
            events = read_as(text, name, "assistant", tools, _refuse_problems)
        except _NotMeantError:
            continue
        if _holds(events, tools):
            behind = "".join(event.text for event in events if isinstance(event, ContentDelta))
            calls = [event for event in events if not isinstance(event, ContentDelta)]
            return ForeignCalls(name, calls, behind)
    return None


# What was read on trial is read again when it is known what it is.
_kept = lru_cache(maxsize=4)(_first_that_reads)


class _NotMeantError(Exception):
    """Something is wrong with a text in the format that it is read in: it is none of that."""


def _refuse_problems(event: Event) -> None:
    if isinstance(event, Problem):
        raise _NotMeantError


class WholeText(StreamReader):
    """A text that is read as one format only: nothing foreign is looked for in it."""

    __slots__ = ()


def read_as(
    text: str, dialect: str, start: str, tools: Toolset, watch: Callable[[Event], None] | None = None
) -> list[Event]:
    """The events of a whole text, read in this dialect. `watch` sees each as it comes, and may end it by raising."""
    events: list[Event] = []

    def watched(event: Event) -> None:
        assert watch is not None
        watch(event)
        events.append(event)

    source = WholeText(watched if watch else events.append)
    source.push(text)
    source.end()
    for _ in get_dialect(dialect).parse(source, start, tools):
        raise AssertionError("the text is all there")
    return events


def _holds(events: Sequence[Event], tools: Toolset) -> bool:
    """Whether there are calls, all of which hold."""
    calls = sum(isinstance(event, CallStarted) for event in events)
    return calls > 0 and len(valid_calls(events, tools)) == calls


def counted_from(events: Iterable[Event], first: int) -> Iterator[Event]:
    """Events whose calls are counted from 0, counted from `first`."""
    for event in events:
        if isinstance(event, CallStarted | ArgumentsDelta | CallEnded):
            yield msgspec.structs.replace(event, index=first + event.index)
        else:
            yield event


def valid_calls(events: Iterable[Event], tools: Toolset) -> list[int]:
    """The indices of the calls that are whole, of offered tools by their exact names, and valid after repair."""
    return [index for index, _, fitted in fitted_calls(events, tools) if fitted and not fitted.faults]
