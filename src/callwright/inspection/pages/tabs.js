// Tabs over one panel, whose id is `${id}-panel`. Arrow keys, Home and End choose.
import { html, useRef } from "./lib.js";

export function Tabs({ name, id, tabs, chosen, onChoose }) {
  const list = useRef(null);
  const onKey = (event) => {
    const at = tabs.indexOf(chosen);
    const to = {
      ArrowRight: (at + 1) % tabs.length,
      ArrowLeft: (at + tabs.length - 1) % tabs.length,
      Home: 0,
      End: tabs.length - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    onChoose(tabs[to]);
    list.current.children[to].focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${name} ref=${list} onKeyDown=${onKey}>
    ${tabs.map(
      (tab, index) => html`<button
        key=${tab}
        type="button"
        role="tab"
        id=${`${id}-tab-${index}`}
        aria-controls=${`${id}-panel`}
        aria-selected=${tab === chosen ? "true" : "false"}
        tabindex=${tab === chosen ? 0 : -1}
        onClick=${() => onChoose(tab)}
      >
        ${tab}
      </button>`,
    )}
  </div>`;
}
