// One attempt of a turn: what the model was told and asked, and what it wrote.
import { html, number as count } from "./lib.js";
import { Fold, JsonView } from "./json_view.js";
import { marked } from "./output.js";
import { Messages, Prompt, promptSize } from "./prompt.js";
import { Source } from "./source.js";

const SHORT = 500; // characters: a prompt that is shorter is unfolded at first

/** `isOneOfMany`: what ended it does not stand above already. */
export function Attempt({ attempt, number, isOneOfMany }) {
  const { prompt, messages, constraint, reading, told, sent_tools: tools } = attempt;
  const isNative = attempt.mode === "native";
  return html`
    ${told.length > 0 &&
    html`<section class="told">
      <h2>Sent to the model before attempt ${number}</h2>
      ${told.map((text) => html`<pre>${marked(text)}</pre>`)}
    </section>`}
    ${attempt.model && html`<p>Asked <b>${attempt.model}</b> in place of the first model: <code>${attempt.reason}</code>.</p>`}
    ${attempt.error && isOneOfMany && html`<p class="failed" role="alert"><b>This attempt failed.</b> ${attempt.error}</p>`}
    ${prompt &&
    html`<${Fold}
      class="part"
      title=${`Prompt as the model saw it, ${count(promptSize(prompt))} characters`}
      isOpen=${promptSize(prompt) < SHORT}
    >
      ${() => html`<${Prompt} pieces=${prompt} />`}
    <//>`}
    ${messages &&
    html`<${Fold}
      class="part"
      title=${`Messages, ${messages.length}`}
      isOpen=${JSON.stringify(messages).length < SHORT}
    >
      ${() => html`<${Messages} messages=${messages} />`}
    <//>`}
    ${tools &&
    html`<${Fold} class="part" title=${`Tools that the server got, ${tools.length}`}>
      ${() => html`<${JsonView} value=${tools} />`}
    <//>`}
    ${constraint &&
    html`<${Fold} class="part" title=${`Constraint: ${constraint.kind}, ${count(constraint.text.length)} characters`}>
      ${() => html`<pre class="said">${marked(constraint.text)}</pre>`}
    <//>`}
    <section class="part-open">
      <h2>${isNative ? "Output of the server" : "Output of the model"}</h2>
      ${isNative && reading && html`<p class="soft">The server parsed the model's output itself.</p>`}
      ${reading ? html`<${Source} reading=${reading} />` : html`<p class="soft">${unread(attempt)}</p>`}
    </section>
  `;
}

function unread({ is_cut: isCut, ended }) {
  if (isCut) return "It was too long to be kept.";
  if (ended === "running") return "The model has not ended yet.";
  return "Nothing came.";
}
