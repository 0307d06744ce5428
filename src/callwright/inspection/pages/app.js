// The shell of all pages: which page an address is, the header, and the key where the gateway asks for one.
import { html, key, render, Component, Failed, Link, useEffect, useRef, useState } from "./lib.js";
import { Gateway } from "./gateway.js";
import { follow, liveStatus, rows, useLive } from "./live.js";
import { usePolled } from "./polled.js";
import { KeyForm } from "./key_form.js";
import Home from "./home.js";
import ProblemPage from "./problem_page.js";
import Quality from "./quality.js";
import Read from "./read.js";
import Requests from "./requests.js";
import Spend from "./spend.js";
import Try from "./try.js";
import Turn from "./turn.js";

const LINKS = [
  ["/", "Home"],
  ["/ui", "Requests"],
  ["/ui/read", "Reading bench"],
  ["/ui/try", "Try it"],
  ["/ui/quality", "Quality"],
  ["/ui/spend", "Spend"],
];
const PAGES = {
  "/": { page: Home, title: "Home" },
  "/ui": { page: Requests, title: "Requests" },
  "/ui/read": { page: Read, title: "Reading bench" },
  "/ui/try": { page: Try, title: "Try it" },
  "/ui/quality": { page: Quality, title: "Quality" },
  "/ui/spend": { page: Spend, title: "Spend" },
  "/ui/problems": { page: ProblemPage, title: "Problems" },
};

/** The page at a path, with its properties and the link of the header that it belongs to; null where there is none. */
function found(path, query) {
  const at = path.replace(/\/+$/, "") || "/";
  if (Object.hasOwn(PAGES, at)) return { ...PAGES[at], link: at, props: { query } };
  const turn = at.match(/^\/ui\/turns\/([^/]+)$/);
  if (!turn) return null;
  try {
    const id = decodeURIComponent(turn[1]);
    const other = new URLSearchParams(query).get("with") || null;
    return { page: Turn, title: `Request ${id}`, link: "/ui", props: { id, with: other } };
  } catch {
    return null; // percent signs that are no encoding
  }
}

function usePlace() {
  const here = () => ({ path: location.pathname, query: location.search });
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const onMove = () => setPlace(here());
    addEventListener("popstate", onMove);
    return () => removeEventListener("popstate", onMove);
  }, []);
  return place;
}

function App() {
  const { path, query } = usePlace();
  const { data, error, reload } = usePolled("/ui/api/gateway", 10);
  const [keys, setKeys] = useState(0); // how many were tried: a new one begins all anew
  const main = useRef(null);
  const first = useRef(true);
  const here = found(path, query);
  const isLocked = error?.status === 401;
  const follows = data !== null && !isLocked && data.inspect !== "off";

  useEffect(() => (follows ? follow(data.source) : undefined), [follows, data?.source, keys]);
  useEffect(() => {
    document.title = here ? `${here.title} – Callwright` : "Callwright";
    if (!first.current) {
      scrollTo(0, 0);
      main.current.focus({ preventScroll: true });
    }
    first.current = false;
  }, [path]);

  const onKey = (value) => {
    key.set(value);
    setKeys(keys + 1);
    reload();
  };
  let content;
  if (isLocked) content = html`<${KeyForm} isWrong=${key.get() !== ""} onKey=${onKey} />`;
  else if (data === null) content = error && html`<${Unreachable} error=${error} onAgain=${reload} />`;
  else if (here === null) content = html`<${NoPage} path=${path} />`;
  else content = html`<${Guard} key=${path}><${here.page} ...${here.props} /><//>`;

  return html`<${Gateway.Provider} value=${data}>
    <a class="skip" href="#content">Skip to content</a>
    <header class="top">
      <${Link} href="/" class="brand"><img src="/ui/assets/icon.svg" alt="" width="20" height="20" />Callwright<//>
      <nav aria-label="Pages">
        ${LINKS.filter(([href]) => isShown(href, data)).map(
          ([href, name]) => html`<${Link} key=${href} href=${href} aria-current=${current(here, href, path)}>
            ${name}
          <//>`,
        )}
      </nav>
      ${data && !isLocked && html`<${State} gateway=${data} error=${error} onForget=${() => onKey("")} />`}
    </header>
    <main id="content" ref=${main} tabindex="-1">${content}</main>
  <//>`;
}

/** Whether there is anything on a page: files of records have no models to try, and costs are counted if configured. */
function isShown(href, gateway) {
  if (href === "/ui/spend") return Boolean(gateway?.has_spending);
  return href !== "/ui/try" || gateway?.source !== "files";
}

function current(here, href, path) {
  if (here?.link !== href) return null;
  return path.startsWith("/ui/turns/") ? "true" : "page";
}

function State({ gateway, error, onForget }) {
  const running = useLive(() => rows.running);
  const live = useLive(liveStatus);
  const isFromFiles = gateway.source === "files";
  const isLost = error !== null || live.state === "broken";
  return html`<p class="state">
    <span title="Version">${gateway.version}</span>
    ${gateway.docs && html`<a href=${gateway.docs}>Docs</a>`}
    ${isFromFiles ? html`<span>from files</span>` : html`<span>inspect <b>${gateway.inspect}</b></span>`}
    ${!isFromFiles && gateway.inspect !== "off" && html`<span><b>${running}</b> running</span>`}
    ${isLost && html`<span class="lost" role="status">not reached</span>`}
    ${key.get() && html`<button type="button" class="quiet" onClick=${onForget}>Forget key</button>`}
  </p>`;
}

function Unreachable({ error, onAgain }) {
  return html`<div class="page">
    <${Failed} error=${error} />
    <p><button type="button" onClick=${onAgain}>Try again</button></p>
  </div>`;
}

function NoPage({ path }) {
  return html`<div class="page">
    <h1>No such page</h1>
    <p>There is nothing at <code>${path}</code>. <${Link} href="/">Home<//></p>
  </div>`;
}

/** A page that breaks leaves the rest standing. */
class Guard extends Component {
  state = { error: null };

  componentDidCatch(error) {
    console.error(error);
    this.setState({ error });
  }

  render({ children }, { error }) {
    if (error === null) return children;
    return html`<div class="page">
      <p class="failed" role="alert">This page broke: ${String(error?.message ?? error)}</p>
      <p><button type="button" onClick=${() => this.setState({ error: null })}>Show it again</button></p>
    </div>`;
  }
}

render(html`<${App} />`, document.getElementById("app"));
