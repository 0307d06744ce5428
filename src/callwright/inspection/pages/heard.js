// What a client has of an answer after some steps of it.

export const nothing = () => ({
  step: 0,
  end: 0,
  content: "",
  reasoning: "",
  calls: [],
  problems: [],
  finish_reason: null,
});

/** The same after the steps up to number `step`; `before` is used up where it is not ahead of that. */
export function heard(steps, step, before = nothing()) {
  const state = before.step <= step ? { ...before } : nothing();
  state.calls = [...state.calls];
  state.problems = [...state.problems];
  for (; state.step < step; state.step += 1) {
    const { end, events } = steps[state.step];
    state.end = end;
    for (const event of events) take(state, event);
  }
  return state;
}

function take(state, event) {
  const at = state.calls.findIndex((call) => call.index === event.index);
  switch (event.type) {
    case "ContentDelta":
      state.content += event.text;
      break;
    case "ReasoningDelta":
      state.reasoning += event.text;
      break;
    case "CallStarted":
      state.calls.push({ index: event.index, name: event.name, kind: event.kind, arguments: "", complete: null });
      break;
    case "ArgumentsDelta":
      if (at >= 0) state.calls[at] = { ...state.calls[at], arguments: state.calls[at].arguments + event.text };
      break;
    case "CallEnded":
      if (at >= 0) state.calls[at] = { ...state.calls[at], complete: event.complete ?? true };
      break;
    case "Problem":
      state.problems.push({ kind: event.kind, detail: event.detail ?? "", call: event.call ?? null });
      break;
    case "Finished":
      state.finish_reason = event.reason;
      break;
    default: // markup, and what only a server can tell
  }
}

/** The numbers, in the reading's problems, of those that are told of already. */
export function told(reading, problems) {
  const waiting = [...problems];
  const numbers = new Set();
  for (const [number, problem] of reading.problems.entries()) {
    const at = waiting.findIndex(
      (one) => one.kind === problem.kind && one.detail === problem.detail && one.call === (problem.call ?? null),
    );
    if (at >= 0) {
      waiting.splice(at, 1);
      numbers.add(number);
    }
  }
  return numbers;
}
