// The rows of this gateway as they come, for all pages: one stream, and at most one change of the page for each frame.
import { getJson, request, serverEvents, useEffect, useState } from "./lib.js";
import { Rows } from "./rows.js";

const LONGEST_PAUSE_S = 10;
const SETTLING_MS = 150; // in which a stream that begins anew brings what was there before

export const rows = new Rows();
const listeners = new Set();
let status = { state: "idle", error: null, again_at: null };
let waiting = false;
let wake = () => {};

/**
 * How the stream is: "idle", "connecting", "live", "broken" (tried again at `again_at`, in ms), "refused", "whole"
 * (there is nothing to follow).
 */
export const liveStatus = () => status;

/** Do not wait for the next attempt. */
export const tryNow = () => wake();

/** What `select` makes of the rows or the status, now and after each change of it. `select` may not change. */
export function useLive(select) {
  const [value, setValue] = useState(select);
  useEffect(() => {
    const listen = () => setValue(() => select());
    listeners.add(listen);
    listen();
    return () => listeners.delete(listen);
  }, []);
  return value;
}

/** Follow the rows of the gateway, or read them once where they are from files. Answers what ends it. */
export function follow(source) {
  const leaving = new AbortController();
  if (source === "files") readOnce(leaving.signal);
  else keepFollowing(leaving.signal);
  return () => leaving.abort();
}

async function readOnce(signal) {
  say("connecting");
  try {
    const answer = await getJson("/ui/api/turns", { signal });
    for (const row of answer.rows) rows.put(row);
    say("whole");
  } catch (error) {
    if (!signal.aborted) say("refused", error);
  }
}

async function keepFollowing(signal) {
  let pause_s = 1;
  while (!signal.aborted) {
    let error = null;
    try {
      if (status.state !== "broken") say("connecting");
      const response = await request("/ui/api/turns/live", { signal });
      say("live");
      let isNew = true;
      for await (const { event, data } of serverEvents(response)) {
        pause_s = 1;
        if (event === "kept") rows.keepFrom(data.oldest);
        if (event !== "rows") continue;
        const isAnew = isNew && rows.order.length > 0;
        if (isAnew) rows.clear(); // a gateway that was restarted counts its ids from the begin
        isNew = false;
        for (const row of data) rows.put(row);
        tell(isAnew ? SETTLING_MS : 0);
      }
    } catch (failed) {
      error = failed;
    }
    if (signal.aborted) return;
    if ([401, 403, 404].includes(error?.status)) {
      say("refused", error);
      return;
    }
    say("broken", error, Date.now() + pause_s * 1000);
    await pause(pause_s, signal);
    pause_s = Math.min(pause_s * 2, LONGEST_PAUSE_S);
  }
}

function pause(seconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener("abort", wake, { once: true });
  });
}

function say(state, error = null, again_at = null) {
  status = { state, error, again_at };
  tell();
}

function tell(later_ms = 0) {
  if (waiting) return;
  waiting = true;
  const now = () => {
    waiting = false;
    for (const listen of listeners) listen();
  };
  if (later_ms) setTimeout(now, later_ms);
  else if (document.hidden) setTimeout(now, 1000); // there are no frames
  else requestAnimationFrame(now);
}
