// Tools as JSON: typed, from an example, or from a file.
import { html, useRef, useState } from "./lib.js";
import { TOOLS } from "./examples.js";
import { laidOut } from "./json_text.js";

/** The tools of a text: {tools: a list or undefined, error: words for people or null}. */
export function toolsOf(text) {
  if (!text.trim()) return { tools: undefined, error: null };
  try {
    const value = JSON.parse(text);
    return { tools: Array.isArray(value) ? value : (value?.tools ?? [value]), error: null }; // of a request: its tools
  } catch (error) {
    return { tools: undefined, error: `This is not JSON: ${error.message}` };
  }
}

export const toolsText = (tools) => (tools?.length ? laidOut(tools) : "");

/** `onExample` gets the example that was chosen, `onChange` the text. */
export function ToolsField({ id, text, error, onChange, onExample, rows = 10 }) {
  return html`<div class="field">
    <div class="field-head">
      <label for=${id}>Tools</label>
      <span class="field-ways">
        <select aria-label="Example tools" value="" onChange=${(event) => pick(event, onExample)}>
          <option value="">Example tools…</option>
          ${TOOLS.map(({ name }) => html`<option value=${name}>${name}</option>`)}
        </select>
        <${FileButton} label="From a file" accept=".json,application/json" onText=${onChange} />
      </span>
    </div>
    <textarea
      id=${id}
      rows=${rows}
      spellcheck=${false}
      placeholder="[] of OpenAI's tools, as JSON"
      aria-invalid=${error ? "true" : null}
      aria-describedby=${error ? `${id}-error` : null}
      value=${text}
      onInput=${(event) => onChange(event.target.value)}
      ...${droppable(onChange)}
    ></textarea>
    <${FieldError} id=${id} error=${error} />
  </div>`;
}

function pick(event, onExample) {
  const example = TOOLS.find(({ name }) => name === event.target.value);
  event.target.value = "";
  if (example) onExample(example);
}

export function FieldError({ id, error }) {
  return error && html`<p class="failed field-error" id=${`${id}-error`} role="alert">${error}</p>`;
}

/** A button that reads a file of the user. `onText` gets what stands in it. */
export function FileButton({ label, accept, onText }) {
  const input = useRef(null);
  const [error, setError] = useState(null);
  const onChange = async () => {
    const [file] = input.current.files;
    input.current.value = ""; // so that the same file can be read again
    if (!file) return;
    try {
      onText(await file.text());
      setError(null);
    } catch {
      setError("This file cannot be read.");
    }
  };
  return html`<button type="button" onClick=${() => input.current.click()}>${label}</button>
    <input type="file" hidden ref=${input} accept=${accept} onChange=${onChange} aria-label=${label} />
    ${error && html`<span class="failed" role="alert">${error}</span>`}`;
}

/** Attributes of an element that takes a file that is dropped on it. */
export const droppable = (onText) => ({
  onDragOver: (event) => event.dataTransfer.types.includes("Files") && event.preventDefault(),
  onDrop: async (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    event.stopPropagation(); // the page itself takes files, too
    onText(await file.text());
  },
});
