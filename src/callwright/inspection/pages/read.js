import { html, useState, useEffect, postJson } from "./lib.js";
import { Source } from "./source.js";
export default function Read() {
  const [r, set] = useState(null);
  useEffect(() => { postJson("/ui/api/read", { dialect: "hermes", output: `<think>\nHm, the user wants the weather.\u200b Let me\tcall.  \n</think>\n\nI look it up.\n<tool_call>\n{"name": "getWeather", "arguments": {"city": "Oslo", "days": "3", "note": "two\\nlines",}}\n</tool_call>\n<tool_call>{"name": "unknown", "arguments": {"a": [1, {"b": 2}]}}</tool_call>`, tools: [{type: "function", function: {name: "get_weather", parameters: {type: "object", properties: {city: {type: "string"}, days: {type: "integer"}, note: {type:"string"}}}}}] }).then((a) => a.json()).then(set); }, []);
  return r && html`<${Source} reading=${r} />`;
}
