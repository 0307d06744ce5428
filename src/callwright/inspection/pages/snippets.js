// How clients connect to this gateway, as texts to copy: its address, a model of it, a place for the key.

const QUESTION = "What is the weather in Oslo?";
const SMALLEST_WINDOW = 8192; // that `callwright launch` takes

/** The model that examples name: the first that has a name of its own. */
export const firstModel = (models) =>
  models.find(({ name }) => name !== "*") ?? { name: "YOUR_MODEL", window: null };

/** [{name, about, text}] for a gateway at `origin`. */
export function snippets(origin, model, hasKeys) {
  const made = { origin, model, key: hasKeys ? "YOUR_KEY" : "any", hasKeys };
  return [
    { name: "curl", about: "A first call, with one tool.", text: curl(made) },
    { name: "OpenAI for Python", about: "Any client of OpenAI's API works the same way.", text: openai(made) },
    { name: "LangChain", about: "With langchain-openai installed.", text: langchain(made) },
    { name: "Codex", about: "Starts Codex with a configuration for this model.", text: codex(made) },
    { name: "Claude Code", about: "Starts Claude Code with the environment that it needs.", text: claude(made) },
  ];
}

function curl({ origin, model, hasKeys }) {
  const body = `{
  "model": ${JSON.stringify(model.name)},
  "messages": [{"role": "user", "content": "${QUESTION}"}],
  "tools": [{"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a city.",
    "parameters": {"type": "object", "required": ["city"],
      "properties": {"city": {"type": "string"}}}}}]
}`;
  const key = hasKeys ? " \\\n  -H 'authorization: Bearer YOUR_KEY'" : "";
  return `curl -s ${origin}/v1/chat/completions${key} \\
  -H 'content-type: application/json' -d ${quoted(body, true)}`;
}

function openai({ origin, model, key }) {
  return `from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key="${key}")
tools = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]
messages = [{"role": "user", "content": "${QUESTION}"}]
answer = client.chat.completions.create(
    model=${JSON.stringify(model.name)}, messages=messages, tools=tools
)
print(answer.choices[0].message.tool_calls)`;
}

function langchain({ origin, model, key }) {
  return `from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def get_weather(city: str) -> str:
    """Current weather of a city."""
    return f"18 degrees in {city}"


model = ChatOpenAI(
    model=${JSON.stringify(model.name)}, base_url="${origin}/v1", api_key="${key}"
)
answer = model.bind_tools([get_weather]).invoke("${QUESTION}")
print(answer.tool_calls)`;
}

function codex(choice) {
  return launched("codex", choice);
}

function claude(choice) {
  return launched("claude", choice);
}

function launched(agent, { origin, model, hasKeys }) {
  const key = hasKeys ? " --key-env CALLWRIGHT_KEY" : "";
  const command = `callwright launch ${agent} --url ${origin} --model ${quoted(model.name)}${window(model)}${key}`;
  return hasKeys ? `export CALLWRIGHT_KEY=YOUR_KEY\n${command}` : command;
}

function window(model) {
  return model.window >= SMALLEST_WINDOW ? ` --context-window ${model.window}` : "";
}

/** A word for the shell. */
function quoted(text, always = false) {
  if (!always && /^[\w./:@-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", "'\\''")}'`;
}
