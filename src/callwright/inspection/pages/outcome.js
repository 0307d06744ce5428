// What became of a turn, as a word with its colour.
import { html, OUTCOMES } from "./lib.js";
import { RUNNING } from "./rows.js";

/** In this order everywhere: from what went well to what did not. */
export const ORDER = Object.keys(OUTCOMES);

export const outcomeWord = (outcome) => (outcome ? (OUTCOMES[outcome] ?? outcome) : RUNNING);

export const outcomeClass = (outcome) => `outcome-${outcome || RUNNING}`;

export function Outcome({ of }) {
  return html`<span class=${`outcome ${outcomeClass(of)}`}>${outcomeWord(of)}</span>`;
}
