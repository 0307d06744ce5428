// When something was, as short as it is clear: the day only where it is not today.
import { clock } from "./lib.js";

const two = (value) => String(value).padStart(2, "0");

function day(at) {
  const date = new Date(at * 1000);
  if (date.toDateString() === new Date().toDateString()) return "";
  return `${two(date.getMonth() + 1)}-${two(date.getDate())} `;
}

/** "14:03:21.5", or "11-22 14:03:21" */
export const moment = (at) => (day(at) ? day(at) + clock(at).slice(0, 8) : clock(at));

/** "14:03", or "11-22 14:03" */
export const minute = (at) => day(at) + clock(at).slice(0, 5);
