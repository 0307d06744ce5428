// The filters above the list of requests.
import { html } from "./lib.js";
import { rows } from "./live.js";
import { ORDER, outcomeWord } from "./outcome.js";
import { RUNNING } from "./rows.js";

export function Filters({ filter, search, hasKeys, onChange, onClear }) {
  const outcomes = [[RUNNING, RUNNING], ...ORDER.map((outcome) => [outcome, outcomeWord(outcome)])];
  return html`<div class="filters" role="search">
    <input
      ref=${search}
      type="search"
      class="search"
      aria-label="Search: question, tools, model, problems, error, ids"
      placeholder="Search  ( / )"
      title="Question, tools called, model, key, problems, error, ids"
      spellcheck=${false}
      autocomplete="off"
      value=${filter.q}
      onInput=${(event) => onChange("q", event.target.value)}
    />
    <${Choice} name="outcome" label="Outcome" filter=${filter} choices=${outcomes} onChange=${onChange} />
    <${Choice} name="model" label="Model" filter=${filter} choices=${sorted(rows.models)} onChange=${onChange} />
    ${hasKeys &&
    html`<${Choice} name="key" label="Key" filter=${filter} choices=${sorted(rows.keys)} onChange=${onChange} />`}
    <${Choice} name="problem" label="Problem" filter=${filter} choices=${sorted(rows.problems)} onChange=${onChange} />
    ${onClear && html`<button type="button" onClick=${onClear}>Clear</button>`}
  </div>`;
}

const sorted = (names) => [...names].sort().map((name) => [name, name]);

function Choice({ name, label, filter, choices, onChange }) {
  const value = filter[name];
  const isStrange = value && !choices.some(([choice]) => choice === value); // from a link, and not seen here
  const all = isStrange ? [...choices, [value, value]] : choices;
  return html`<select
    class=${value ? "set" : ""}
    aria-label=${label}
    value=${value}
    onChange=${(event) => onChange(name, event.target.value)}
  >
    <option value="">${label}: any</option>
    ${all.map(([choice, words]) => html`<option key=${choice} value=${choice}>${words}</option>`)}
  </select>`;
}
