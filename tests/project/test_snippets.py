"""What the pages show runs as printed, and prints what they show: `tests.support.snippets` says how."""

import shutil
from pathlib import Path

import click
import pytest

from callwright.cli import main
from callwright.gateway.config.config import load_config
from tests.support.paths import ROOT
from tests.support.snippets import Block, Reader, Role, blocks_of, does_match, role_of

PAGES = [
    path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
    if path.exists()
]
BLOCKS = {path.relative_to(ROOT).as_posix(): blocks_of(path.read_text(encoding="utf-8")) for path in PAGES}
COMMANDS = (
    *(f"callwright {name}" for name in main.list_commands(click.Context(main))),
    *(".venv/bin/", "scripts/", "curl ", "python ", "pip "),
)


def roles(blocks: list[Block]) -> list[tuple[Block, Role]]:
    return [(block, role_of(block, before)) for block, before in zip(blocks, (None, *blocks), strict=False)]


# The pages of a brief run; the others start servers and commands for a minute in all.
BRIEF = ("README.md", *(f"docs/{name}.md" for name in ("guarantee", "library", "problems", "dialects", "simulated")))
RUN = [
    pytest.param(name, marks=() if name in BRIEF else pytest.mark.slow)
    for name, blocks in BLOCKS.items()
    if any(role == "run" for _, role in roles(blocks))
]


@pytest.mark.processes
@pytest.mark.skipif(not (shutil.which("bash") and shutil.which("curl")), reason="bash and curl are not installed")
@pytest.mark.parametrize("page", RUN)
def test_a_page_does_what_it_shows(page: str, tmp_path: Path) -> None:
    with Reader(tmp_path) as reader:
        reader.follow(BLOCKS[page])


@pytest.mark.parametrize("page", BLOCKS)
def test_every_block_is_run_or_says_why_not(page: str) -> None:
    for block, role in roles(BLOCKS[page]):
        assert role != "unexplained", f"line {block.line}: a block of {block.language} that nothing is said of"
        if role == "output":
            assert block.text.strip("… \n"), f"line {block.line}: anything may be printed"
        if role == "not run":
            assert len(block.said["not run"].split()) > 1, f"line {block.line}: why?"
        if role == "picture":
            told = [line for line in block.text.splitlines() if line.startswith(COMMANDS)]
            assert not told, f"line {block.line}: commands stand in a block of sh"


CONFIGURATIONS = [
    pytest.param(block, id=f"{name}-{block.line}")
    for name, blocks in BLOCKS.items()
    for block, role in roles(blocks)
    if block.language == "toml" and (role == "configuration" or block.said.get("file") == "callwright.toml")
]


@pytest.mark.parametrize("block", CONFIGURATIONS)
def test_a_configuration_that_is_shown_loads(tmp_path: Path, block: Block) -> None:
    path = tmp_path / "callwright.toml"
    path.write_text(block.text, encoding="utf-8")
    assert load_config(path).models


# --- the harness ---

FOLLOWED = """
<!-- file: said.txt -->
```text
hello
```

```sh
cat said.txt
```

```text
{said}
```

```python
value = 6
```

```python
print({{"a": [value * 7, "b c"]}} and '{{"a": [42, "b c"]}}')
```

```json
{{"a":
  [{number}, "b c"]}}
```
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("said", "number", "line"),
    [("hello", "42", None), ("hel…", "…", None), ("bye", "42", "line 11 shows"), ("hello", "43", "line 23 shows")],
)
def test_a_page_that_shows_something_else_is_found(tmp_path: Path, said: str, number: str, line: str | None) -> None:
    blocks = blocks_of(FOLLOWED.format(said=said, number=number))
    with Reader(tmp_path) as reader:
        if line is None:
            reader.follow(blocks)
        else:
            with pytest.raises(AssertionError, match=line):
                reader.follow(blocks)


@pytest.mark.processes
@pytest.mark.parametrize("code", ["```sh\nfalse\ntrue\n```", "```python\n1 / 0\n```"])
def test_a_block_that_fails_is_found(tmp_path: Path, code: str) -> None:
    with Reader(tmp_path) as reader, pytest.raises(AssertionError, match="line 1 fails"):
        reader.follow(blocks_of(code))


def test_outputs_match_as_shown() -> None:
    assert does_match("a … c\n", "a b\nb c  \n")
    assert not does_match("a\n", "a\nb\n")
    assert does_match('{"a": "b  c",\n "d": […]}', '{"a":"b  c","d":[1,2]}', "json")
    assert not does_match('{"a": "b c"}', '{"a":"b  c"}', "json")


def test_an_output_belongs_to_the_block_right_before_it() -> None:
    shown = blocks_of("```sh\ntrue\n```\n\n```text\na\n```\n\nWords.\n\n```text\nb\n```\n")
    assert [role for _, role in roles(shown)] == ["run", "output", "unexplained"]
