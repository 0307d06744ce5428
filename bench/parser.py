"""What reading costs: µs for each 4-character piece of a call with one long string argument.

    python bench/parser.py [--sizes 1,10,100,1000] [--dialect harmony]

Each dialect reads the call that it writes itself. Rows that begin with `template` read the call of a dialect by a
declared `response_template` (`--dialect response_template` for these only). Beside them, on the same Harmony text, the
StreamableParser of the Harmony library (package oss-harmony, Rust) reads tokens, polled for channel, recipient and
delta as a server must. One process, best of some runs: the ratios are what counts. `median` is that of the single
pieces at 10 KB (of the library: of its tokens), the others are means with begin and end of the call. The last column is
the time for the largest size over that for a tenth of it. Below the dialects stand their median and the highest.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from callwright import Parser, ResponseTemplate, dialects, write
from timing import best

CODE = 'def add(a, b):\n    """Adds; isn\'t it?"""\n    return {"sum": [a + b], "<ok>": True}\n'
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "save_file",
            "description": "Saves a file.",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
                "required": ["path", "text"],
            },
        },
    }
]
PIECE = 4
_MEDIAN_OF = 10_000


class Reading(NamedTuple):
    """One output to be read: its pieces, or tokens, and how many pieces of our size they are."""

    pieces: Sequence[Any]
    size: int
    reader: Callable[[], Callable[[Any], object]]


_OBJECT = {"type": "function", "function": "{content}"}
_NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
_INLINE = {
    "open_pattern": r"\s*<tool_call>\s*<function=(?P<name>[^>\n]+)>",
    "close_pattern": r"</function>\s*</tool_call>",
    "content": "xml-inline",
    "transform": _NAMED,
}
# A dialect that writes the call, and how a checkpoint declares its calls: arguments that flow, and such as must be
# searched as a whole.
DECLARED = {
    "JSON in tags": (
        "hermes",
        {"open": "<tool_call>", "close": "</tool_call>", "content": "json", "transform": _OBJECT},
    ),
    "JSON, regex": (
        "hermes",
        {"open": "<tool_call>", "close_pattern": "</tool_call>(?:\\s|$)", "content": "json", "transform": _OBJECT},
    ),
    "notation": (
        "gemma4",
        {
            "open_pattern": r"<\|tool_call>call:(?P<name>\w+)",
            "close": "<tool_call|>",
            "content": "json",
            "content_args": {"unquoted_keys": True, "string_delims": [['<|"|>', '<|"|>']]},
            "transform": _NAMED,
        },
    ),
    "tags": (
        "qwen3_coder",
        {
            **_INLINE,
            "content_args": {"tag_pattern": r"<parameter=(?P<key>[^>\n]+)>\s*(?P<value>.*?)\s*</parameter>"},
        },
    ),
    "tags held": (
        "qwen3_coder",
        {
            **_INLINE,
            "content_args": {"tag_pattern": r"<parameter=(?P<key>[^>\n]+)>\s*(?P<value>.+?)\s*</parameter>"},
        },
    ),
}


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", default="1,10,100,1000", help="KB of argument text, with commas")
    options.add_argument("--dialect", default="", help="only this one")
    given = options.parse_args()
    sizes = [int(size) * 1000 for size in given.sizes.split(",")]
    print(f"{'':34}{'median':>10}" + "".join(f"{f'{size // 1000} KB':>10}" for size in sizes) + f"{'growth':>10}")
    rows = [
        row(f"callwright {dialect}", sizes, partial(_ours, dialect))
        for dialect in dialects()
        if given.dialect in ("", dialect)
    ]
    if len(rows) > 1:
        for what, of in (("median", median), ("highest", max)):
            print_row(f"callwright, {what}", [of(column) for column in zip(*rows, strict=True)])
    if given.dialect in ("", "response_template"):
        for name, (dialect, field) in DECLARED.items():
            template = ResponseTemplate({"start_anchor": "A:", "fields": {"tool_calls": field, "content": {}}})
            row(f"template, {name}", sizes, partial(_ours, dialect, template=template))
    if given.dialect in ("", "harmony"):
        row("oss-harmony StreamableParser", sizes, _harmony_library())


def row(name: str, sizes: list[int], prepare: Callable[[int], Reading]) -> list[float]:
    """One line: µs a piece, the median and the mean at each size, which are the answer, and how the total grows."""
    totals = []
    cells = [_median(prepare(_MEDIAN_OF)) * 1e6]
    for size in sizes:
        reading = prepare(size)
        totals.append(best(lambda: _read(reading), 20 if size < 50_000 else 3))  # noqa: B023  # called at once
        cells.append(totals[-1] / reading.size * 1e6)
    growth = f"{totals[-1] / totals[-2]:9.1f}x" if len(totals) > 1 else ""
    print_row(name, cells, growth)
    return cells


def print_row(name: str, cells: list[float], growth: str = "") -> None:
    """One line."""
    print(f"{name:34}" + "".join(f"{cell:10.2f}" for cell in cells) + growth)


def _read(reading: Reading) -> None:
    feed = reading.reader()
    for piece in reading.pieces:
        feed(piece)


def _median(reading: Reading) -> float:
    """The median over the pieces of the best time of each."""
    times = [float("inf")] * len(reading.pieces)
    clock = time.perf_counter
    for _ in range(20):
        feed = reading.reader()
        for number, piece in enumerate(reading.pieces):
            begin = clock()
            feed(piece)
            took = clock() - begin
            if took < times[number]:
                times[number] = took
    return median(times)


def call_text(dialect: str, size: int) -> str:
    """A call whose text argument has about `size` characters."""
    text = (CODE * (size // len(CODE) + 1))[:size]
    return write([{"name": "save_file", "arguments": {"path": "sum.py", "text": text}}], tools=TOOLS, dialect=dialect)


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def _ours(dialect: str, size: int, template: ResponseTemplate | None = None) -> Reading:
    pieces = _pieces(call_text(dialect, size))

    def reader() -> Callable[[str], object]:
        parser = Parser(template or dialect, tools=TOOLS)
        return lambda piece: parser.feed(piece) if piece else parser.finish()

    return Reading([*pieces, ""], len(pieces), reader)


def _harmony_library() -> Callable[[int], Reading]:
    import openai_harmony

    encoding = openai_harmony.load_harmony_encoding(openai_harmony.HarmonyEncodingName.HARMONY_GPT_OSS)

    def prepare(size: int) -> Reading:
        text = call_text("harmony", size)

        def reader() -> Callable[[int], object]:
            parser = openai_harmony.StreamableParser(encoding, openai_harmony.Role.ASSISTANT)

            def read(token: int) -> object:
                parser.process(token)
                return parser.current_channel, parser.current_recipient, parser.last_content_delta

            return read

        # Per piece of our size, so that the rows compare.
        return Reading(encoding.encode(text, allowed_special="all"), len(_pieces(text)), reader)

    return prepare


if __name__ == "__main__":
    main()
