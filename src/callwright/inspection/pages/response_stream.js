// A streamed answer of /v1/responses, put together as it comes.

export const begun = () => ({ items: [], status: "in_progress", error: null, usage: null });

// The events with more of an item, and what of it they carry.
const DELTAS = {
  "response.output_text.delta": "text",
  "response.refusal.delta": "text",
  "response.reasoning_text.delta": "text",
  "response.reasoning_summary_text.delta": "text",
  "response.function_call_arguments.delta": "arguments",
  "response.custom_tool_call_input.delta": "arguments",
  "response.mcp_call_arguments.delta": "arguments",
};

/** The answer after one more event. An item: {type, name, text, arguments, item}; `item` is the API's, once whole. */
export function answered(answer, event) {
  const { type, output_index: at } = event;
  if (DELTAS[type]) {
    const shown = answer.items[at] ?? shownOf({});
    return withItem(answer, at, { ...shown, [DELTAS[type]]: shown[DELTAS[type]] + event.delta });
  }
  switch (type) {
    case "response.output_item.added":
      return withItem(answer, at, shownOf(event.item));
    case "response.output_item.done":
      return withItem(answer, at, { ...shownOf(event.item), item: event.item });
    case "response.completed":
    case "response.incomplete":
    case "response.failed": {
      const { status, error, output, usage, incomplete_details: why } = event.response;
      const items = output.map((item) => ({ ...shownOf(item), item }));
      return { items, status, usage, error: error ?? (why && { message: `It is not complete: ${why.reason}` }) };
    }
    case "error":
      return { ...answer, status: "failed", error: event.error ?? event };
    default: // parts that begin and end, heartbeats
      return answer;
  }
}

function withItem(answer, at, shown) {
  const items = [...answer.items];
  items[at] = shown;
  return { ...answer, items };
}

function shownOf(item) {
  const parts = [...(item.summary ?? []), ...(Array.isArray(item.content) ? item.content : [])];
  return {
    type: item.type ?? "",
    name: item.server_label && item.name ? `${item.server_label}__${item.name}` : (item.name ?? ""),
    text: parts.map((part) => part.text ?? part.refusal ?? "").join(""),
    arguments: item.arguments ?? item.input ?? "",
    item: null,
  };
}

const OUTPUTS = { function_call: "function_call_output", custom_tool_call: "custom_tool_call_output" };

/** The calls of an answer that the client has to run. */
export const openCalls = ({ items }) => items.filter(({ type, item }) => type in OUTPUTS && item);

/** The item that tells what a call gave. */
export const outputItem = ({ type, item }, output) => ({ type: OUTPUTS[type], call_id: item.call_id, output });

/** A tool in the shape of this API, from that of Chat Completions. */
export function flatTool(tool) {
  if (tool?.type === "function" && tool.function) return { type: "function", ...tool.function };
  if (tool?.type !== "custom" || !tool.custom) return tool;
  const { format, ...custom } = tool.custom;
  const flat = format?.grammar ? { type: "grammar", ...format.grammar } : format;
  return { type: "custom", ...custom, ...(flat && { format: flat }) };
}
