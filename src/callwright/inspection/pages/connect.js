// How to connect: a text to copy for each client.
import { html, useMemo, useState } from "./lib.js";
import { Snippet } from "./snippet.js";
import { firstModel, snippets } from "./snippets.js";
import { Tabs } from "./tabs.js";

export function Connect({ gateway }) {
  const named = gateway.models.filter(({ name }) => name !== "*");
  const [name, setName] = useState(null);
  const [client, setClient] = useState("curl");
  const model = named.find((one) => one.name === name) ?? firstModel(gateway.models);
  const all = useMemo(
    () => snippets(location.origin, model, gateway.has_keys),
    [model.name, model.window, gateway.has_keys],
  );
  const shown = all.find((one) => one.name === client) ?? all[0];
  return html`<section aria-labelledby="connect">
    <div class="row between">
      <h2 id="connect">Connect</h2>
      ${named.length > 1 &&
      html`<label class="row">
        <span class="soft">with model</span>
        <select value=${model.name} onChange=${(event) => setName(event.target.value)}>
          ${named.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}
        </select>
      </label>`}
    </div>
    <${Tabs} name="Clients" id="client" tabs=${all.map((one) => one.name)} chosen=${shown.name} onChoose=${setClient} />
    <div id="client-panel" role="tabpanel" aria-labelledby=${`client-tab-${all.indexOf(shown)}`}>
      <${Snippet} key=${shown.name} about=${shown.about} text=${shown.text} />
    </div>
  </section>`;
}
