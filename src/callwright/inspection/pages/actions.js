// What can be done with a turn: copied as something that makes it again, read on the bench, run again.
import { html, go, postJson, save, Copy, Failed, useContext, useEffect, useRef, useState } from "./lib.js";
import { hand, ofAttempt } from "./bench_state.js";
import { apiOf, asCurl, asPython } from "./copy.js";
import { Gateway } from "./gateway.js";

export function Actions({ turn, attempt }) {
  const gateway = useContext(Gateway);
  const [isAsking, setAsking] = useState(false);
  const { row, request } = turn;
  const isWhole = request !== null && typeof request === "object" && !Array.isArray(request);
  const made = { origin: location.origin, endpoint: row.endpoint, request, key: gateway?.has_keys };
  const isOfApi = isWhole && apiOf(row.endpoint) !== null;
  const state = () => ofAttempt(turn, attempt, gateway?.version ?? "");
  const onSave = () => save(`reading-${row.id}.json`, `${JSON.stringify(state(), null, 2)}\n`);
  const isRead = attempt?.reading && attempt.mode !== "native"; // there a server has read it
  const canRun = isWhole && row.over && gateway?.source === "gateway" && gateway.is_operator;
  if (!isOfApi && !isRead && !canRun) return null;
  return html`<div class="actions">
    ${isOfApi &&
    html`<${Copy} text=${() => asCurl(made)} label="Copy as curl" />
      <${Copy} text=${() => asPython(made)} label="Copy as Python" />`}
    ${isRead &&
    html`<button type="button" onClick=${onSave}>Save as test vector</button>
      <${OpenOnBench} state=${state} />`}
    ${canRun &&
    html`<button type="button" aria-expanded=${isAsking} onClick=${() => setAsking(!isAsking)}>Run again…</button>`}
    ${canRun && isAsking && html`<${Again} turn=${turn} gateway=${gateway} />`}
  </div>`;
}

function OpenOnBench({ state }) {
  const [isFull, setFull] = useState(false);
  const onClick = () => (hand(state()) ? go("/ui/read") : setFull(true));
  return html`<button type="button" onClick=${onClick}>Open on reading bench</button>
    ${isFull && html`<span class="failed" role="alert">It is too long to hand over: save and import it.</span>`}`;
}

export function Again({ turn, gateway }) {
  const { row } = turn;
  const [chosen, setChosen] = useState({ model: "", mode: "", dialect: "" });
  const [state, setState] = useState({ isRunning: false, error: null });
  const leaving = useRef(null);
  useEffect(() => () => leaving.current?.abort(), []);
  const choose = (name) => (event) => setChosen({ ...chosen, [name]: event.target.value });
  const onSubmit = async (event) => {
    event.preventDefault();
    leaving.current = new AbortController();
    setState({ isRunning: true, error: null });
    const body = Object.fromEntries(Object.entries(chosen).filter(([, value]) => value));
    try {
      const response = await postJson(`/ui/api/turns/${encodeURIComponent(row.id)}/again`, body, {
        signal: leaving.current.signal,
      });
      const { id } = await response.json();
      go(`/ui/turns/${encodeURIComponent(row.id)}?with=${encodeURIComponent(id)}`);
    } catch (error) {
      setState({ isRunning: false, error: error.name === "AbortError" ? null : error });
    }
  };
  const select = (name, choices, same) => html`<label>
    ${name[0].toUpperCase() + name.slice(1)}
    <select value=${chosen[name]} onChange=${choose(name)} disabled=${state.isRunning}>
      <option value="">${same}</option>
      ${choices.map((choice) => html`<option value=${choice}>${choice}</option>`)}
    </select>
  </label>`;
  return html`<form class="again" onSubmit=${onSubmit}>
    ${select(
      "model",
      gateway.models.map(({ name }) => name),
      `as before: ${row.model}`,
    )}
    ${select("mode", gateway.modes, "as the model has it")}
    ${select("dialect", gateway.dialects, "as the model has it")}
    <button type="submit" class="main" disabled=${state.isRunning}>
      ${state.isRunning ? "Running…" : "Run and compare"}
    </button>
    ${state.isRunning && html`<button type="button" onClick=${() => leaving.current.abort()}>Stop</button>`}
    ${state.error && html`<${Failed} error=${state.error} />`}
  </form>`;
}
