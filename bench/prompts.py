"""What a prompt costs that goes on: µs to write the prompt and the chat messages of a request of an agent, of which
all is known but the list itself.

    python bench/prompts.py [--tools 40] [--calls 40] [--dialect harmony]

`raw` is the prompt as it goes over the wire, `prompt` the chat messages of mode prompt; `raw cold` and `prompt cold`
the same of a conversation that nobody has seen. The last lines are the median and the highest of all dialects.
"""

import argparse
import json
from collections.abc import Callable
from statistics import median

import msgspec

from callwright import dialects
from callwright.conversation import Conversation
from callwright.dialects.base import get_dialect
from callwright.wire.chat.request import read_request
from fake_model import asked
from timing import best

_COLUMNS = ("raw", "raw cold", "prompt", "prompt cold")


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tools", type=int, default=40)
    options.add_argument("--calls", type=int, default=40, help="calls before, each with its output")
    options.add_argument("--dialect", default="", help="only this one")
    given = options.parse_args()
    body = json.loads(json.dumps(asked("chat", given.tools, given.calls, stream=False)))
    conversation = read_request(body).conversation
    print(f"{given.tools} tools, {given.calls} calls before, {len(json.dumps(body)):,} bytes a request")
    print(f"{'':20}" + "".join(f"{column:>14}" for column in _COLUMNS))
    rows = [row(name, conversation) for name in dialects() if given.dialect in ("", name)]
    for what, of in (("median", median), ("highest", max)):
        print_row(what, [of(column) for column in zip(*rows, strict=True)])


def row(name: str, conversation: Conversation) -> list[float]:
    """Measure one dialect, and print its line."""
    dialect = get_dialect(name)
    options = dialect.options()

    def raw(asked: Conversation) -> object:
        return dialect.render(asked, options).wire_text

    def prompt(asked: Conversation) -> object:
        return dialect.messages(asked, options)

    cells = [took(of) * 1e6 for write in (raw, prompt) for of in (known(write, conversation), new(write, conversation))]
    print_row(name, cells)
    return cells


def known(write: Callable[[Conversation], object], conversation: Conversation) -> Callable[[], Callable[[], object]]:
    """The conversation as it was before."""
    return lambda: lambda: write(conversation)


def new(write: Callable[[Conversation], object], conversation: Conversation) -> Callable[[], Callable[[], object]]:
    """The same, of new items."""

    def anew() -> Callable[[], object]:
        items = tuple([msgspec.structs.replace(item) for item in conversation.items])
        asked = msgspec.structs.replace(conversation, items=items)
        return lambda: write(asked)

    return anew


def took(prepare: Callable[[], Callable[[], object]]) -> float:
    """The least time in seconds."""
    return min(best(prepare(), 1) for _ in range(50))


def print_row(name: str, cells: list[float]) -> None:
    """One line."""
    print(f"{name:20}" + "".join(f"{cell:14.0f}" for cell in cells))


if __name__ == "__main__":
    main()
