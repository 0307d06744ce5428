"""The results as one self-contained web page, in light and dark. Output of a model or a server is shown as text."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from callwright.eval.report.plots import Point, bars, scatter
from callwright.eval.report.words import percent, seconds, tokens, told_pair, told_share
from callwright.eval.results import Plan, Result
from callwright.eval.summary import Summary, WaySummary
from callwright.inspection.reading import read_replay
from callwright.inspection.source_pieces import Piece
from callwright.turn.records import Record
from callwright.turn.reread import RecordError, replays

# Limits on the failing cases shown in full and on the characters of output of each: a browser must open the page.
_SHOWN: Final = 100
_SHOWN_CHARS: Final = 8_000
_STYLE: Final = """
:root { color-scheme: light dark; --text: #1c1e21; --page: #fff; --soft: #5c636b; --line: #dcdfe3; --box: #f4f5f7;
  --bar: #2f6fde; --range: #1c1e21; --bad: #c01c28; --reasoning: #6b4ea0; --call: #0b57d0; --arguments: #00605a; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e6e9; --page: #16181b; --soft: #9aa2ab; --line: #34383d;
  --box: #202327; --bar: #6ea0ff; --range: #e4e6e9; --bad: #ff7b72; --reasoning: #c0a6f2; --call: #9cc0ff;
  --arguments: #7bd6cb; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); margin: 0 auto;
  max-width: 80rem; padding: 2rem 1.25rem; }
h1 { font-size: 1.4rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
h3 { font-size: .95rem; margin: 0 0 .25rem; font-weight: 600; }
.soft { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-top: 1px solid var(--line); white-space: nowrap; }
thead th { white-space: normal; vertical-align: bottom; } thead th + th { text-align: right; }
p { overflow-wrap: anywhere; margin: .25rem 0; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { max-width: 100%; height: auto; }
.wide svg, .plots svg { max-width: none; } .plots > div { overflow-x: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); paint-order: stroke; stroke: var(--page);
  stroke-width: 3px; }
svg text.name { fill: var(--text); }
.grid { stroke: var(--line); }
.bar { fill: var(--bar); opacity: .45; }
.dot { fill: var(--bar); }
.range { stroke: var(--range); stroke-width: 1.5; }
.multiples { display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: 1.25rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(34rem, 100%), 1fr)); gap: 1.25rem; }
details { border-top: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre { background: var(--box); border: 1px solid var(--line); border-radius: 6px; padding: .75rem 1rem; overflow: auto;
  white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; }
.part-reasoning { color: var(--reasoning); } .part-name { color: var(--call); font-weight: 600; }
.part-arguments { color: var(--arguments); } .part-markup { color: var(--soft); }
.troubled { text-decoration: underline wavy var(--bad); }
"""


def page(plan: Plan, summary: Summary, results: Sequence[Result], records: Mapping[str, Sequence[Record]]) -> str:
    """The page, as HTML. `records`: the turns of cases that were not right, by `WAY CASE`."""
    title = escape(f"Tool-calling accuracy: {plan.target}")
    shares = {way.way: way.interval for way in summary.ways}
    failing = [result for result in results if not result.right]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Tool-calling accuracy</h1>
<p>{escape(plan.target)}</p>
<p class="soft">Cases: {escape(plan.size)}, seed {plan.seed} ({plan.cases}) · Callwright {escape(plan.callwright)}</p>
<h2>Right, by way of asking</h2>
<div class="wide">{bars(shares)}</div>
<div class="wide">{_ways(summary.ways)}</div>
{_pairs(summary)}
<h2>Quality against cost</h2>
{_costs(summary.ways)}
<h2>By group</h2>
<div class="multiples">{"".join(_groups(summary.ways))}</div>
{_problems(summary.ways)}
<h2>Not right: {len(failing):,}</h2>
{"".join(_failing(one, records.get(f"{one.way} {one.case}", ())) for one in failing[:_SHOWN])}
{f'<p class="soft">… and {len(failing) - _SHOWN:,} more, in results.jsonl.</p>' if len(failing) > _SHOWN else ""}
</body>
</html>
"""


def _ways(ways: Sequence[WaySummary]) -> str:
    heads = "way|cases|right|as written|false calls|lost|wrong|invalid|retried|failed|requests|tokens|first|whole"
    rows = (
        (
            way.way,
            str(way.cases),
            told_share(way.interval),
            percent(way.clean / way.cases if way.cases else 0.0),
            *(str(count) for count in (way.false, way.lost, way.wrong, way.invalid, way.asked_again, way.errors)),
            f"{way.requests:,}",
            tokens(way),
            seconds(way.first_s),
            seconds(way.seconds),
        )
        for way in ways
    )
    return _table(heads.split("|"), rows)


def _table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in heads)
    body = "".join(f'<tr><th scope="row">{escape(first)}</th>{_cells(rest)}</tr>\n' for first, *rest in rows)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"


def _cells(texts: Sequence[str]) -> str:
    return "".join(f'<td class="number">{escape(text)}</td>' for text in texts)


def _pairs(summary: Summary) -> str:
    told = "".join(f"<li>{escape(told_pair(pair))}</li>" for pair in summary.pairs)
    return f"<ul>{told}</ul>" if told else ""


def _costs(ways: Sequence[WaySummary]) -> str:
    """The shares plotted against tokens, if a server counts them, and against time."""
    plots: list[str] = []
    if counted := [way for way in ways if way.completion_tokens and way.cases]:
        points = [Point(way.way, way.completion_tokens / way.cases, way.interval) for way in counted]
        plots.append(scatter(points, "tokens of answer for a case"))
    timed = [Point(way.way, way.seconds, way.interval) for way in ways if way.seconds is not None]
    plots.append(scatter(timed, "seconds for a case"))
    return f'<div class="plots">{"".join(f"<div>{plot}</div>" for plot in plots)}</div>'


def _groups(ways: Sequence[WaySummary]) -> Iterator[str]:
    for group in dict.fromkeys(group for way in ways for group in way.groups):
        shares = {way.way: way.groups[group].interval for way in ways if group in way.groups}
        yield f"<div><h3>{escape(group)}</h3>{bars(shares, label=130, width=170, told=False)}</div>"


def _problems(ways: Sequence[WaySummary]) -> str:
    kinds = list(dict.fromkeys(kind for way in ways for kind in way.problems))
    if not kinds:
        return ""
    rows = ((kind, *(str(way.problems.get(kind, 0)) for way in ways)) for kind in kinds)
    heads = ["problem, in how many cases", *(way.way for way in ways)]
    return f'<h2>What was wrong with the answers</h2><div class="wide">{_table(heads, rows)}</div>'


def _failing(result: Result, records: Sequence[Record]) -> str:
    why = result.error or (result.verdict.why if result.verdict is not None else "")
    outputs = "".join(_output(record) for record in records)
    said = f"<strong>{escape(result.case)}</strong> · {escape(result.way)}: {escape(why)}"
    return f"<details><summary>{said}</summary>{_user_message(records)}{outputs}</details>"


def _user_message(records: Sequence[Record]) -> str:
    """The last message of the user."""
    body = records[0].request if records else None
    messages = body.get("messages", []) if isinstance(body, dict) else []
    said = [one.get("content") for one in messages if isinstance(one, dict) and one.get("role") == "user"]
    return f'<p class="soft">{escape(str(said[-1])[:_SHOWN_CHARS])}</p>' if said else ""


def _output(record: Record) -> str:
    """The model output of each attempt, each character marked by how it was parsed."""
    try:
        readings = [read_replay(again) for again in replays(record, trace=True) if again is not None]
    except RecordError as error:
        return f'<p class="soft">It cannot be shown: {escape(str(error))}</p>'
    shown: list[str] = []
    for reading in readings:
        problems = "".join(f"<li>{escape(one.kind)}: {escape(one.detail)}</li>" for one in reading.problems)
        shown.append(f"<pre>{''.join(_pieces(reading.pieces))}</pre>{f'<ul>{problems}</ul>' if problems else ''}")
    return "".join(shown)


def _pieces(pieces: Sequence[Piece]) -> Iterator[str]:
    left = _SHOWN_CHARS
    for piece in pieces:
        troubled = " troubled" if piece.problems else ""
        yield f'<span class="part-{piece.part}{troubled}">{escape(piece.text[:left])}</span>'
        left -= len(piece.text)
        if left <= 0:
            yield "…"
            return
