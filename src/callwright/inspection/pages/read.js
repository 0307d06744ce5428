// Reading bench
import { html } from "./lib.js";

export default function Page() {
  return html`<div class="page"><h1>Reading bench</h1></div>`;
}
