// A model is asked, with tools: its answer as it comes, and beside it what it wrote. The user says what the tools gave.
import { html, key, serverEvents, useContext, useEffect, useRef, useState, ApiError } from "./lib.js";
import { Gateway } from "./gateway.js";
import { answered, begun, flatTool } from "./response_stream.js";
import { TOOLS } from "./examples.js";
import { toolsOf, toolsText } from "./tools_field.js";
import { Ask, Message } from "./try_form.js";
import { Round } from "./try_round.js";

const FIRST = {
  message: TOOLS[0].message,
  tools: toolsText(TOOLS[0].tools),
  tool_choice: "auto",
  mcp: [],
  instructions: "",
  temperature: "",
  max_output_tokens: "",
};

export default function TryPage() {
  const gateway = useContext(Gateway);
  const names = gateway.models.map(({ name }) => name).filter((name) => name !== "*");
  const [asked, setAsked] = useState(() => ({ ...FIRST, model: names[0] ?? "" }));
  const [rounds, setRounds] = useState([]);
  const running = useRef(null);
  useEffect(() => () => running.current?.abort(), []);
  if (gateway.source === "files") {
    return html`<div class="page">
      <h1>Try it</h1>
      <p>These pages show recorded files, without a gateway to ask.</p>
    </div>`;
  }
  const last = rounds.at(-1);
  const isRunning = last !== undefined && last.state === "running";
  const { tools, error } = toolsOf(asked.tools);

  const ask = async (sent) => {
    const before = last ? saidBy(last) : [];
    const leaving = new AbortController();
    running.current = leaving;
    let round = { before, sent, answer: begun(), state: "running", request_id: null, error: null };
    const put = (fields) => {
      round = { ...round, ...fields };
      if (running.current === leaving) setRounds([...rounds, round]);
    };
    put({});
    try {
      const response = await post(bodyOf(asked, tools, [...before, ...sent]), leaving.signal);
      put({ request_id: response.headers.get("x-request-id") });
      if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => null));
      let waiting = null; // at most one change of the page for each frame
      for await (const { data } of serverEvents(response)) {
        if (typeof data !== "object") continue;
        round = { ...round, answer: answered(round.answer, data) };
        waiting ??= requestAnimationFrame(() => {
          waiting = null;
          put({});
        });
      }
      cancelAnimationFrame(waiting);
      put({ state: "over" });
    } catch (failed) {
      put({ state: "over", error: leaving.signal.aborted ? { message: "Stopped." } : failed });
    }
  };
  const onSay = () => {
    setAsked({ ...asked, message: "" });
    ask([{ role: "user", content: asked.message }]);
  };
  const onStop = () => running.current.abort();
  const onOver = () => {
    running.current?.abort();
    running.current = null;
    setRounds([]);
    if (!asked.message) setAsked({ ...asked, message: rounds[0].sent[0].content });
  };
  const change = (fields) => setAsked({ ...asked, ...fields });
  const message = html`<${Message}
    text=${asked.message}
    isFirst=${!last}
    canSend=${!isRunning && !error && asked.model !== "" && asked.message.trim() !== ""}
    onChange=${(text) => change({ message: text })}
    onSend=${onSay}
    onStop=${isRunning ? onStop : null}
    onOver=${last ? onOver : null}
  />`;
  return html`<div class="page try">
    <h1>Try it</h1>
    <p class="soft">Ask a model through this gateway. Functions are not run: you write their output. For another mode or dialect run an answered request again.</p>
    <${Ask}
      asked=${asked}
      models=${gateway.models}
      mcp=${gateway.mcp}
      error=${error}
      onChange=${change}
    />
    ${!last && message}
    ${rounds.map(
      (round, at) => html`<${Round}
        key=${at}
        round=${round}
        gateway=${gateway}
        onOutputs=${at === rounds.length - 1 && !isRunning && !error ? ask : null}
      />`,
    )}
    ${last && message}
  </div>`;
}

/** Unlike `postJson` it answers a refusal, too: its request id finds the turn. */
async function post(body, signal) {
  const headers = { "content-type": "application/json", ...(key.get() && { authorization: `Bearer ${key.get()}` }) };
  try {
    return await fetch("/v1/responses", { method: "POST", headers, body: JSON.stringify(body), signal });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError(0, { error: { message: "The gateway cannot be reached." } });
  }
}

/** The items up to the end of a round. What got no answer is left out: it is asked anew. */
function saidBy({ before, sent, answer }) {
  const items = answer.items.flatMap((shown) => shown?.item ?? []);
  return items.length ? [...before, ...sent, ...items] : before;
}

function bodyOf({ model, tool_choice, mcp, instructions, temperature, max_output_tokens }, tools, input) {
  const all = [
    ...(tools ?? []).map(flatTool),
    ...mcp.map((label) => ({ type: "mcp", server_label: label, require_approval: "never" })),
  ];
  const choice = { auto: null, none: "none", required: "required" };
  const chosen = tool_choice in choice ? choice[tool_choice] : choiceOf(all, tool_choice);
  const given = all.length ? { tools: all, ...(chosen && { tool_choice: chosen }) } : {};
  const settings = {
    ...(instructions.trim() && { instructions }),
    ...(temperature !== "" && { temperature: Number(temperature) }),
    ...(max_output_tokens !== "" && { max_output_tokens: Number(max_output_tokens) }),
  };
  return { model, input, ...settings, ...given, stream: true, store: false };
}

/** The choice of one tool by its name. */
function choiceOf(tools, name) {
  const type = tools.find((tool) => tool?.name === name)?.type === "custom" ? "custom" : "function";
  return { type, name };
}
