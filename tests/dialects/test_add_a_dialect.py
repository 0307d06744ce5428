"""The guide for a new dialect, followed: its blocks are written where it says, and what it promises holds."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import callwright
from callwright.dialects import base
from callwright.dialects.detect import by_name, by_template
from tests.support import cases
from tests.support.parsing import lost, merged, pieces, read
from tests.support.paths import ROOT

GUIDE = ROOT / "docs" / "contributing" / "add-a-dialect.md"
_BLOCK = re.compile(r"^`(?P<path>[\w/.]+)`[^\n]*:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The dialect of the guide is there; the path of its vectors."""
    folder = tmp_path_factory.mktemp("guide")
    guide = GUIDE.read_text(encoding="utf-8")
    blocks = {Path(found["path"]).name: found["text"] for found in _BLOCK.finditer(guide)}
    blocks |= {
        Path(name).name: text
        for name, text in re.findall(
            r"`(tests/vectors/\w+\.txt)`.*?```text\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL
        )
    }
    for name, text in blocks.items():
        (folder / name).write_text(text, encoding="utf-8")
    package = importlib.import_module("callwright.dialects")  # the name of a function, too
    package.__path__.append(str(folder))
    _forget()
    yield folder / "tidal.txt"
    package.__path__.remove(str(folder))
    _forget()


def _forget() -> None:
    for known in (base.dialect_names, base.get_dialect, base._own_names, base._of_others, base._load):
        known.cache_clear()


def test_the_dialect_of_the_guide_reads_its_cases(vectors: Path) -> None:
    found = list(cases.read_cases(vectors))
    assert len(found) == 3
    for case in found:
        for cut in ([case.output], list(case.output), *(pieces(case.output, seed) for seed in range(5))):
            events = read(cut, case.finish, **case.request())
            assert not case.misread(callwright.collect(events)), case.title
            assert merged(events) == merged(read([case.output], case.finish, **case.request()))
            assert not lost(case.output, read(list(case.output), case.finish, check="verbatim", **case.request()))


def test_it_is_rendered_written_and_found(vectors: Path) -> None:
    tools = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}]
    prompt = callwright.render([{"role": "user", "content": "hi"}], tools=tools, dialect="tidal")
    assert prompt.text.startswith("<|system|>Use a tool by")
    assert prompt.text.endswith("<|user|>hi<|over|><|assistant|>")
    written = callwright.write([{"name": "ping", "arguments": {}}], dialect="tide")
    assert callwright.parse(written, dialect="tidal", tools=tools).calls[0].arguments == "{}"
    named, shown = by_name("org/Tidal-7B"), by_template('{{ "<use tool=" }}')
    assert named is not None
    assert shown is not None
    assert (named.dialect, shown.dialect) == ("tidal", "tidal")
