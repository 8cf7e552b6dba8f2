import type { Model } from "../domain/model.ts";

const sandbox = (id: string, contextWindow: number, maxOutputTokens: number): Model => ({
  id,
  ownedBy: "vx",
  createdSeconds: 1_760_000_000,
  contextWindow,
  maxOutputTokens,
  inputMicrosPerMillionTokens: 100_000n,
  outputMicrosPerMillionTokens: 400_000n,
  upstreams: [{ kind: "sandbox", delayMs: 0 }],
});
export class Catalog {
  #models: readonly Model[] = [
    sandbox("vx-sandbox-small", 8192, 4096),
    sandbox("vx-sandbox-large", 128_000, 32_000),
  ];
  list(): readonly Model[] {
    return this.#models;
  }
  get(id: string): Model | undefined {
    return this.#models.find((m) => m.id === id);
  }
}
