// One row of the list of requests. It is drawn anew only when it changed: fifty rows a second come in.
import { html, duration, number, Component, Link, useEffect, useState } from "./lib.js";
import { moment } from "./moments.js";
import { sentence } from "./explained.js";
import { Outcome } from "./outcome.js";
import { marked } from "./output.js";
import { ended } from "./rows.js";

const APIS = { "/v1/chat/completions": "chat", "/v1/responses": "responses", "/v1/messages": "messages" };

const DRAWN = ["row", "place", "isSelected", "isStop", "hasKeys", "problem"]; // what its looks hang on

export class Row extends Component {
  shouldComponentUpdate(next) {
    return DRAWN.some((name) => this.props[name] !== next[name]);
  }

  render({ row, place, hasKeys, problem, isSelected, isStop, onSelect, onToggle }) {
    const { id, at, over, turns, asked } = row;
    const onChosen = () => onSelect(id);
    const kind = row.isInner ? "is-inner" : turns ? "is-head" : "";
    return html`<tr role="row" class=${kind} aria-rowindex=${place} aria-selected=${isSelected ? "true" : "false"}>
      <td role="gridcell" class="col-time">
        <${Link}
          href=${`/ui/turns/${encodeURIComponent(row.goes ?? id)}`}
          tabindex=${isStop ? 0 : -1}
          onFocus=${onChosen}
          onMouseDown=${onChosen}
        >
          <span class="hidden">${row.goes ?? id} at </span><time datetime=${new Date(at * 1000).toISOString()}>${moment(at)}</time>
        <//>
      </td>
      ${hasKeys && html`<td role="gridcell" class="col-key">${row.key}</td>`}
      <td role="gridcell" class="col-asked" title=${asked}>
        ${turns &&
        html`<button
          type="button"
          class="toggle"
          tabindex="-1"
          aria-expanded=${row.isOpen ? "true" : "false"}
          aria-label=${`${turns} requests of this conversation`}
          onClick=${() => onToggle(row.conversation)}
        >
          ${row.isOpen ? "▾" : "▸"} ${turns}
        </button>`}
        ${asked ? marked(asked, false) : html`<span class="soft">${api(row.endpoint)}</span>`}
      </td>
      <td role="gridcell" class="col-ended" title=${ended(row)}>${marked(ended(row), false)}</td>
      <td role="gridcell" class="col-outcome"><${Outcome} of=${row.outcome} /></td>
      <td role="gridcell" class="col-problems"><${Problems} row=${row} first=${problem} /></td>
      <td role="gridcell" class="col-model">${row.model}</td>
      <td role="gridcell" class="col-seconds">
        ${over || row.seconds ? duration(row.seconds) : html`<${Elapsed} since=${at} />`}
      </td>
      <td role="gridcell" class="col-tokens">${number(row.input_tokens)} / ${number(row.output_tokens)}</td>
    </tr>`;
  }
}

const api = (endpoint) => APIS[endpoint] ?? endpoint.split("/").pop();

/** The kinds of problems; not all may fit, so the one that is filtered for comes first. */
function Problems({ row, first }) {
  const kinds = Object.entries(row.problems).sort(([a], [b]) => (b === first) - (a === first));
  return html`${row.error && html`<span class="chip bad" title=${sentence(row.error)}>${row.error}</span>`}
  ${kinds.length > 1 && html`<span class="soft">${kinds.length}<span class="hidden"> kinds:</span></span>`}
  ${kinds.map(
    ([kind, count]) => html`<span key=${kind} class="chip" title=${sentence(kind)}>${kind}${count > 1 ? ` ×${count}` : ""}</span>`,
  )}
  ${row.again_of && html`<span class="soft">${row.again_of} again</span>`}`;
}

/** How long a turn has been running, by this machine's clock. */
function Elapsed({ since }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.floor(Date.now() / 1000 - since));
  return seconds < 100 ? `${seconds} s` : duration(seconds);
}
