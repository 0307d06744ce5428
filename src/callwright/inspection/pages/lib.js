// What all pages share: the framework, the gateway's data, and how numbers and times read.
import { h, render, Component, Fragment, createContext } from "./vendor/preact.js";
import { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useContext } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";

export { h, render, Component, Fragment, createContext };
export { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useContext };
export const html = htm.bind(h);

const KEY = "callwright-key"; // of the gateway's keys, kept for as long as the tab is open

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

/** An answer that is none: `status`, and the words of the gateway's error. */
export class ApiError extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? `The gateway answered with status ${status}.`);
    this.status = status;
    this.code = body?.error?.code ?? null;
    this.param = body?.error?.param ?? null;
  }
}

/** fetch with the key, for paths of this gateway. Raises ApiError. */
export async function request(path, options = {}) {
  const headers = new Headers(options.headers);
  if (key.get()) headers.set("authorization", `Bearer ${key.get()}`);
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { error: { message: "The gateway cannot be reached." } });
  }
  if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => null));
  return response;
}

export const getJson = async (path, options) => (await request(path, options)).json();

export const postJson = (path, body, options = {}) =>
  request(path, {
    ...options,
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

/** The events of a response in text/event-stream, as {event, data}; data is parsed where it is JSON. */
export async function* serverEvents(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) {
        let event = "message";
        const data = [];
        for (const line of block.split(/\r?\n/)) {
          if (line.startsWith("event:")) event = line.slice(6).trim();
          else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
        }
        if (data.length) yield { event, data: parsed(data.join("\n")) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** "840 ms", "1.24 s", "2 min 5 s" */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 100) return `${seconds.toPrecision(3)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));

/** "14:03:21.5": the time of day, of Unix seconds */
export function clock(seconds) {
  const date = new Date(seconds * 1000);
  return `${date.toLocaleTimeString("en-GB")}.${Math.floor(date.getMilliseconds() / 100)}`;
}

export const OUTCOMES = {
  right: "OK",
  text: "text",
  mended: "repaired",
  asked_again: "retried",
  ambiguous: "ambiguous",
  invalid: "invalid call",
  failed: "failed",
  refused: "refused",
  left: "client left",
};

/** Go to a page of ours without loading it anew. */
export function go(path) {
  history.pushState(null, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
}

export function Link({ href, children, ...rest }) {
  const onClick = (event) => {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(href);
  };
  return html`<a href=${href} onClick=${onClick} ...${rest}>${children}</a>`;
}

/** What is loaded from a path: {data, error, reload}. Loaded anew when the path changes. */
export function useJson(path) {
  const [state, setState] = useState({ data: null, error: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    const leaving = new AbortController();
    getJson(path, { signal: leaving.signal }).then(
      (data) => setState({ data, error: null }),
      (error) => error.name === "AbortError" || setState({ data: null, error }),
    );
    return () => leaving.abort();
  }, [path, turn]);
  return { ...state, reload: () => setTurn((n) => n + 1) };
}

export function Failed({ error }) {
  return html`<p class="failed" role="alert">${error.message}</p>`;
}

/** A button that puts a text into the clipboard and says so. */
export function Copy({ text, label = "Copy" }) {
  const [done, setDone] = useState(false);
  const onClick = async () => {
    await copyText(typeof text === "function" ? text() : text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<button type="button" class="copy" onClick=${onClick}>
    ${done ? "Copied" : label}
  </button>`;
}

async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea"); // the only clipboard without https
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  return undefined;
}

/** Save a text as a file. */
export function save(name, text, type = "application/json") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
