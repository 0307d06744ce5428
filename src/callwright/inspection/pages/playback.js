// The steps of a reading as a stream: what the model had written, and what a client had of it by then.
import { html, duration, number as count, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./lib.js";
import { heard, nothing, told } from "./heard.js";
import { folded, marked, scrollTo, Output } from "./output.js";
import { cutSegment } from "./pieces.js";
import { wayOf, Problems } from "./problems.js";

const SPEEDS = { "as it was": null, slow: 4, "1×": 30, fast: 300 }; // steps a second
const SEEN_S = 0.5; // what was faster is played slower at first
const SHORT = 800; // characters that fit a low box
const TAIL = 4_000; // characters of what a client has that are shown: it is drawn anew at each step

export function Playback({ reading, cut, link }) {
  const { steps } = reading;
  const isTimed = useMemo(() => steps.some((step) => step.at_s !== null), [steps]);
  const [step, setStep] = useState(0);
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(lasting(steps) >= SEEN_S ? "as it was" : "1×");
  const [isOpen, setOpen] = useState(false);
  const state = useRef(nothing());
  const box = useRef(null);
  state.current = heard(steps, step, state.current);
  const { end, problems } = state.current;
  const isShort = reading.output.length < SHORT;
  const known = useMemo(() => told(reading, problems), [reading, problems.length]);
  const shown = useMemo(() => folded(upTo(cut, end), isOpen, [0, 12_000]), [cut, end, isOpen]);

  useEffect(() => {
    if (!isPlaying) return undefined;
    const from = step === steps.length ? 0 : step;
    const begin = performance.now();
    let frame = requestAnimationFrame(function draw(now) {
      const next = stepAt(steps, from, (now - begin) / 1000, SPEEDS[speed]);
      setStep(next);
      if (next < steps.length) frame = requestAnimationFrame(draw);
      else setPlaying(false);
    });
    return () => cancelAnimationFrame(frame);
  }, [isPlaying, speed, steps]);

  useLayoutEffect(() => {
    box.current.scrollTop = box.current.scrollHeight;
  }, [step]);

  const go = (to) => {
    setPlaying(false);
    setStep(Math.min(Math.max(to, 0), steps.length));
  };
  const onClick = (event) => {
    const { mark, item } = wayOf(event);
    if (item) event.currentTarget.querySelector(item)?.focus();
    const found = mark && box.current.querySelector(mark);
    if (!found) return;
    scrollTo(box.current, found);
    found.focus({ preventScroll: true });
  };
  const onKeyDown = (event) => {
    const { tagName } = event.target;
    if (tagName === "SELECT" || event.altKey || event.ctrlKey || event.metaKey) return;
    const to = { ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: steps.length }[event.key];
    if (to !== undefined) go(to);
    else if (event.key === " " && tagName !== "BUTTON") setPlaying(!isPlaying);
    else return;
    event.preventDefault();
  };
  return html`<div class="playback" onKeyDown=${onKeyDown}>
    <div class="playback-bar">
      <button type="button" class="playback-play" onClick=${() => setPlaying(!isPlaying)}>
        ${isPlaying ? "Pause" : "Play"}
      </button>
      <button type="button" aria-label="One step back" disabled=${step === 0} onClick=${() => go(step - 1)}>‹</button>
      <button
        type="button"
        aria-label="One step forward"
        disabled=${step === steps.length}
        onClick=${() => go(step + 1)}
      >
        ›
      </button>
      <input
        type="range"
        aria-label="Step"
        min="0"
        max=${steps.length}
        value=${step}
        onInput=${(event) => go(Number(event.target.value))}
      />
      <span class="playback-place">${place(steps, step)}</span>
      <label>
        Speed${" "}
        <select value=${speed} onChange=${(event) => setSpeed(event.target.value)}>
          ${Object.keys(SPEEDS).map(
            (name) => (isTimed || SPEEDS[name]) && html`<option value=${name}>${name}</option>`,
          )}
        </select>
      </label>
    </div>
    <div class="source-both" onClick=${onClick}>
      <div class="source-left">
        <div
          class=${`source-text ${isShort ? "is-short" : ""}`}
          ref=${box}
          tabindex="0"
          role="region"
          aria-label="Output so far"
        >
          <${Output} ...${{ shown, reading, known, link }} onOpen=${() => setOpen(true)} />
          <span class="playback-caret"></span>
        </div>
        <p class="source-status">${count(end)} of ${count(reading.output.length)} characters</p>
        <${Events} events=${step > 0 ? steps[step - 1].events : []} />
      </div>
      <div class="source-side">
        <${Client} state=${state.current} />
        ${known.size > 0 && html`<h3>Problems so far</h3><${Problems} reading=${reading} shown=${known} />`}
      </div>
    </div>
  </div>`;
}

/** In seconds, from the first step to the last. */
function lasting(steps) {
  const times = steps.map((step) => step.at_s).filter((time) => time !== null);
  return times.length ? times.at(-1) - times[0] : 0;
}

/** The blocks of the first `end` characters; whole ones are the same objects as before. */
function upTo(cut, end) {
  const found = [];
  for (const block of cut) {
    if (block.begin >= end && block.end > end) break;
    if (block.end <= end) {
      found.push(block);
      continue;
    }
    const segments = block.segments.filter((segment) => segment.begin < end);
    const last = segments.at(-1);
    if (last.end > end) segments.splice(-1, 1, cutSegment(last, end - last.begin)[0]);
    found.push({ ...block, segments, end, isLines: false });
  }
  return found;
}

/** Which step it is `elapsed` seconds after step `from`; at `rate` steps a second, or as the steps came. */
function stepAt(steps, from, elapsed, rate) {
  if (rate) return Math.min(steps.length, from + Math.floor(elapsed * rate) + 1);
  const begin = steps[from]?.at_s ?? 0;
  let at = from;
  while (at < steps.length && (steps[at].at_s ?? 0) <= begin + elapsed) at += 1;
  return at;
}

function place(steps, step) {
  const at = step > 0 ? steps[step - 1].at_s : null;
  return `${count(step)} / ${count(steps.length)}${at === null ? "" : ` · ${duration(at)}`}`;
}

/** What a client has at a moment. */
function Client({ state }) {
  return html`
    <h3>A client has</h3>
    <dl class="client">
      ${state.reasoning && html`<dt>reasoning</dt><dd><${Tail} text=${state.reasoning} /></dd>`}
      ${state.content && html`<dt>content</dt><dd><${Tail} text=${state.content} /></dd>`}
      ${state.calls.map(
        (call) => html`<dt>call ${call.index + 1}</dt>
          <dd>
            <code class="piece name">${call.name}</code> <span class="soft">${stateOf(call)}</span>
            <${Tail} text=${call.arguments} />
          </dd>`,
      )}
      ${state.finish_reason && html`<dt>finish reason</dt><dd><code>${state.finish_reason}</code></dd>`}
    </dl>
    ${!state.reasoning && !state.content && !state.calls.length && html`<p class="soft">nothing yet</p>`}
  `;
}

/** The end of a text that grows. */
function Tail({ text }) {
  const left = Math.max(0, text.length - TAIL);
  const before = left > 0 && html`<span class="soft">${count(left)} characters, and </span>`;
  return html`<pre>${before}${marked(text.slice(left))}</pre>`;
}

function stateOf(call) {
  if (call.complete === null) return "open";
  return call.complete ? "whole" : "not complete";
}

function Events({ events }) {
  return html`<ul class="events" aria-label="Events of this step">
    ${events.length === 0 && html`<li class="soft">no event in this step</li>`}
    ${events.map(({ type, text, name, kind, detail, reason }) => {
      const said = [name, type === "Problem" ? kind : null, detail, reason].filter(Boolean).join(" ");
      return html`<li><code>${type}</code> ${said} ${text && html`<q>${marked(text)}</q>`}</li>`;
    })}
  </ul>`;
}
