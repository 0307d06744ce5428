"""The check of plain English finds marks in prose, not in code, and its ceilings only fall."""

import runpy
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.paths import ROOT

CHECK: dict[str, Any] = runpy.run_path(str(ROOT / "scripts/plain_english.py"))
PLAIN = "word " * 300


def counts(**texts: str) -> dict[str, Any]:
    return {f"docs/{name}.md": CHECK["count"](f"docs/{name}.md", text) for name, text in texts.items()}


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("a.py", '"""First.\n\nIt goes on.\n"""\n', [(3, "goes on")]),
        ("a.py", 'def f():\n    """Nobody."""\n    class A:\n        "It is none."\n', [(2, "Nobody"), (4, "is none")]),
        ("a.py", "x = 1  # behind it\n# at once\n", [(1, "behind"), (2, "at once")]),
        ("a.py", 'x = "told"  # noqa: told\ny = "# told"\ntold = """\nsaid\n"""\n', []),
        ("a.py", "# `told` and ``said``\n", []),
        ("a.md", "A\n```\ntold\n```\nIt stands\nthere.\n", [(5, "stands")]),
        ("a.md", "`told` [text](told.md)<!-- told -->\nWhere it is\n", [(2, "Where it")]),
        ("a.md", "Retold, storytelling, whereas it is, a keeper\n", []),
    ],
)
def test_marks_are_found_in_prose_alone(path: str, text: str, found: list[tuple[int, str]]) -> None:
    assert [(mark.line, mark.word) for mark in CHECK["count"](path, text).marks] == found


def test_a_new_file_has_few_marks_and_a_single_one_is_allowed() -> None:
    now = counts(short="It is told.", long=PLAIN + "told said", plain=PLAIN + "told", old="told said kept")
    ceilings = {"folders": {}, "files": ["docs/old.md"]}
    assert CHECK["failures"](now, ceilings) == ([], ["docs/long.md"])


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("told " * 10 + "word " * 90, False),
        ("told " * 10 + "word " * 50, False),
        ("told " * 12 + "word " * 200, False),
        ("told " * 11 + "word " * 90, True),
    ],
)
def test_a_folder_fails_if_both_its_marks_and_their_share_rise(text: str, fails: bool) -> None:
    ceilings = {"folders": {"docs": [10, 100]}, "files": ["docs/a.md"]}
    assert CHECK["failures"](counts(a=text), ceilings)[0] == ["docs"] * fails


def test_an_update_lowers_ceilings_and_raises_none() -> None:
    before = CHECK["lowered"](counts(a="told said " * 5 + PLAIN), None)
    assert before.pop("participles") == len(CHECK["participle_names"]())
    assert before == {"folders": {"docs": [10, 310]}, "files": ["docs/a.md"]}
    more = counts(a="told said " * 9 + PLAIN, b="told said kept")
    assert CHECK["lowered"](more, before | {"participles": 2}) == before | {"participles": 2}
    lower = CHECK["lowered"](counts(a="told " + PLAIN), before | {"participles": 10**6})
    assert lower.pop("participles") < 10**6
    assert lower == {"folders": {"docs": [1, 301]}, "files": []}


def test_the_package_has_fewer_marks_than_its_ceilings(record_property: Callable[[str, object], None]) -> None:
    now = CHECK["folders"](CHECK["read_all"]())
    before = CHECK["json"].loads(CHECK["CEILINGS"].read_text(encoding="utf-8"))["folders"]
    each = [[sums for name, sums in counts.items() if name.startswith("src/")] for counts in (now, before)]
    shares = [round(1000 * sum(marks for marks, _ in sums) / sum(words for _, words in sums)) for sums in each]
    record_property("ceiling", ("marks per 1,000 words of src", *shares))
    assert shares[0] <= shares[1]


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        (
            "src/a.py",
            '"""It is no word."""\nraise E(f"{x} is no word")\nf("tells", "so it stands here")\n',
            ["is no", "stands"],
        ),
        (
            "src/a.py",
            "def f():\n    'Nothing told here.'\n    return 'Asked again: all the same'\n",
            ["Asked again", "all the same"],
        ),
        ("a.md", "It goes on.\n\n```text\nis no code\n```\n", ["goes on"]),
        ("a.md", "A standing order, a behindhand payer, told-you-so\n", ["told"]),
    ],
)
def test_phrases_are_found_in_pages_and_messages(path: str, text: str, found: list[str]) -> None:
    assert sorted(mark.word for mark in CHECK["count_phrases"](path, text).marks) == found


@pytest.mark.parametrize(("marks", "fails"), [(0, False), (1, False), (2, True)])
def test_phrases_have_one_limit_for_a_group(marks: int, fails: bool) -> None:
    group = [CHECK["count_phrases"]("a.md", "anew " * marks), CHECK["count_phrases"]("b.md", "word " * 1000)]
    assert bool(CHECK["phrase_failures"]({"pages": group})) == fails


def test_a_participle_is_no_name_of_a_function() -> None:
    text = """
def told(): ...
def read(): ...
class Feed:
    def feed(self): ...
    def _merged(self):
        def made(): ...
    def sort_merged(self): ...
    def put(self, kept): ...
"""
    assert list(CHECK["participles"](text)) == [(2, "told"), (6, "_merged"), (7, "made")]
