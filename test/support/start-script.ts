import { readFileSync } from "node:fs";

const { scripts } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));

/** The arguments that `npm start` passes to Node: flags, program and command. */
export const START: readonly string[] = scripts.start.replace(/^exec node /, "").split(" ");
