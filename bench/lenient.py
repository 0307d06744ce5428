"""What tolerant JSON costs: µs for each 4-character piece as it streams, and milliseconds for the whole text.

    python bench/lenient.py [--sizes 1,10,100,1000]

The text is an argument object with one string of code, or with many small objects; valid, and broken (single quotes
around the keys, a comma too many at the end). `stream` feeds 4-character pieces: ours emits strict JSON as it goes, the
others parse all that came so far again with every piece, which is how they are used; where that would take more than
some seconds the cell is empty. `whole` reads the text at once. One process, best of some runs. The last column is the
time for the largest size over that for a tenth of it.
"""

import argparse
import json
import time
from collections.abc import Callable
from contextlib import suppress

import jiter
import json_repair
import partial_json_parser

from callwright import loads
from callwright.calls.streaming_arguments import StreamingArguments
from callwright.calls.toolset import Toolset
from callwright.openai_format.tools import read_tools
from timing import best

CODE = 'def add(a, b):\n    """Adds; isn\'t it?"""\n    return {"sum": [a + b], "<ok>": True}\n'
TOOLS = read_tools(
    [
        {
            "type": "function",
            "function": {
                "name": "save_file",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "text": {"type": "string"},
                        "rows": {
                            "type": "array",
                            "items": {"type": "object", "properties": {"id": {"type": "integer"}}},
                        },
                    },
                },
            },
        }
    ]
)
PIECE = 4
_TOO_LONG_S = 4.0


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", default="1,10,100,1000", help="KB, with commas")
    given = options.parse_args()
    sizes = [int(size) * 1000 for size in given.sizes.split(",")]
    for title, make in (("a string of code", code), ("small objects", objects)):
        for broken in (False, True):
            print(f"\n{title}, {'broken' if broken else 'valid'}")
            print(f"  {'':30}" + "".join(f"{f'{size // 1000} KB':>11}" for size in sizes) + f"{'growth':>9}")
            texts = [make(size, broken=broken) for size in sizes]
            row("stream: callwright, µs", texts, stream_ours, per_piece=True)
            if not broken:
                row(
                    "stream: jiter, µs",
                    texts,
                    again(lambda text: jiter.from_json(text.encode(), partial_mode="trailing-strings")),
                    per_piece=True,
                )
                row("stream: partial-json-parser, µs", texts, again(partial_json_parser.loads), per_piece=True)
            row("stream: json-repair, µs", texts, again(json_repair.loads), per_piece=True)
            row("whole: callwright, ms", texts, loads)
            row("whole: json-repair, ms", texts, json_repair.loads)
            if not broken:
                row("whole: json, ms", texts, json.loads)


def code(size: int, *, broken: bool) -> str:
    """An object with one long string."""
    return spoiled(json.dumps({"path": "sum.py", "text": (CODE * (size // len(CODE) + 1))[:size]}), broken=broken)


def objects(size: int, *, broken: bool) -> str:
    """An object with a list of many small ones."""
    row_text = {"id": 12345, "name": "north bed", "ok": True}
    count = size // len(json.dumps(row_text)) + 1
    return spoiled(json.dumps({"path": "rows.json", "rows": [row_text] * count}), broken=broken)


def spoiled(text: str, *, broken: bool) -> str:
    """The text, or one with two faults at its ends."""
    return "{'path'" + text[len('{"path"') : -1] + ",}" if broken else text


def stream_ours(text: str) -> None:
    """Strict arguments as they stream, repaired and coerced."""
    live = StreamingArguments("save_file", Toolset(TOOLS))
    for at in range(0, len(text), PIECE):
        live.feed(text[at : at + PIECE])
    live.finish(cut=False)
    assert live.complete


def again(read: Callable[[str], object]) -> Callable[[str], None]:
    """A reader that is given all that came so far with every piece; it fails as it may."""

    def run(text: str) -> None:
        started = time.perf_counter()
        for at in range(PIECE, len(text) + PIECE, PIECE):
            with suppress(Exception):  # a peer's own
                read(text[:at])
            if time.perf_counter() - started > _TOO_LONG_S:
                raise TimeoutError

    return run


def row(name: str, texts: list[str], run: Callable[[str], object], *, per_piece: bool = False) -> None:
    """One line."""
    cells: list[str] = []
    totals: list[float] = []
    for text in texts:
        try:
            total = best(lambda text=text: run(text), 5 if len(text) < 50_000 else 1)  # type: ignore[misc]
        except (TimeoutError, RecursionError):
            break
        totals.append(total)
        cells.append(f"{total / (len(text) / PIECE) * 1e6:11.2f}" if per_piece else f"{total * 1e3:11.3f}")
    growth = f"{totals[-1] / totals[-2]:8.1f}x" if len(totals) == len(texts) > 1 else ""
    print(
        f"  {name:30}" + "".join(f"{cell:>11}" for cell in cells + ["-"] * (len(texts) - len(cells))) + growth,
        flush=True,
    )


if __name__ == "__main__":
    main()
