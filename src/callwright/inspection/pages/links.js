// Which pieces of an output belong to which argument of which call, as numbers that both sides bear.
import { members } from "./json_text.js";

/** {argument(call, name), name(call)}: the number of an argument, or of a call's name; undefined where none is. */
export function links(reading) {
  const numbers = new Map();
  const written = new Map(reading.calls.map((call) => [call.index, new Set()]));
  for (const piece of reading.pieces) {
    if (piece.part === "arguments" && piece.argument !== null) written.get(piece.call)?.add(piece.argument);
  }
  for (const call of reading.calls) {
    numbers.set(`${call.index}`, numbers.size);
    const names = argumentNames(call);
    for (const name of names) numbers.set(`${call.index} ${name}`, numbers.size);
    // One that goes out under another name than was written is the one that is left on both sides.
    const renamed = [...written.get(call.index)].filter((name) => !names.includes(name));
    const open = names.filter((name) => !written.get(call.index).has(name));
    if (renamed.length === open.length) {
      renamed.forEach((name, at) => numbers.set(`${call.index} ${name}`, numbers.get(`${call.index} ${open[at]}`)));
    }
  }
  return {
    argument: (call, name) => numbers.get(`${call} ${name ?? ""}`),
    name: (call) => numbers.get(`${call}`),
  };
}

/** The names of a call's arguments; one without a name where they are no JSON object. */
const argumentNames = (call) => members(call.arguments)?.map(({ key }) => key) ?? [""];
