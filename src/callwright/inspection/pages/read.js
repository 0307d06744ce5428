// The reading bench: an output of a model is pasted, and read as the gateway would.
import { html, postJson, save, useContext, useEffect, useRef, useState } from "./lib.js";
import { BeforeAndAfter } from "./calls.js";
import { Settings } from "./bench_form.js";
import { differing, handed, resultOf, stateFrom, stateOf } from "./bench_state.js";
import { READINGS } from "./examples.js";
import { Gateway } from "./gateway.js";
import { Source } from "./source.js";
import { droppable, FieldError, FileButton, toolsOf, toolsText } from "./tools_field.js";

const PAUSE_MS = 300; // after the last change, before it is read
const PARAMS = ["output", "tools", "dialect", "tool_choice", "start", "finish_reason"];
const UNSET = { tool_choice: null, start: "assistant", finish_reason: "stop", then: null };

let left = null; // what was on the bench when its page was left

/** Settings of the bench from an example, a file or another page. `then`: what was read of it before. */
const benchOf = ({ output, tools, dialect, tool_choice, start, finish_reason, read }) => ({
  output,
  tools: toolsText(tools),
  dialect: dialect ?? "auto",
  tool_choice: tool_choice ?? UNSET.tool_choice,
  start: start ?? UNSET.start,
  finish_reason: finish_reason ?? UNSET.finish_reason,
  then: read ?? null,
});

function atFirst() {
  try {
    const given = handed();
    if (given) return benchOf(given);
  } catch {
    // what was handed over is not ours: begin as ever
  }
  return left ?? benchOf(READINGS[0]);
}

export default function ReadPage() {
  const gateway = useContext(Gateway);
  const [bench, setBench] = useState(atFirst);
  const [wrongFile, setWrongFile] = useState(null);
  const { reading, error, isRead } = useReading(bench);
  useEffect(() => {
    left = bench;
  }, [bench]);
  const change = (fields) => setBench({ ...bench, then: null, ...fields });
  const open = (text) => {
    try {
      setBench(benchOf(stateFrom(text)));
      setWrongFile(null);
    } catch (failed) {
      setWrongFile(failed.message);
    }
  };
  const onExport = () => {
    const { tools } = toolsOf(bench.tools);
    const state = stateOf({ ...bench, tools: tools ?? [], version: gateway?.version ?? "", reading });
    save("reading.json", `${JSON.stringify(state, null, 2)}\n`);
  };
  const at = PARAMS.find((param) => error?.param === param || error?.param?.startsWith(`${param}[`));
  return html`<div class="page bench" ...${droppable(open)}>
    <div class="bench-head">
      <h1>Reading bench</h1>
      <select aria-label="Example output" value="" onChange=${(event) => pick(event, setBench)}>
        <option value="">Example output…</option>
        ${READINGS.map(({ name }) => html`<option value=${name}>${name}</option>`)}
      </select>
      <button type="button" onClick=${onExport} disabled=${!isRead}>Export</button>
      <${FileButton} label="Import" accept=".json,application/json" onText=${open} />
      <span class="soft">or drop a file here</span>
    </div>
    <p class="soft">Reads the output of a model as the gateway would, after each change.</p>
    <${FieldError} id="bench-file" error=${wrongFile} />
    <${Settings} bench=${bench} dialects=${gateway?.dialects ?? []} error=${error} at=${at} onChange=${change} />
    ${error && !at && html`<p class="failed" role="alert">${error.message}</p>`}
    ${bench.then && isRead && html`<${AsThen} then=${bench.then} now=${resultOf(reading)} />`}
    ${reading && !error && html`<div aria-busy=${!isRead}><h2 class="hidden">Result</h2><${Source} reading=${reading} /></div>`}
  </div>`;
}

function pick(event, onBench) {
  const example = READINGS.find(({ name }) => name === event.target.value);
  event.target.value = "";
  if (example) onBench(benchOf(example));
}

/** The reading of what is on the bench, a moment after each change; the last one stays until there is a newer. */
function useReading(bench) {
  const [state, setState] = useState({ reading: null, error: null, isRead: false });
  const isFirst = useRef(true);
  const { output, tools: text, dialect, tool_choice, start, finish_reason } = bench;
  useEffect(() => {
    setState((before) => ({ ...before, isRead: false }));
    const { tools, error } = toolsOf(text);
    if (error) {
      setState((before) => ({ ...before, error: { message: error, param: "tools" } }));
      return undefined;
    }
    const leaving = new AbortController();
    const read = async () => {
      try {
        const body = { output, tools, dialect, start, finish_reason, ...(tool_choice !== null && { tool_choice }) };
        const response = await postJson("/ui/api/read", body, { signal: leaving.signal });
        setState({ reading: await response.json(), error: null, isRead: true });
      } catch (failed) {
        if (!leaving.signal.aborted) setState((before) => ({ ...before, error: failed }));
      }
    };
    const timer = setTimeout(read, isFirst.current ? 0 : PAUSE_MS);
    isFirst.current = false;
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [output, text, dialect, JSON.stringify(tool_choice), start, finish_reason]);
  return state;
}

/** Whether the same is read of an imported output as when it was exported. */
function AsThen({ then, now }) {
  const fields = differing(then, now);
  if (!fields.length) return html`<p class="as-then is-same">The same is read of it as before.</p>`;
  const text = (result) => JSON.stringify(Object.fromEntries(fields.map((field) => [field, result[field]])), null, 2);
  return html`<details class="as-then is-other">
    <summary>It is read differently than before: ${fields.join(", ")}</summary>
    <${BeforeAndAfter} before=${text(then)} after=${text(now)} names=${["then", "now"]} />
  </details>`;
}
