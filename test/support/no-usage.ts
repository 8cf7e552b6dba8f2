import type { Usage } from "../../src/domain/price.ts";

export const NO_USAGE: Usage = {
  input: 0,
  cachedInput: 0,
  cacheWrite: 0,
  cacheWrite1h: 0,
  output: 0,
  reasoning: 0,
  images: 0,
  imageTokens: 0,
};
