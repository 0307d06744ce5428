// The shares of outcomes as one bar.
import { html } from "./lib.js";
import { ORDER, outcomeClass, outcomeWord } from "./outcome.js";
import { over, percent } from "./shares.js";

/** The parts of a bar in the order of outcomes: [{outcome, count, begin}], where the counts before it end. */
export function stacked(outcomes) {
  let begin = 0;
  return ORDER.filter((outcome) => outcomes[outcome]).map((outcome) => {
    const part = { outcome, count: outcomes[outcome], begin };
    begin += part.count;
    return part;
  });
}

/** "right at once 71 %, repaired 12 %" */
export function inWords(outcomes) {
  const whole = over(outcomes);
  return stacked(outcomes)
    .map(({ outcome, count }) => `${outcomeWord(outcome)} ${percent(count, whole)}`)
    .join(", ");
}

export function ShareBar({ outcomes }) {
  const whole = over(outcomes);
  return html`<svg
    class="share-bar"
    role="img"
    aria-label=${inWords(outcomes)}
    viewBox="0 0 100 10"
    preserveAspectRatio="none"
  >
    ${stacked(outcomes).map(
      ({ outcome, count, begin }) => html`<rect
        key=${outcome}
        class=${`share ${outcomeClass(outcome)} ${count < whole / 50 ? "thin" : ""}`}
        x=${(100 * begin) / whole}
        width=${(100 * count) / whole}
        height="10"
      >
        <title>${outcomeWord(outcome)}: ${percent(count, whole)} (${count})</title>
      </rect>`,
    )}
  </svg>`;
}
