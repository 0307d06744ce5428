// The facts of a turn that are known whatever is kept of its contents.
import { html, clock, duration, number as count, Copy, Link } from "./lib.js";
import { Outcome } from "./outcome.js";

/** "raw · hermes" */
export const modeOf = ({ mode, dialect }) => [mode, dialect].filter(Boolean).join(" · ") || "–";

/** [name, value, value as a text to be compared] of each fact. */
export function facts(row) {
  const { input_tokens: read, output_tokens: written, cached_tokens: cached } = row;
  const tokens = read === null && written === null ? "–" : `${count(read)} in, ${count(written)} out`;
  return [
    ["outcome", html`<${Outcome} of=${row.outcome} />`, row.outcome],
    ["model", row.model],
    ["mode · dialect", modeOf(row)],
    ["API", row.again_of ? "run again here" : `${row.endpoint}${row.streamed ? ", streamed" : ""}`, ""],
    ["begin", html`<${Begin} at=${row.at} />`, ""],
    ["first byte", duration(row.first_s), ""], // times differ each time: that says nothing
    ["duration", duration(row.seconds), ""],
    ["tokens", cached ? `${tokens}, ${count(cached)} cached` : tokens],
    ["tools, calls", `${row.tools} offered, ${row.calls} made`],
    ["attempts", `${row.attempts}`],
    ["finish reason", row.finish_reason ?? "–"],
    ...(row.reasoning_put_back ? [["reasoning", `put back into the history, turns: ${row.reasoning_put_back}`]] : []),
    ...(row.error ? [["error", row.error]] : []),
    ...(row.key ? [["key", row.key]] : []),
  ];
}

function Begin({ at }) {
  const date = new Date(at * 1000);
  const isToday = date.toDateString() === new Date().toDateString();
  const day = isToday ? "" : `${date.toLocaleDateString("en-CA")} `;
  return html`<time datetime=${date.toISOString()} title=${date.toISOString()}>${day}${clock(at)}</time>`;
}

const FIRST = ["model", "mode · dialect", "duration", "tokens"];

/** Four facts, and the rest in a fold. */
export function Facts({ row }) {
  const all = facts(row);
  const put = ([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
  return html`<dl class="facts">${all.filter(([name]) => FIRST.includes(name)).map(put)}</dl>
    <details class="more-facts">
      <summary>All facts</summary>
      <dl class="facts">
        ${all.filter(([name]) => !FIRST.includes(name)).map(put)}
        ${[["id", row.id], ["request id", row.request_id], ["conversation", row.conversation]].map(
          ([name, id]) =>
            id &&
            html`<div class="is-id">
              <dt>${name}</dt>
              <dd><code>${id}</code> <${Copy} text=${id} /></dd>
            </div>`,
        )}
      </dl>
    </details>
    ${row.again_of && html`<${RunAgainOf} row=${row} />`}`;
}

function RunAgainOf({ row }) {
  const before = `/ui/turns/${encodeURIComponent(row.again_of)}`;
  return html`<p>
    Run again of <${Link} href=${before}>${row.again_of}<//>,${" "}
    <${Link} href=${`${before}?with=${encodeURIComponent(row.id)}`}>compare<//>
  </p>`;
}
