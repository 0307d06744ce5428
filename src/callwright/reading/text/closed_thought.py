"""The calls with which a thought ends that is all of an answer. If it is closed, they are meant, because there is no
other text; if not, it may have been cut off after a draft, and they are asked about.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from callwright.events import CallStarted, Event, Problem
from callwright.free_text.recover import TextSegment, recover
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.foreign import valid_calls
from callwright.reading.text.trial import doubts, has_words
from callwright.streaming.reader import Parse, StreamReader, comes_next, read_blanks

# The most places from which a thought is read on trial, for the calls with which it ends.
_MAX_TRIED: Final = 8


def is_over(source: StreamReader, ends: tuple[str, ...]) -> Parse[bool]:
    """Whether only white space and stop tokens are left; nothing is read."""
    read: list[str] = []
    token: str | None = ""
    while token is not None:
        read += [token, (yield from read_blanks(source))]
        token = None
        for end in ends if not source.done else ():
            if (yield from comes_next(source, end)):
                token = source.take(source.at + len(end))
                break
    over = source.done
    source.unread("".join(read))
    return over


def calls_at_end(
    thought: str, last: int, tags: Collection[str], text: AnswerText, read: Callable[[str], Sequence[Event]]
) -> tuple[int, Problem | None]:
    """The position of the calls with which a thought ends, perhaps at `last`, and their problem; the length of the
    thought if other words end it. `tags` open calls, `read` reads a part of the thought.
    """
    begins = {thought.find(tag) for tag in tags} | {last, 0}
    begins |= {thought.rfind(tag) for tag in (*tags, "\n{", "\n[", "\n```")}
    broken: Problem | None = None
    for at in sorted(begins - {-1, len(thought)})[-_MAX_TRIED:]:
        events = read(thought[at:])
        calls = [event.name for event in events if isinstance(event, CallStarted)]
        if calls and not has_words(events):
            if len(valid_calls(events, text.tools)) == len(calls):
                return at, Problem("call_in_thought", "a thought ends with it, and nothing follows", text.calls)
            told = f"a thought ends with a call of {calls[0]!r} that is not valid, and nothing follows"
            broken = broken or Problem("malformed_call", told)
    return len(thought), broken


def find_doubts(
    thought: str, tags: Collection[str], text: AnswerText, read: Callable[[str], Sequence[Event]]
) -> list[Problem]:
    """The problems of the calls in a thought that is never closed, see `calls_at_end`."""
    pieces = recover(thought, text.tools, before=text.before)
    if found := [piece.problem for piece in pieces if isinstance(piece, TextSegment) and piece.problem]:
        return found
    at, broken = calls_at_end(thought, len(thought), tags, text, read)
    if at == len(thought):
        return [broken] if broken else []
    return doubts(read(thought[at:]), text.tools)
