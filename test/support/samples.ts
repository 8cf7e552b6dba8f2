import type { Model } from "../../src/domain/model.ts";
import { tokenPrices } from "../../src/domain/price.ts";
import { NO_OPTIONS, type Prompt } from "../../src/domain/prompt.ts";
import type { GenerationRequest } from "../../src/generations/generation-request.ts";

/** A model without an upstream. */
export function modelOf(values: Partial<Model> = {}): Model {
  return {
    id: "m",
    aliases: [],
    ownedBy: "tests",
    createdSeconds: 0,
    contextWindow: 100_000,
    maxOutputTokens: 10_000,
    defaultOutputTokens: 10_000,
    promptOverheadTokens: { base: 0, perMessage: 0 },
    imageTokens: 1_000,
    maxMessages: 200,
    capabilities: [],
    extraFields: [],
    prices: tokenPrices(1_000_000n, 2_000_000n),
    priceVersion: 1,
    priceListVersion: 0,
    upstreams: [],
    ...values,
  };
}

export function requestOf(values: Partial<GenerationRequest> = {}): GenerationRequest {
  return {
    format: "native",
    model: "m",
    messages: [{ role: "user", content: "Hello" }],
    maxTokens: undefined,
    temperature: undefined,
    stop: [],
    options: NO_OPTIONS,
    user: "",
    maxCostMicros: undefined,
    ...values,
  };
}

export function promptOf(values: Partial<Prompt> = {}): Prompt {
  return {
    messages: [{ role: "user", content: "Hello" }],
    maxTokens: 100,
    temperature: undefined,
    stop: [],
    options: NO_OPTIONS,
    traits: { capabilities: [], extraFields: [] },
    streamed: true,
    ...values,
  };
}
