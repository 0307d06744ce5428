// One request and its answer: what was sent, the answer as a client gets it, and beside it what the model wrote.
import { html, getJson, number as count, Link, useContext, useEffect, useRef, useState } from "./lib.js";
import { Again } from "./actions.js";
import { Arguments, Value } from "./calls.js";
import { outputOf } from "./examples.js";
import { Gateway } from "./gateway.js";
import { indented } from "./json_text.js";
import { rows, useLive } from "./live.js";
import { Outcome } from "./outcome.js";
import { marked } from "./output.js";
import { openCalls, outputItem } from "./response_stream.js";
import { Source } from "./source.js";

/** `onOutputs` sends what the tools gave; null where that is not to be asked. */
export function Round({ round, gateway, onOutputs }) {
  const { sent, answer, state, error, request_id: id } = round;
  const open = openCalls(answer);
  const section = useRef(null);
  useEffect(() => {
    if (document.activeElement === document.body) section.current.focus(); // what was sent from is gone
  }, []);
  return html`<section class="round" ref=${section} tabindex="-1" aria-busy=${state === "running"}>
    <div class="round-sent">${sent.map((item, at) => html`<${Sent} key=${at} item=${item} />`)}</div>
    <div class="round-both">
      <div class="round-answer source-side">
        <h2>Answer</h2>
        ${answer.items.map((item, at) => item && html`<${Item} key=${at} shown=${item} />`)}
        ${state === "running" &&
        html`<p class="soft" role="status">${answer.items.length ? "…" : "Waiting for the model"}</p>`}
        ${[error, answer.error].map((one) => one && html`<${ApiSaid} error=${one} />`)}
        ${answer.usage && html`<${Tokens} usage=${answer.usage} />`}
        ${onOutputs && open.length > 0 && html`<${Outputs} calls=${open} onSend=${onOutputs} />`}
      </div>
      <div class="round-raw">
        <h2>Output of the model</h2>
        ${whyNot(gateway) ??
        (id
          ? html`<${Raw} key=${id} id=${id} isOver=${state === "over"} />`
          : html`<p class="soft">Nothing yet.</p>`)}
      </div>
    </div>
  </section>`;
}

const Tokens = ({ usage }) =>
  html`<p class="soft">${count(usage.input_tokens)} tokens in, ${count(usage.output_tokens)} out</p>`;

function whyNot({ inspect, is_operator: isOperator }) {
  if (!isOperator) return html`<p class="soft">It is for operators' keys only.</p>`;
  if (inspect === "full") return null;
  return html`<p class="soft">
    It is not kept: this gateway has <code>inspect = "${inspect}"</code>, and <code>"full"</code> would keep it.
  </p>`;
}

function Sent({ item }) {
  const text = typeof item.content === "string" ? item.content : item.output;
  return html`<p class="round-line">
    <span class="soft">${item.role ?? "output"}</span> <span class="said-text">${marked(text ?? "", false)}</span>
  </p>`;
}

const TITLES = { reasoning: "reasoning", message: "text" };

function Item({ shown }) {
  const { type, name, text, arguments: given, item } = shown;
  if (TITLES[type]) {
    return text && html`<p class="item-title soft">${TITLES[type]}</p><pre class=${type}>${marked(text, false)}</pre>`;
  }
  if (type === "mcp_list_tools") {
    const tools = item?.tools?.length ?? "…";
    return html`<p class="item-title soft">tools of ${item?.server_label ?? "a server"}: ${tools}</p>`;
  }
  if (!name) return html`<p class="item-title soft">${type}</p>`;
  return html`<p class="item-title soft">${type}</p>
    <p class="call-head"><span class="piece name">${name}</span></p>
    ${item
      ? html`<${Arguments} call=${{ arguments: given, kind: type === "custom_tool_call" ? "custom" : "function" }} />`
      : html`<pre>${marked(given, false)}</pre>`}
    ${item?.output && html`<p class="item-title soft">its output</p><${Value} json=${indented(item.output)} />`}
    ${item?.error &&
    html`<p class="failed">${typeof item.error === "string" ? item.error : JSON.stringify(item.error)}</p>`}`;
}

/** An error in the words of the API. */
function ApiSaid({ error }) {
  const about = [error.status && `status ${error.status}`, error.code, error.param].filter(Boolean).join(" · ");
  return html`<p class="failed" role="alert">${error.message}${about && html` <code>${about}</code>`}</p>`;
}

function Outputs({ calls, onSend }) {
  const [texts, setTexts] = useState(() => calls.map(({ name }) => outputOf(name)));
  const onSubmit = (event) => {
    event.preventDefault();
    onSend(calls.map((call, at) => outputItem(call, texts[at])));
  };
  return html`<form class="outputs" onSubmit=${onSubmit}>
    ${calls.map(
      ({ name, item }, at) => html`<div class="field">
        <label for=${`output-${item.call_id}`}>Output of <code>${name}</code></label>
        <textarea
          id=${`output-${item.call_id}`}
          rows="2"
          spellcheck=${false}
          value=${texts[at]}
          onInput=${(event) => setTexts(texts.with(at, event.target.value))}
        ></textarea>
      </div>`,
    )}
    <button type="submit" class="main">${calls.length > 1 ? "Send outputs" : "Send output"}</button>
  </form>`;
}

/** The turns that a request led to, from the rows as they come, each with its reading once it is over. */
function Raw({ id, isOver }) {
  // As one text: it is the same for as long as nothing of these rows changes, and so nothing is drawn anew.
  const found = useLive(() =>
    rows.order
      .filter(({ row }) => row.request_id === id)
      .map(({ row }) => `${row.id} ${row.over ? row.outcome : ""}`)
      .join("\n"),
  );
  if (!found) return html`<p class="soft">${isOver ? "The model was not asked." : "Waiting for the turn."}</p>`;
  return found.split("\n").map((line) => {
    const [turn, outcome] = line.split(" ");
    return html`<${TurnRead} key=${turn} id=${turn} outcome=${outcome} />`;
  });
}

function TurnRead({ id, outcome }) {
  const gateway = useContext(Gateway);
  const [state, setState] = useState({ turn: null, error: null });
  const leaving = useRef(null);
  useEffect(() => {
    if (!outcome) return undefined;
    leaving.current = new AbortController();
    const { signal } = leaving.current;
    getJson(`/ui/api/turns/${encodeURIComponent(id)}`, { signal }).then(
      (turn) => setState({ turn, error: null }),
      (error) => signal.aborted || setState({ turn: null, error }),
    );
    return () => leaving.current.abort();
  }, [id, outcome]);
  const attempt = state.turn?.attempts.at(-1);
  return html`<p class="round-turn">
      <${Link} href=${`/ui/turns/${encodeURIComponent(id)}`}>Request ${id}<//> <${Outcome} of=${outcome} />
    </p>
    ${state.error && html`<p class="failed">${state.error.message}</p>`}
    ${state.turn &&
    html`<details class="more-facts">
      <summary>Run again in another mode or dialect</summary>
      <${Again} turn=${state.turn} gateway=${gateway} />
    </details>`}
    ${attempt?.reading && html`<${Source} reading=${attempt.reading} />`}
    ${attempt && !attempt.reading && html`<p class="soft">Nothing of it was kept.</p>`}`;
}
