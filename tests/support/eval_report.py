"""The page docs/contributing/eval-report.md, with its pictures: two runs of `callwright eval` as they come out.

    python -m tests.support.eval_report DOCS        (scripts/eval-report)

One is the simulated model with faults, whose report is shown; the other llama.cpp in this process with random weights,
of which only a grammar makes calls.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from callwright.eval.results import Result, read_results
from callwright.eval.suite import suite
from tests.support.browser import browser
from tests.support.tiny_gguf import write_model

_WIDTH: Final = 1180
_FAULTS: Final = (
    "string_numbers:0.2,single_quotes:0.15,missing_close_tag:0.15,odd_name:0.15,missing_argument:0.05,"
    "only_said:0.05,second_call:0.03"
)
_WAYS: Final = ("raw:hermes", "raw:hermes+retries=0", "prompt:json", "native")
_RANDOM_WAYS: Final = {
    "raw:hermes+constrain=off+retries=0": "without a grammar",
    "raw:hermes+retries=0": "with a grammar",
}
_TOKENS: Final = 300
_SHOWN: Final = "missing"  # what a case failed for that is shown


def main(docs: Path) -> None:
    """Run both, and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        faulty = ["--size", "full", "--faults", _FAULTS, *_each("--way", _WAYS), "--at-once", "1", "--out", "faulty"]
        table = _run(here, *faulty)
        _pictures(here / "faulty" / "report.html", docs / "images")
        write_model(here / "random.gguf")
        random = ["random.gguf", "--size", "full", "--group", "demands", *_each("--way", tuple(_RANDOM_WAYS))]
        random += ["--field", f"max_tokens={_TOKENS}", "--field", "seed=7", "--at-once", "1", "--out", "random"]
        _run(here, *random)
        _, results = read_results(here / "random")
    page = _page(_command(faulty), table, _command(random), _random_table(results))
    (docs / "eval-report.md").write_text(page, encoding="utf-8")


def _each(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _run(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "callwright", "eval", *arguments]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def _pictures(report: Path, images: Path) -> None:
    with browser() as chromium:
        context = chromium.new_context(viewport={"width": _WIDTH, "height": 900}, color_scheme="light", locale="en-GB")
        page = context.new_page()
        page.goto(report.as_uri())
        begin, _ = _place(page.locator("h2", has_text="What was wrong"))
        page.screenshot(path=images / "eval.png", full_page=True, clip=_clip(0, begin))
        failing = page.locator("details", has_text=_SHOWN).first
        failing.locator("summary").click()
        begin, end = _place(failing)
        page.screenshot(path=images / "eval-case.png", full_page=True, clip=_clip(begin, end))


def _place(of: Any) -> tuple[float, float]:
    """Where an element begins and ends on its page."""
    begin, end = of.evaluate(
        "it => [it.getBoundingClientRect().top + scrollY, it.getBoundingClientRect().bottom + scrollY]"
    )
    return begin, end


def _clip(begin: float, end: float) -> dict[str, float]:
    return {"x": 0, "y": begin, "width": _WIDTH, "height": end - begin}


def _command(arguments: Sequence[str]) -> str:
    """As one would type it, in lines."""
    lines = ["callwright eval"]
    for word in arguments:
        if word.startswith("--") and len(lines[-1]) + len(word) > 70:
            lines.append(f"  {word}")
        else:
            lines[-1] += f" {word}"
    return " \\\n".join(lines)


def _page(faulty: str, table: str, random: str, counted: Iterator[str]) -> str:
    plain = "\n".join(line.rstrip() for line in table.strip().splitlines())
    return f"""# A measured example

The output of [`callwright eval`](../eval.md) for two models, written by `scripts/eval-report`.

## A model with known faults

The [simulated model](../simulated.md) with seven faults: which are repaired, which are retried, and which remain.

<!-- not run: scripts/eval-report does -->
```sh
{faulty}
```

```
{plain}
```

The start of its `report.html`:

![Correct cases with intervals for each way, quality against cost, a plot for each group](../images/eval.png)

A failed case, with the model's output in each attempt:

![A failed case: the request, and the output coloured by how it was parsed](../images/eval-case.png)

## A model that writes noise

llama.cpp in this process, with [random weights](../embedded.md). Its output is noise, so any valid call is the work
of the grammar.

<!-- not run: scripts/eval-report does -->
```sh
scripts/tiny_gguf random.gguf
{random}
```

{chr(10).join(counted)}

- A grammar guarantees the form: required calls are never invalid, and forbidden calls are never made.
- It does not guarantee an end: a string can reach the token limit, here {_TOKENS}. Truncated calls are not sent.
- It does not guarantee sense: values fit the schema but are arbitrary, and a named tool is called again and again.
- Without a requirement it guarantees nothing: noise is text.
"""


def _random_table(results: Sequence[Result]) -> Iterator[str]:
    """What came of each kind of demand, in each way."""
    yield "| required | | cases | a valid call | cut before its end | no call | an invalid call | right |"
    yield "|---|---|---|---|---|---|---|---|"
    kinds = {case.id: _demand(case.tool_choice) for case in suite("full", 0, ["demands"])}
    for kind in dict.fromkeys(kinds.values()):
        for way, told in _RANDOM_WAYS.items():
            of = [one for one in results if one.way == way and kinds[one.case] == kind]
            counts = Counter(_outcome(one, is_demanded=kind not in ("nothing", "no call")) for one in of)
            cells = " | ".join(str(counts[outcome]) for outcome in ("valid", "cut", "none", "invalid"))
            yield f"| {kind} | {told} | {len(of)} | {cells} | {sum(one.right for one in of)} |"


def _demand(choice: Any) -> str:
    if isinstance(choice, dict):
        return "a named tool" if choice["type"] == "function" else "one of the allowed tools"
    return {"required": "any call", "none": "no call"}.get(choice, "nothing")


def _outcome(result: Result, *, is_demanded: bool) -> str:
    verdict = result.verdict
    assert verdict is not None, result.error
    if verdict.invalid:
        return "invalid"
    if verdict.made:
        return "valid"
    return "cut" if is_demanded and result.completion_tokens >= _TOKENS else "none"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
