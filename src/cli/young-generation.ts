import { setFlagsFromString } from "node:v8";

/** The launcher keeps it small while the code is loaded. Once that is over it may grow with the load. */
export function letYoungGenerationGrow(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
}
