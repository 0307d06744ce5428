// Try it
import { html } from "./lib.js";

export default function Page() {
  return html`<div class="page"><h1>Try it</h1></div>`;
}
