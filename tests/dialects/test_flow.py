r"""Text that flows: what is read in few steps is what all steps would make of it.

With `trace` no delta flows, so that is the other way. The texts are made of what matters to a reader or a check, and of
what does not: quotes, escapes, commas, closers, blanks, begins of tags, what a prompt breaks a text with.
"""

import random
from collections.abc import Iterable
from typing import Any, Final

import pytest

import callwright
from callwright import CallEnded, ContentDelta, Event, Markup, Parser
from callwright.calls.streaming_arguments import StreamingArguments
from callwright.calls.toolset import Toolset
from callwright.dialects.base import dialect_names
from callwright.parser import _certain, _Flow
from callwright.prompt import BREAK
from callwright.tolerant_json.codec import encode_inside
from tests.support.cases import tools
from tests.support.examples import share
from tests.support.parsing import merged

ATOMS: Final = (
    *("word", "wo", "rd ", "  ", " ", "\n", "\r\n", "\t", "é", "漢字", "\x07", "\ud83d", "0"),
    *('"', "'", '\\"', "\\", "\\n", "\\u2060", "\\u003c", ",", ", ", '", "', '", "path": "', "b=", '"""'),
    *("}", "]", ")", "})]", '"}', "{", "[", "(", ":", "<", "</", "<|", "|>", "<tool_call>", "</parameter>", "｜"),
    *(BREAK, f"<{BREAK}", f"[{BREAK}"),
)
TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": "save_file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
                "required": ["path", "text"],
            },
        },
    }
]
TEXTS: Final = share(20)


def a_text(chance: random.Random) -> str:
    usual = chance.random() < 0.5
    return "".join(
        chance.choice(("word", "rd ", "of") if usual and chance.random() < 0.8 else ATOMS)
        for _ in range(chance.randrange(1, 40))
    )


def cut(chance: random.Random, output: str) -> list[str]:
    most = chance.choice((2, 5, 9, 40))
    pieces: list[str] = []
    at = 0
    while at < len(output):
        end = at + chance.randrange(1, most)
        pieces.append(output[at:end])
        at = end
    return pieces


def read(dialect: str, pieces: Iterable[str], **options: Any) -> list[Event]:
    parser = Parser(dialect, tools=TOOLS, **options)
    events: list[Event] = []
    for piece in pieces:
        events += parser.feed(piece)
    return merged(events + parser.finish())


@pytest.mark.parametrize("check", ["repair", "verbatim"])
@pytest.mark.parametrize("dialect", dialect_names())
def test_what_flows_is_what_all_steps_make_of_it(dialect: str, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flowed = 0
    feed = _Flow.feed

    def counted(self: _Flow, text: str) -> list[Event] | None:
        nonlocal flowed
        events = feed(self, text)
        flowed += events is not None
        return events

    monkeypatch.setattr(_Flow, "feed", counted)
    for seed in range(TEXTS):
        chance = random.Random(f"{dialect} {seed}")
        text = a_text(chance)
        try:
            call = callwright.write(
                [{"name": "save_file", "arguments": {"path": "a.py", "text": text}}], tools=TOOLS, dialect=dialect
            )
        except callwright.RequestError:
            continue  # no text that the format can write
        # As it is written; and where nobody has escaped, or closed, what the model said.
        said = f"Word by word.{a_text(chance) if seed % 3 == 2 else ''}\n\n{call}"
        broken = [call, call.replace(encode_inside(text), text), call[: chance.randrange(len(call))], said]
        for output in broken:
            whole = read(dialect, [output], check=check)
            pieces = cut(chance, output)
            assert read(dialect, pieces, check=check) == whole, f"{pieces}"
            assert read(dialect, pieces, check=check, trace=True) == whole, f"{pieces}"
            assert read(dialect, output, check=check) == whole, "one by one"
    assert flowed > 20 * TEXTS


def test_a_text_is_certain_where_its_json_is() -> None:
    of_json = _certain("", "", StreamingArguments.matters, StreamingArguments.certain)
    of_text = _certain("", "", StreamingArguments.matters, StreamingArguments.certain_text)
    passed = 0
    for seed in range(2_000):
        chance = random.Random(seed)
        text = "".join(chance.choice(ATOMS) for _ in range(chance.randrange(1, 5)))
        if of_text(text):
            passed += 1
            assert of_json(encode_inside(text)) or "\\u00" in encode_inside(text), repr(text)
            arguments = StreamingArguments("save_file", Toolset(()))
            assert arguments.feed('{"text": "x')
            assert arguments.flows
            assert arguments.feed(encode_inside(text)) == encode_inside(text), repr(text)
            assert arguments.flows
    assert passed > 200


@pytest.mark.parametrize("dialect", dialect_names())
def test_the_blanks_before_a_text_behind_a_call_go_out_before_it(dialect: str) -> None:
    call = callwright.write([{"name": "ping", "arguments": {}}], tools=tools("ping"), dialect=dialect)
    parser = Parser(dialect, tools=tools("ping"), start="message")
    events: list[Event] = []
    for piece in f"Before.{call} \n \n Text behind it.":
        events += parser.feed(piece)
    events += parser.finish()
    ended = [number for number, event in enumerate(events) if isinstance(event, CallEnded)]
    behind = events[ended[-1] :] if ended else []
    texts = [number for number, event in enumerate(behind) if isinstance(event, ContentDelta)]
    assert not any(isinstance(event, Markup) for event in (behind[texts[0] : texts[-1]] if texts else ()))
