// What /ui/api/gateway says, for all pages.
import { createContext } from "./lib.js";

export const Gateway = createContext(null);
