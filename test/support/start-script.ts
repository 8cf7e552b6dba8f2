import { readFileSync } from "node:fs";

const { scripts } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));

/** What `npm start` says to Node: flags, the program, what it is to do. */
export const START: readonly string[] = scripts.start.replace(/^exec node /, "").split(" ");
