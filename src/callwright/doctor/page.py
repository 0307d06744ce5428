"""The findings about a server as one web page that needs nothing else. Whatever a server or a model wrote is text."""

from collections.abc import Iterable
from html import escape
from typing import Final

import callwright
from callwright.doctor.findings import GROUPS, Findings, ProbeResult
from callwright.doctor.recommend import Advice

_STYLE: Final = """
:root { color-scheme: light dark; --text: #1c1e21; --page: #fff; --soft: #5c636b; --line: #dcdfe3; --box: #f4f5f7;
  --good: #1a7f37; --doubt: #8a5a00; --bad: #c01c28; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e6e9; --page: #16181b; --soft: #9aa2ab; --line: #34383d;
  --box: #202327; --good: #57c274; --doubt: #e0ac49; --bad: #ff7b72; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); margin: 0 auto;
  max-width: 70rem; padding: 2rem 1.25rem; }
h1 { font-size: 1.4rem; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-top: 1px solid var(--line);
  overflow-wrap: anywhere; }
th { font-weight: 400; width: 18rem; }
td.status { width: 6rem; font-weight: 600; }
table.pairs th { width: 8rem; color: var(--soft); }
table.pairs strong { font-weight: 600; }
.works, .enforced { color: var(--good); }
.ignored, .refused, .unclear, .no-call { color: var(--doubt); }
.error { color: var(--bad); }
pre { background: var(--box); border: 1px solid var(--line); border-radius: 6px; padding: .75rem 1rem; overflow: auto; }
.soft { color: var(--soft); }
@media (max-width: 40rem) { th, td { display: block; width: auto !important; padding: .2rem 0; }
  td { border-top: 0; } }
"""


def page(findings: Findings, advised: Advice) -> str:
    """The page, as HTML."""
    title = escape(f"Callwright doctor: {findings.url}")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{title}</h1>
{_pairs((name, escape(text)) for name, text in findings.facts())}
<h2>Advice</h2>
{_advice(findings, advised)}
{"".join(_group(title, [one for one in findings.results if one.group == group]) for group, title in GROUPS.items())}
<p class="soft">{findings.cost()} · Callwright {callwright.__version__}</p>
</body>
</html>
"""


def _evidence(findings: Findings) -> str:
    return f'<p class="soft">It answered: {escape(findings.evidence)}</p>' if findings.evidence else ""


def _advice(findings: Findings, advised: Advice) -> str:
    if not advised.usable:
        return f'<p class="error">{escape(advised.choices["mode"].reason)}</p>{_evidence(findings)}'
    if advised.instead:
        return f"<p>{escape(advised.instead)}</p>"
    choices = (
        (name, f"<strong>{escape(choice.value)}</strong>: {escape(choice.reason)}")
        for name, choice in advised.choices.items()
    )
    return f"{_pairs(choices)}\n<pre>{escape(advised.toml)}</pre>"


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """A table of names and texts, which are HTML already."""
    rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{text}</td></tr>\n' for name, text in pairs)
    return f'<table class="pairs">\n{rows}</table>' if rows else ""


def _class(result: ProbeResult) -> str:
    return result.status.replace(" ", "-")


def _group(title: str, results: list[ProbeResult]) -> str:
    if not results:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(result.probe)}</th><td class="status {_class(result)}">{result.status}</td>'
        f"<td>{escape(result.evidence)}</td></tr>\n"
        for result in results
    )
    return f"<h2>{escape(title)}</h2>\n<table>\n{rows}</table>\n"
