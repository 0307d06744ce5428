// The problems of a reading as a numbered list; each number is a way into the text, and back.
import { html } from "./lib.js";
import { marked } from "./output.js";
import { Explained, isRepaired, ProblemLink, sentence } from "./explained.js";

/** `shown`: the numbers of those to be listed. */
export function Problems({ reading, shown }) {
  return html`<ol class="problems">
    ${reading.problems.map(
      (problem, number) => shown.has(number) && html`<${Item} key=${number} problem=${problem} number=${number} />`,
    )}
  </ol>`;
}

/** Where a click leads, as selectors: from the list to a `mark` in the text, or from there to an `item` of the list. */
export function wayOf(event) {
  const { mark, markOf } = event.target.closest("[data-mark],[data-mark-of]")?.dataset ?? {};
  return {
    mark: markOf === undefined ? null : `[data-mark="${markOf}"]`,
    item: mark === undefined ? null : `[data-item="${mark}"] button`,
  };
}

/** A problem's number, which leads to its mark in the text. */
export function Badge({ number, kind }) {
  return html`<button
    type="button"
    class=${`badge ${isRepaired(kind) ? "is-mended" : "is-wrong"}`}
    data-mark-of=${number}
    aria-label=${`Problem ${number + 1}, ${kind}: show it in the text`}
    title=${sentence(kind) ?? kind}
  >
    ${number + 1}
  </button>`;
}

function Item({ problem, number }) {
  const state = isRepaired(problem.kind) ? "is-mended" : "is-wrong";
  return html`<li data-item=${number} tabindex="-1">
    <${Badge} number=${number} kind=${problem.kind} />
    <div>
      <span class=${state}><${ProblemLink} name=${problem.kind} /></span> ${problem.detail}
      ${Number.isInteger(problem.call) && html` <span class="soft">· call ${problem.call + 1}</span>`}
      ${problem.text && html`<pre>${marked(problem.text)}</pre>`}
      <${Explained} name=${problem.kind} />
    </div>
  </li>`;
}
