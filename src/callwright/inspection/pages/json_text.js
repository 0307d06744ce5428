// JSON as text: taken apart and indented without reading its values, so that no digit and no repeated key is lost.

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/gs;

/** The value of JSON text, or undefined where it is none. */
export function parsedJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const JSON_LAYOUT = { indent: 2, comma: "", leaf: JSON.stringify };
const WIDTH = 90;

/** A value as text: what fits a line is on one. `comma`: what follows the last of several lines. */
export function laidOut(value, layout = JSON_LAYOUT, depth = 0) {
  if (value === null || typeof value !== "object") return layout.leaf(value);
  const isList = Array.isArray(value);
  const [open, close] = isList ? "[]" : "{}";
  const inner = (part) => laidOut(part, layout, depth + 1);
  const parts = isList
    ? value.map(inner)
    : Object.entries(value).map(([name, part]) => `${JSON.stringify(name)}: ${inner(part)}`);
  const line = `${open}${parts.join(", ")}${close}`;
  if (line.length + layout.indent * depth <= WIDTH && !line.includes("\n")) return line;
  const margin = " ".repeat(layout.indent * depth);
  const lines = parts.map((part) => `${margin}${" ".repeat(layout.indent)}${part}`).join(",\n");
  return `${open}\n${lines}${layout.comma}\n${margin}${close}`;
}

/** The same JSON on lines of its own; text that is no JSON as it is. */
export function indented(text) {
  if (parsedJson(text) === undefined) return text;
  return written(text.match(TOKEN));
}

/** The members of a JSON object: [{key, value}], the value as indented text. null where it is no object. */
export function members(text) {
  const value = parsedJson(text);
  if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
  const tokens = text.match(TOKEN);
  const found = [];
  for (let at = 1; at + 2 < tokens.length; at += 1) {
    const key = JSON.parse(tokens[at]);
    const begin = at + 2; // behind the key and its colon
    let depth = 0;
    for (at = begin; depth > 0 || (tokens[at] !== "," && tokens[at] !== "}"); at += 1) {
      if (tokens[at] === "{" || tokens[at] === "[") depth += 1;
      if (tokens[at] === "}" || tokens[at] === "]") depth -= 1;
    }
    found.push({ key, value: written(tokens.slice(begin, at)) });
  }
  return found;
}

function written(tokens) {
  let out = "";
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [at, token] of tokens.entries()) {
    const before = tokens[at - 1];
    if (token === "}" || token === "]") {
      depth -= 1;
      out += before === "{" || before === "[" ? token : line() + token;
    } else {
      out += (before === "{" || before === "[" ? line() : "") + token;
      if (token === "{" || token === "[") depth += 1;
      else if (token === ",") out += line();
      else if (token === ":") out += " ";
    }
  }
  return out;
}
