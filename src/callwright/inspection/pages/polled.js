// What a page asks for again and again. It keeps what it has while the gateway does not answer.
import { getJson, useEffect, useState } from "./lib.js";

/** {data, error, reload} of a path, asked for every `seconds` while the page is to be seen. */
export function usePolled(path, seconds) {
  const [state, setState] = useState({ data: null, error: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    const leaving = new AbortController();
    let timer;
    const ask = async () => {
      clearTimeout(timer);
      try {
        const data = await getJson(path, { signal: leaving.signal });
        setState({ data, error: null });
      } catch (error) {
        if (leaving.signal.aborted) return;
        setState((last) => ({ data: last.data, error }));
      }
      timer = setTimeout(() => document.hidden || ask(), seconds * 1000);
    };
    const onSeen = () => document.hidden || ask();
    document.addEventListener("visibilitychange", onSeen);
    ask();
    return () => {
      leaving.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onSeen);
    };
  }, [path, seconds, round]);
  return { ...state, reload: () => setRound((n) => n + 1) };
}
