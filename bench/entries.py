"""The work that recorded requests take, as counts that no machine changes: how many functions of ours are entered, in
how many files, how many tasks are made, and how many bytes of JSON are read and written.

    .venv/bin/python bench/entries.py                           the table
    .venv/bin/python bench/entries.py --walk "native whole"     each function that is entered, in order, with its file
    .venv/bin/python bench/entries.py --most "native whole"     the functions that are entered most
    .venv/bin/python bench/entries.py --json                    what tests/gateway/test_work.py holds

See `recorded.py` for the requests.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from json_bytes import count_json

if TYPE_CHECKING:
    from recorded import Work


def main() -> None:
    """Count and print."""
    count_json()
    from recorded import RECORDED, file_of, parsed, worked  # now that JSON is counted

    walks: dict[str, Callable[[], Work]] = {name: partial(worked, one) for name, one in RECORDED.items()}
    walks["parse, 3 chunks"] = parsed
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--walk", choices=walks, help="each function that is entered, in order")
    arguments.add_argument("--most", choices=walks, help="the functions that are entered most")
    arguments.add_argument("--json", action="store_true", help="the counts as an object")
    given = arguments.parse_args()
    if given.walk:
        for code in walks[given.walk]().entered:
            print(f"{file_of(code)}:{code.co_firstlineno} {code.co_qualname}")
    elif given.most:
        for code, times in Counter(walks[given.most]().entered).most_common(60):
            print(f"{times:5} {file_of(code)}:{code.co_firstlineno} {code.co_qualname}")
    elif given.json:
        counted = {name: walk() for name, walk in walks.items()}
        print(json.dumps({name: (len(work.entered), work.changes, *work[1:]) for name, work in counted.items()}))
    else:
        heads = ("entries", "functions", "files", "changes of file", "tasks", "JSON read", "JSON written", "garbage")
        print(f"{'request':26}" + "".join(f"{head:>{max(len(head), 7) + 2}}" for head in heads))
        for name, walk in walks.items():
            work = walk()
            files = [file_of(code) for code in work.entered]
            counts = (len(files), len(set(work.entered)), len(set(files)), work.changes, *work[1:])
            cells = zip(heads, counts, strict=True)
            print(f"{name:26}" + "".join(f"{count:{max(len(head), 7) + 2},}" for head, count in cells))


if __name__ == "__main__":
    main()
