// Does with Anthropic's package for JavaScript what it is told, a JSON object a line; answers each with a line.
//
//     CALLWRIGHT_NODE_MODULES=… node anthropic_npm.mjs BASE_URL KEY
//
// What it may be told: the methods of `does`, by name, with the request, and whether to stream it.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(`${process.env.CALLWRIGHT_NODE_MODULES}/`);
const Anthropic = require("@anthropic-ai/sdk");
const { betaZodTool } = require("@anthropic-ai/sdk/helpers/beta/zod");
const { zodOutputFormat } = require("@anthropic-ai/sdk/helpers/zod");
const { z } = require("zod/v4");

const [baseURL, apiKey] = process.argv.slice(2);
const client = new Anthropic({ baseURL, apiKey, maxRetries: 0 });
const Sight = z.object({ place: z.string(), height: z.number().int() });

const does = {
  ask: (request, stream) =>
    stream ? client.messages.stream(request).finalMessage() : client.messages.create(request),

  async parse(request, stream) {
    const asked = { ...request, output_config: { format: zodOutputFormat(Sight) } };
    const made = await (stream ? client.messages.stream(asked).finalMessage() : client.messages.parse(asked));
    return made.parsed_output;
  },

  async run_tools(request, stream) {
    const cities = [];
    const weather = betaZodTool({
      name: "get_weather",
      description: "The weather in a city.",
      inputSchema: z.object({ city: z.string() }),
      run: ({ city }) => {
        cities.push(city);
        return `18 °C in ${city}`;
      },
    });
    const runner = client.beta.messages.toolRunner({ ...request, tools: [weather], stream });
    for await (const turn of runner) if (stream) await turn.finalMessage();
    return { cities, message: await runner.done() };
  },

  count: async (request) => (await client.messages.countTokens(request)).input_tokens,

  async models() {
    const found = [];
    for await (const model of client.models.list()) found.push(model);
    return found;
  },

  model: ({ model }) => client.models.retrieve(model),
};

function told(error) {
  const { status, type, message } = error;
  return { kind: error.constructor.name, status: status ?? null, type: type ?? null, message };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { what, request, stream } = JSON.parse(line);
  let answer;
  try {
    answer = { made: await does[what](request, stream) };
  } catch (error) {
    answer = { failed: told(error) };
  }
  console.log(JSON.stringify(answer));
}
