"""What a grammar costs before the first token: ms to make it for N tools of five parameters, and its size.

    python bench/grammar.py [--tools 1,50,200] [--dialects harmony,hermes,qwen3_coder]

`key` is what every request costs on the event loop, `shape` finds out how the dialect writes calls of these tools; the
others write it for one engine each. `compile` is llguidance reading its Lark, which happens on a server that has it.
"""

import argparse
from collections.abc import Callable

from llguidance import LLMatcher

from timing import best
from toolwright.constraint.compile import key_of
from toolwright.constraint.gbnf import gbnf
from toolwright.constraint.lark import lark
from toolwright.constraint.shape import Constraint, sentence, shape_of
from toolwright.constraint.structural_tag import structural_tag
from toolwright.conversation import FunctionTool
from toolwright.jsontext import encode

STEPS = ("key", "shape", "tag", "gbnf", "lark", "compile")


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tools", default="1,50,200", help="numbers of tools, with commas")
    options.add_argument("--dialects", default="harmony,hermes,qwen3_coder", help="with commas")
    given = options.parse_args()
    print(f"{'ms':24}" + "".join(f"{step:>9}" for step in STEPS) + f"{'tag kB':>9}{'gbnf kB':>9}")
    for dialect in given.dialects.split(","):
        for count in map(int, given.tools.split(",")):
            row(dialect, count)


def row(dialect: str, count: int) -> None:
    """One line."""
    constraint = Constraint(dialect, tuple(map(tool, range(count))))
    shape = shape_of(constraint)
    assert shape is not None, f"{dialect} has no shape"
    node = sentence(shape)
    assert node is not None
    grammar = lark(node)
    steps: tuple[Callable[[], object], ...] = (
        lambda: key_of(constraint),
        lambda: sentence(shape_of(constraint) or shape),
        lambda: encode(structural_tag(node)),
        lambda: gbnf(node),
        lambda: lark(node),
        lambda: LLMatcher.validate_grammar(grammar),
    )
    cells = "".join(f"{best(step, 5) * 1000:9.2f}" for step in steps)
    sizes = f"{len(encode(structural_tag(node))) / 1000:9.1f}{len(gbnf(node).grammar) / 1000:9.1f}"
    print(f"{f'{dialect}, {count} tools':24}{cells}{sizes}")


def tool(number: int) -> FunctionTool:
    """A tool as they are: texts, a number, an enum, a list."""
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where."},
            "text": {"type": "string", "description": "What."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
            "mode": {"type": "string", "enum": ["read", "write", "append"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["path", "mode"],
        "additionalProperties": False,
    }
    return FunctionTool(f"tool_{number}", "Does something.", schema)


if __name__ == "__main__":
    main()
