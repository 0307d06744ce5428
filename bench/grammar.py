"""What a grammar costs before the first token: ms to make it for N tools of five parameters, and its size.

    python bench/grammar.py [--tools 1,50,200] [--dialects harmony,hermes,qwen3_coder]

`key` is what every request costs on the event loop, `shape` finds out how the dialect writes calls of these tools; the
others write it for one engine each. `compile` is llguidance reading its Lark, which happens on a server that has it.

Then, for a whole turn in mode raw whose server answers at once: ms to its first event without a grammar, with one that
is made already (`warm`), and with one that has to be made (`cold`).
"""

import argparse
import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from llguidance import LLMatcher

from callwright.constraints.compile import constraint_key
from callwright.constraints.constraint import Constraint
from callwright.constraints.gbnf_writer import gbnf
from callwright.constraints.lark import lark
from callwright.constraints.shape import sentence, shape_of
from callwright.constraints.structural_tag import structural_tag
from callwright.conversation import AssistantTurn, Call, Conversation, FunctionTool, Message, TextPart
from callwright.dialects.base import get_dialect
from callwright.tolerant_json.codec import decode, encode
from callwright.turn.model import Model
from callwright.turn.plan import build_generation_request
from callwright.turn.run import run_turn
from callwright.upstreams.completions import CompletionsUpstream
from timing import best

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
    print(f"\n{'ms to the first event':24}{'without':>9}{'warm':>9}{'added':>9}{'cold':>9}")
    for dialect in given.dialects.split(","):
        for count in map(int, given.tools.split(",")):
            turn_row(dialect, count)


def row(dialect: str, count: int) -> None:
    """One line."""
    constraint = Constraint(dialect, tuple(map(tool, range(count))))
    shape = shape_of(constraint)
    assert shape is not None, f"{dialect} has no shape"
    node = sentence(shape)
    assert node is not None
    grammar = lark(node)
    steps: tuple[Callable[[], object], ...] = (
        lambda: constraint_key(constraint),
        lambda: sentence(shape_of(constraint) or shape),
        lambda: encode(structural_tag(node)),
        lambda: gbnf(node),
        lambda: lark(node),
        lambda: LLMatcher.validate_grammar(grammar),
    )
    cells = "".join(f"{best(step, 5) * 1000:9.2f}" for step in steps)
    sizes = f"{len(encode(structural_tag(node))) / 1000:9.1f}{len(gbnf(node).grammar) / 1000:9.1f}"
    print(f"{f'{dialect}, {count} tools':24}{cells}{sizes}")


class Instant(CompletionsUpstream):
    """A server that answers one call at once, without a network. What it would be sent is encoded all the same."""

    def __init__(self, text: str) -> None:
        super().__init__("http://localhost/v1", flavour="vllm")
        self._text = text

    async def events(
        self, path: str, body: Mapping[str, Any], reader: Any, *_: object, **__: object
    ) -> AsyncGenerator[list[Any], None]:
        """The whole text, then the end."""
        encode(body)
        for choice in ({"text": self._text}, {"finish_reason": "stop"}):
            deltas: list[Any] = []
            reader.read(decode(encode({"choices": [choice]}), reader.kind), deltas)
            yield deltas


def turn_row(dialect: str, count: int) -> None:
    """One line."""
    tools = tuple(map(tool, range(count)))
    conversation = Conversation((Message("user", (TextPart("Read a."),)),), tools, tool_choice="required")
    call = Call("tool_0", '{"path": "a", "mode": "read"}')
    written = get_dialect(dialect).write(AssistantTurn(None, None, [call]))
    free = Model("m", Instant(written), "m", mode="raw", dialect=dialect, constrain=False)
    prefill = getattr(build_generation_request(free, conversation, {}, "2026-01-15").prompt, "prefill", "")
    text = written.removeprefix(prefill)
    free, held = (Model("m", Instant(text), "m", mode="raw", dialect=dialect, constrain=on) for on in (False, True))
    with asyncio.Runner() as runner:

        def first(model: Model) -> Callable[[], object]:
            return lambda: runner.run(_first_event(model, conversation))

        cold = best(first(held), 1)
        without, warm = best(first(free), 30), best(first(held), 30)
    cells = "".join(f"{seconds * 1000:9.2f}" for seconds in (without, warm, warm - without, cold))
    print(f"{f'{dialect}, {count} tools':24}{cells}")


async def _first_event(model: Model, conversation: Conversation) -> None:
    async with aclosing(run_turn(model, conversation, {}, today="2026-01-15")) as events:
        async for _ in events:
            return


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
