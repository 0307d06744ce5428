// A Reading to look at: the coloured output, and beside it what was read of it, each leading to the other.
import { html, number as count, useLayoutEffect, useMemo, useRef, useState } from "./lib.js";
import { Calls } from "./calls.js";
import { links } from "./links.js";
import { folded, marked, scrollTo, Legend, Output } from "./output.js";
import { blocks, segments } from "./pieces.js";
import { Playback } from "./playback.js";
import { wayOf, Problems } from "./problems.js";

export function Source({ reading }) {
  const [isPlayed, setPlayed] = useState(false);
  const all = useMemo(() => segments(reading), [reading]);
  const cut = useMemo(() => blocks(all), [all]);
  const link = useMemo(() => links(reading), [reading]);
  const parts = { reading, all, cut, link };
  return html`<section class="source">
    <div class="source-bar">
      <div role="group" aria-label="View" class="switch">
        <button type="button" aria-pressed=${!isPlayed} onClick=${() => setPlayed(false)}>Whole</button>
        <button
          type="button"
          aria-pressed=${isPlayed}
          disabled=${!reading.steps.length}
          onClick=${() => setPlayed(true)}
        >
          Playback
        </button>
      </div>
      <${Legend} reading=${reading} />
    </div>
    ${isPlayed ? html`<${Playback} ...${parts} />` : html`<${Whole} ...${parts} />`}
  </section>`;
}

function Whole({ reading, all, cut, link }) {
  const root = useRef(null);
  const lit = useRef(undefined); // the number of the argument or name that is lit up
  const [isOpen, setOpen] = useState(false);
  const [target, setTarget] = useState(null); // a selector of what is to be shown, once it is there
  const [pointed, setPointed] = useState(null);
  const known = useMemo(() => new Set(reading.problems.keys()), [reading]);
  const shown = useMemo(() => folded(cut, isOpen), [cut, isOpen]);
  const text = () => root.current.querySelector(".source-text");

  useLayoutEffect(() => {
    if (!target) return;
    const found = text().querySelector(target.selector);
    if (found) {
      light(lit.current); // it may have been folded until now
      scrollTo(text(), found);
      if (target.focus) found.focus({ preventScroll: true });
      setTarget(null);
    } else if (!isOpen && shown[1] > 0) {
      setOpen(true);
    } else {
      setTarget(null);
    }
  }, [target, isOpen]);

  const light = (number) => {
    lit.current = number;
    for (const element of root.current.querySelectorAll(".is-lit")) element.classList.remove("is-lit");
    if (number === undefined) return;
    for (const element of root.current.querySelectorAll(`[data-link="${number}"]`)) element.classList.add("is-lit");
  };
  const onOver = (event) => {
    const at = event.target.closest("[data-at]")?.dataset.at;
    setPointed(at === undefined ? null : segmentAt(all, Number(at)));
    const owner = event.target.closest("[data-link]") ?? document.activeElement?.closest(".argument[data-link]");
    light(owner?.dataset.link);
    const first = event.target.closest(".argument") && text().querySelector(".piece.is-lit");
    if (first) scrollTo(text(), first);
  };
  const onFocus = (event) => {
    const number = event.target.dataset.link;
    if (number === undefined) return;
    light(number);
    setTarget({ selector: `.piece[data-link="${number}"]` });
  };
  const onClick = (event) => {
    const { mark, item } = wayOf(event);
    if (mark) setTarget({ selector: mark, focus: true });
    if (item) root.current.querySelector(item)?.focus();
  };
  return html`<div
    class="source-both"
    ref=${root}
    onMouseOver=${onOver}
    onMouseLeave=${() => (setPointed(null), light())}
    onFocusIn=${onFocus}
    onFocusOut=${() => light()}
    onClick=${onClick}
  >
    <div class="source-left">
      <div class="source-text" tabindex="0" role="region" aria-label="Output of the model">
        ${reading.output
          ? html`<${Output} ...${{ shown, reading, known, link }} onOpen=${() => setOpen(true)} />`
          : html`<span class="soft">The model wrote nothing.</span>`}
      </div>
      <p class="source-status">${pointed ? told(pointed, reading) : sized(reading)}</p>
    </div>
    <div class="source-side"><${Read} reading=${reading} known=${known} link=${link} /></div>
  </div>`;
}

function Read({ reading, known, link }) {
  const { problems, calls, content, reasoning } = reading;
  return html`
    ${problems.length > 0 && html`<h3>Problems</h3><${Problems} reading=${reading} shown=${known} />`}
    <h3>${calls.length === 1 ? "Call" : "Calls"}</h3>
    ${calls.length ? html`<${Calls} reading=${reading} link=${link} />` : html`<p class="soft">none</p>`}
    <${Said} title="Content" text=${content} />
    <${Said} title="Reasoning" text=${reasoning} />
    ${reading.finish_reason && html`<p class="soft">finish reason <code>${reading.finish_reason}</code></p>`}
  `;
}

/** Content or reasoning as the client gets it; nothing if there is none. */
export function Said({ title, text }) {
  if (!text) return null;
  const body = html`<pre class="said">${marked(text)}</pre>`;
  if (text.length < 1500) return html`<h3>${title}</h3>${body}`;
  return html`<details class="said-long">
    <summary>${title}, ${count(text.length)} characters</summary>
    ${body}
  </details>`;
}

function segmentAt(all, place) {
  let low = 0;
  let high = all.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (all[middle].begin <= place) low = middle;
    else high = middle - 1;
  }
  return all[low];
}

function told(segment, reading) {
  const words = [segment.part];
  if (segment.call !== null) words.push(`call ${segment.call + 1}`);
  if (segment.argument !== null) words.push(segment.argument);
  for (const number of segment.problems) words.push(`${number + 1}: ${reading.problems[number].kind}`);
  words.push(`characters ${count(segment.begin)}–${count(segment.end)}`);
  return words.join(" · ");
}

function sized(reading) {
  const found = reading.found && reading.found !== reading.dialect ? ` · read as ${reading.found}` : "";
  return `${count(reading.output.length)} characters${found}`;
}
