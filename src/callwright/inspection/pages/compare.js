// Two turns side by side: what differs in how they were asked, and in what came of it.
import { html, number as count, Link } from "./lib.js";
import { BeforeAndAfter } from "./calls.js";
import { indented } from "./json_text.js";
import { promptSize } from "./prompt.js";
import { facts } from "./turn_facts.js";
import { Why } from "./why.js";

export function Compare({ turns }) {
  const [a, b] = turns;
  return html`<div class="page turn">
    <h1>Two turns</h1>
    <table class="compare">
      <thead>
        <tr>
          <th scope="col"></th>
          ${turns.map(
            ({ row }) => html`<th scope="col">
              <${Link} href=${`/ui/turns/${encodeURIComponent(row.id)}`}>${row.id}<//>
              ${row.again_of ? " (run again)" : ""}
            </th>`,
          )}
        </tr>
      </thead>
      <tbody>
        <tr>
          <th scope="row">why</th>
          ${turns.map((turn) => html`<td><${Why} turn=${turn} /></td>`)}
        </tr>
        ${rows(a, b).map(
          ([name, one, two, differs]) => html`<tr class=${differs ? "differs" : ""}>
            <th scope="row">${name}${differs && html`<span aria-label="differs"> ≠</span>`}</th>
            <td>${one}</td>
            <td>${two}</td>
          </tr>`,
        )}
      </tbody>
    </table>
    ${[
      ["Calls", callsOf],
      ["Content", ({ answer }) => answer?.content ?? ""],
      ["Reasoning", ({ answer }) => answer?.reasoning ?? ""],
    ].map(
      ([title, of]) => html`<${Both} title=${title} before=${of(a)} after=${of(b)} names=${[a.row.id, b.row.id]} />`,
    )}
  </div>`;
}

/** [name, value of one, of the other, whether they differ in more than chance]; of settings only what differs. */
function rows(a, b) {
  const [one, two] = [facts(a.row), facts(b.row)];
  const names = [...new Set([...one, ...two].map(([name]) => name))];
  const settings = ["constraint", "prompt"].map((name) => [name, SETTINGS[name](a), SETTINGS[name](b)]);
  return [
    ...names.map((name) => {
      const [x, y] = [one, two].map((list) => list.find(([other]) => other === name) ?? [name, "–"]);
      return [name, x[1], y[1], (x[2] ?? x[1]) !== (y[2] ?? y[1])];
    }),
    ...settings.filter(([, x, y]) => x !== y).map((row) => [...row, true]),
  ];
}

const SETTINGS = {
  constraint: ({ attempts }) => attempts.at(-1)?.constraint?.kind ?? "none",
  prompt: ({ attempts }) => {
    const { prompt, messages } = attempts.at(-1) ?? {};
    if (prompt) return `${count(promptSize(prompt))} characters`;
    return messages ? `${messages.length} messages` : "–";
  },
};

const callsOf = ({ answer }) =>
  (answer?.calls ?? []).map(({ name, arguments: text }) => `${name} ${indented(text)}`).join("\n\n");

function Both({ title, before, after, names }) {
  if (!before && !after) return null;
  return html`<section class="compare-part">
    <h2>${title}${before === after && html`<span class="soft"> the same in both</span>`}</h2>
    ${before === after
      ? html`<pre class="said">${before}</pre>`
      : html`<${BeforeAndAfter} before=${before} after=${after} names=${names} />`}
  </section>`;
}
