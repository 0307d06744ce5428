"""Patch a file: one change at a time, and words for the model when it does not fit."""

import tempfile
from pathlib import Path
from typing import Annotated

import callwright
from callwright import Failed, Hidden, Retry


@callwright.tool(sequential=True)
def patch_file(path: str, search: str, replace: str, root: Annotated[Path, Hidden]) -> str:
    """Patch a file: replace a text in it.

    Args:
        path: The file, from the root of the project.
        search: The text as it stands there, once.
        replace: What to put in its place.
    """
    file = (root / path).resolve()
    if not file.is_relative_to(root.resolve()):
        raise Failed("That file is outside of the project.")
    if not file.is_file():
        raise Retry(f"There is no file {path!r}. There are: {', '.join(sorted(p.name for p in root.iterdir()))}.")
    text = file.read_text()
    if text.count(search) != 1:
        raise Retry(f"{search!r} stands there {text.count(search)} times, not once.")
    file.write_text(text.replace(search, replace))
    return f"patched {path}"


if __name__ == "__main__":
    agent = callwright.Agent(model="simulated", tools=[patch_file])
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "notes.txt").write_text("The sky is green.\n")
        asked = 'Patch the file "notes.txt": search "green" and replace it by "blue"'
        result = callwright.run_sync(agent, asked, hidden={"root": root})
        print(result.text)
        print((root / "notes.txt").read_text(), end="")
