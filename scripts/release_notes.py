"""Prints the notes of a release: its part of CHANGELOG.md, with links that work outside the clone.

    python scripts/release_notes.py VERSION

Ends with an error if the changelog has no such part, or nothing in it.
"""

import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = "https://github.com/callwright/callwright/blob/v{version}/"


def release_notes(changelog: str, version: str) -> str:
    """The part of one version, without its heading. Raises `SystemExit` if there is none."""
    part = re.search(rf"^## {re.escape(version)}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if part is None or not part[1].strip():
        raise SystemExit(f"CHANGELOG.md has no notes below '## {version}'.")
    source = SOURCE.format(version=version)
    # GitHub makes no anchors in the notes of a release: a link to a heading leads to the file.
    # It shows each end of a line as one: lines that go on are joined.
    joined = re.sub(r"(?<=\S)\n *(?!\s|#|- |\||```)", " ", part[1].strip())
    text = re.sub(r"\]\(#", f"]({source}CHANGELOG.md#", joined)
    return re.sub(r"\]\((?!https?://)", f"]({source}", text) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    print(release_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), sys.argv[1]), end="")
