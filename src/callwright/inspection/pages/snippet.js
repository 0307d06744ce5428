// A text to copy, with a line that says what it is.
import { html, Copy } from "./lib.js";

export function Snippet({ about, text }) {
  return html`<div class="snippet">
    <div class="row between">
      <span>${about}</span>
      <${Copy} text=${text} />
    </div>
    <pre tabindex="0">${text}</pre>
  </div>`;
}
