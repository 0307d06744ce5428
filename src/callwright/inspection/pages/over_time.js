// Outcomes over time: a stacked bar for each slot of time, and the same as a table.
import { html, number, useEffect, useRef, useState } from "./lib.js";
import { minute } from "./moments.js";
import { ORDER, Outcome, outcomeClass, outcomeWord } from "./outcome.js";
import { inWords, stacked } from "./share_bar.js";
import { over, percent } from "./shares.js";

const HEIGHT = 160; // px of the bars
const LABEL = 90; // px that a time beneath the bars takes
const AXIS = 44; // px at the left, for the counts

export function OverTime({ slots, width_s }) {
  const [isShares, setShares] = useState(false);
  const [isTable, setTable] = useState(false);
  const seen = ORDER.filter((outcome) => slots.some(({ outcomes }) => outcomes[outcome]));
  return html`<section aria-labelledby="over-time">
    <div class="row between">
      <h2 id="over-time">Over time</h2>
      <div class="row">
        <span class="soft">each ${spanOf(width_s)}</span>
        <button type="button" aria-pressed=${isShares ? "true" : "false"} onClick=${() => setShares(!isShares)}>
          As shares
        </button>
        <button type="button" aria-pressed=${isTable ? "true" : "false"} onClick=${() => setTable(!isTable)}>
          As a table
        </button>
      </div>
    </div>
    <ul class="legend">
      ${seen.map((outcome) => html`<li key=${outcome}><${Outcome} of=${outcome} /></li>`)}
    </ul>
    ${isTable
      ? html`<${Table} slots=${slots} seen=${seen} isShares=${isShares} />`
      : html`<${Chart} slots=${slots} isShares=${isShares} width_s=${width_s} />`}
  </section>`;
}

const spanOf = (seconds) => (seconds < 3600 ? `${seconds / 60} min` : `${seconds / 3600} h`);

function Chart({ slots, isShares, width_s }) {
  const box = useRef(null);
  const [width, setWidth] = useState(800);
  const [at, setAt] = useState(null); // the slot that is told about
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(entry.contentRect.width));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const most = isShares ? 1 : roundedUp(Math.max(1, ...slots.map(({ outcomes }) => over(outcomes))));
  const step = (width - AXIS) / slots.length;
  const each = Math.ceil(LABEL / step); // of so many slots one has its time beneath it
  const onKey = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    setAt(Math.min(Math.max((at ?? (by > 0 ? -1 : slots.length)) + by, 0), slots.length - 1));
  };
  const onMove = (event) => {
    const index = Math.floor((event.clientX - box.current.getBoundingClientRect().left - AXIS) / step);
    setAt(index >= 0 && index < slots.length ? index : null);
  };
  const shown = slots[at];
  return html`<div
    class="chart"
    ref=${box}
    tabindex="0"
    role="group"
    aria-label="Outcomes over time; the arrow keys go from bar to bar"
    aria-describedby="chart-told"
    onKeyDown=${onKey}
    onMouseMove=${onMove}
    onMouseLeave=${() => setAt(null)}
    onBlur=${() => setAt(null)}
  >
    <svg width=${width} height=${HEIGHT + 26} role="img" aria-label=${totals(slots)}>
      ${[0, 0.5, 1].map((part) => {
        const y = 6.5 + Math.round(HEIGHT * (1 - part));
        return html`<g key=${part}>
          <line class="grid-line" x1=${AXIS} x2=${width} y1=${y} y2=${y} />
          <text class="axis" x=${AXIS - 8} y=${y + 4} text-anchor="end">
            ${isShares ? `${100 * part} %` : number(most * part)}
          </text>
        </g>`;
      })}
      ${slots.map(
        (slot, index) => html`<${Bar}
          key=${slot.at}
          slot=${slot}
          x=${AXIS + index * step}
          width=${step}
          most=${isShares ? Math.max(1, over(slot.outcomes)) : most}
          isShown=${index === at}
        />`,
      )}
      ${slots.map(
        (slot, index) =>
          index % each === 0 &&
          AXIS + index * step + LABEL <= width + LABEL / 2 &&
          html`<text key=${slot.at} class="axis" x=${AXIS + index * step} y=${HEIGHT + 22}>${minute(slot.at)}</text>`,
      )}
    </svg>
    <p id="chart-told" class="chart-told" aria-live="polite">
      ${shown
        ? html`<b>${minute(shown.at)} – ${minute(shown.at + width_s)}</b> ${requests(shown)}`
        : html`<span class="soft">Point at a bar, or use the arrow keys, for its numbers.</span>`}
    </p>
  </div>`;
}

function Bar({ slot, x, width, most, isShown }) {
  const gap = width > 8 ? 1 : 0.5;
  return html`<g>
    ${isShown && html`<rect class="shown-slot" x=${x} y="6" width=${width} height=${HEIGHT} />`}
    ${stacked(slot.outcomes).map(
      ({ outcome, count, begin }) => html`<rect
        key=${outcome}
        class=${`share ${outcomeClass(outcome)} ${HEIGHT * count < 4 * most ? "thin" : ""}`}
        x=${x + gap}
        width=${Math.max(1, width - 2 * gap)}
        y=${6 + HEIGHT * (1 - (begin + count) / most)}
        height=${(HEIGHT * count) / most}
      >
        <title>${minute(slot.at)}, ${outcomeWord(outcome)}: ${count}</title>
      </rect>`,
    )}
  </g>`;
}

const requests = ({ outcomes }) => {
  const whole = over(outcomes);
  return whole ? `${number(whole)} ${whole === 1 ? "request" : "requests"}: ${inWords(outcomes)}` : "no requests";
};

function totals(slots) {
  const whole = slots.reduce((sum, { outcomes }) => sum + over(outcomes), 0);
  return `${number(whole)} requests from ${minute(slots[0].at)} to ${minute(slots.at(-1).at)}, as stacked bars`;
}

/** The next number that halves well: 10, 20, 40, 60, 100, 200, … */
function roundedUp(count) {
  const unit = 10 ** Math.max(0, Math.ceil(Math.log10(count)) - 1);
  const factor = [1, 2, 4, 6, 8, 10].find((times) => times * unit >= count);
  return Math.max(2, factor * unit);
}

function Table({ slots, seen, isShares }) {
  const shown = slots.filter(({ outcomes }) => over(outcomes)).toReversed();
  return html`<div class="wide tall" tabindex="0" role="group" aria-label="Outcomes over time, as a table">
    <table>
      <thead>
        <tr>
          <th scope="col">From</th>
          <th scope="col" class="count">Requests</th>
          ${seen.map((outcome) => html`<th key=${outcome} scope="col" class="count">${outcomeWord(outcome)}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${shown.map(({ at, outcomes }) => {
          const whole = over(outcomes);
          return html`<tr key=${at}>
            <th scope="row">${minute(at)}</th>
            <td class="count">${number(whole)}</td>
            ${seen.map((outcome) => {
              const count = outcomes[outcome] ?? 0;
              const told = isShares ? percent(count, whole) : number(count);
              return html`<td key=${outcome} class=${`count ${count ? "" : "soft"}`}>${told}</td>`;
            })}
          </tr>`;
        })}
      </tbody>
    </table>
  </div>`;
}
