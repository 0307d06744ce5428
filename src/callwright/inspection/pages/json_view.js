// JSON to be unfolded step by step. What is folded is not drawn.
import { html, useState } from "./lib.js";
import { marked } from "./output.js";

const LONG = 2_000; // characters of a text: the rest is folded

/** `open`: how many levels are unfolded at first. */
export function JsonView({ value, name = null, open = 1 }) {
  const label = name === null ? null : html`<span class="json-name">${name}</span>`;
  const isLeaf = value === null || typeof value !== "object";
  if (isLeaf) return html`<div class="json-leaf">${label}<${Leaf} value=${value} /></div>`;
  const entries = Object.entries(value);
  const [begin, end] = Array.isArray(value) ? "[]" : "{}";
  if (!entries.length) return html`<div class="json-leaf">${label}<span>${begin + end}</span></div>`;
  const size = `${entries.length} ${Array.isArray(value) ? "item" : "field"}${entries.length === 1 ? "" : "s"}`;
  const title = html`${label}<span class="soft">${begin} ${hint(value) ?? size} ${end}</span>`;
  return html`<${Fold} title=${title} isOpen=${open > 0}>
    ${() => entries.map(([key, part]) => html`<${JsonView} key=${key} name=${key} value=${part} open=${open - 1} />`)}
  <//>`;
}

/** What a folded object is, where one of its fields says so. */
function hint(value) {
  const { role, type, name } = value;
  const words = [role, type, name ?? value.function?.name].filter((word) => typeof word === "string");
  return words.length ? words.join(" · ") : null;
}

function Leaf({ value }) {
  if (typeof value !== "string") return html`<span class="json-value">${String(value)}</span>`;
  if (value.length <= LONG) return html`<span class="json-value is-text">${marked(value)}</span>`;
  return html`<span class="json-value is-text">${marked(value.slice(0, LONG))}</span>
    <${Fold} title=${html`<span class="soft">${(value.length - LONG).toLocaleString("en")} more characters</span>`}>
      ${() => html`<span class="json-value is-text">${marked(value.slice(LONG))}</span>`}
    <//>`;
}

/** A `details` whose inside, a function, is drawn when it is opened first. */
export function Fold({ title, isOpen = false, children, ...rest }) {
  const [isSeen, setSeen] = useState(isOpen);
  return html`<details open=${isOpen} onToggle=${(event) => event.target.open && setSeen(true)} ...${rest}>
    <summary>${title}</summary>
    ${isSeen && children()}
  </details>`;
}
