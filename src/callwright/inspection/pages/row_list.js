// The list of requests: thousands of rows of one height, of which only those that can be seen are in the page.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./lib.js";
import { Row } from "./row.js";

const OVERSCAN = 8; // rows above and below what is seen
const NARROW = matchMedia("(max-width: 1060px)");
const HEIGHTS = { wide: 28, narrow: 48 }; // px; as requests.css draws them

const COLUMNS = [
  ["time", "Time"],
  ["key", "Key"],
  ["asked", "Asked"],
  ["ended", "How it ended"],
  ["outcome", "Outcome"],
  ["problems", "Problems"],
  ["model", "Model"],
  ["seconds", "Duration"],
  ["tokens", "Tokens in / out"],
];

/**
 * `handle.current.wanted` is the id of a row to be scrolled to and focused when it is next drawn. What is looked at
 * stays where it is when rows come above it: the selected row, or the first that is seen in a list scrolled down.
 */
export function List({ rows, hasKeys, problem, selected, handle, remembered, onSelect, onToggle }) {
  const isNarrow = useNarrow();
  const height = isNarrow ? HEIGHTS.narrow : HEIGHTS.wide;
  const scroller = useRef(null);
  const top = useRef(remembered.top);
  const held = useRef({ id: null, at: 0 }); // the row that keeps its place, and its index
  const [view, setView] = useState(800); // px that are seen
  const [, redraw] = useState(0);
  const control = (handle.current ??= { wanted: null });

  const at = held.current.id === null ? -1 : indexOf(rows, held.current.id, held.current.at);
  if (at >= 0) top.current += (at - held.current.at) * height;

  const wanted = control.wanted === null ? -1 : indexOf(rows, control.wanted, 0);
  if (wanted >= 0) top.current = seen(top.current, wanted * height, height, view - height); // the head takes one row

  top.current = Math.max(0, Math.min(top.current, (rows.length + 1) * height - view));
  const begin = Math.max(0, Math.floor(top.current / height) - OVERSCAN);
  const end = Math.min(rows.length, Math.ceil((top.current + view) / height) + OVERSCAN);

  useLayoutEffect(() => {
    const box = scroller.current;
    if (Math.abs(box.scrollTop - top.current) >= 1) box.scrollTop = top.current;
    if (wanted >= 0) {
      control.wanted = null;
      box.querySelector('tr[aria-selected="true"] a')?.focus({ preventScroll: true });
    }
    hold();
    remembered.top = top.current;
  });

  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setView(entry.contentRect.height));
    watch.observe(scroller.current);
    return () => watch.disconnect();
  }, []);

  /** Chooses what keeps its place: the selected row if it is in view, or else the first row of a list scrolled down. */
  const hold = () => {
    const first = Math.ceil(top.current / height);
    const chosen = selected === null ? -1 : indexOf(rows, selected, held.current.at);
    const isSeen = chosen >= first && chosen * height < top.current + view;
    if (isSeen) held.current = { id: selected, at: chosen };
    else if (top.current > 0 && rows[first]) held.current = { id: rows[first].id, at: first };
    else held.current = { id: null, at: 0 };
  };
  const onScroll = () => {
    top.current = scroller.current.scrollTop;
    hold();
    redraw((n) => n + 1);
  };
  const onNewest = () => {
    held.current = { id: null, at: 0 };
    top.current = 0;
    onSelect(null);
    redraw((n) => n + 1);
  };

  const isDrawn = rows.slice(begin, end).some((row) => row.id === selected);
  const firstSeen = Math.min(Math.ceil(top.current / height), rows.length - 1);
  const drawn = [];
  for (let index = begin; index < end; index += 1) {
    const row = rows[index];
    drawn.push(
      html`<${Row}
        key=${row.id}
        row=${row}
        place=${index + 2}
        hasKeys=${hasKeys}
        problem=${problem}
        isSelected=${row.id === selected}
        isStop=${isDrawn ? row.id === selected : index === firstSeen}
        onSelect=${onSelect}
        onToggle=${onToggle}
      />`,
    );
  }
  const above = Math.floor(top.current / height);
  return html`<div class="list">
    <div class="scroller" ref=${scroller} onScroll=${onScroll}>
      <table
        role="grid"
        aria-label="Requests, newest first"
        aria-rowcount=${rows.length + 1}
        aria-readonly="true"
        class=${`turns ${hasKeys ? "with-keys" : ""}`}
      >
        <thead role="rowgroup">
          <tr role="row" aria-rowindex="1">
            ${COLUMNS.map(
              ([name, title]) =>
                (name !== "key" || hasKeys) &&
                html`<th key=${name} role="columnheader" scope="col" class=${`col-${name}`}>${title}</th>`,
            )}
          </tr>
        </thead>
        <tbody
          role="rowgroup"
          style=${{ height: `${rows.length * height}px`, paddingTop: `${begin * height}px` }}
        >
          ${drawn}
        </tbody>
      </table>
    </div>
    ${above > 0 &&
    html`<button type="button" class="newest" onClick=${onNewest}>↑ Newest (${above} above)</button>`}
  </div>`;
}

/** Where the row with this id is; `near` is where it was, and rows come above it. */
function indexOf(rows, id, near) {
  for (let index = near; index < rows.length; index += 1) if (rows[index].id === id) return index;
  return rows.findIndex((row) => row.id === id);
}

/** The scroll position nearest to `top` at which what begins at `begin` is to be seen. */
function seen(top, begin, height, view) {
  if (begin < top) return begin;
  return Math.max(top, begin + height - view);
}

function useNarrow() {
  const [isNarrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const listen = () => setNarrow(NARROW.matches);
    NARROW.addEventListener("change", listen);
    return () => NARROW.removeEventListener("change", listen);
  }, []);
  return isNarrow;
}
