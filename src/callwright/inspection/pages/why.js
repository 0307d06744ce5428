// What became of a turn, in a sentence or two, and why.
import { html, duration } from "./lib.js";
import { Explained, isRepaired, ProblemLink } from "./explained.js";

const SHOWN = 4; // problems; the lists below have them all
const EXPLAINED = 2;
const RETRIED = ["call_retried", "answer_retried"];

export function Why({ turn }) {
  const { tone, said } = why(turn);
  return html`<div class=${`why is-${tone}`} role="status">
    ${said.map(
      ({ text, problems = [] }) => html`<p>
        ${text}
        ${problems
          .slice(0, SHOWN)
          .map(({ kind, detail }, at) => html`${at ? "; " : " "}<${ProblemLink} name=${kind} />${detail ? ` – ${detail}` : ""}`)}
        ${problems.length > SHOWN && `; and ${problems.length - SHOWN} more`}
      </p>`,
    )}
    ${named(turn, said).map((name) => html`<${Explained} key=${name} name=${name} />`)}
  </div>`;
}

/** The names to explain: the failure, or else the problems; each once. */
function named({ row }, said) {
  if (row.outcome === "asked_again") return RETRIED.filter((kind) => kind in row.problems);
  const kinds = said.flatMap(({ problems = [] }) => problems.slice(0, SHOWN).map(({ kind }) => kind));
  const isSaid = !row.error || row.error === "unmet"; // whose message ends with its next step
  const found = [...new Set(isSaid && kinds.length ? kinds : [row.error, ...kinds])];
  return (found.some((name) => !isRepaired(name)) ? found.filter((name) => !isRepaired(name)) : found).slice(0, EXPLAINED);
}

/** {tone: "good" | "doubt" | "bad" | "soft", said: [{text, problems: [{kind, detail}]}]} */
export function why(turn) {
  const { row } = turn;
  const found = BECAME[row.outcome]?.(turn) ?? running(turn);
  if (row.finish_reason === "length") {
    found.said.push({ text: "The model was cut off: its limit of tokens was reached (finish reason length)." });
  }
  const other = turn.attempts.filter((attempt) => attempt.differs?.length);
  if (other.length) {
    const fields = [...new Set(other.flatMap((attempt) => attempt.differs))].join(", ");
    found.said.push({ text: `The installed version reads it differently than then: ${fields}.` });
    if (found.tone === "good") found.tone = "doubt";
  }
  return found;
}

const one = (tone, text, problems) => ({ tone, said: [{ text, problems }] });

const BECAME = {
  right: ({ row }) =>
    one("good", row.calls > 1 ? `All ${row.calls} calls were valid.` : "The call was valid."),
  text: ({ row }) => {
    const offered = row.tools === 1 ? "the tool was not called." : `none of the ${row.tools} tools was called.`;
    return one("good", `The model answered with text; ${row.tools ? offered : "no tools were offered."}`);
  },
  mended: (turn) => one("doubt", `${what(turn)} repaired:`, problemsOf(turn)),
  asked_again: askedAgain,
  ambiguous: (turn) => one("doubt", MEANT[turn.ambiguous] ?? MEANT.shown, problemsOf(turn)),
  invalid: (turn) => one("bad", "An invalid call was returned:", problemsOf(turn)),
  failed: (turn) => {
    const upstream = turn.attempts.findLast((attempt) => attempt.error)?.error;
    const says = /^The upstream /.test(upstream) ? upstream : `The upstream failed: ${upstream}`;
    const found = one("bad", upstream ? says : `It failed: ${errorOf(turn)}`);
    const isOther = upstream && turn.error && turn.error !== upstream;
    if (isOther) found.said.push({ text: `The client got: ${turn.error}` });
    turn.attempts.forEach(({ reading }, at) => {
      const wrong = reading?.problems.filter(({ kind }) => !isRepaired(kind)) ?? [];
      const problems = wrong.map(({ kind, detail }) => ({ kind, detail: turn.error?.includes(detail) ? "" : detail }));
      if (wrong.length) found.said.push({ text: `Attempt ${at + 1} had`, problems });
    });
    return found;
  },
  refused: (turn) => one("bad", `The gateway refused the request: ${errorOf(turn)}`),
  left: ({ row }) => one("soft", `The client left after ${duration(row.seconds)}, before the answer was whole.`),
};

function running({ attempts, row }) {
  if (attempts.length > 1) return one("soft", `The model is trying again (attempt ${attempts.length}).`);
  return one("soft", row.first_s === null ? "Waiting for the first word of the model." : "The model is writing.");
}

function askedAgain(turn) {
  const again = turn.attempts
    .map((attempt, at) => ({ attempt, before: turn.attempts[at - 1] }))
    .filter(({ attempt }) => attempt.again)
    .map(({ attempt, before }) => ({ kind: attempt.again, detail: detailOf(turn, before, attempt.again) }));
  const others = problemsOf(turn).filter(({ kind }) => !again.some((each) => each.kind === kind));
  const found = one("doubt", "The model tried again because of", again.length ? again : others);
  const { error } = turn.attempts.at(-1) ?? {};
  if (error) found.said.push({ text: `Attempt ${turn.attempts.length} failed: ${error}. An earlier answer was sent.` });
  else if (turn.row.attempts > 1) {
    const which = ORDINALS[turn.row.attempts] ?? `${turn.row.attempts}th`;
    const left = again.length ? others : [];
    const became = left.every(({ kind }) => isRepaired(kind)) ? "repaired:" : "not valid either:";
    found.said.push({ text: `The ${which} answer was ${left.length ? became : "valid."}`, problems: left });
  }
  return found;
}

// What the model answered when it was asked whether it meant a call.
const MEANT = {
  run: "The text may have been a call; the model confirmed it, and the call was made:",
  shown: "The text may have been a call; the model said it was none, and it was sent as text:",
  failed: "The text may have been a call; the model did not say, and it was sent as text:",
};

const ORDINALS = { 2: "second", 3: "third" };

function detailOf(turn, before, kind) {
  const seen = before?.reading?.problems.find((problem) => problem.kind === kind);
  return seen?.detail ?? turn.problems.find((problem) => RETRIED.includes(problem.kind))?.detail ?? "";
}

/** The problems with what is known of them; of a turn whose contents are not kept only the kinds. */
function problemsOf({ problems, row }) {
  const found = problems.filter(({ kind }) => !RETRIED.includes(kind));
  if (found.length) return found;
  return Object.entries(row.problems)
    .filter(([kind]) => !RETRIED.includes(kind))
    .map(([kind, times]) => ({ kind, detail: times > 1 ? `${times} times` : "" }));
}

function what({ row }) {
  if (row.calls === 0) return "The answer was";
  return row.calls === 1 ? "The call was" : "The calls were";
}

const errorOf = ({ error, row }) => error ?? row.error ?? "no reason is known.";
