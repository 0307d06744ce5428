"""Counts words of the house's own dialect in comments, docstrings and pages, against ceilings that only fall.

Counts odd phrases in pages and in the messages of the program, which have one limit, and functions that are named by a
bare participle, whose number only falls.

    python scripts/plain_english.py                 fails above a ceiling, or the limit in a file not listed
    python scripts/plain_english.py --update        lowers the ceilings to the present counts; never raises one
    python scripts/plain_english.py --show PATH…    prints each mark with its line and a plainer word

`plain_english.json` has the ceilings: marks and words of each folder, the files that are still above the limit, and the
number of participles.
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
CEILINGS: Final = Path(__file__).with_suffix(".json")
ROOTS: Final = ("src", "docs", "tests", "bench", "fuzz", "examples")
# The most marks per 1,000 words of a file that is not listed.
LIMIT: Final = 5
MAX_SHOWN: Final = 20

# The words, and what to write instead.
MARKS: Final = {
    r"tell(?:s|ing)?|told": "report, warn, inform, describe",
    r"sa(?:id|ys?)": "state, contain; name what it is: the output, the setting",
    r"keep(?:s|ing)?|kept": "store, cache, preserve, retain",
    r"stands?|stood|standing": "is, appears",
    r"behind": "after; behind is a place",
    r"beside": "next to, in addition to",
    r"where (?:there|it|that|none|nothing|nobody|they|an?|the|one|what)": "if; where is a place",
    r"what (?:is|was|are|were|has|an?|the|it|they|comes|came|stands|follows)": "the noun for it",
    r"(?:is|are|was|were|be) none": "is not one; there is no …",
    r"nobody|somebody|anybody|whoever|whomever": "the caller, the client, the user; no thread",
    r"go(?:es|ne|ing)? (?:on|out)|went (?:on|out)": "continue, be sent",
    r"lets? go|letting go": "release, evict, free",
    r"at once": "immediately, atomically, together",
    r"mend(?:s|ed|ing)?": "repair, fix",
    r"heed(?:s|ed|ing)?": "honour, respect",
    r"so (?:many|much|few|long|often|large)": "the number, the size; as long as",
    r"com(?:es|ing)|came": "arrive, follow, be sent",
    r"ma(?:de?|kes?|king) of": "built from, the result of",
    r"hand(?:s|ed|ing)? on": "forward, pass",
}
# Phrases of pages and of the program's messages, errors and help texts, and what to write instead.
PHRASES: Final = {
    r"(?:is|are|was|were) no": "is not a; … is missing",
    r"stands?": "is, appears",
    r"behind": "after; behind is a place",
    r"tells?|told": "report, show, warn",
    r"(?:does|do|did) not hold|must hold": "is invalid, must be valid",
    r"demand(?:s|ed)?": "require",
    r"mend(?:s|ed|ing)?": "repair, fix",
    r"(?:go|hand)(?:e?s|ne|ed)? on": "continue, forward",
    r"comes? about|bec[ao]mes? of": "happen to",
    r"anew": "again, new",
    r"as (?:it|they) (?:is|are|was|comes?|came|stands?)|all the same": "unchanged, anyway",
    r"ask(?:s|ed|ing)? again": "retry",
    r"how right|as right": "accurate",
    r"sum(?:s|med|ming)? up": "summarise",
    r"(?:the|its|an?) begin": "the beginning, the start",
}
# Texts for models, which are contracts: prompts, cases of the measurement, simulated answers.
PROMPTS: Final = tuple(f"src/callwright/{name}/" for name in ("dialects", "eval/groups", "upstreams/simulated"))
# The most phrases per 1,000 words of all pages, and of all messages.
PHRASES_LIMIT: Final = 1
# Participles that are no verbs themselves, unlike `read` and `put`; those in -ed are found by their ending.
PARTICIPLES: Final = frozenset(
    "begun broken built chosen done drawn driven felt forgotten found given gone heard held kept known left lost made "
    "meant met paid said seen sent shown spoken taken taught thought thrown told understood worn written".split()
)
# Verbs and nouns in -ed.
NOT_PARTICIPLES: Final = frozenset("bed embed exceed feed heed need proceed seed shed speed succeed".split())


def _pattern(words: dict[str, str]) -> re.Pattern[str]:
    groups = "|".join(rf"(?P<m{number}>\b(?:{each})\b)" for number, each in enumerate(words))
    return re.compile(groups, re.IGNORECASE)


_MARK: Final = _pattern(MARKS)
_PHRASE: Final = _pattern(PHRASES)
_WORD: Final = re.compile(r"[A-Za-z']+")
_TWO_WORDS: Final = re.compile(r"[a-z] [a-z]")
_COMMENT_OR_STRING: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""'
    r"|'''(?:[^'\\]|\\.|'(?!''))*'''"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'(?:[^'\\\n]|\\.)*'"
    r"|\#(?P<comment>(?! ?(?:noqa|type: ?ignore|!))[^\n]*)",
    re.DOTALL,
)
# Code in prose: fences, spans, the targets of links, comments of HTML.
_CODE: Final = re.compile(r"^```.*?^```|``.*?``|`[^`\n]*`|\]\([^)\n]*\)|<!--.*?-->", re.DOTALL | re.MULTILINE)


class Mark(NamedTuple):
    path: str
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r}: {self.instead}"


class Count(NamedTuple):
    """Marks and words of a file."""

    marks: list[Mark]
    words: int


def prose(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """The stretches of prose in a file, each with the line it begins on."""
    if suffix == ".md":
        yield 1, text
        return
    for found in _COMMENT_OR_STRING.finditer(text):
        if found["comment"] is not None:
            yield text.count("\n", 0, found.start()) + 1, found["comment"]
    yield from _docstrings(ast.parse(text))


def _docstrings(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[int, str]]:
    for number, part in enumerate(node.body):
        if isinstance(part, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _docstrings(part)
        elif number == 0 and isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
            yield part.lineno, str(part.value.value)


def count(path: str, text: str) -> Count:
    """The marks and words of a file's prose, without code in it."""
    return _count(path, prose(text, Path(path).suffix), _MARK, MARKS)


def count_phrases(path: str, text: str) -> Count:
    """The odd phrases and words of a page, or of the messages in a module."""
    stretches = prose(text, ".md") if path.endswith(".md") else messages(text)
    return _count(path, stretches, _PHRASE, PHRASES)


def _count(path: str, stretches: Iterable[tuple[int, str]], pattern: re.Pattern[str], instead: dict[str, str]) -> Count:
    marks = []
    words = 0
    for begin, stretch in stretches:
        plain = _CODE.sub(lambda code: "\n" * code[0].count("\n"), stretch)
        words += len(_WORD.findall(plain))
        for found in pattern.finditer(plain):
            line = begin + plain.count("\n", 0, found.start())
            marks.append(Mark(path, line, found[0], list(instead.values())[int((found.lastgroup or "m0")[1:])]))
    return Count(marks, words)


def messages(text: str) -> Iterator[tuple[int, str]]:
    """The strings of a module that have words, apart from docstrings, each with its line."""
    tree = ast.parse(text)
    lines = {line for line, _ in _docstrings(tree)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.lineno not in lines
            and _TWO_WORDS.search(node.value)
        ):
            yield node.lineno, node.value


def participles(text: str) -> Iterator[tuple[int, str]]:
    """The functions of a module whose whole name is a participle, each with its line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = node.name.strip("_")
            if name in PARTICIPLES or (re.fullmatch("[a-z]+ed", name) and name not in NOT_PARTICIPLES):
                yield node.lineno, node.name


def folder_of(path: str) -> str:
    """The folder whose ceiling counts: a package in src/callwright, a room of tests, else the first folder."""
    parts = path.split("/")[:-1]
    return "/".join(parts[: {"src": 3, "tests": 2}.get(parts[0], 1)]) if parts else "."


def over_limit(one: Count) -> bool:
    """Whether a file is above the limit; a single mark never is."""
    return len(one.marks) > max(1, one.words * LIMIT / 1000)


def folders(counts: dict[str, Count]) -> dict[str, tuple[int, int]]:
    """Marks and words of each folder."""
    sums: dict[str, tuple[int, int]] = {}
    for path, one in sorted(counts.items()):
        marks, words = sums.get(folder_of(path), (0, 0))
        sums[folder_of(path)] = marks + len(one.marks), words + one.words
    return sums


def is_above(now: tuple[int, int], ceiling: tuple[int, int]) -> bool:
    """Whether there are more marks than then, and more per word: neither new plain text nor its removal counts."""
    return now[0] > ceiling[0] and now[0] * ceiling[1] > ceiling[0] * now[1]


def failures(counts: dict[str, Count], ceilings: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The folders above their ceilings, and the files above the limit that are not listed."""
    known = {folder: (marks, words) for folder, (marks, words) in ceilings["folders"].items()}
    higher = [name for name, now in folders(counts).items() if name in known and is_above(now, known[name])]
    return higher, [path for path in sorted({*counts} - {*ceilings["files"]}) if over_limit(counts[path])]


def lowered(counts: dict[str, Count], ceilings: dict[str, Any] | None) -> dict[str, Any]:
    """The ceilings for what is there, none of them higher than before; without any before, those of today."""
    now = folders(counts)
    names = len(participle_names())
    files = [path for path in sorted(counts) if over_limit(counts[path])]
    if ceilings is None:
        return {"participles": names, "folders": {name: list(sums) for name, sums in now.items()}, "files": files}
    kept = {}
    for name, (marks, words) in ceilings["folders"].items():
        if name in now:
            lower = now[name][0] * words <= marks * now[name][1]
            kept[name] = list(now[name]) if lower else [marks, words]
    names = min(names, ceilings.get("participles", names))
    return {"participles": names, "folders": kept, "files": [path for path in files if path in {*ceilings["files"]}]}


def read_all() -> dict[str, Count]:
    paths = [*ROOT.glob("*.md"), *ROOT.glob("*.py")]
    for name in ROOTS:
        paths += [path for suffix in ("py", "md") for path in (ROOT / name).rglob(f"*.{suffix}")]
    named = {path.relative_to(ROOT).as_posix(): path for path in paths}
    return {name: count(name, path.read_text(encoding="utf-8")) for name, path in sorted(named.items())}


def phrase_counts() -> dict[str, list[Count]]:
    """The odd phrases of all pages, and of all messages of the program."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    groups = {"pages": pages, "messages": sorted((ROOT / "src").rglob("*.py"))}
    out: dict[str, list[Count]] = {}
    for name, paths in groups.items():
        texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
        out[name] = [count_phrases(path, text) for path, text in texts.items() if not path.startswith(PROMPTS)]
    return out


def participle_names() -> list[str]:
    """The functions of src that are named by a participle, with their places."""
    return [
        f"{path.relative_to(ROOT).as_posix()}:{line}: {name}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line, name in participles(path.read_text(encoding="utf-8"))
    ]


def phrase_failures(groups: dict[str, list[Count]]) -> list[str]:
    """The groups with more phrases than the limit, with their first marks."""
    out = []
    for name, counts in groups.items():
        marks, words = [mark for one in counts for mark in one.marks], sum(one.words for one in counts)
        if len(marks) * 1000 > PHRASES_LIMIT * words:
            out.append(f"{name}: {1000 * len(marks) / words:.1f} odd phrases per 1,000 words, at most {PHRASES_LIMIT}")
            out += [f"  {mark}" for mark in marks[:MAX_SHOWN]]
    return out


def written_since(base: str) -> set[tuple[str, int]]:
    """The lines that are new since the ceilings were set."""
    said = _git("diff", "-U0", base) if base else ""
    lines = set()
    path = ""
    for line in said.splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ b/")
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            begin = int(found[1])
            lines |= {(path, at) for at in range(begin, begin + int(found[2] or 1))}
    return lines


def _git(*arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def report(counts: dict[str, Count], ceilings: dict[str, Any]) -> list[str]:
    """What fails, with the lines that are new since the ceilings were set, else the files with most marks."""
    out = []
    higher, new = failures(counts, ceilings)
    lines = written_since(_git("log", "-1", "--format=%H", "--", str(CEILINGS)).strip()) if higher else set()
    for name in higher:
        marks, words = folders(counts)[name]
        most, of = ceilings["folders"][name]
        out.append(f"{name}: {1000 * marks / words:.1f} marks per 1,000 words, at most {1000 * most / of:.1f}")
        there = {path: one for path, one in counts.items() if folder_of(path) == name}
        latest = [mark for one in there.values() for mark in one.marks if (mark.path, mark.line) in lines]
        worst = sorted(there, key=lambda path: -len(there[path].marks))[:5]
        shown = [str(mark) for mark in latest] or [f"{path}: {len(there[path].marks)} marks" for path in worst]
        out += [f"  {line}" for line in shown[:MAX_SHOWN]]
    for path in new:
        marks, words = len(counts[path].marks), counts[path].words
        out.append(f"{path}: {marks} marks in {words} words, at most {LIMIT} in 1,000 of a file not listed")
        out += [f"  {mark}" for mark in counts[path].marks[:MAX_SHOWN]]
    return out


def main(arguments: list[str]) -> int:
    counts = read_all()
    if arguments[:1] == ["--show"]:
        phrases = {
            mark.path: one.marks for group in phrase_counts().values() for one in group for mark in one.marks[:1]
        }
        print(*(mark for path in arguments[1:] for mark in [*counts[path].marks, *phrases.get(path, [])]), sep="\n")
        return 0
    ceilings = json.loads(CEILINGS.read_text(encoding="utf-8")) if CEILINGS.exists() else None
    if arguments == ["--update"]:
        text = re.sub(r"\[\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2]", json.dumps(lowered(counts, ceilings), indent=2)) + "\n"
        CEILINGS.write_text(text, encoding="utf-8")
        return 0
    if ceilings is None or arguments:
        print(__doc__, file=sys.stderr)
        return 2
    wrong = report(counts, ceilings) + phrase_failures(phrase_counts())
    if len(names := participle_names()) > ceilings["participles"]:
        wrong.append(
            f"{len(names)} functions are named by a participle, at most {ceilings['participles']}; use a verb:"
        )
        lines = written_since(_git("log", "-1", "--format=%H", "--", str(CEILINGS)).strip())
        new = [name for name in names if (name.split(":")[0], int(name.split(":")[1])) in lines]
        wrong += [f"  {name}" for name in (new or names)[:MAX_SHOWN]]
    if wrong:
        print(*wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
