"""What a short output costs: µs for a call of three short arguments, by the dialect that writes it.

    python bench/whole.py [--dialect harmony]

`begin` is a parser that is made and reads nothing; `whole` one that is told that the output is all; `fed` one that is
told so behind it. Below the dialects stand their median, the highest and the sum.
"""

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median

from callwright import Parser, dialects, write
from timing import best

_TIMES = 200
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "mode": {"type": "string"}, "keep": {"type": "integer"}},
            },
        },
    }
]
CALL = {"name": "write_file", "arguments": {"path": "notes/today.txt", "mode": "append", "keep": 3}}


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--dialect", default="", help="only this one")
    given = options.parse_args()
    print(f"{'':34}{'begin':>10}{'whole':>10}{'fed':>10}{'characters':>12}")
    rows = [row(dialect) for dialect in dialects() if given.dialect in ("", dialect)]
    if len(rows) > 1:
        for name, of in (("median", median), ("highest", max), ("sum", sum)):
            _print(f"callwright, {name}", [of(column) for column in zip(*rows, strict=True)])


def row(dialect: str) -> list[float]:
    """One line: µs, which are the answer."""
    output = write([CALL], tools=TOOLS, dialect=dialect)

    def fed() -> None:
        parser = Parser(dialect, tools=TOOLS)
        parser.feed(output)
        parser.finish()

    ways = (
        partial(Parser, dialect, tools=TOOLS),
        lambda: Parser(dialect, tools=TOOLS).finish("stop", output),
        fed,
    )
    cells = [_us(way) for way in ways]
    _print(f"callwright {dialect}", cells, f"{len(output):12}")
    return cells


def _us(act: Callable[[], object]) -> float:
    def often() -> None:
        for _ in range(_TIMES):
            act()

    act()
    return best(often, 7) / _TIMES * 1e6


def _print(name: str, cells: list[float], more: str = "") -> None:
    print(f"{name:34}" + "".join(f"{cell:10.1f}" for cell in cells) + more)


if __name__ == "__main__":
    main()
