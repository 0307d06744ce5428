// What the list of requests says while there are none: how to get the first, or how to turn the inspection on.
import { html } from "./lib.js";
import { Snippet } from "./snippet.js";
import { firstModel, snippets } from "./snippets.js";

export function NoRequests({ gateway }) {
  if (gateway.inspect === "off") return html`<${TurnedOff} />`;
  if (gateway.source === "files") return html`<div class="page"><p>The files have no turns.</p></div>`;
  const [curl] = snippets(location.origin, firstModel(gateway.models), gateway.has_keys);
  return html`<div class="page">
    <h2>No requests yet</h2>
    <p>Requests appear here when they arrive.</p>
    <${Snippet} about="A first one:" text=${curl.text} />
    ${gateway.inspect === "metadata" &&
    html`<p class="soft">
      What is said is not kept: <code>inspect = "metadata"</code>. With <code>inspect = "full"</code> in
      ${" "}<code>[server]</code> a request also shows prompts and outputs.
    </p>`}
  </div>`;
}

function TurnedOff() {
  return html`<div class="page">
    <h2>Requests are not kept</h2>
    <p>This gateway keeps nothing of its requests: <code>inspect</code> is <code>"off"</code>.</p>
    <${Snippet} about="Turn it on when it starts:" text="callwright serve --inspect full" />
    <${Snippet} about="Or in its configuration:" text=${'[server]\ninspect = "full"'} />
    <p class="soft">
      <code>"full"</code> keeps what is said, in memory only. <code>"metadata"</code> keeps models, times, outcomes and
      problems, and nothing of what is said.
    </p>
  </div>`;
}
