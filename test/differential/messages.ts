import { create, type DescMethod, fromJson, type JsonObject, type Message } from "@bufbuild/protobuf";
import fc from "fast-check";
import { anyMessage } from "../codec/any-message.ts";
import type { Random } from "../fuzz/random.ts";
import { SANDBOX, type Tenant, VECTORS } from "./twins.ts";

/** What a prompt asks for, in the terms of every format. */
export type Prompt = { readonly model: string; readonly text: string; readonly maxTokens: number };

const TEXTS = [
  "What is a ledger?",
  "[[tokens=0]]",
  "[[tokens=1]]",
  "[[tokens=40]] é 🎉",
  "[[tokens=600]] a long reply",
  "[[reasoning=20]] think",
  "[[cached=3 cache_write=2]] cached",
  "[[tokens=12 delay_ms=1]]",
];

export function anyPrompt(random: Random): Prompt {
  return {
    model: random.chance(0.97) ? SANDBOX : random.pick(["no-such-model", "", VECTORS, "vx-😀"]),
    text: random.chance(0.95) ? random.pick(TEXTS) : "long ".repeat(random.below(40_000)),
    maxTokens: random.chance(0.9) ? 1 + random.below(300) : random.pick([-1, 0, 32_000, 2_000_000_000]),
  };
}

/** The request of a method for the prompt; methods that generate nothing ignore it. */
export function messageOf(method: DescMethod, { model, text, maxTokens }: Prompt, tenant: Tenant): Message {
  const messages = [{ role: "user", content: text }];
  const REQUESTS: Record<string, JsonObject> = {
    Generate: { model, messages, max_tokens: maxTokens },
    StreamGenerate: { model, messages, max_tokens: maxTokens },
    QuoteGenerate: { model, messages, max_tokens: maxTokens },
    Embed: { model: model === SANDBOX ? VECTORS : model, input: [text], dimensions: 8 },
    CreateKey: { name: "differential", scopes: ["read"] },
    GetKey: { key_id: tenant.keyId },
    UpdateKey: { key_id: tenant.keyId, name: "differential" },
    RotateKey: { key_id: "key_00000000000000000000000000" },
    RevokeKey: { key_id: "key_00000000000000000000000000" },
    GetModel: { model },
    ListKeys: { page_size: 2 },
    ListEntries: { page_size: 3 },
    GetUsage: { from: "2026-01-01T00:00:00Z", to: "2026-02-01T00:00:00Z", group_by: ["day", "key"] },
    GetGeneration: { id: "gen_00000000000000000000000000" },
    ListModels: {},
    GetAccount: {},
    UpdateAccount: { low_balance_micros: "1" },
    GetMe: {},
    ListLimits: {},
    CreateTopUp: { amount_micros: "5000000" },
    GetTopUp: { id: "top_00000000000000000000000000" },
    ListTopUps: {},
    GetAutoTopUp: {},
    GetStatement: { month: "2026-11" },
    // Earlier calls are stored while the two forms are compared.
    ListFailures: { to: "2026-01-01T00:00:00Z" },
    CountFailures: { from: "2026-01-01T00:00:00Z", to: "2026-02-01T00:00:00Z" },
    PutAutoTopUp: { enabled: false },
    ListEvents: {},
    CreateWebhook: { url: "https://10.0.0.1/" },
    ListWebhooks: {},
    GetWebhook: { webhook_id: "wh_00000000000000000000000000" },
    UpdateWebhook: { webhook_id: "wh_00000000000000000000000000", state: "paused" },
    DeleteWebhook: { webhook_id: "wh_00000000000000000000000000" },
    RotateWebhook: { webhook_id: "wh_00000000000000000000000000" },
    TestWebhook: { webhook_id: "wh_00000000000000000000000000" },
    ListDeliveries: { webhook_id: "wh_00000000000000000000000000" },
    Redeliver: { webhook_id: "wh_00000000000000000000000000" },
  };
  const json = REQUESTS[method.name];
  if (!json) throw new Error(`the differential test has no request for ${method.name}`);
  return fromJson(method.input, json);
}

/** Any message of the type, usually invalid. */
export function anyMessageOf(method: DescMethod, random: Random): Message {
  const [message] = fc.sample(anyMessage(method.input), { seed: random.below(2 ** 31), numRuns: 1 });
  return message ?? create(method.input);
}
