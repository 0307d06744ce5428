"""How much of a prompt a server reads again, from one request of a conversation to the next, by dialect.

    python -m bench.prefix [DIALECT …]

The conversation is that of a coding agent on Anthropic's API: a tool is found in the middle of the work, results come
out of order, system messages stand behind the user's. `as it stands` puts the tools that a request has into the list of
tools, by their names as the client does, and leaves earlier reasoning out, as chat templates do; `here` is what this
gateway renders. Both are shares of the characters of the earlier prompts that do not stand at the begin of the later
ones.
"""

import sys
from itertools import pairwise

from msgspec.structs import replace

from callwright.conversation import Conversation, FunctionTool
from callwright.dialects.base import dialect_names
from callwright.turn.model import Model
from callwright.turn.plan import build_generation_request
from callwright.upstreams.simulated.model import SimulatedUpstream
from tests.support.following_requests import conversations

_TODAY = "2026-11-23"


def main() -> None:
    """Print the table, and what is the mean of it."""
    names = sys.argv[1:] or list(dialect_names())
    asked = conversations("messages")
    plain = [replace(each, tools=_sorted(each), shown_tools=None, keeps_reasoning=False) for each in asked]
    print(f"{'dialect':<22}{'as it stands':>14}{'here':>8}")
    rows = [(again(name, plain), again(name, asked)) for name in names]
    for name, (before, here) in zip(names, rows, strict=True):
        print(f"{name:<22}{before:>13.1%}{here:>8.1%}")
    means = [sum(row[n] for row in rows) / len(rows) for n in (0, 1)]
    print(f"{'all':<22}{means[0]:>13.1%}{means[1]:>8.1%}")


def again(dialect: str, asked: list[Conversation]) -> float:
    """The share of earlier prompts that is read again."""
    model = Model("m", SimulatedUpstream(), "m", mode="raw", dialect=dialect)
    prompts = [build_generation_request(model, each, {}, _TODAY).prompt for each in asked]
    texts = [prompt.text for prompt in prompts if prompt is not None]
    lost = sum(len(before) - _shared(before, after) for before, after in pairwise(texts))
    return lost / sum(map(len, texts[:-1]))


def _sorted(conversation: Conversation) -> tuple[FunctionTool, ...]:
    return tuple(sorted(conversation.tools, key=lambda tool: tool.name.lower()))


def _shared(before: str, after: str) -> int:
    return next((n for n, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), len(before))


if __name__ == "__main__":
    main()
