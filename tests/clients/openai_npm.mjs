// Conversations over the Responses API with the official openai package for JavaScript.
//
//     CALLWRIGHT_NODE_MODULES=… node openai_npm.mjs BASE_URL turns|rest MODEL [MODEL ...]
//
// `turns`: a call, its result, the answer; asked for whole, streamed, and by the package's stream helper, with the items
// sent back and with `previous_response_id`. `rest`: structured outputs, custom tools, calls side by side; it wants the
// simulated model. Exits with 1 and says what differs when anything does.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.CALLWRIGHT_NODE_MODULES}/`);
const OpenAI = require("openai");
const { zodResponsesFunction, zodTextFormat } = require("openai/helpers/zod");
const { z } = require("zod");

const QUESTION = "What is the weather in Paris?";
const RESULT = "18 °C, sunny";
const WEATHER = {
  type: "function",
  name: "get_weather",
  description: "The weather in a city.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
  strict: true,
};
const PLACE = { type: "custom", name: "find_place", description: "Finds a place by its name." };
const GRAMMAR = { type: "grammar", syntax: "lark", definition: "start: NAME\nNAME: /[A-Z][a-z]+/" };
const SIGHT = 'How high is the "Eiffel Tower", which has 330 m?';
const Sight = z.object({ place: z.string(), height: z.number().int() });

// --- three ways to ask ---

async function whole(client, request) {
  return client.responses.create(request);
}

async function streamed(client, request) {
  let answer = null;
  let number = 0;
  const texts = {};
  for await (const event of await client.responses.create({ ...request, stream: true })) {
    assert.equal(event.sequence_number, number++);
    if (event.type.endsWith(".delta")) texts[event.item_id] = (texts[event.item_id] ?? "") + event.delta;
    if (event.type === "response.completed") answer = event.response;
  }
  for (const item of answer.output) {
    const text = item.arguments ?? item.input ?? item.content[0].text;
    assert.equal(texts[item.id] ?? "", text);
  }
  return answer;
}

async function helped(client, request) {
  const stream = client.responses.stream(request);
  for await (const event of stream) assert.ok(event.type);
  return stream.finalResponse();
}

// --- what is asked ---

const callOf = (answer, type) => {
  const calls = answer.output.filter((item) => item.type.endsWith("_call"));
  assert.deepEqual(calls.map((call) => call.type), [type]);
  return calls[0];
};

async function twoTurns(client, model, ask, refers) {
  const question = { role: "user", content: QUESTION };
  const first = await ask(client, { model, input: [question], tools: [WEATHER] });
  const call = callOf(first, "function_call");
  assert.equal(call.name, "get_weather");
  assert.deepEqual(JSON.parse(call.arguments), { city: "Paris" });
  const result = { type: "function_call_output", call_id: call.call_id, output: RESULT };
  const request = refers
    ? { input: [result], previous_response_id: first.id }
    : { input: [question, ...first.output, result] };
  const last = await ask(client, { model, tools: [WEATHER], ...request });
  assert.ok(textOf(last).includes("18 °C"), textOf(last));
  for (const answer of [first, last]) {
    assert.equal(answer.status, "completed");
    assert.ok(answer.usage.total_tokens > 0);
  }
}

const textOf = (answer) =>
  answer.output
    .filter((item) => item.type === "message")
    .map((item) => item.content[0].text)
    .join("");

async function customTools(client, model, ask) {
  for (const format of [undefined, { type: "text" }, GRAMMAR]) {
    const tools = [{ ...PLACE, ...(format && { format }) }];
    const question = { role: "user", content: "Please find the place Paris." };
    const first = await ask(client, { model, input: [question], tools });
    const call = callOf(first, "custom_tool_call");
    assert.match(call.input, /^[A-Z][a-z]+$/);
    const result = { type: "custom_tool_call_output", call_id: call.call_id, output: "48.9 N" };
    const last = await ask(client, { model, input: [question, ...first.output, result], tools });
    assert.ok(textOf(last).includes("48.9 N"), textOf(last));
  }
}

async function sideBySide(client, model, ask) {
  const input = "What is the weather in Paris and in Rome?";
  const answer = await ask(client, { model, input, tools: [WEATHER] });
  const calls = answer.output.filter((item) => item.type === "function_call");
  assert.equal(calls.length, model === "raw-harmony" ? 1 : 2); // gpt-oss stops behind each call
}

async function structuredOutput(client, model) {
  const text = { format: zodTextFormat(Sight, "sight") };
  const parsed = await client.responses.parse({ model, input: SIGHT, text });
  assert.deepEqual(parsed.output_parsed, { place: "Eiffel Tower", height: 330 });
  const stream = client.responses.stream({ model, input: SIGHT, text });
  assert.deepEqual((await stream.finalResponse()).output_parsed, parsed.output_parsed);
  const tools = [zodResponsesFunction({ name: "store_sight", parameters: Sight })];
  const stored = await client.responses.parse({ model, input: SIGHT, tools, tool_choice: "required" });
  assert.deepEqual(callOf(stored, "function_call").parsed_arguments, parsed.output_parsed);
}

async function kept(client, model) {
  const first = await client.responses.create({ model, input: "Hello" });
  assert.deepEqual((await client.responses.retrieve(first.id)).output, first.output);
  const items = [];
  for await (const item of client.responses.inputItems.list(first.id)) items.push(item.content[0].text);
  assert.deepEqual(items, ["Hello"]);
  await client.responses.delete(first.id);
  await assert.rejects(client.responses.retrieve(first.id), OpenAI.NotFoundError);
}

// --- how it runs ---

function cases(what) {
  const asks = [whole, streamed, helped];
  if (what === "turns") {
    return asks.flatMap((ask) =>
      [false, true].map((refers) => [
        `twoTurns, ${ask.name}, ${refers ? "by reference" : "sent back"}`,
        (client, model) => twoTurns(client, model, ask, refers),
      ]),
    );
  }
  const asked = [customTools, sideBySide].flatMap((run) =>
    asks.map((ask) => [`${run.name}, ${ask.name}`, (client, model) => run(client, model, ask)]),
  );
  return [...asked, ["structuredOutput", structuredOutput], ["kept", kept]];
}

const [baseURL, what, ...models] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "any", maxRetries: 0 });
for (const model of models) {
  for (const [name, run] of cases(what)) {
    try {
      await run(client, model);
    } catch (error) {
      process.exitCode = 1;
      console.error(`openai for JavaScript, ${model}, ${name}: ${error.stack}`);
    }
  }
}
