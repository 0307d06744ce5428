// What differs between two texts, word by word.

const WORDS = /\s+|[\p{L}\p{N}_]+|./gsu;
const LIMIT = 1_000_000; // cells of the table: 4 MB, some milliseconds

/** [{kind: "same" | "gone" | "new", text}]: the parts of both texts in order. */
export function difference(before, after) {
  const a = before.match(WORDS) ?? [];
  const b = after.match(WORDS) ?? [];
  let first = 0;
  while (first < a.length && first < b.length && a[first] === b[first]) first += 1;
  let last = 0;
  while (last < a.length - first && last < b.length - first && a.at(-1 - last) === b.at(-1 - last)) last += 1;
  const middle = compared(a.slice(first, a.length - last), b.slice(first, b.length - last));
  return joined([
    ...a.slice(0, first).map((text) => ({ kind: "same", text })),
    ...middle,
    ...a.slice(a.length - last).map((text) => ({ kind: "same", text })),
  ]);
}

function compared(a, b) {
  if (a.length * b.length > LIMIT) {
    return [
      { kind: "gone", text: a.join("") },
      { kind: "new", text: b.join("") },
    ];
  }
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width); // the longest common part from (i, j) on
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const at = i * width + j;
      common[at] = a[i] === b[j] ? common[at + width + 1] + 1 : Math.max(common[at + width], common[at + 1]);
    }
  }
  const parts = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      parts.push({ kind: "same", text: a[i] });
      i += 1;
      j += 1;
    } else if (j === b.length || (i < a.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      parts.push({ kind: "gone", text: a[i] });
      i += 1;
    } else {
      parts.push({ kind: "new", text: b[j] });
      j += 1;
    }
  }
  return parts;
}

function joined(parts) {
  const out = [];
  for (const part of parts) {
    if (!part.text) continue;
    if (out.at(-1)?.kind === part.kind) out.at(-1).text += part.text;
    else out.push({ ...part });
  }
  return out;
}
