// What a model is asked: which model, with which tools, and the message.
import { html } from "./lib.js";
import { ToolForm } from "./tool_form.js";
import { ToolsField, toolsOf, toolsText } from "./tools_field.js";

const NUMBERS = [
  ["temperature", "Temperature", { min: 0, max: 2, step: "any" }],
  ["max_output_tokens", "Max tokens", { min: 1, step: 1 }],
];

/** `models` are those of the gateway; `*` among them: it takes any name of a model. */
export function Ask({ asked, models, mcp, error, onChange }) {
  const named = models.map(({ name }) => name).filter((name) => name !== "*");
  const configured = models.find(({ name }) => name === asked.model) ?? models.find(({ name }) => name === "*");
  const names = (toolsOf(asked.tools).tools ?? [])
    .map((tool) => tool?.function?.name ?? tool?.custom?.name ?? tool?.name)
    .filter((name) => typeof name === "string");
  const choices = ["auto", "none", "required", ...names];
  const toggle = (label) =>
    onChange({ mcp: asked.mcp.includes(label) ? asked.mcp.filter((one) => one !== label) : [...asked.mcp, label] });
  return html`<form class="try-form" onSubmit=${(event) => event.preventDefault()}>
    <div class="try-settings">
      <div class="field">
        <label for="try-model">Model</label>
        <${ModelField}
          model=${asked.model}
          models=${named}
          isOpen=${named.length < models.length}
          onChange=${(model) => onChange({ model })}
        />
        ${configured && html`<p id="try-how" class="soft">${howAsked(configured)}</p>`}
      </div>
      <div class="field">
        <label for="try-choice">Tool choice</label>
        <select
          id="try-choice"
          value=${asked.tool_choice}
          onChange=${(event) => onChange({ tool_choice: event.target.value })}
        >
          ${choices.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select>
      </div>
      <div class="field">
        <label for="try-system">System message</label>
        <textarea
          id="try-system"
          rows="2"
          value=${asked.instructions}
          onInput=${(event) => onChange({ instructions: event.target.value })}
        ></textarea>
      </div>
      <div class="try-numbers">
        ${NUMBERS.map(
          ([name, label, limits]) => html`<div class="field" key=${name}>
            <label for=${`try-${name}`}>${label}</label>
            <input
              id=${`try-${name}`}
              type="number"
              placeholder="default"
              ...${limits}
              value=${asked[name]}
              onInput=${(event) => onChange({ [name]: event.target.value })}
            />
          </div>`,
        )}
      </div>
      ${mcp.length > 0 &&
      html`<fieldset class="field try-mcp">
        <legend>MCP servers of the gateway</legend>
        ${mcp.map(
          (label) => html`<label>
            <input type="checkbox" checked=${asked.mcp.includes(label)} onChange=${() => toggle(label)} /> ${label}
          </label>`,
        )}
      </fieldset>`}
    </div>
    <${ToolsField}
      id="try-tools"
      rows=${7}
      text=${asked.tools}
      error=${error}
      onChange=${(tools) => onChange({ tools })}
      onExample=${({ tools, message }) => onChange({ tools: toolsText(tools), message, tool_choice: "auto" })}
    />
    <${ToolForm} text=${asked.tools} onChange=${(tools) => onChange({ tools })} />
  </form>`;
}

/** In words, how the gateway asks a model. */
function howAsked({ mode, dialect }) {
  if (mode === "auto") return "Mode auto: chosen by what its server can do";
  return dialect ? `Mode ${mode}, dialect ${dialect}` : `Mode ${mode}`;
}

function ModelField({ model, models, isOpen, onChange }) {
  const fields = { id: "try-model", "aria-describedby": "try-how", value: model, onInput: (event) => onChange(event.target.value) };
  const options = models.map((name) => html`<option key=${name} value=${name}>${name}</option>`);
  if (!isOpen) return html`<select ...${fields}>${options}</select>`;
  return html`<input list="try-models" spellcheck=${false} ...${fields} />
    <datalist id="try-models">${options}</datalist>`;
}

/** `onStop` and `onOver` are null where there is nothing to stop or to start over. */
export function Message({ text, isFirst, canSend, onChange, onSend, onStop, onOver }) {
  const onSubmit = (event) => {
    event.preventDefault();
    if (canSend) onSend();
  };
  const onKeyDown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onSubmit(event);
  };
  return html`<form class="try-message" onSubmit=${onSubmit}>
    <div class="field">
      <label for="try-message">${isFirst ? "Message" : "Next message"}</label>
      <textarea id="try-message" rows="2" value=${text} onKeyDown=${onKeyDown}
        onInput=${(event) => onChange(event.target.value)}></textarea>
    </div>
    <div class="try-buttons">
      <button type="submit" class="main" disabled=${!canSend}>Send</button>
      ${onStop && html`<button type="button" onClick=${onStop}>Stop</button>`}
      ${onOver && html`<button type="button" onClick=${onOver}>Start over</button>`}
      <span class="soft">Ctrl+Enter sends</span>
    </div>
  </form>`;
}
