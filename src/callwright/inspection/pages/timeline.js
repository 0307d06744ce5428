// When each attempt waited, was answered and ended, as bars over the time of the turn.
import { html, duration } from "./lib.js";

const KINDS = {
  queue: "in the queue",
  first: "to the first byte",
  last: "first byte to last",
};

export function Timeline({ turn }) {
  const { row, attempts } = turn;
  const timed = attempts.filter((attempt) => attempt.begun_s !== null || attempt.first_s !== null);
  if (!timed.length) return null;
  const last = (attempt) => attempt.ended_s ?? attempt.first_s ?? attempt.sent_s ?? attempt.begun_s ?? 0;
  const elapsed = row.over ? (row.seconds ?? 0) : Date.now() / 1000 - row.at;
  const whole = Math.max(elapsed, ...attempts.map(last), 0.001);
  const used = new Set(attempts.flatMap((attempt) => parts(attempt, whole).map(({ kind }) => kind)));
  return html`<section class="timeline" aria-label="Time line">
    ${attempts.map((attempt, at) => html`<${Bar} key=${at} attempt=${attempt} number=${at + 1} whole=${whole} />`)}
    <p class="timeline-legend">
      ${Object.entries(KINDS).map(
        ([kind, words]) =>
          used.has(kind) &&
          html`<span>
            <svg width="14" height="10" aria-hidden="true">
              <rect class=${`time-${kind}`} x="0.5" y="0.5" width="13" height="9" />
            </svg>
            ${` ${words}`}
          </span>`,
      )}
      <span class="soft">whole bar: ${duration(whole)}</span>
    </p>
  </section>`;
}

function Bar({ attempt, number, whole }) {
  const found = parts(attempt, whole);
  const said = found.map(({ kind, seconds }) => `${NAMES[kind]} ${duration(seconds)}`).join(" · ");
  return html`<div class="timeline-row">
    <span class="soft">attempt ${number}</span>
    <svg width="100%" height="14" role="img" aria-label=${`Attempt ${number}: ${said}`}>
      <line x1="0" x2="100%" y1="13.5" y2="13.5" class="time-axis" />
      ${found.map(
        ({ kind, begin, seconds }) => html`<rect
          class=${`time-${kind}`}
          x=${`${(begin / whole) * 100}%`}
          y="2"
          width=${`${Math.max((seconds / whole) * 100, 0.15)}%`}
          height="10"
        />`,
      )}
    </svg>
    <span class="timeline-said">${said}${attempt.ended === "running" ? " · running" : ""}</span>
  </div>`;
}

const NAMES = { queue: "queue", first: "first byte", last: "to the last" };

/** [{kind, begin, seconds}], as far as it came. */
function parts({ begun_s, queued_s, sent_s, first_s, ended_s, ended }, whole) {
  const begin = begun_s ?? 0;
  const queued = queued_s ?? 0; // how long it waited
  const sent = sent_s ?? begin + queued;
  const end = ended_s ?? (ended === "running" ? whole : (first_s ?? sent));
  const first = first_s ?? end;
  return [
    { kind: "queue", begin, seconds: queued },
    { kind: "first", begin: sent, seconds: first - sent },
    { kind: "last", begin: first, seconds: end - first },
  ].filter(({ seconds }) => seconds > 0.0005 * whole);
}
