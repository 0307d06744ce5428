// The output of a model with each character in the colour of what became of it.
import { html, Component } from "./lib.js";
import { isRepaired } from "./explained.js";
import { visible } from "./pieces.js";

const FOLD = 24_000; // characters: above it the middle is folded
const EDGE = 8_000; // what stays on either side of it

/** A text in which line ends, tabs and what cannot be seen have a mark. What is copied of it has none. */
export const marked = (text, lines = true) =>
  visible(text).map(({ text: run, mark }) => {
    if (mark === null || (mark === "line" && !lines)) return run;
    if (mark === "line" || mark === "tab" || mark === "blank") return html`<span class=${`mark-${mark}`}>${run}</span>`;
    return html`<span class="mark-unseen" data-code=${mark}>${run}</span>`;
  });

/** Blocks, the ones in the middle folded away where there is much: [blocks before, characters between, after]. */
export function folded(blocks, isOpen, edges = [EDGE, EDGE]) {
  const end = blocks.at(-1)?.end ?? 0;
  const first = blocks.findIndex((block) => block.end > edges[0]);
  const last = blocks.findLastIndex((block) => block.begin < end - edges[1]);
  if (isOpen || end <= FOLD || last < first) return [blocks, 0, []];
  const hidden = blocks[last].end - blocks[first].begin;
  return [blocks.slice(0, first), hidden, blocks.slice(last + 1)];
}

/** `shown` is what `folded` answers; `known` the numbers of the problems to be marked; `link` of links.js. */
export function Output({ shown, reading, known, link, onOpen }) {
  const [before, hidden, after] = shown;
  const block = (one) =>
    html`<${Block} key=${one.begin} block=${one} reading=${reading} known=${known} link=${link} />`;
  return html`
    ${before.map(block)}
    ${hidden > 0 &&
    html`<button type="button" class="source-fold" onClick=${onOpen}>
      ${hidden.toLocaleString("en")} characters are folded · show all
    </button>`}
    ${after.map(block)}
  `;
}

class Block extends Component {
  shouldComponentUpdate(next) {
    return next.block !== this.props.block || next.known !== this.props.known || next.link !== this.props.link;
  }

  render({ block, reading, known, link }) {
    return html`<span class=${block.isLines ? "source-lines" : null}>
      ${block.segments.map((segment) => [
        ...segment.before.filter((number) => known.has(number)).map((number) => badge(reading, number)),
        segment.text && piece(segment, reading, known, link),
      ])}
    </span>`;
  }
}

function piece(segment, reading, known, link) {
  const kinds = segment.problems.filter((number) => known.has(number)).map((number) => reading.problems[number]?.kind);
  const problem = kinds.length ? (kinds.every(isRepaired) ? "is-mended" : "is-wrong") : "";
  let number;
  if (segment.part === "name") number = link.name(segment.call);
  else if (segment.part === "arguments") number = link.argument(segment.call, segment.argument);
  return html`<span class="piece ${segment.part} ${problem}" data-at=${segment.begin} data-link=${number}
    >${marked(segment.text)}</span
  >`;
}

function badge(reading, number) {
  const { kind } = reading.problems[number];
  return html`<button
    type="button"
    class=${`badge ${isRepaired(kind) ? "is-mended" : "is-wrong"}`}
    data-mark=${number}
    aria-label=${`Problem ${number + 1}: ${kind}`}
    title=${kind}
  >
    ${number + 1}
  </button>`;
}

/** Scroll a box, and not the page, so that what is in it can be seen. */
export function scrollTo(box, element) {
  const outer = box.getBoundingClientRect();
  const inner = element.getBoundingClientRect();
  if (inner.top >= outer.top && inner.bottom <= outer.bottom) return;
  box.scrollTop += inner.top - outer.top - outer.height / 3;
}

const PARTS = {
  content: "content: sent as text",
  reasoning: "reasoning",
  name: "name of a call",
  arguments: "arguments of a call",
  markup: "markup: removed",
};

export function Legend({ reading }) {
  const parts = new Set(reading.pieces.map((piece) => piece.part));
  const mended = reading.problems.some((problem) => isRepaired(problem.kind));
  const wrong = reading.problems.some((problem) => !isRepaired(problem.kind));
  return html`<ul class="source-legend" aria-label="Legend">
    ${Object.entries(PARTS).map(
      ([part, words]) => parts.has(part) && html`<li><span class=${`piece ${part}`}>${words}</span></li>`,
    )}
    ${mended && html`<li><span class="piece is-mended">repaired or noted</span></li>`}
    ${wrong && html`<li><span class="piece is-wrong">wrong</span></li>`}
  </ul>`;
}
