"""The right one of 10, 50 and 200 tools: all of them listed, and a search in their place.

    python bench/many_tools.py MODEL.gguf [--cases 20] [--dialect hermes] [--tokens 96]

Each case asks for one call of a tool among similar ones; `tool_choice` is `required`, and there are no retries. Prints
the results of `callwright eval`, with the tokens of prompts and answers. A prompt that is too long for the model's
window is an error, and counts as a wrong answer.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

SIZES: Final = (10, 50, 200)
VERBS: Final = {
    "archive": "Archives",
    "cancel": "Cancels",
    "copy": "Copies",
    "create": "Creates",
    "delete": "Deletes",
    "export": "Exports",
    "find": "Finds",
    "lock": "Locks",
    "print": "Prints",
    "rename": "Renames",
    "restore": "Restores",
    "share": "Shares",
    "translate": "Translates",
    "update": "Updates",
}
THINGS: Final = (
    *("album", "booking", "branch", "budget", "calendar", "contract", "customer", "device", "email", "folder"),
    *("invoice", "lesson", "meeting", "order", "recipe", "report", "shipment", "ticket"),
)
WAYS: Final = ("{Verb} the {thing} {id}.", "Could you {verb} the {thing} with the id {id}, please?")


def tool(verb: str, thing: str) -> dict[str, Any]:
    """What does it to one thing."""
    key = f"{thing}_id"
    parameters = {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
    about = f"{VERBS[verb]} one {thing} of the user."
    return {"type": "function", "function": {"name": f"{verb}_{thing}", "description": about, "parameters": parameters}}


def cases(size: int, count: int) -> Iterator[dict[str, Any]]:
    """Cases with so many tools."""
    random = Random(size)
    pairs = [(verb, thing) for verb in VERBS for thing in THINGS]
    for number in range(count):
        offered = random.sample(pairs, size)
        verb, thing = random.choice(offered)
        id_ = f"{thing[0].upper()}{random.randrange(100, 1000)}"
        words = random.choice(WAYS).format(verb=verb, Verb=verb.capitalize(), thing=thing, id=id_)
        yield {
            "id": f"{size:03}/{number:03}",
            "group": f"{size} tools",
            "messages": [{"role": "user", "content": words}],
            "tools": [tool(*pair) for pair in offered],
            "tool_choice": "required",
            "must": {"calls": [{"name": f"{verb}_{thing}", "arguments": {f"{thing}_id": id_}}]},
        }


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--dialect", default="hermes")
    parser.add_argument("--tokens", type=int, default=96)
    given = parser.parse_args()
    way = f"raw:{given.dialect}+retries=0"
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            file = Path(folder) / f"{size}.jsonl"
            file.write_text("\n".join(json.dumps(case) for case in cases(size, given.cases)))
            command = [sys.executable, "-m", "callwright", "eval", given.model, "--cases", str(file), "--json"]
            command += ["--way", way, "--way", f"{way}+defer_tools_above=0", "--field", f"max_tokens={given.tokens}"]
            command += ["--field", "temperature=0", "--at-once", "1", "--out", str(Path(folder) / str(size))]
            found = subprocess.run(command, capture_output=True, text=True, check=False)
            if not found.stdout:
                raise SystemExit(found.stderr)
            for row in json.loads(found.stdout)["ways"]:
                kind = "search" if "defer" in row["way"] else "listed"
                print(f"{size:4} tools, {kind}: {json.dumps(row)}", flush=True)


if __name__ == "__main__":
    main()
