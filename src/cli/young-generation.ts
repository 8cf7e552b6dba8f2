import { setFlagsFromString } from "node:v8";

/**
 * The launcher keeps the young generation small while code is loaded. From here on it may grow with the load.
 */
export function letYoungGenerationGrow(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
}
