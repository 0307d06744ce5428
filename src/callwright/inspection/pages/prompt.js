// What the model was asked: the prompt as it saw it, or the messages that its server got.
import { html, number as count } from "./lib.js";
import { indented } from "./json_text.js";
import { Fold, JsonView } from "./json_view.js";
import { marked } from "./output.js";

/** The prompt of mode raw. Control tokens are one token each to the model, whatever they look like. */
export function Prompt({ pieces }) {
  return html`<div class="prompt" tabindex="0" role="region" aria-label="Prompt">
    ${pieces.map(({ text, kind }) => {
      if (kind === "control") return html`<span class="control" title="control token">${marked(text, false)}</span>`;
      if (kind === "prefill") return html`<span class="prefill" title="begins the answer">${marked(text)}</span>`;
      if (kind !== "tools") return html`<span>${marked(text)}</span>`;
      const lines = text.split("\n").length;
      return html`<${Fold} class="prompt-tools" title=${`tools: ${count(lines)} ${lines === 1 ? "line" : "lines"}`}>
        ${() => html`<span>${marked(text)}</span>`}
      <//>`;
    })}
  </div>`;
}

/** In characters. */
export const promptSize = (pieces) => pieces.reduce((size, { text }) => size + text.length, 0);

/** The messages of modes native and prompt. */
export function Messages({ messages }) {
  return html`<ol class="messages">
    ${messages.map(
      ({ role, content, tool_calls: calls, ...rest }, at) => html`<li key=${at}>
        <span class="message-role">${role}</span>
        <div>
          ${typeof content === "string" && content && html`<pre>${marked(content)}</pre>`}
          ${content !== null && typeof content === "object" && html`<${JsonView} value=${content} open=${2} />`}
          ${calls?.map(
            (call) => html`<p><code class="piece name">${(call.function ?? call.custom)?.name}</code></p>
              <pre class="piece arguments">${marked(textOf(call), false)}</pre>`,
          )}
          ${Object.keys(rest).length > 0 && html`<${JsonView} value=${rest} open=${0} />`}
        </div>
      </li>`,
    )}
  </ol>`;
}

const textOf = ({ function: called, custom }) =>
  called ? indented(`${called.arguments ?? ""}`) : `${custom?.input ?? ""}`;
