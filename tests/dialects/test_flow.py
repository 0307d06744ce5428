r"""Text that flows: what is read in few steps is what all steps would make of it.

With `trace` no delta flows, so that is the other way. The texts are made of what matters to a reader or a check, and of
what does not: quotes, escapes, commas, closers, blanks, begins of tags, what a prompt breaks a text with.
"""

import random
from collections.abc import Iterable
from typing import Any, Final

import pytest

import callwright
from callwright import ArgumentsDelta, CallEnded, ContentDelta, Event, Markup, Parser
from callwright.calls.streaming_arguments import StreamingArguments
from callwright.calls.toolset import Toolset
from callwright.dialects.base import dialect_names
from callwright.prompt import BREAK
from callwright.reading.parser import OutputParser
from callwright.streaming.fast_path import flow_patterns
from callwright.streaming.reader import Markers, Parse, StreamReader, read_until
from callwright.tolerant_json.codec import encode_inside
from tests.support import parsing
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
# The dialects that hold the first characters of a call without a marker, which may be the record of one.
HELD: Final = ("llama3_json", "xlam")


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


def read(dialect: str, pieces: Iterable[str], *, told: bool = False, **options: Any) -> list[Event]:
    way = parsing.read_told if told else parsing.read
    return merged(way(pieces, dialect=dialect, tools=TOOLS, **options))


@pytest.mark.parametrize("check", ["repair", "verbatim"])
@pytest.mark.parametrize("dialect", dialect_names())
def test_what_flows_is_what_all_steps_make_of_it(dialect: str, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fed = slow = 0
    feed, read_slowly = OutputParser.feed, OutputParser._read

    def counted(self: OutputParser, text: str) -> list[Event]:
        nonlocal fed
        fed += 1
        return feed(self, text)

    def counted_slow(self: OutputParser, text: str) -> list[Event]:
        nonlocal slow
        slow += 1
        return read_slowly(self, text)

    monkeypatch.setattr(OutputParser, "feed", counted)
    monkeypatch.setattr(OutputParser, "_read", counted_slow)
    for seed in range(TEXTS):
        chance = random.Random(f"{dialect} {seed}")
        text = a_text(chance)
        if dialect in HELD:
            text += " of words" * 30
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
            assert read(dialect, pieces, check=check, told=True) == whole, f"{pieces}"
            assert read(dialect, output, check=check) == whole, "one by one"
            assert read(dialect, [output], check=check, told=True) == whole
    assert fed - slow > 20 * TEXTS


def test_a_text_is_certain_where_its_json_is() -> None:
    check = StreamingArguments
    of_json, _ = flow_patterns("", (), check.as_json._replace(tail=""))
    of_text, _ = flow_patterns("", (), check.as_text._replace(tail=""), is_text=True)
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


def call_of(dialect: str, *deltas: str) -> list[str]:
    """A call whose text flows and has these deltas in it, as they are."""
    arguments = {"path": "a.py", "text": "of words"}
    call = callwright.write([{"name": "save_file", "arguments": arguments}], tools=TOOLS, dialect=dialect)
    before, _, behind = call.partition("of words")
    return [*before, "wo", "rd", " by", *deltas, *behind]


ENDS: Final = {
    "half an escape before blanks": ("pythonic", call_of("pythonic", " word\\\n")),
    "half an escape before a closer": ("pythonic", call_of("pythonic", " word\\)")),
    "an edge, behind a backslash": ("hermes", ["Wo", "rd", " by", " \\d #", f"{BREAK}## word"]),
    "half of an escape, behind the escape of an edge": (
        "hermes",
        call_of("hermes", " \\u003c\\u20", "60tool_call> word"),
    ),
}


@pytest.mark.parametrize("what", ENDS)
def test_the_end_of_a_delta_is_read_with_what_follows(what: str) -> None:
    dialect, pieces = ENDS[what]
    whole = read(dialect, ["".join(pieces)])
    assert read(dialect, pieces) == whole
    assert read(dialect, pieces, trace=True) == whole


@pytest.mark.parametrize(
    ("dialect", "begun", "most"), [("hermes", [], 256), ("pythonic", call_of("pythonic")[:-4], 64)]
)
def test_no_more_blanks_are_held_than_may_be_markup(dialect: str, begun: list[str], most: int) -> None:
    parser = Parser(dialect, tools=TOOLS)
    events = [event for piece in (*begun, "wo", "rd", f" by{' ' * 300}") for event in parser.feed(piece)]
    said = "".join(event.text for event in events if isinstance(event, ContentDelta | ArgumentsDelta))
    assert said.endswith(f"word by{' ' * (300 - most)}")


def test_the_arguments_of_a_call_behind_one_that_is_withheld_flow_under_their_own_index() -> None:
    calls = [{"name": name, "arguments": {"text": "one two three"}} for name in ("first", "second")]
    shape = {"type": "object", "properties": {"text": {"type": "string"}}}
    offered = [{"type": "function", "function": {"name": call["name"], "parameters": shape}} for call in calls]
    output = callwright.write(calls, tools=offered, dialect="hermes")
    choice = {"type": "function", "function": {"name": "second"}}
    whole = callwright.parse(output, dialect="hermes", tools=offered, tool_choice=choice)
    parser = Parser("hermes", tools=offered, tool_choice=choice)
    events = [event for char in output for event in parser.feed(char)]
    said = [event for event in events if isinstance(event, ArgumentsDelta)]
    assert {event.index for event in said} == {0}
    assert "".join(event.text for event in said) == whole.calls[0].arguments


def test_what_is_held_up_to_a_marker_has_a_limit() -> None:
    found: list[tuple[str, str]] = []

    def parse(source: StreamReader) -> Parse[None]:
        found.append((yield from read_until(source, Markers("<"), 10)))

    source = StreamReader(lambda _: None)
    steps = parse(source)
    for piece in ("four", "four", "four", "four"):
        source.push(piece)
        next(steps, None)
    assert found == [("fourfourfo", "")]
