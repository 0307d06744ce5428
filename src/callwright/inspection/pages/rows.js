// The rows of the requests list, kept in the order in which the requests began, and which of them pass a filter.
// It knows neither the network nor the page.

const MOST = 5000;
const NAMES = 200; // of models, which a client may make up where the gateway takes any name

export class Rows {
  order = []; // of {row, words, change}, oldest first
  changes = 0; // how many there were: the number of the last one
  running = 0;
  models = new Set(); // that were ever seen; these four are for the choices of the filters
  keys = new Set();
  problems = new Set();
  outcomes = new Set();
  #byId = new Map();

  put(row) {
    this.changes += 1;
    this.#name(row);
    const known = this.#byId.get(row.id);
    if (known) {
      this.running += Number(!row.over) - Number(!known.row.over);
      Object.assign(known, { row, words: null, change: this.changes });
      return;
    }
    const entry = { row, words: null, change: this.changes };
    this.#byId.set(row.id, entry);
    this.running += Number(!row.over);
    let place = this.order.length; // nearly always the end; rows of several workers may cross
    while (place > 0 && this.order[place - 1].row.at > row.at) place -= 1;
    this.order.splice(place, 0, entry);
    if (this.order.length > MOST) this.#forget(1);
  }

  /** Forget what is older than the row with this id. */
  keepFrom(id) {
    const oldest = this.#byId.get(id);
    if (oldest) this.#forget(this.order.indexOf(oldest));
  }

  clear() {
    this.#forget(this.order.length);
    this.changes += 1;
  }

  #forget(many) {
    for (const { row } of this.order.splice(0, many)) {
      this.#byId.delete(row.id);
      this.running -= Number(!row.over);
    }
  }

  #name(row) {
    if (row.model && this.models.size < NAMES) this.models.add(row.model);
    if (row.key) this.keys.add(row.key);
    this.outcomes.add(row.outcome);
    for (const kind in row.problems) this.problems.add(kind);
  }
}

/** A copy of entries that stays as it is while the rows go on. */
export const frozen = (order) => order.map((entry) => ({ ...entry }));

export const FILTERS = ["q", "outcome", "model", "key", "problem"];
export const RUNNING = "running"; // as an outcome in an address: the row itself has none yet

/** The filter that a query such as "?problem=json_repaired" says; "" is any. */
export function filterOf(query) {
  const given = new URLSearchParams(query);
  return Object.fromEntries(FILTERS.map((name) => [name, given.get(name) ?? ""]));
}

/** The query for a filter; "" where it lets all through. */
export function queryOf(filter) {
  const query = new URLSearchParams();
  for (const name of FILTERS) if (filter[name]) query.set(name, filter[name]);
  return String(query) && `?${query}`;
}

/** The rows that a filter lets through, newest first. */
export function matching(order, filter) {
  const terms = filter.q.toLowerCase().split(/\s+/).filter(Boolean);
  const outcome = filter.outcome === RUNNING ? "" : filter.outcome;
  const found = [];
  for (let place = order.length - 1; place >= 0; place -= 1) {
    const entry = order[place];
    const { row } = entry;
    if (filter.outcome && row.outcome !== outcome) continue;
    if (filter.model && row.model !== filter.model) continue;
    if (filter.key && row.key !== filter.key) continue;
    if (filter.problem && !(filter.problem in row.problems)) continue;
    if (terms.length) {
      entry.words ??= wordsOf(row);
      if (!terms.every((term) => entry.words.includes(term))) continue;
    }
    found.push(row);
  }
  return found;
}

function wordsOf(row) {
  const { id, request_id, conversation, model, key, error, endpoint, asked } = row;
  return [id, request_id, conversation, model, key, error, endpoint, asked, ended(row)]
    .concat(row.called, Object.keys(row.problems))
    .join("\n")
    .toLowerCase();
}

const ENDED = {
  answered: "answered with text",
  cut: "stopped at the token limit",
  filtered: "stopped by a content filter",
  declined: "declined to answer",
  refused: "request refused",
  failed: "no answer",
  left: "client left",
};

/** How a request ended, in words; empty while it runs. */
export function ended({ ended: how, called, calls, tools }) {
  if (how !== "called") return ENDED[how] ?? "";
  if (called.length) return `called ${[...new Set(called)].join(", ")}`;
  return `${calls} ${calls === 1 ? "call" : "calls"}, ${tools} ${tools === 1 ? "tool" : "tools"} offered`;
}

/**
 * Rows, newest first, with the requests of one conversation with a model in one row at the place of the newest: {head} has the count
 * in `turns`. `open` has the conversations whose requests follow their row, each with `isInner`.
 */
export function grouped(found, open, order) {
  const groups = Map.groupBy(found, (row) => (row.conversation ? `${row.conversation} ${row.model}` : row.id));
  return [...groups].flatMap(([conversation, rows]) => {
    if (rows.length === 1) return rows;
    const isOpen = open.has(conversation);
    const inner = isOpen ? rows.map((row) => ({ ...row, isInner: true })) : [];
    return [headOf(conversation, rows, isOpen, order), ...inner];
  });
}

/** The row of a conversation: the newest request, with the worst outcome, to which it leads. */
function headOf(conversation, rows, isOpen, order) {
  const [newest] = rows;
  const oldest = rows.at(-1);
  const sum = (name) => rows.reduce((all, row) => all + (row[name] ?? 0), 0);
  const worst = rows.reduce((one, row) => (order.indexOf(row.outcome) > order.indexOf(one.outcome) ? row : one), newest);
  const problems = {};
  for (const row of rows) {
    for (const [kind, count] of Object.entries(row.problems)) problems[kind] = (problems[kind] ?? 0) + count;
  }
  return {
    ...newest,
    id: `conversation ${conversation}`,
    conversation,
    goes: worst.id,
    turns: rows.length,
    isOpen,
    outcome: newest.over ? worst.outcome : newest.outcome,
    error: worst.error,
    problems,
    called: rows.toReversed().flatMap(({ called }) => called),
    calls: sum("calls"),
    seconds: newest.at + (newest.seconds ?? 0) - oldest.at,
    input_tokens: sum("input_tokens"),
    output_tokens: sum("output_tokens"),
    again_of: null,
  };
}
