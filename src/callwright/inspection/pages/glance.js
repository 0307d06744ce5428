// Quality at a glance: the outcomes of the last day, and the problems that came last.
import { html, Failed, Link, number } from "./lib.js";
import { sentence } from "./explained.js";
import { minute } from "./moments.js";
import { ORDER, Outcome } from "./outcome.js";
import { usePolled } from "./polled.js";
import { ShareBar } from "./share_bar.js";
import { endOf, over, percent, summed } from "./shares.js";

const DAY_S = 86_400;
const ALWAYS = ["right", "mended", "asked_again", "failed"]; // told also when there are none
const LAST = 6;

export function Glance({ gateway }) {
  const { data, error } = usePolled("/ui/api/quality", 10);
  return html`<section class="glance-of" aria-labelledby="glance">
    <div class="row between">
      <h2 id="glance">Quality</h2>
      <span class="soft">${gateway.source === "files" ? "the last day in the files" : "last 24 hours"}</span>
    </div>
    ${data ? html`<${Shares} data=${data} gateway=${gateway} />` : error && html`<${Failed} error=${error} />`}
  </section>`;
}

function Shares({ data, gateway }) {
  const from = endOf(data, gateway.source) - DAY_S;
  const buckets = data.buckets.filter(({ at }) => at >= from);
  const { outcomes } = summed(buckets);
  const whole = over(outcomes);
  if (!whole) {
    return html`<p class="soft">
      ${gateway.inspect === "off" ? html`Nothing is kept: <code>inspect</code> is <code>"off"</code>.` : "No requests."}
    </p>`;
  }
  return html`<${ShareBar} outcomes=${outcomes} />
    <table class="glance">
      <thead class="hidden">
        <tr>
          <th scope="col">Outcome</th>
          <th scope="col">Share</th>
          <th scope="col">Requests</th>
        </tr>
      </thead>
      <tbody>
        ${ORDER.filter((outcome) => outcomes[outcome] || ALWAYS.includes(outcome)).map(
          (outcome) => html`<tr key=${outcome}>
            <td><${Link} href=${`/ui?outcome=${outcome}`}><${Outcome} of=${outcome} /><//></td>
            <td class="count">${percent(outcomes[outcome], whole)}</td>
            <td class="count soft">${number(outcomes[outcome] ?? 0)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
    <${LastProblems} buckets=${buckets} />`;
}

function LastProblems({ buckets }) {
  const kinds = new Map(); // with the newest first: the order of the buckets is that of time
  for (const { at, problems } of buckets.toReversed()) {
    for (const [kind, count] of Object.entries(problems)) {
      const known = kinds.get(kind);
      if (known) known.count += count;
      else kinds.set(kind, { at, count });
    }
  }
  if (!kinds.size) return html`<p class="soft">No problems in this time.</p>`;
  return html`<table class="glance">
      <thead>
        <tr>
          <th scope="col">Last problems</th>
          <th scope="col" class="count">last</th>
          <th scope="col" class="count">times</th>
        </tr>
      </thead>
      <tbody>
        ${[...kinds].slice(0, LAST).map(
          ([kind, { at, count }]) => html`<tr key=${kind}>
            <td><${Link} href=${`/ui?problem=${encodeURIComponent(kind)}`} title=${sentence(kind)}><code>${kind}</code><//></td>
            <td class="count soft">${minute(at)}</td>
            <td class="count">${number(count)}</td>
          </tr>`,
        )}
      </tbody>
    </table>`;
}
