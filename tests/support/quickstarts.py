"""Follows the quickstarts as a reader does, and prints what each takes: `scripts/quickstarts`.

For each page: the commands that a reader types, the programs to write, the seconds until the last one is done, and what
did not run here, with the reason on the page.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.paths import ROOT
from tests.support.snippets import Block, Reader, blocks_of, is_there, needed, role_of

PAGES = ("coding-agent", "repair-calls", "clean-jsonl", "mcp-agent")


def main() -> None:
    """Print one line for each page, and the blocks that did not run."""
    print(f"{'quickstart':14}{'commands':>10}{'programs':>10}{'seconds':>9}")
    failed = False
    for name in PAGES:
        blocks = blocks_of((ROOT / "docs" / "start" / f"{name}.md").read_text(encoding="utf-8"))
        commands = sum(len(_commands(block)) for block in blocks if block.language in ("sh", "bash"))
        programs = sum("file" in block.said or block.language == "python" for block in blocks)
        begin, fault = time.monotonic(), ""
        with TemporaryDirectory() as folder, Reader(Path(folder)) as reader:
            try:
                reader.follow(blocks)
            except AssertionError as error:
                fault, failed = str(error), True
        print(f"{name:14}{commands:10}{programs:10}{time.monotonic() - begin:9.1f}")
        for block in blocks:
            if role_of(block, None) == "not run":
                print(f"  line {block.line} did not run: {block.said['not run']}")
            elif missing := [name for name in needed(block) if not is_there(name)]:
                print(f"  line {block.line} did not run: it needs {', '.join(missing)}")
        if fault:
            print(f"  {fault}")
    sys.exit(failed)


def _commands(block: Block) -> list[str]:
    """The commands of a block: lines, of which one that ends in a backslash continues in the next."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


if __name__ == "__main__":
    main()
