// What is at hand on the reading bench and in "try it": tools with a question and their outputs, and faulty outputs.

const tool = (name, description, properties, required) => ({
  type: "function",
  function: { name, description, parameters: { type: "object", properties, required } },
});
const text = { type: "string" };

const WEATHER = [
  tool("get_weather", "Weather of a city.", { city: text, days: { type: "integer", minimum: 1 } }, ["city"]),
];
const FILES = [
  tool("read_file", "Reads a file.", { path: text }, ["path"]),
  tool(
    "edit_file",
    "Replaces a text in a file. You must call read_file first.",
    { path: text, old_text: text, new_text: text, replace_all: { type: "boolean" } },
    ["path", "old_text", "new_text"],
  ),
];
const TAG = [
  {
    type: "custom",
    custom: {
      name: "tag",
      description: "Tags a release.",
      format: { type: "grammar", grammar: { syntax: "regex", definition: "[a-z]+-[0-9]{2,4}" } },
    },
  },
];

/** [{name, tools, message}] */
export const TOOLS = [
  { name: "Weather", tools: WEATHER, message: "What is the weather in Oslo for 3 days?" },
  { name: "Files", tools: FILES, message: "Replace 'start' by 'main' in src/main.py" },
  { name: "Custom tool with a grammar", tools: TAG, message: "Tag release-2026." },
];

const OUTPUTS = {
  get_weather: { days: [{ low: 4, high: 12, sky: "light rain" }] },
  read_file: { text: "def start():\n    run()\n" },
};

/** What a tool might answer, as JSON to begin with. */
export const outputOf = (name) => JSON.stringify(OUTPUTS[name] ?? { ok: true });

/** [{name, dialect, tools, output, finish_reason}]: outputs of models, each with a fault. */
export const READINGS = [
  {
    name: "Hermes: an extra comma, a number as text",
    dialect: "hermes",
    tools: WEATHER,
    finish_reason: "stop",
    output: `<think>
The user asks for the weather of three days.
</think>

<tool_call>
{"name": "getWeather", "arguments": {"city": "Oslo", "days": "3",}}
</tool_call>`,
  },
  {
    name: "Harmony: the token before the arguments is missing",
    dialect: "harmony",
    tools: WEATHER,
    finish_reason: "stop",
    output:
      "<|channel|>analysis<|message|>The user wants the weather in Oslo.<|end|>" +
      "<|start|>assistant<|channel|>commentary to=functions.get_weather " +
      '<|constrain|>json{"city":"Oslo","days":3}<|call|>',
  },
  {
    name: "Qwen3-Coder: a tag is not closed, and a parameter is spelled in another way",
    dialect: "auto",
    tools: FILES,
    finish_reason: "stop",
    output: `I rename the function.

<tool_call>
<function=edit_file>
<parameter=path>
src/main.py
</parameter>
<parameter=oldText>
def start():
</parameter>
<parameter=new_text>
def main():
<parameter=replace_all>
false
</parameter>
</function>
</tool_call>`,
  },
  {
    name: "Pythonic: cut off in the second call",
    dialect: "pythonic",
    tools: WEATHER,
    finish_reason: "length",
    output: '[get_weather(city="Oslo", days=3), get_weather(city="Ber',
  },
];
