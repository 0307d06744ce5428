// A recorded request as texts that make it again: a command for the shell, a program in Python.
import { laidOut } from "./json_text.js";

const LONGEST_WORD = 100_000; // characters: Linux takes 128 KiB in one argument of a command

/** A curl command. `key`: whether the gateway wants one. */
export function asCurl({ origin, endpoint, request, key }) {
  const lines = [`curl ${request.stream ? "-sN" : "-s"} ${quoted(origin + endpoint)}`];
  if (key) lines.push("-H 'authorization: Bearer YOUR_KEY'");
  lines.push("-H 'content-type: application/json'");
  const body = laidOut(request);
  if (body.length <= LONGEST_WORD) return `${[...lines, `-d ${quoted(body)}`].join(" \\\n  ")}\n`;
  return `${[...lines, "-d @- <<'END'"].join(" \\\n  ")}\n${body}\nEND\n`; // no line of JSON is a bare word
}

/** A word of the shell, whatever stands in it. */
export const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// What the SDKs take as arguments of their own; all else goes into extra_body.
const ARGUMENTS = {
  chat: `messages model audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens
    max_tokens metadata modalities n parallel_tool_calls prediction presence_penalty prompt_cache_key reasoning_effort
    response_format safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools
    top_logprobs top_p user verbosity web_search_options`,
  responses: `background conversation include input instructions max_output_tokens max_tool_calls metadata model
    parallel_tool_calls previous_response_id prompt prompt_cache_key reasoning safety_identifier service_tier store
    stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user`,
  messages: `max_tokens messages model metadata service_tier stop_sequences stream system temperature thinking
    tool_choice tools top_k top_p`,
};
const CALLS = {
  chat: "client.chat.completions.create",
  responses: "client.responses.create",
  messages: "client.messages.create",
};

/** A program with the openai SDK, or with that of Anthropic for its API. */
export function asPython({ origin, endpoint, request, key }) {
  const api = apiOf(endpoint);
  const name = api === "messages" ? "Anthropic" : "OpenAI";
  const path = endpoint.slice(0, endpoint.lastIndexOf(api === "chat" ? "/chat/completions" : `/${api}`));
  const base = origin + (api === "messages" ? path.replace(/\/v1$/, "") : path); // Anthropic's SDK adds the /v1 itself
  const own = new Set(ARGUMENTS[api].split(/\s+/));
  const fields = Object.entries(request);
  const given = fields
    .filter(([field]) => own.has(field))
    .map(([field, value]) => `    ${field}=${literal(value, 1)},`);
  const extra = fields.filter(([field]) => !own.has(field));
  if (extra.length) given.push(`    extra_body=${literal(Object.fromEntries(extra), 1)},`);
  const shown = request.stream ? "for event in answer:\n    print(event)" : "print(answer.model_dump_json(indent=2))";
  return `from ${name.toLowerCase()} import ${name}

client = ${name}(base_url=${literal(base)}, api_key="${key ? "YOUR_KEY" : "any"}")
answer = ${CALLS[api]}(
${given.join("\n")}
)
${shown}
`;
}

/** Which API an endpoint is of; null for another. */
export function apiOf(endpoint) {
  const path = (endpoint ?? "").split("?")[0];
  if (path.endsWith("/chat/completions")) return "chat";
  if (path.endsWith("/responses")) return "responses";
  return path.endsWith("/messages") ? "messages" : null;
}

/** A value of JSON as Python writes it. All escapes of JSON's texts are Python's, too. */
export const literal = (value, depth = 0) => laidOut(value, PYTHON, depth);

const PYTHON = { indent: 4, comma: ",", leaf: (value) => WORDS[JSON.stringify(value)] ?? JSON.stringify(value) };
const WORDS = { null: "None", true: "True", false: "False" };
