// What a problem or a failure means and what to do next, from the gateway's own table.
import { html, Link } from "./lib.js";
import { EXPLANATIONS } from "./explanations.js";

export const isRepaired = (name) => EXPLANATIONS[name]?.is_repaired ?? false;

/** One sentence, for a tooltip; null for a name without one. */
export const sentence = (name) => plain(EXPLANATIONS[name]?.happened);

const plain = (text) => text?.replaceAll("`", "") ?? null;

/** A name that leads to its explanation, with the sentence as its tooltip. */
export function ProblemLink({ name, children }) {
  if (!EXPLANATIONS[name]) return html`<code>${name}</code>${children}`;
  return html`<${Link} href=${`/ui/problems#${name}`} title=${sentence(name)}><code>${name}</code>${children}<//>`;
}

/** The sentence and the next step; nothing for a name without them. */
export function Explained({ name }) {
  const found = EXPLANATIONS[name];
  if (!found) return null;
  return html`<span class="explained soft">
    <${Words} text=${found.happened} /> <b>Next step:</b> <${Words} text=${found.next_step} />
  </span>`;
}

/** A text in which backticks mark code. */
export const Words = ({ text }) => text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));
