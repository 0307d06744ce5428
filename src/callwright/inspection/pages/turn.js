// Request
import { html } from "./lib.js";

export default function Page() {
  return html`<div class="page"><h1>Request</h1></div>`;
}
