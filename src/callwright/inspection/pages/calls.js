// The calls of a reading: each argument a row that knows its source, and what was changed on the way.
import { html, useMemo } from "./lib.js";
import { difference } from "./diff.js";
import { indented, members, parsedJson } from "./json_text.js";
import { marked } from "./output.js";
import { Badge } from "./problems.js";

export function Calls({ reading, link }) {
  return html`<ol class="calls">
    ${reading.calls.map(
      (call) => html`<li key=${call.index}>
        <${Head} reading=${reading} call=${call} link=${link.name(call.index)} />
        <${Arguments} call=${call} numbers=${(name) => link.argument(call.index, name)} />
        <${Changed} call=${call} />
      </li>`,
    )}
  </ol>`;
}

const writtenName = (reading, call) =>
  reading.pieces
    .filter((piece) => piece.part === "name" && piece.call === call.index)
    .map((piece) => piece.text)
    .join("");

function Head({ reading, call, link }) {
  const written = writtenName(reading, call);
  return html`<p class="call-head">
    <span class="piece name" data-link=${link}>${call.name}</span>
    ${written && written !== call.name && html`<span class="soft">model output <code>${marked(written)}</code></span>`}
    ${call.kind === "custom" && html`<span class="soft">custom tool: free text</span>`}
    ${!call.complete && html`<strong class="failed">incomplete: do not run it</strong>`}
    ${call.problems.map((number) => html`<${Badge} number=${number} kind=${reading.problems[number].kind} />`)}
  </p>`;
}

/** `numbers(name)`: the number of an argument that its pieces bear, too, where there are such. */
export function Arguments({ call, numbers = () => undefined }) {
  const found = call.kind === "custom" ? null : members(call.arguments);
  if (found?.length === 0) return html`<p class="soft">no arguments</p>`;
  if (!found) {
    return html`<pre class="argument" tabindex="0" data-link=${numbers("")}>${marked(call.arguments)}</pre>`;
  }
  return html`<ul class="arguments-list">
    ${found.map(
      ({ key, value }) => html`<li class="argument" tabindex="0" key=${key} data-link=${numbers(key)}>
        <span class="argument-name">${key}</span><${Value} json=${value} />
      </li>`,
    )}
  </ul>`;
}

/** A text of several lines as lines, all else as JSON. */
export function Value({ json }) {
  const value = json[0] === '"' ? parsedJson(json) : null;
  if (typeof value === "string" && value.includes("\n")) {
    return html`<span class="value is-lines" title="text of several lines, unchanged">${marked(value)}</span>`;
  }
  return html`<span class="value">${marked(json, false)}</span>`;
}

/** The arguments before and after the repair, where they differ in more than white space. */
function Changed({ call }) {
  if (call.written === undefined || call.written === call.arguments) return null;
  const before = indented(call.written);
  const after = parsedJson(call.written) === undefined ? call.arguments : indented(call.arguments);
  if (before === after) return null;
  return html`<${BeforeAndAfter} before=${before} after=${after} names=${["model output", "sent to client"]} />`;
}

const AROUND = 300; // characters of what is the same that are shown on either side of what differs

/** Two texts side by side, what differs marked in each, the rest shortened. */
export function BeforeAndAfter({ before, after, names }) {
  const parts = useMemo(() => difference(before, after), [before, after]);
  const side = (name, own, Mark) => html`<figure>
    <figcaption>${name}</figcaption>
    <pre>
      ${parts.map(({ kind, text }, at) => {
        if (kind === own) return html`<${Mark}>${marked(text, false)}<//>`;
        return kind === "same" && shortened(text, at > 0, at < parts.length - 1);
      })}
    </pre>
  </figure>`;
  return html`<div class="before-after">${side(names[0], "gone", "del")}${side(names[1], "new", "ins")}</div>`;
}

/** A text that is the same in both; what stands before or behind it tells which of its ends matter. */
function shortened(text, isBehind, isBefore) {
  const first = isBehind ? AROUND : 0;
  const last = isBefore ? AROUND : 0;
  const left = text.length - first - last;
  if (left <= 2 * AROUND) return marked(text, false);
  return [
    marked(text.slice(0, first), false),
    html`<span class="soft"> … ${left.toLocaleString("en")} characters … </span>`,
    marked(text.slice(text.length - last), false),
  ];
}
