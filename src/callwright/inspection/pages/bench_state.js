// What is on the reading bench, as a file: an output with all that its reading depends on, and what was read of it.
// Kept as a test, it tells whether another version reads the same.

const HANDED = "callwright-reading"; // from another page to the bench, in this tab only

/** The state for one attempt of a turn. */
export function ofAttempt(turn, attempt, version) {
  const { reading } = attempt;
  return stateOf({
    version,
    output: reading.output,
    tools: turn.tools.map(asOpenAi),
    dialect: reading.dialect ?? attempt.dialect,
    tool_choice: choiceOf(turn.tool_choice),
    start: attempt.start ?? startOf(reading),
    finish_reason: reading.finish_reason === "length" ? "length" : "stop",
    reading,
  });
}

export function stateOf({ version, output, tools, dialect, tool_choice, start, finish_reason, reading }) {
  const settings = { output, tools, dialect, tool_choice, start, finish_reason };
  return { callwright_reading: 1, version, ...settings, read: reading && resultOf(reading) };
}

/** What was read, without where it was read. */
export const resultOf = ({ content, reasoning, calls, finish_reason, problems }) => ({
  content,
  reasoning,
  calls: calls.map(({ name, arguments: text, complete }) => ({ name, arguments: text, complete })),
  finish_reason,
  problems: problems.map(({ kind, detail, call }) => ({ kind, detail, call })),
});

/** The fields in which two results differ. */
export const differing = (then, now) =>
  ["content", "reasoning", "calls", "finish_reason", "problems"].filter(
    (field) => JSON.stringify(then[field]) !== JSON.stringify(now[field]),
  );

/** A state from the text of a file. Raises an Error with words for people. */
export function stateFrom(text) {
  let state;
  try {
    state = JSON.parse(text);
  } catch {
    throw new Error("This file is not JSON.");
  }
  if (state?.callwright_reading !== 1 || typeof state.output !== "string") {
    throw new Error('This file was not saved by the reading bench: it has no "callwright_reading": 1, or no output.');
  }
  return state;
}

/** Give a state to the bench. False where the browser has no room for it. */
export function hand(state) {
  try {
    sessionStorage.setItem(HANDED, JSON.stringify(state));
    return true;
  } catch {
    return false;
  }
}

/** The state that was handed over, once. */
export function handed() {
  const text = sessionStorage.getItem(HANDED);
  sessionStorage.removeItem(HANDED);
  return text === null ? null : stateFrom(text);
}

function asOpenAi({ name, description, parameters, custom }) {
  if (custom) return { type: "custom", custom: { name, ...(description && { description }) } };
  return {
    type: "function",
    function: { name, ...(description && { description }), ...(parameters && { parameters }) },
  };
}

const choiceOf = (choice) =>
  choice !== null && typeof choice === "object" ? { type: "function", function: { name: choice.name } } : choice;

/** Where an output begins: with reasoning that the prompt had opened, or where an assistant usually does. */
const startOf = ({ pieces }) => (pieces[0]?.part === "reasoning" ? "reasoning" : "assistant");
