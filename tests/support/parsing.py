"""What every reading of an output must hold, whatever the output is."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from callwright import (
    ArgumentsDelta,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    Markup,
    Parser,
    Problem,
    ReasoningDelta,
)

_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')


def read(pieces: Iterable[str], finish: str = "stop", **request: Any) -> list[Event]:
    """The events of an output in pieces."""
    parser = Parser(request.pop("dialect"), **request)
    return _fed(parser, pieces) + parser.finish(finish)  # type: ignore[arg-type]


def read_told(pieces: Iterable[str], finish: str = "stop", **request: Any) -> list[Event]:
    """The same where the last piece comes as the last."""
    parser = Parser(request.pop("dialect"), **request)
    *first, last = list(pieces) or [""]
    return _fed(parser, first) + parser.finish(finish, last)  # type: ignore[arg-type]


def _fed(parser: Parser, pieces: Iterable[str]) -> list[Event]:
    events: list[Event] = []
    for piece in pieces:
        events += parser.feed(piece)
    return events


def merged(events: Iterable[Event]) -> list[Event]:
    """The events with neighbouring deltas joined: what is left does not depend on how the stream was cut.

    Structure is joined over what stands between, because a delta may or may not wait for it.
    """
    out: list[Event] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, Markup):
            continue
        if isinstance(event, ContentDelta) and isinstance(last, ContentDelta):
            out[-1] = ContentDelta(last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            out[-1] = ReasoningDelta(last.text + event.text)
        elif isinstance(event, ArgumentsDelta) and isinstance(last, ArgumentsDelta) and event.index == last.index:
            out[-1] = ArgumentsDelta(last.index, last.text + event.text)
        else:
            out.append(event)
    return out


def pieces(text: str, seed: int) -> Iterator[str]:
    """The text in random pieces."""
    chance = random.Random(seed)
    at = 0
    while at < len(text):
        size = chance.choice((1, 2, 3, 5, 8, 21))
        yield text[at : at + size]
        at += size


def lost(output: str, events: Iterable[Event]) -> Counter[str]:
    """The characters of an output that stand in no event; names of calls were written, too.

    What was written as text stands in arguments as a JSON string, and where they were cut in a problem.
    """
    told: Counter[str] = Counter()
    arguments = ""
    for event in events:
        match event:
            case ArgumentsDelta(_, text) | Problem(text=text):
                arguments += text
            case ContentDelta(text) | ReasoningDelta(text) | Markup(text):
                told.update(text)
            case CallStarted() | Finished():
                pass
    return Counter(output) - told - (Counter(arguments) | Counter(_ESCAPE.sub(_unescaped, arguments)))


def _unescaped(escape: re.Match[str]) -> str:
    return str(json.loads(f'"{escape.group()}"'))
