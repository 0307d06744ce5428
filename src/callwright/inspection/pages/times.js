// How long turns take, by model: what half, nine of ten and all but one of a hundred stay below.
import { html, duration, number } from "./lib.js";
import { quantile } from "./shares.js";

const QUANTILES = [
  ["p50", 0.5],
  ["p90", 0.9],
  ["p99", 0.99],
];
const KINDS = [
  ["first", "First byte"],
  ["seconds", "Duration"],
];

export function Times({ models, bounds }) {
  return html`<section aria-labelledby="times">
    <h2 id="times">Times by model</h2>
    <div class="wide" tabindex="0" role="group" aria-labelledby="times">
      <table class="times">
        <thead>
          <tr>
            <th scope="col">Model</th>
            ${KINDS.map(([kind, words]) =>
              QUANTILES.map(
                ([name], index) => html`<th key=${kind + name} scope="col" class="count">
                  <span class=${index ? "hidden" : ""}>${words}${" "}</span>${name}
                </th>`,
              ),
            )}
          </tr>
        </thead>
        <tbody>
          ${models.map(
            (model) => html`<tr key=${model.model}>
              <th scope="row">${model.model}</th>
              ${KINDS.map(([kind]) =>
                QUANTILES.map(
                  ([name, q]) => html`<td key=${kind + name} class="count">
                    ${told(quantile(model[kind], bounds, q))}
                  </td>`,
                ),
              )}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <p class="soft">
      Estimated from counts in ${number(bounds.length + 1)} ranges of time; each is right up to the width of its range.
    </p>
  </section>`;
}

function told(found) {
  if (found === null) return "–";
  return found.isBeyond ? `> ${duration(found.seconds)}` : duration(found.seconds);
}
