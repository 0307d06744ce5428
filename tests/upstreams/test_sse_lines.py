"""Server-sent events as the HTML standard has them, in every way that they can be cut."""

from collections.abc import Iterable

import pytest

from callwright.upstreams.sse_lines import ErrorData, SseLines, TooLongLineError

A, B = b'{"a": 1}', b'{"b": 2}'
FORMS: dict[str, tuple[bytes, list[bytes]]] = {
    "line feeds": (b"data: {A}\n\ndata: {B}\n\n", [A, B]),
    "carriage returns": (b"data: {A}\r\rdata: {B}\r\r", [A, B]),
    "both": (b"data: {A}\r\n\r\ndata: {B}\r\n\r\n", [A, B]),
    "mixed": (b"data: {A}\r\n\ndata: {B}\n\r", [A, B]),
    "mixed, the other way": (b"data: {A}\n\r\ndata: {B}\r\r\n", [A, B]),
    "a byte order mark": (b"\xef\xbb\xbfdata: {A}\n\ndata: {B}\n\n", [A, B]),
    "a byte order mark before a comment": (b"\xef\xbb\xbf: hi\n\ndata: {A}\n\n", [A]),
    "a byte order mark later": (b"data: {A}\n\n\xef\xbb\xbfdata: {B}\n\n", [A]),
    "several lines": (b'data: {"a":\ndata: 1}\n\ndata: {B}\n\n', [b'{"a":\n1}', B]),
    "several lines, one empty": (b'data: {"a":\ndata:\ndata: 1}\n\n', [b'{"a":\n\n1}']),
    "indented": (b'data: {\ndata:   "a": {"b": 2}\ndata: }\n\n', [b'{\n"a": {"b": 2}\n}']),
    "no empty line between": (b"data: {A}\ndata: {B}\n", [A, B]),
    "comments": (b": hi\ndata: {A}\n:\n\n:\n\ndata: {B}\n\n", [A, B]),
    "other fields": (b"id: 7\nretry: 10\nevent: message\ndata: {A}\nid\n\nfoo: bar\ndata: {B}\n\n", [A, B]),
    "no space": (b"data:{A}\n\ndata:{B}\n\n", [A, B]),
    "no data": (b"data:\n\ndata\n\nevent: ping\n\ndata: {A}\n\n", [A]),
    "no empty line at the end": (b"data: {A}\n\ndata: {B}", [A, B]),
    "the end mark": (b"data: {A}\n\ndata: [DONE]\n\ndata: {B}\n\n", [A]),
    "the end mark without an empty line before": (b"data: {A}\ndata: [DONE]\ndata: {B}\n\n", [A]),
    "an empty stream": (b"", []),
}


def filled(form: str) -> tuple[bytes, list[bytes]]:
    written, expected = FORMS[form]
    return written.replace(b"{A}", A).replace(b"{B}", B), expected


def read(*chunks: bytes) -> list[bytes]:
    lines = SseLines()
    events = [event for chunk in chunks for event in lines.feed(chunk)]
    return events + lines.finish()


@pytest.mark.parametrize("form", FORMS)
def test_events_are_read_in_every_form(form: str) -> None:
    written, expected = filled(form)
    assert read(written) == expected


@pytest.mark.parametrize("form", FORMS)
def test_and_cut_anywhere(form: str) -> None:
    written, expected = filled(form)
    assert read(*(bytes([byte]) for byte in written)) == expected
    for at in range(len(written)):
        assert read(written[:at], written[at:]) == expected


def test_an_event_comes_as_soon_as_its_empty_line_has_begun() -> None:
    lines = SseLines()
    assert lines.feed(b"data: {}\r\n\r") == [b"{}"]
    assert lines.held == 0


def test_the_end_mark_ends_the_stream_at_once() -> None:
    lines = SseLines()
    assert lines.feed(b"data: {}\n\ndata: [DONE]\n") == [b"{}"]
    assert lines.is_over


def test_an_event_of_the_type_error_is_one() -> None:
    data = read(b"event: error\ndata: {}\n\ndata: {}\n\n")
    assert [isinstance(event, ErrorData) for event in data] == [True, False]


@pytest.mark.parametrize("line", [b"data: x", b"data: x\n", b": x"])
def test_an_event_is_bounded_whatever_it_is_made_of(line: bytes) -> None:
    def fed() -> None:
        lines = SseLines(most=1_000)
        for _ in range(1_100):
            lines.feed(line)

    with pytest.raises(TooLongLineError, match="more than 1,000 bytes"):
        fed()


@pytest.mark.parametrize("line", [b'data: "%b"\n\n', b'data: "%b"\n', b'data: "%b"', b'data: "%b\ndata: %b"\n\n'])
def test_of_an_event_that_is_too_large_what_came_before_is_told_in_every_cut(line: bytes) -> None:
    size = 1_001 // line.count(b"%b")
    written = b"data: {A}\n\ndata: {B}\n\n".replace(b"{A}", A).replace(b"{B}", B) + line.replace(b"%b", b"x" * size)
    for at in (1, len(A), 40, 500, len(written)):
        lines, told = SseLines(most=1_000), list[bytes]()
        pieces = (written[begin : begin + at] for begin in range(0, len(written), at))
        with pytest.raises(TooLongLineError) as error:
            told.extend(event for piece in pieces for event in lines.feed(piece))
        assert told + error.value.before == [A, B]


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"], ids=["line feeds", "both"])
@pytest.mark.parametrize(
    "line", [b"data: %b", b": %b", b"\xef\xbb\xbfdata: %b", b"data: {}\ndata: %b", b"event: %b"], ids=bytes.hex
)
def test_what_is_too_large_is_so_in_every_cut(line: bytes, end: bytes) -> None:
    """The data of an event so far and the line that follows, as it is written, are together no more than the bound."""
    for size in range(80, 101):
        written = line.replace(b"%b", b"x" * size) + end
        whole, *cut = (
            outcome(written[begin : begin + at] for begin in range(0, len(written), at))
            for at in (len(written), 1, 7, len(written) - len(end), len(written) - 1)
        )
        assert cut == [whole] * len(cut), size


def outcome(pieces: Iterable[bytes]) -> tuple[list[bytes], bytes | None]:
    """The data that was read, and what is shown of an event that is too large."""
    lines, told = SseLines(most=100), list[bytes]()
    try:
        for piece in pieces:
            told += lines.feed(piece)
    except TooLongLineError as error:
        return told + error.before, error.shown
    return told, None


def test_behind_the_end_mark_nothing_is_too_large() -> None:
    lines = SseLines(most=100)
    assert lines.feed(b"data: {}\n\ndata: [DONE]\n\n: " + b"x" * 1_000) == [b"{}"]
    assert lines.feed(b"x" * 1_000) == []


@pytest.mark.parametrize("end", [b"[", b"[DO", b"[DONE"])
def test_half_an_end_mark_is_no_event(end: bytes) -> None:
    assert read(b"data: {}\n\ndata: " + end) == [b"{}"]


@pytest.mark.parametrize("line", [b"x\n", b": a comment\n", b"data:\n", b"data: x\n\n"])
def test_what_is_over_counts_no_more(line: bytes) -> None:
    lines = SseLines(most=100)
    for _ in range(1_000):
        lines.feed(line)
