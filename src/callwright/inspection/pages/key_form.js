// The form that asks for a key of the gateway.
import { html, useEffect, useRef, useState } from "./lib.js";

export function KeyForm({ isWrong, onKey }) {
  const [value, setValue] = useState("");
  const input = useRef(null);
  useEffect(() => input.current.focus(), []);
  const onSubmit = (event) => {
    event.preventDefault();
    if (value.trim()) onKey(value.trim());
  };
  return html`<div class="page">
    <h1>This gateway asks for a key</h1>
    <form class="key-form" onSubmit=${onSubmit}>
      <label for="key">Key</label>
      <input
        id="key"
        ref=${input}
        type="password"
        autocomplete="off"
        spellcheck=${false}
        placeholder="cw-…"
        value=${value}
        aria-invalid=${isWrong ? "true" : null}
        aria-describedby="key-about"
        onInput=${(event) => setValue(event.target.value)}
      />
      <button type="submit" class="main">Use this key</button>
    </form>
    ${isWrong && html`<p class="failed" role="alert">The gateway does not know this key.</p>`}
    <p id="key-about" class="soft">It stays in this tab until the tab is closed, and goes to this gateway only.</p>
  </div>`;
}
