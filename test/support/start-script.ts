import { readFileSync } from "node:fs";

const { scripts } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));

const [environment = "", command = ""] = (scripts.start as string).split(" exec node ");

/** The arguments that `npm start` passes to Node: flags, program and command. */
export const START: readonly string[] = command.split(" ");

/** The environment that `npm start` sets. */
export const START_ENV: Readonly<Record<string, string>> = Object.fromEntries(
  environment.split(" ").map((setting) => setting.split("=")),
);
