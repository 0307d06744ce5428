// What a reading depends on, as a form: the output, the tools, the format and how the output began and ended.
import { html } from "./lib.js";
import { FieldError, ToolsField, toolsOf, toolsText } from "./tools_field.js";

const STARTS = {
  assistant: "where an assistant begins",
  reasoning: "in reasoning, which the prompt opened",
  message: "in a message, which the prompt opened",
};
const FINISHES = { stop: "stop: the model ended it", length: "length: it was cut off" };

/** `at`: the field that `error` is about. */
export function Settings({ bench, dialects, error, at, onChange }) {
  const wrong = (field) => (at === field ? error.message : null);
  const choices = choicesOf(bench);
  return html`<form class="bench-form" onSubmit=${(event) => event.preventDefault()}>
    <div class="field">
      <div class="field-head"><label for="bench-output">Output of the model</label></div>
      <textarea
        id="bench-output"
        rows="10"
        spellcheck=${false}
        placeholder="Paste what a model wrote, with its control tokens"
        aria-invalid=${wrong("output") ? "true" : null}
        aria-describedby=${wrong("output") ? "bench-output-error" : null}
        value=${bench.output}
        onInput=${(event) => onChange({ output: event.target.value })}
      ></textarea>
      <${FieldError} id="bench-output" error=${wrong("output")} />
    </div>
    <${ToolsField}
      id="bench-tools"
      text=${bench.tools}
      error=${wrong("tools")}
      onChange=${(tools) => onChange({ tools })}
      onExample=${({ tools }) => onChange({ tools: toolsText(tools) })}
    />
    <div class="bench-choices">
      <${Choice} name="dialect" label="Dialect" value=${bench.dialect} error=${wrong("dialect")}
        choices=${[["auto", "auto"], ...named(dialects, bench.dialect).map((name) => [name, name])]}
        onChange=${(dialect) => onChange({ dialect })} />
      <${Choice} name="start" label="Begins" value=${bench.start} error=${wrong("start")}
        choices=${Object.entries(STARTS)} onChange=${(start) => onChange({ start })} />
      <${Choice} name="finish_reason" label="Finish reason" value=${bench.finish_reason} error=${wrong("finish_reason")}
        choices=${Object.entries(FINISHES)} onChange=${(finish_reason) => onChange({ finish_reason })} />
      <${Choice} name="tool_choice" label="Tool choice" value=${JSON.stringify(bench.tool_choice)}
        error=${wrong("tool_choice")} choices=${choices}
        onChange=${(choice) => onChange({ tool_choice: JSON.parse(choice) })} />
    </div>
  </form>`;
}

/** The dialects, with one that this gateway does not know. */
const named = (dialects, chosen) => (chosen === "auto" || dialects.includes(chosen) ? dialects : [...dialects, chosen]);

/** What tool_choice can be, as JSON and as words: also what a file has brought. */
function choicesOf({ tools: text, tool_choice: chosen }) {
  const found = [
    [null, "not given"],
    ["auto", "auto"],
    ["none", "none"],
    ["required", "required"],
  ];
  for (const tool of toolsOf(text).tools ?? []) {
    const name = tool?.function?.name ?? tool?.custom?.name ?? tool?.name;
    const type = tool?.type === "custom" ? "custom" : "function";
    if (typeof name === "string") found.push([{ type, [type]: { name } }, name]);
  }
  const choices = found.map(([value, words]) => [JSON.stringify(value), words]);
  const now = JSON.stringify(chosen);
  return choices.some(([value]) => value === now) ? choices : [...choices, [now, now]];
}

function Choice({ name, label, value, choices, error, onChange }) {
  const id = `bench-${name}`;
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <select
      id=${id}
      value=${value}
      aria-invalid=${error ? "true" : null}
      aria-describedby=${error ? `${id}-error` : null}
      onChange=${(event) => onChange(event.target.value)}
    >
      ${choices.map(([choice, words]) => html`<option key=${choice} value=${choice}>${words}</option>`)}
    </select>
    <${FieldError} id=${id} error=${error} />
  </div>`;
}
