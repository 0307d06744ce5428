// All problems and failures by name, each with its sentence and its next step.
import { html, Link, useContext, useEffect } from "./lib.js";
import { EXPLANATIONS, FAILURES } from "./explanations.js";
import { Words } from "./explained.js";
import { Gateway } from "./gateway.js";

const failed = new Set(FAILURES);

export default function ProblemPage() {
  const { docs } = useContext(Gateway);
  useEffect(() => {
    const frame = requestAnimationFrame(() =>
      document.getElementById(location.hash.slice(1))?.scrollIntoView({ block: "center" }),
    );
    return () => cancelAnimationFrame(frame);
  }, []);
  const rows = Object.entries(EXPLANATIONS);
  return html`<div class="page problem-page">
    <h1>Problems</h1>
    <p class="soft">
      Each fault in a model's output has a name.
      ${docs && html` More in the <a href=${`${docs.replace(/\/?$/, "/")}problems/`}>documentation</a>.`}
    </p>
    <${Table} title="In an answer" id="in-answers" rows=${rows.filter(([name]) => !failed.has(name))} />
    <${Table} title="Instead of an answer" id="no-answers" rows=${rows.filter(([name]) => failed.has(name))} />
  </div>`;
}

function Table({ title, id, rows }) {
  return html`<section aria-labelledby=${id}>
    <h2 id=${id}>${title}</h2>
    <dl class="explanations">
      ${rows.map(
        ([name, one]) => html`<div key=${name} id=${name} class=${`#${name}` === location.hash ? "is-chosen" : ""}>
          <dt><code>${name}</code></dt>
          <dd>
            <${Words} text=${one.happened} /><br />
            <b>Next step:</b> <${Words} text=${one.next_step} />${" "}
            <${Link} href=${`/ui?q=${name}`} aria-label=${`Requests with ${name}`}>requests<//>
          </dd>
        </div>`,
      )}
    </dl>
  </section>`;
}
