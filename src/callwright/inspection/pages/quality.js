// How well the models call tools: outcomes, problems and times, by model and over time.
import { html, Failed, Link, OUTCOMES, number, useContext, useEffect, useState } from "./lib.js";
import { Gateway } from "./gateway.js";
import { ORDER, Outcome } from "./outcome.js";
import { Explained, sentence } from "./explained.js";
import { OverTime } from "./over_time.js";
import { usePolled } from "./polled.js";
import { ShareBar } from "./share_bar.js";
import { byModel, endOf, over, percent, slotted, summed } from "./shares.js";
import { Times } from "./times.js";

const RANGES = [
  ["1h", "1 h", 3600],
  ["6h", "6 h", 6 * 3600],
  ["24h", "24 h", 24 * 3600],
  ["all", "all", null],
];
const MOST_BARS = 72;

/** The range and the model that the address names. */
function chosen() {
  const query = new URLSearchParams(location.search);
  const range = RANGES.find(([id]) => id === query.get("range")) ?? RANGES[2];
  return { range: range[0], model: query.get("model") ?? "" };
}

export default function Quality() {
  const gateway = useContext(Gateway);
  const { data, error } = usePolled("/ui/api/quality", 10);
  const [choice, setChoice] = useState(chosen);
  useEffect(() => {
    const onMove = () => setChoice(chosen());
    addEventListener("popstate", onMove);
    return () => removeEventListener("popstate", onMove);
  }, []);
  const change = (name, value) => {
    const next = { ...choice, [name]: value };
    const query = new URLSearchParams({ range: next.range, ...(next.model && { model: next.model }) });
    setChoice(next);
    history.replaceState(null, "", `/ui/quality?${query}`);
  };
  return html`<div class="page quality">
    <h1>Quality</h1>
    <${Controls} choice=${choice} models=${modelsOf(data, gateway, choice.model)} onChange=${change} />
    ${error && html`<${Failed} error=${error} />`}
    ${data && html`<${Findings} data=${data} choice=${choice} source=${gateway.source} />`}
  </div>`;
}

function modelsOf(data, gateway, model) {
  const names = [...gateway.models.map(({ name }) => name), ...(data?.buckets ?? []).map((bucket) => bucket.model)];
  return [...new Set(model ? [...names, model] : names)].sort();
}

function Controls({ choice, models, onChange }) {
  return html`<div class="row controls">
    <fieldset class="segments">
      <legend class="hidden">Time</legend>
      ${RANGES.map(
        ([id, words]) => html`<label key=${id}>
          <input type="radio" name="range" checked=${choice.range === id} onChange=${() => onChange("range", id)} />
          <span>${words}</span>
        </label>`,
      )}
    </fieldset>
    <select aria-label="Model" value=${choice.model} onChange=${(event) => onChange("model", event.target.value)}>
      <option value="">All models</option>
      ${models.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
    </select>
  </div>`;
}

function Findings({ data, choice, source }) {
  const to = endOf(data, source);
  const its = data.buckets.filter(({ model }) => !choice.model || model === choice.model);
  const length_s = RANGES.find(([id]) => id === choice.range)[2];
  const begin = its.reduce((first, { at }) => Math.min(first, at), to);
  const from = length_s === null ? begin : Math.max(begin, to - length_s); // no empty time before the first data
  const buckets = its.filter(({ at }) => at + data.bucket_s > from);
  if (!buckets.length) return html`<p>No requests in this time.</p>`;
  const models = byModel(buckets);
  const { width_s, slots } = slotted(buckets, data.bucket_s, from, to, MOST_BARS);
  return html`
    <${OverTime} slots=${slots} width_s=${width_s} />
    <${Models} models=${models} />
    <${Problems} models=${models} sum=${summed(buckets)} model=${choice.model} />
    <${Times} models=${models} bounds=${data.bounds} />
  `;
}

function Models({ models }) {
  const seen = ORDER.filter((outcome) => models.some(({ outcomes }) => outcomes[outcome]));
  return html`<section aria-labelledby="by-model">
    <h2 id="by-model">Outcomes by model</h2>
    <div class="wide" tabindex="0" role="group" aria-labelledby="by-model">
      <table class="by-model">
        <thead>
          <tr>
            <th scope="col">Model</th>
            <th scope="col"><span class="hidden">Shares</span></th>
            <th scope="col" class="count">Requests</th>
            ${seen.map(
              (outcome) => html`<th key=${outcome} scope="col" class="count"><${Outcome} of=${outcome} /></th>`,
            )}
          </tr>
        </thead>
        <tbody>
          ${models.map(
            ({ model, turns, outcomes }) => html`<tr key=${model}>
              <th scope="row">${model}</th>
              <td><${ShareBar} outcomes=${outcomes} /></td>
              <td class="count">${number(turns)}</td>
              ${seen.map(
                (outcome) => html`<td key=${outcome} class="count">
                  <${Share} outcome=${outcome} model=${model} count=${outcomes[outcome]} whole=${over(outcomes)} />
                </td>`,
              )}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`;
}

function Share({ outcome, model, count, whole }) {
  if (!count) return html`<span class="soft">0 %</span>`;
  const query = new URLSearchParams({ outcome, model });
  const about = `${number(count)} ${OUTCOMES[outcome] ?? outcome}: show those still kept`;
  return html`<${Link} href=${`/ui?${query}`} title=${about}>${percent(count, whole)}<//>`;
}

function Problems({ models, sum, model }) {
  const kinds = Object.entries(sum.problems).sort(([, a], [, b]) => b - a);
  const most = kinds[0]?.[1];
  const href = (kind) => `/ui?${new URLSearchParams({ problem: kind, ...(model && { model }) })}`;
  return html`<section aria-labelledby="problems">
    <h2 id="problems">Problems</h2>
    ${kinds.length === 0
      ? html`<p class="soft">None in this time.</p>`
      : html`<table class="problem-kinds">
          <thead>
            <tr>
              <th scope="col">Kind</th>
              <th scope="col"><span class="hidden">Bar</span></th>
              <th scope="col" class="count">How often</th>
              <th scope="col" class="mostly">Mostly of</th>
            </tr>
          </thead>
          <tbody>
            ${kinds.map(
              ([kind, count]) => html`<tr key=${kind}>
                <th scope="row">
                  <${Link} href=${href(kind)} title=${sentence(kind)}><code>${kind}</code><//>
                  <${Explained} name=${kind} />
                </th>
                <td>
                  <svg class="count-bar" aria-hidden="true" viewBox="0 0 100 10" preserveAspectRatio="none">
                    <rect width=${(100 * count) / most} height="10" />
                  </svg>
                </td>
                <td class="count">${number(count)}</td>
                <td class="mostly soft">${mostly(models, kind)}</td>
              </tr>`,
            )}
          </tbody>
        </table>`}
  </section>`;
}

function mostly(models, kind) {
  const [first] = models.toSorted((a, b) => (b.problems[kind] ?? 0) - (a.problems[kind] ?? 0));
  const whole = models.reduce((sum, { problems }) => sum + (problems[kind] ?? 0), 0);
  return `${first.model} (${percent(first.problems[kind], whole)})`;
}
