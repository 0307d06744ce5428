// One turn: first what became of it and why, then when, what was asked and what the model wrote. With `with`, two.
import { html, useEffect, useState, useJson, Failed, Link } from "./lib.js";
import { Actions } from "./actions.js";
import { Attempt } from "./attempt.js";
import { Calls } from "./answer.js";
import { Compare } from "./compare.js";
import { Fold, JsonView } from "./json_view.js";
import { marked } from "./output.js";
import { Said } from "./source.js";
import { Tabs } from "./tabs.js";
import { Timeline } from "./timeline.js";
import { Facts } from "./turn_facts.js";
import { Why } from "./why.js";

const RELOAD_MS = 1_000; // while the turn is running

export default function TurnPage({ id, with: other }) {
  const one = useTurn(id);
  const two = useTurn(other);
  if (one.error || two.error) return html`<${NoTurn} error=${one.error ?? two.error} />`;
  if (!one.data || (other && !two.data)) return html`<div class="page" aria-busy="true"></div>`;
  if (other) return html`<${Compare} turns=${[one.data, two.data]} />`;
  return html`<${Turn} turn=${one.data} />`;
}

function useTurn(id) {
  const loaded = useJson(id ? `/ui/api/turns/${encodeURIComponent(id)}` : null);
  const [last, setLast] = useState(null); // what was there stays, should one of the later loads fail
  useEffect(() => {
    if (loaded.data) setLast(loaded.data);
    if (!loaded.data || loaded.data.row.over) return undefined;
    const timer = setTimeout(loaded.reload, RELOAD_MS);
    return () => clearTimeout(timer);
  }, [loaded.data]);
  const data = loaded.data ?? (last?.row.id === id ? last : null);
  return { data, error: data ? null : loaded.error };
}

function NoTurn({ error }) {
  return html`<div class="page">
    <h1>Request</h1>
    <${Failed} error=${error} />
    <p><${Link} href="/ui">All requests<//></p>
  </div>`;
}

function Turn({ turn }) {
  const { row, attempts, request } = turn;
  const names = attempts.map((_, at) => `Attempt ${at + 1}`);
  const [chosen, setChosen] = useState(null);
  const at = chosen === null ? telling(attempts) : names.indexOf(chosen);
  const attempt = attempts[at];
  const isFull = turn.contents === "full";
  return html`<div class="page turn">
    <h1 class=${row.asked ? "asked" : ""}>${row.asked ? marked(row.asked, false) : html`Request <code>${row.id}</code>`}</h1>
    <${Why} turn=${turn} />
    <${Facts} row=${row} />
    <${Actions} turn=${turn} attempt=${attempt} />
    <${Timeline} turn=${turn} />
    <${NoContents} turn=${turn} />
    ${isFull &&
    attempts.length > 1 &&
    html`<${Tabs} name="Attempts" id="attempts" tabs=${names} chosen=${names[at]} onChoose=${setChosen} />`}
    ${isFull &&
    attempt &&
    html`<div id="attempts-panel" role=${attempts.length > 1 ? "tabpanel" : null} aria-label=${names[at]}>
      <${Attempt} key=${at} attempt=${attempt} number=${at + 1} isOneOfMany=${attempts.length > 1} />
    </div>`}
    ${isFull && row.over && html`<${Answer} turn=${turn} />`}
    ${request !== null &&
    html`<${Fold} class="part" title=${row.again_of ? "Changes of this run" : "The client's request"}>
      ${() => html`<${JsonView} value=${request} open=${2} />`}
    <//>`}
  </div>`;
}

/** The number of the attempt to open: the last in which the model wrote anything, else the last. */
function telling(attempts) {
  const found = attempts.findLastIndex(
    ({ ended, first_s, reading }) =>
      (ended !== "failed" || first_s !== null) && (reading?.output || reading?.calls.length), // not a prefill alone
  );
  return found < 0 ? attempts.length - 1 : found;
}

/** The answer as it was sent. Unfolded if no reading above shows the same. */
function Answer({ turn }) {
  const { answer, attempts, error } = turn;
  const isSeen = attempts.at(-1)?.reading;
  if (!answer || (error && !answer.content && !answer.reasoning && !answer.calls.length)) return null;
  return html`<${Fold} class="part" title="Answer as sent to the client" isOpen=${!isSeen}>
    ${() => html`<div class="source-side">
      <${Calls} calls=${answer.calls} />
      <${Said} title="Content" text=${answer.content} />
      <${Said} title="Reasoning" text=${answer.reasoning} />
      <p class="soft">finish reason <code>${answer.finish_reason ?? "none"}</code></p>
    </div>`}
  <//>`;
}

const WITHOUT = {
  metadata: html`This gateway stores facts only, no contents. With <code>inspect = "full"</code> in${" "}
    <code>[server]</code>, or <code>callwright serve --inspect full</code>, later requests are stored whole, in memory.`,
  gone: "The contents were evicted to make room for later requests. Only the facts are left.",
  operators: "Contents are for operators' keys only.",
};

function NoContents({ turn }) {
  if (turn.contents === "full") return null;
  return html`<p class="no-contents">${WITHOUT[turn.contents] ?? "The content is not available."}</p>`;
}
