// Conversations with the AI SDK: its loop calls a tool, tells the result, and gets the answer.
//
//     CALLWRIGHT_NODE_MODULES=… node ai_sdk.mjs BASE_URL turns|rest|messages|messages-rest|messages-fail MODEL [MODEL ...]
//
// `turns`: over the Responses API, the Chat API, and the Chat API as the provider for compatible servers asks it; each
// whole and streamed. `rest`: not stored, reasoning as a summary, a custom tool, objects; it wants the simulated model.
// `messages`: over Anthropic's API, without and with reasoning; `messages-rest`: calls side by side, objects, on the
// simulated model; `messages-fail`: on a server that fails, and on one that breaks off.
// Exits with 1 and says what differs when anything does.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.CALLWRIGHT_NODE_MODULES}/`);
const { APICallError, generateText, Output, stepCountIs, streamText, tool } = require("ai");
const { createAnthropic } = require("@ai-sdk/anthropic");
const { createOpenAI } = require("@ai-sdk/openai");
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
const { z } = require("zod");

const QUESTION = "What is the weather in Paris?";
const RESULT = "18 °C, sunny";
const SIGHT = 'How high is the "Eiffel Tower", which has 330 m?';
const Sight = z.object({ place: z.string(), height: z.number().int() });

async function whole(request) {
  const { text, steps, totalUsage } = await generateText(request);
  return { text, steps, totalUsage };
}

async function streamed(request) {
  const failed = [];
  const result = streamText({ ...request, onError: ({ error }) => failed.push(error) });
  const kinds = new Set();
  for await (const part of result.fullStream) kinds.add(part.type);
  if (failed.length) throw failed[0];
  assert.ok(kinds.has("text-delta"), [...kinds].join());
  return { text: await result.text, steps: await result.steps, totalUsage: await result.totalUsage };
}

async function talk(model, ask, more = {}) {
  const asked = [];
  const weather = tool({
    description: "The weather in a city.",
    inputSchema: z.object({ city: z.string() }),
    strict: true,
    execute: async ({ city }) => {
      asked.push(city);
      return RESULT;
    },
  });
  const answer = await ask({
    model,
    maxRetries: 0,
    prompt: QUESTION,
    stopWhen: stepCountIs(3),
    tools: { get_weather: weather },
    ...more,
  });
  assert.deepEqual(asked, ["Paris"]);
  assert.equal(answer.steps.length, 2);
  assert.equal(answer.steps[0].finishReason, "tool-calls");
  assert.equal(answer.steps[1].finishReason, "stop");
  assert.ok(answer.text.includes("18 °C"), answer.text);
  assert.ok(answer.totalUsage.totalTokens > 0);
  return answer;
}

async function customTool(openai, name, ask) {
  const asked = [];
  const place = openai.tools.customTool({
    name: "find_place",
    description: "Finds a place by its name.",
    format: { type: "grammar", syntax: "regex", definition: "[A-Z][a-z]+" },
    execute: async (input) => {
      asked.push(input);
      return "48.9 N";
    },
  });
  const prompt = "Please find the place Paris.";
  const answer = await ask({
    model: openai.responses(name),
    maxRetries: 0,
    prompt,
    stopWhen: stepCountIs(3),
    tools: { find_place: place },
  });
  assert.equal(asked.length, 1);
  assert.match(asked[0], /^[A-Z][a-z]+$/);
  assert.ok(answer.text.includes("48.9 N"), answer.text);
}

async function objects(model) {
  const { output } = await generateText({ model, maxRetries: 0, prompt: SIGHT, output: Output.object({ schema: Sight }) });
  assert.deepEqual(output, { place: "Eiffel Tower", height: 330 });
}

// --- Anthropic's API ---

const THINKING = { providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } } };

async function thinks(model, ask) {
  const { steps } = await talk(model, ask, THINKING);
  assert.ok(steps[0].reasoningText, "the reasoning is shown");
  assert.ok(steps[0].reasoning[0].providerOptions.anthropic.signature);
}

async function sideBySide(model, name, ask) {
  const asked = [];
  const execute = async ({ city }) => asked.push(city) && RESULT;
  const weather = tool({ description: "The weather in a city.", inputSchema: z.object({ city: z.string() }), execute });
  const prompt = "What is the weather in Paris and in Rome?";
  const request = { model, maxRetries: 0, prompt, stopWhen: stepCountIs(4), tools: { get_weather: weather } };
  const { steps } = await ask(request);
  assert.deepEqual(asked, ["Paris", "Rome"]);
  assert.equal(steps[0].toolCalls.length, name === "raw-harmony" ? 1 : 2); // gpt-oss stops behind each call
}

async function fails(model, ask, words, status) {
  const failed = await ask({ model, maxRetries: 0, prompt: QUESTION }).catch((error) => error);
  assert.ok(failed.message.includes(words), failed.message);
  if (status) assert.ok(APICallError.isInstance(failed), failed.stack);
  if (status) assert.equal(failed.statusCode, status);
}

function casesOfMessages(what, anthropic) {
  const each = (title, run) =>
    [whole, streamed].map((ask) => [`${title}, ${ask.name}`, (name) => run(anthropic(name), ask, name)]);
  if (what === "messages") return [...each("messages", (model, ask) => talk(model, ask)), ...each("messages, thinking", thinks)];
  if (what === "messages-rest") {
    return [
      ...each("messages, side by side", (model, ask, name) => sideBySide(model, name, ask)),
      ...each("an object, messages", objects),
    ];
  }
  return [
    ...each("messages, it fails", (model, ask) => fails(model, ask, "the engine is on fire", 500)),
    ...each("messages, it breaks off", (model, ask) =>
      fails(model, ask, "closed the connection in the middle", ask === whole ? 500 : undefined),
    ),
  ];
}

function cases(what, { anthropic, openai, compatible }) {
  if (what.startsWith("messages")) return casesOfMessages(what, anthropic);
  const both = [whole, streamed];
  const apis = { responses: (name) => openai.responses(name), chat: (name) => openai.chat(name), compatible };
  const each = (title, run) => both.map((ask) => [`${title}, ${ask.name}`, (name) => run(name, ask)]);
  if (what === "turns") {
    return Object.entries(apis).flatMap(([api, make]) => each(api, (name, ask) => talk(make(name), ask)));
  }
  const options = {
    "not stored": { store: false, include: ["reasoning.encrypted_content"] },
    "with a summary": { reasoningSummary: "auto" },
  };
  return [
    ...Object.entries(options).flatMap(([title, given]) =>
      each(title, (name, ask) => talk(openai.responses(name), ask, { providerOptions: { openai: given } })),
    ),
    ...each("a custom tool", (name, ask) => customTool(openai, name, ask)),
    ...Object.entries(apis).map(([api, make]) => [`an object, ${api}`, (name) => objects(make(name))]),
  ];
}

const [baseURL, what, ...models] = process.argv.slice(2);
const given = { baseURL, apiKey: "any" };
const compatible = createOpenAICompatible({ name: "callwright", includeUsage: true, supportsStructuredOutputs: true, ...given });
const providers = { anthropic: createAnthropic(given), openai: createOpenAI(given), compatible };
globalThis.AI_SDK_LOG_WARNINGS = false;
for (const model of models) {
  for (const [name, run] of cases(what, providers)) {
    try {
      await run(model);
    } catch (error) {
      process.exitCode = 1;
      console.error(`AI SDK, ${model}, ${name}: ${error.stack}\n${error.responseBody ?? ""}`);
    }
  }
}
