// Tokens and costs by key, model and day, and the budgets. Costs come in millionths of the currency.
import { html, Failed, number, useState } from "./lib.js";
import { usePolled } from "./polled.js";
import { percent } from "./shares.js";

const RANGES = [
  [1, "today"],
  [7, "7 days"],
  [31, "31 days"],
  [365, "1 year"],
];
const GROUPS = [
  ["key", "Key"],
  ["model", "Model"],
  ["day", "Day"],
];
const SUMS = ["requests", "input_tokens", "cached_tokens", "output_tokens", "cost"];
const MILLION = 1_000_000;

export default function Spend() {
  const [days, setDays] = useState(31);
  const [by, setBy] = useState("key");
  const { data, error } = usePolled(`/ui/api/spend?days=${days}`, 10);
  return html`<div class="page quality">
    <h1>Spend</h1>
    <div class="row controls">
      <${Choice} name="Time" options=${RANGES} chosen=${days} onChoose=${setDays} />
      <${Choice} name="Group by" options=${GROUPS} chosen=${by} onChoose=${setBy} />
    </div>
    ${error && html`<${Failed} error=${error} />`}
    ${data && html`<${Usage} data=${data} by=${by} />`}
    ${data && data.budgets.length > 0 && html`<${Budgets} data=${data} />`}
  </div>`;
}

function Choice({ name, options, chosen, onChoose }) {
  return html`<fieldset class="segments">
    <legend class="hidden">${name}</legend>
    ${options.map(
      ([value, words]) => html`<label key=${value}>
        <input type="radio" name=${name} checked=${chosen === value} onChange=${() => onChoose(value)} />
        <span>${words}</span>
      </label>`,
    )}
  </fieldset>`;
}

/** [{name, …sums}]: of days the latest first, of others the one with the highest cost. */
function grouped(rows, by) {
  const groups = new Map();
  for (const row of rows) {
    const group = groups.get(row[by]) ?? { name: row[by], ...Object.fromEntries(SUMS.map((field) => [field, 0])) };
    for (const field of SUMS) group[field] += row[field];
    groups.set(row[by], group);
  }
  const found = [...groups.values()];
  if (by === "day") return found;
  return found.sort((a, b) => b.cost - a.cost || b.input_tokens + b.output_tokens - a.input_tokens - a.output_tokens);
}

function Usage({ data, by }) {
  if (!data.rows.length) return html`<p>No requests in this time.</p>`;
  const groups = grouped(data.rows, by);
  const [whole] = grouped(
    data.rows.map((row) => ({ ...row, all: "Total" })),
    "all",
  );
  const most = Math.max(...groups.map(({ cost }) => cost)) || 1;
  return html`<section aria-labelledby="usage">
    <h2 id="usage">Usage</h2>
    <div class="wide" tabindex="0" role="group" aria-labelledby="usage">
      <table class="by-model">
        <thead>
          <tr>
            <th scope="col">${GROUPS.find(([id]) => id === by)[1]}</th>
            <th scope="col" class="count">Cost (${data.currency})</th>
            <th scope="col"><span class="hidden">Bar</span></th>
            <th scope="col" class="count">Requests</th>
            <th scope="col" class="count">Input</th>
            <th scope="col" class="count">Cached</th>
            <th scope="col" class="count">Output</th>
          </tr>
        </thead>
        <tbody>
          ${groups.map((group) => html`<${Row} key=${group.name} group=${group} share=${group.cost / most} />`)}
        </tbody>
        <tfoot>
          <${Row} group=${whole} share=${0} />
        </tfoot>
      </table>
    </div>
  </section>`;
}

function Row({ group, share }) {
  return html`<tr>
    <th scope="row">${group.name || html`<span class="soft">without a key</span>`}</th>
    <td class="count">${money(group.cost)}</td>
    <td><${Bar} share=${share} /></td>
    ${SUMS.slice(0, -1).map((field) => html`<td key=${field} class="count">${number(group[field])}</td>`)}
  </tr>`;
}

function Bar({ share }) {
  return html`<svg class="count-bar" aria-hidden="true" viewBox="0 0 100 10" preserveAspectRatio="none">
    <rect width=${100 * Math.min(1, share)} height="10" />
  </svg>`;
}

/** "0.003210": millionths as they are, so that small costs can be seen. */
const money = (cost) =>
  (cost / MILLION).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: cost < MILLION ? 6 : 2 });

function Budgets({ data }) {
  const amount = ({ unit }, value) => (unit === "cost" ? `${money(value)} ${data.currency}` : `${number(value)} tokens`);
  return html`<section aria-labelledby="budgets">
    <h2 id="budgets">Budgets</h2>
    <div class="wide" tabindex="0" role="group" aria-labelledby="budgets">
      <table class="by-model">
        <thead>
          <tr>
            <th scope="col">Budget</th>
            <th scope="col" class="count">Share</th>
            <th scope="col"><span class="hidden">Bar</span></th>
            <th scope="col" class="count">Used</th>
            <th scope="col" class="count">Limit</th>
            <th scope="col">Reset (UTC)</th>
          </tr>
        </thead>
        <tbody>
          ${data.budgets.map(
            (budget) => html`<tr key=${[budget.owner, budget.name, budget.unit, budget.period].join(" ")}>
              <th scope="row">${budget.owner} ${budget.name}, per ${budget.period}</th>
              <td class="count">${percent(budget.used, budget.limit)}</td>
              <td><${Bar} share=${budget.used / budget.limit} /></td>
              <td class="count">${amount(budget, budget.used)}</td>
              <td class="count">${amount(budget, budget.limit)}</td>
              <td>${budget.reset.slice(0, 16).replace("T", " ")}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`;
}
