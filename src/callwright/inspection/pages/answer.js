// Calls as a client got them.
import { html } from "./lib.js";
import { Arguments } from "./calls.js";

export function Calls({ calls }) {
  return html`<ol class="calls">
    ${calls.map(
      (call, at) => html`<li key=${at}>
        <p class="call-head">
          <span class="piece name">${call.name}</span>
          ${call.complete === false && html`<strong class="failed">not complete: nobody may run it</strong>`}
        </p>
        <${Arguments} call=${call} />
      </li>`,
    )}
  </ol>`;
}
