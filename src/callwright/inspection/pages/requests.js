// The requests of the gateway as they come: filters, the keyboard, and a pause in which one can read.
import { html, go, number, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./lib.js";
import { Filters } from "./filters.js";
import { Gateway } from "./gateway.js";
import { liveStatus, rows, tryNow, useLive } from "./live.js";
import { ORDER } from "./outcome.js";
import { FILTERS, filterOf, frozen, grouped, matching, queryOf } from "./rows.js";
import { List } from "./row_list.js";
import { NoRequests } from "./no_requests.js";

const remembered = { selected: null, top: 0, open: new Set() }; // for who comes back from a turn
const isTyping = (target) => target.closest?.("input, select, textarea, [contenteditable]");

export default function Requests() {
  const gateway = useContext(Gateway);
  const changes = useLive(() => rows.changes);
  const [filter, setFilter] = useState(() => filterOf(location.search));
  const [paused, setPaused] = useState(null); // {order, changes} as they were then
  const [selected, setSelected] = useState(remembered.selected);
  const [open, setOpen] = useState(remembered.open); // conversations
  const search = useRef(null);
  const list = useRef(null);

  useEffect(() => {
    const onMove = () => setFilter(filterOf(location.search));
    addEventListener("popstate", onMove);
    return () => removeEventListener("popstate", onMove);
  }, []);
  remembered.selected = selected;
  remembered.open = open;

  const order = paused ? paused.order : rows.order;
  const found = useMemo(() => matching(order, filter), [paused ?? changes, filter]);
  const shown = useMemo(() => grouped(found, open, ORDER), [found, open]);
  const waiting = paused ? rows.order.filter((entry) => entry.change > paused.changes).length : 0;

  const change = (name, value) => {
    const next = { ...filter, [name]: value };
    setFilter(next);
    history.replaceState(null, "", `/ui${queryOf(next)}`);
  };
  const clear = () => {
    setFilter(filterOf(""));
    history.replaceState(null, "", "/ui");
  };
  const pause = () => setPaused(paused ? null : { order: frozen(rows.order), changes: rows.changes });

  const step = (by) => {
    if (!shown.length) return;
    const at = shown.findIndex((row) => row.id === selected);
    const { id } = shown[at < 0 ? 0 : Math.min(Math.max(at + by, 0), shown.length - 1)];
    setSelected(id);
    list.current.wanted = id;
  };
  const toggle = (conversation) => setOpen(new Set([conversation]).symmetricDifference(open));
  const chosen = () => shown.find((row) => row.id === selected);
  const onKey = (event) => {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
    if (isTyping(event.target)) {
      if (event.key !== "Escape" || event.target !== search.current) return;
      search.current.blur();
    } else if (event.key === "/") search.current?.focus();
    else if (event.key === "p") pause();
    else if (event.key === "j" || event.key === "ArrowDown") step(1);
    else if (event.key === "k" || event.key === "ArrowUp") step(-1);
    else if (event.key === "Escape" && selected !== null) setSelected(null);
    else if (event.key === "Enter" && selected !== null && !event.target.closest?.("a, button, summary")) {
      go(`/ui/turns/${encodeURIComponent(chosen()?.goes ?? selected)}`);
    } else if (["ArrowRight", "ArrowLeft"].includes(event.key) && chosen()?.turns) {
      if (chosen().isOpen !== (event.key === "ArrowRight")) toggle(chosen().conversation);
    } else return;
    event.preventDefault();
  };
  const latest = useRef(onKey);
  latest.current = onKey;
  useEffect(() => {
    const listen = (event) => latest.current(event);
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
  useLayoutEffect(() => {
    document.documentElement.classList.add("fills"); // the list scrolls, not the page
    return () => document.documentElement.classList.remove("fills");
  }, []);

  const total = order.length;
  const isFiltered = FILTERS.some((name) => filter[name]);
  return html`<div class="requests">
    <h1 class="hidden">Requests</h1>
    ${gateway.inspect !== "off" &&
    html`<div class="bar">
      <${Filters}
        filter=${filter}
        search=${search}
        hasKeys=${gateway.has_keys}
        onChange=${change}
        onClear=${isFiltered ? clear : null}
      />
      <div class="standing">
        <span class="shown"><b>${number(found.length)}</b> of ${number(total)}</span>
        ${gateway.source !== "files" && html`<${Pause} isOn=${paused !== null} waiting=${waiting} onClick=${pause} />`}
      </div>
    </div>`}
    <${Stream} />
    ${total === 0
      ? html`<${NoRequests} gateway=${gateway} />`
      : found.length === 0
        ? html`<div class="page">
            <p>No request of the ${number(total)} passes this filter.</p>
            <p><button type="button" onClick=${clear}>Clear the filter</button></p>
          </div>`
        : html`<${List}
            rows=${shown}
            hasKeys=${gateway.has_keys}
            problem=${filter.problem}
            selected=${selected}
            handle=${list}
            remembered=${remembered}
            onSelect=${setSelected}
            onToggle=${toggle}
          />`}
  </div>`;
}

function Pause({ isOn, waiting, onClick }) {
  const pressed = isOn ? "true" : "false";
  return html`<button type="button" class="pause" aria-pressed=${pressed} title="Key: p" onClick=${onClick}>
    ${isOn ? `Paused: ${number(waiting)} waiting` : "Pause"}
  </button>`;
}

/** Says when the rows do not come any more. */
function Stream() {
  const { state, error, again_at } = useLive(liveStatus);
  const [, tick] = useState(0);
  useEffect(() => {
    if (state !== "broken") return undefined;
    const timer = setInterval(() => tick((n) => n + 1), 500);
    return () => clearInterval(timer);
  }, [state]);
  if (state === "refused") return html`<p class="notice failed" role="alert">${error.message}</p>`;
  if (state !== "broken") return null;
  const left_s = Math.max(0, Math.ceil((again_at - Date.now()) / 1000));
  return html`<p class="notice" role="status">
    <b class="failed">Not connected.</b>${" "}${error ? error.message : "The gateway ended the stream."}${" "}
    <span aria-hidden="true">${left_s ? `Next attempt in ${left_s} s.` : "Connecting …"}</span>${" "}
    <button type="button" onClick=${tryNow}>Try now</button>
  </p>`;
}
