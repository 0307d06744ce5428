// A Reading made ready to be shown: its pieces joined and cut into blocks, its problems at their places.

const BLOCK = 4_000; // characters: small enough to be drawn anew at each step of a playback

/** Segments: {begin, end, text, part, call, argument, problems, before: [problems whose mark stands before it]}. */
export function segments(reading) {
  const marks = placesOf(reading);
  const found = [];
  let at = 0;
  let next = 0;
  const put = (piece, text) => {
    const last = found.at(-1);
    const before = [];
    while (next < marks.length && marks[next].place <= at) before.push(marks[next++].number);
    if (last && !before.length && alike(last, piece)) last.text += text;
    else found.push({ ...piece, begin: at, text, before });
    at += text.length;
    found.at(-1).end = at;
  };
  for (const piece of reading.pieces) {
    let { text } = piece;
    while (next < marks.length && marks[next].place > at && marks[next].place < at + text.length) {
      const cut = marks[next].place - at;
      put(piece, text.slice(0, cut));
      text = text.slice(cut);
    }
    if (text) put(piece, text);
  }
  const before = marks.slice(next).map((mark) => mark.number);
  if (before.length) {
    found.push({ text: "", part: "markup", call: null, argument: null, problems: [], begin: at, end: at, before });
  }
  return found;
}

/** Where the mark of each problem stands: before its first piece, or where the reader told of it. */
function placesOf(reading) {
  const first = new Map();
  let at = 0;
  for (const piece of reading.pieces) {
    for (const number of piece.problems) if (!first.has(number)) first.set(number, at);
    at += piece.text.length;
  }
  return reading.problems
    .map((problem, number) => ({ number, place: first.get(number) ?? Math.min(problem.place ?? at, at) }))
    .sort((a, b) => a.place - b.place);
}

const alike = (a, b) =>
  a.part === b.part &&
  a.call === b.call &&
  a.argument === b.argument &&
  a.problems.length === b.problems.length &&
  a.problems.every((number, at) => number === b.problems[at]);

/**
 * Blocks of segments: {begin, end, segments, isLines}. One that is whole lines can be laid out by itself, and so is
 * left alone by the browser for as long as it is out of sight.
 */
export function blocks(all) {
  const found = [];
  let open = [];
  let size = 0;
  const close = () => {
    if (!open.length) return;
    const opensLine = !found.length || found.at(-1).endsLine;
    const endsLine = open.at(-1).text.endsWith("\n");
    const place = { begin: open[0].begin, end: open.at(-1).end };
    found.push({ ...place, segments: open, endsLine, isLines: opensLine && endsLine });
    open = [];
    size = 0;
  };
  for (let segment of all) {
    while (size + segment.text.length > BLOCK) {
      const cut = cutAt(segment.text, BLOCK - size);
      const [head, tail] = cutSegment(segment, cut);
      if (head.text) open.push(head);
      close();
      segment = tail;
    }
    open.push(segment);
    size += segment.text.length;
  }
  close();
  return found;
}

/** Where to cut a text that is too long: behind a line, else anywhere but within a character. */
function cutAt(text, size) {
  const line = text.lastIndexOf("\n", size - 1) + 1;
  if (line > 0) return line;
  const isLow = (code) => code >= 0xdc00 && code <= 0xdfff;
  return isLow(text.charCodeAt(size)) ? size + 1 : size;
}

/** A segment as two. */
export function cutSegment(segment, at) {
  const place = segment.begin + at;
  return [
    { ...segment, text: segment.text.slice(0, at), end: place },
    { ...segment, text: segment.text.slice(at), begin: place, before: at ? [] : segment.before },
  ];
}

const NAMES = { "\0": "NUL", "\r": "CR", "\x1b": "ESC", "\u00a0": "NBSP", "\u200b": "ZWSP", "\ufeff": "BOM" };
const UNSEEN = new RegExp(
  "\\n|\\t| +(?=\\n)|[\\0-\\x08\\x0b-\\x1f\\x7f-\\xa0\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180e" +
    "\\u2000-\\u200c\\u200e\\u200f\\u2028-\\u202f\\u205f-\\u206f\\ufeff\\ufff9-\\ufffb" +
    "\\u{e0000}-\\u{e007f}\\p{Cs}]|" +
    "(?<![\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])[\\u200d\\ufe00-\\ufe0f]", // not within an emoji
  "gu",
);

/** A text as runs {text, mark: null | "line" | "tab" | "blank" | the name of a character that cannot be seen}. */
export function visible(text) {
  const runs = [];
  let at = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (match.index > at) runs.push({ text: text.slice(at, match.index), mark: null });
    at = match.index + match[0].length;
    runs.push({ text: match[0], mark: markOf(match[0]) });
  }
  if (at < text.length) runs.push({ text: text.slice(at), mark: null });
  return runs;
}

function markOf(char) {
  if (char === "\n") return "line";
  if (char === "\t") return "tab";
  if (char[0] === " ") return "blank";
  return NAMES[char] ?? `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}
