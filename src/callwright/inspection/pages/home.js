// The first page: what this gateway is and serves, how to connect to it, and how well its models do.
import { html, Link, number, useContext } from "./lib.js";
import { Connect } from "./connect.js";
import { Gateway } from "./gateway.js";
import { Glance } from "./glance.js";

export default function Home() {
  const gateway = useContext(Gateway);
  const isFromFiles = gateway.source === "files";
  return html`<div class="page home">
    <h1>Callwright</h1>
    <p class="lead">
      ${isFromFiles
        ? "Requests from files: the question, the model's output, and how this version reads it."
        : `A gateway between your clients and your model servers: it gives each model tools in its own format, parses
          the output as it streams, and validates and repairs the calls.`}
    </p>
    <${Facts} gateway=${gateway} />
    ${!isFromFiles && html`<${Models} models=${gateway.models} />`}
    <div class=${isFromFiles ? "" : "two"}>
      ${!isFromFiles && html`<${Connect} gateway=${gateway} />`}
      <div>
        <${Glance} gateway=${gateway} />
        <${Ways} gateway=${gateway} />
      </div>
    </div>
  </div>`;
}

function Facts({ gateway }) {
  const { workers, mcp, inspect, kept, source } = gateway;
  const facts = [];
  if (source !== "files") facts.push(["Address", html`<code>${location.origin}/v1</code>`]);
  if (inspect !== "off") facts.push(["Requests kept", number(kept)]);
  if (workers > 1) facts.push(["Workers", number(workers)]);
  if (mcp.length) facts.push(["MCP servers", mcp.join(", ")]);
  return html`${gateway.config_error &&
    html`<p class="failed" role="alert">
      The configuration file has changed, but has an error. The gateway keeps the earlier one.
      ${" "}<code>${gateway.config_error}</code>
    </p>`}
    <dl class="gateway-facts">
      ${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>`;
}

function Models({ models }) {
  return html`<section aria-labelledby="models">
    <h2 id="models">Models</h2>
    <table class="models">
      <thead>
        <tr>
          ${["Name", "Mode", "Dialect", "Server", "Upstream", "Window", "State"].map(
            (title) => html`<th key=${title} scope="col" class=${title === "Window" ? "count" : ""}>${title}</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${models.map(
          (model) => html`<tr key=${model.name}>
            <th scope="row">${model.name === "*" ? "any other name" : model.name}</th>
            <td>${model.mode}</td>
            <td>${model.dialect ?? "–"}</td>
            <td>${model.server || "–"}</td>
            <td class="upstream"><code>${model.upstream}</code></td>
            <td class="count">${number(model.window)}</td>
            <td><${State} model=${model} /></td>
          </tr>`,
        )}
      </tbody>
    </table>
  </section>`;
}

const STATES = { well: "Healthy", failing: "Failing", unknown: "Unknown" };

function State({ model }) {
  return html`<span class=${`health ${model.state}`}>${STATES[model.state]}</span>
    ${model.why && html`<span class="health-why">${model.why}</span>`}`;
}

function Ways({ gateway }) {
  const ways = [
    ["/ui", "Requests", "each request live: what was asked, called, and how it ended"],
    ["/ui/read", "Reading bench", "paste a model's output and see how it is parsed"],
    ["/ui/try", "Try it", "ask a model with tools, and see its raw output"],
    ["/ui/quality", "Quality", "how well each model calls tools, over time"],
    ["/ui/problems", "Problems", "each problem by name, and what to do"],
  ];
  const shown = gateway.source === "files" ? ways.filter(([path]) => path !== "/ui/try") : ways;
  return html`<section aria-labelledby="ways">
    <h2 id="ways">Pages</h2>
    <dl class="ways">
      ${shown.map(
        ([path, name, about]) => html`<div key=${path}>
          <dt><${Link} href=${path}>${name}<//></dt>
          <dd>${about}</dd>
        </div>`,
      )}
    </dl>
  </section>`;
}
