// Tools by form: their text as JSON is the source, of which the form edits the common fields and keeps all others.
import { html, useState } from "./lib.js";
import { toolsOf, toolsText } from "./tools_field.js";

const TYPES = ["string", "integer", "number", "boolean", "array", "object"];
const EMPTY = { type: "function", function: { name: "my_tool", description: "", parameters: { type: "object", properties: {} } } };

/** `onChange` gets the tools as text. */
export function ToolForm({ text, onChange }) {
  const { tools = [], error } = toolsOf(text);
  const put = (at, tool) => onChange(toolsText(tools.toSpliced(at, 1, ...(tool ? [tool] : []))));
  return html`<details class="tool-form">
    <summary>Edit tools as a form</summary>
    ${error
      ? html`<p class="soft">The JSON above cannot be read.</p>`
      : tools.map((tool, at) => {
          const own = tool?.function ?? tool;
          if (typeof own?.name !== "string" || tool.type === "custom") return null;
          const onOwn = (fields) => put(at, tool.function ? { ...tool, function: { ...own, ...fields } } : { ...own, ...fields });
          return html`<${Tool} key=${at} number=${at + 1} own=${own} onChange=${onOwn} onRemove=${() => put(at, null)} />`;
        })}
    ${!error &&
    html`<button type="button" onClick=${() => onChange(toolsText([...tools, structuredClone(EMPTY)]))}>Add tool</button>`}
  </details>`;
}

function Tool({ number, own, onChange, onRemove }) {
  const schema = own.parameters ?? { type: "object", properties: {} };
  const names = Object.keys(schema.properties ?? {});
  const required = schema.required ?? [];
  const set = (fields) => onChange({ parameters: { ...schema, ...fields } });
  const rename = (from, to) => {
    if (!to || names.includes(to)) return;
    const properties = Object.entries(schema.properties).map(([name, value]) => [name === from ? to : name, value]);
    set({
      properties: Object.fromEntries(properties),
      ...(schema.required && { required: required.map((name) => (name === from ? to : name)) }),
    });
  };
  const change = (name, fields) =>
    set({ properties: { ...schema.properties, [name]: { ...schema.properties[name], ...fields } } });
  const demand = (name, isOn) =>
    set({ required: isOn ? [...required, name] : required.filter((other) => other !== name) });
  const remove = (name) => {
    const { [name]: _, ...properties } = schema.properties;
    set({ properties, ...(schema.required && { required: required.filter((other) => other !== name) }) });
  };
  const add = () => {
    let count = names.length + 1;
    while (names.includes(`parameter_${count}`)) count += 1;
    set({ properties: { ...schema.properties, [`parameter_${count}`]: { type: "string" } } });
  };
  return html`<fieldset>
    <legend>Tool ${number}</legend>
    <div class="tool-head">
      <${Text} label="Name" value=${own.name} onDone=${(name) => name && onChange({ name })} />
      <${Text} label="Description" value=${own.description ?? ""} onDone=${(description) => onChange({ description })} />
      <button type="button" onClick=${onRemove}>Remove tool</button>
    </div>
    ${names.map((name) => {
      const { type, description } = schema.properties[name] ?? {};
      const types = TYPES.includes(type) ? TYPES : [...TYPES, "as in JSON"];
      return html`<div class="tool-parameter" key=${name}>
        <${Text} label="Parameter" value=${name} onDone=${(to) => rename(name, to)} />
        <label>
          Type
          <select
            value=${TYPES.includes(type) ? type : "as in JSON"}
            onChange=${(event) => TYPES.includes(event.target.value) && change(name, { type: event.target.value })}
          >
            ${types.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
          </select>
        </label>
        <${Text}
          label="Description"
          value=${description ?? ""}
          onDone=${(words) => change(name, { description: words })}
        />
        <label class="tool-required">
          <input
            type="checkbox"
            checked=${required.includes(name)}
            onChange=${(event) => demand(name, event.target.checked)}
          />
          ${" "}required
        </label>
        <button type="button" aria-label=${`Remove parameter ${name}`} onClick=${() => remove(name)}>Remove</button>
      </div>`;
    })}
    <button type="button" onClick=${add}>Add parameter</button>
  </fieldset>`;
}

/** A text that counts when it is left: a name half typed is none. */
function Text({ label, value, onDone }) {
  const [typed, setTyped] = useState(null);
  const onLeave = () => {
    if (typed !== null && typed !== value) onDone(typed);
    setTyped(null);
  };
  return html`<label>
    ${label}
    <input value=${typed ?? value} onInput=${(event) => setTyped(event.target.value)} onBlur=${onLeave} />
  </label>`;
}
