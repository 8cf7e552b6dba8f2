import { DomainError, type DomainErrorOptions, type Reason } from "../../domain/errors.ts";
import { errorBody } from "../error-body.ts";

/** A request as the document shows it, and the answer to it. The tests send each one to a server. */
export type OperationExample = {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: unknown;
  readonly response: unknown;
  /** What a streamed answer to the same request tells, event by event. */
  readonly events?: readonly unknown[];
};

const KEY_ID = "key_01kam4xy3wf4dtyhvcm8qtc5cg";

const API_KEY = {
  id: KEY_ID,
  name: "billing-worker production",
  masked_key: "vx_live_8Kq2…w7Zd",
  plan: "pro",
  scopes: ["generate", "read"],
  state: "active",
  rate_limit_rpm: 60,
  created_at: "2026-11-02T09:15:04.382Z",
  revoked_at: null,
  expires_at: "2027-11-02T00:00:00Z",
  last_used_at: "2026-11-20T17:41:30.007Z",
};

const REVOKED = { api_key: { ...API_KEY, state: "revoked", revoked_at: "2026-11-21T08:00:00.120Z" } };

const USAGE = { input_tokens: 21, output_tokens: 7, cost_micros: 14, cost: "$0.000014" };

const GENERATION = {
  id: "gen_01kam4xy3xfk89k8z8sr4cvyj7",
  model: "vx-sandbox-small",
  finish_reason: "stop",
  usage: USAGE,
  balance_micros: 9_999_986,
};

const CHAT = { id: GENERATION.id, created: 1_763_683_200, model: GENERATION.model };

const CHAT_USAGE = {
  prompt_tokens: 21,
  completion_tokens: 7,
  total_tokens: 28,
  cost_micros: 14,
};

function chunk(delta: object, finishReason: string | null) {
  return {
    ...CHAT,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
    usage: null,
    balance_micros: null,
  };
}

const MODEL = {
  id: "vx-sandbox-small",
  object: "model",
  created: 1_763_683_200,
  owned_by: "vx",
  context_window: 8_192,
  max_output_tokens: 4_096,
  input_micros_per_million_tokens: 250_000,
  output_micros_per_million_tokens: 1_250_000,
};

const CREDIT = {
  id: "led_01kam4xy3whe1vv46nxmwdzxpx",
  seq: 1,
  kind: "credit",
  amount_micros: 10_000_000,
  amount: "$10.00",
  balance_after_micros: 10_000_000,
  balance_after: "$10.00",
  reason: "invoice 1001",
  request_id: "",
  key_id: "",
  model: "",
  input_tokens: 0,
  output_tokens: 0,
  created_at: "2026-11-02T09:12:40.105Z",
};

const CHARGE = {
  id: "led_01kam4xy3wfe7r9zrq9g27qw38",
  seq: 2,
  kind: "generation",
  amount_micros: -14,
  amount: "-$0.000014",
  balance_after_micros: 9_999_986,
  balance_after: "$9.999986",
  reason: "Generation with vx-sandbox-small: 21 tokens in, 7 tokens out",
  request_id: "req_01kam4xy3wf30bffxj6g9kwb3h",
  key_id: KEY_ID,
  model: "vx-sandbox-small",
  input_tokens: 21,
  output_tokens: 7,
  created_at: "2026-11-20T17:41:30.212Z",
};

/** By operation id. */
export const EXAMPLES: Readonly<Record<string, OperationExample>> = {
  GetMe: {
    response: {
      key: API_KEY.masked_key,
      key_name: API_KEY.name,
      plan: "pro",
      rate_limit_rpm: 60,
      balance: "$9.999986",
      balance_micros: 9_999_986,
    },
  },
  Generate: {
    body: {
      model: "vx-sandbox-small",
      messages: [
        { role: "system", content: "Answer in one short sentence." },
        { role: "user", content: "What is a ledger?" },
      ],
      max_tokens: 200,
      temperature: 0.7,
    },
    response: {
      id: GENERATION.id,
      model: GENERATION.model,
      message: { role: "assistant", content: "A list of every movement." },
      finish_reason: "stop",
      usage: USAGE,
      balance_micros: GENERATION.balance_micros,
    },
    events: [
      { delta: { content: "A list of " } },
      { delta: { content: "every movement." } },
      { done: GENERATION },
    ],
  },
  CreateChatCompletion: {
    body: {
      model: "vx-sandbox-small",
      messages: [
        { role: "developer", content: "Answer in one short sentence." },
        { role: "user", content: [{ type: "text", text: "What is a ledger?" }] },
      ],
      max_completion_tokens: 200,
    },
    response: {
      ...CHAT,
      object: "chat.completion",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "A list of every movement.", refusal: null },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: CHAT_USAGE,
      balance_micros: GENERATION.balance_micros,
    },
    events: [
      chunk({ role: "assistant", content: "A list of " }, null),
      chunk({ role: null, content: "every movement." }, null),
      chunk({ role: null, content: null }, "stop"),
    ],
  },
  ListModels: { query: { page_size: 50 }, response: { object: "list", data: [MODEL], next_page_token: "" } },
  GetModel: { path: { model: MODEL.id }, response: MODEL },
  CreateKey: {
    body: {
      name: API_KEY.name,
      scopes: API_KEY.scopes,
      rate_limit_rpm: API_KEY.rate_limit_rpm,
      expires_at: API_KEY.expires_at,
    },
    response: {
      api_key: { ...API_KEY, last_used_at: null },
      // Not a key that could exist: its last characters do not match the others.
      secret: "vx_live_8Kq2ExampleExampleExampleExample000w7Zd",
    },
  },
  ListKeys: { query: { page_size: 50 }, response: { api_keys: [API_KEY], next_page_token: "" } },
  GetKey: { path: { key_id: KEY_ID }, response: { api_key: API_KEY } },
  RevokeKey: { path: { key_id: KEY_ID }, response: REVOKED },
  RevokeKeyByDelete: { path: { key_id: KEY_ID }, response: REVOKED },
  ListEntries: { query: { page_size: 50 }, response: { entries: [CHARGE, CREDIT], next_page_token: "" } },
};

export function exampleOf(operationId: string): OperationExample {
  const example = EXAMPLES[operationId];
  if (!example) throw new Error(`${operationId} has no example`);
  return example;
}

/** A streamed answer, byte for byte. */
export function eventsText(events: readonly unknown[]): string {
  const lines = events.map((event) => `data: ${JSON.stringify(event)}\n\n`);
  return `${lines.join("")}data: [DONE]\n\n`;
}

/** What errors say beyond their own text. */
const ERROR_FACTS: Partial<Record<Reason, DomainErrorOptions>> = {
  invalid_argument: {
    message: "messages[3].content: must be at most 400000 characters",
    fields: [{ field: "messages[3].content", description: "must be at most 400000 characters" }],
  },
  context_length_exceeded: {
    message:
      'messages: have at least 9004 tokens, but the context window of "vx-sandbox-small" has 8192 for messages and reply',
    fields: [
      {
        field: "messages",
        description:
          'have at least 9004 tokens, but the context window of "vx-sandbox-small" has 8192 for messages and reply',
      },
    ],
    metadata: { context_window: "8192", input_tokens: "9004" },
  },
  insufficient_balance: {
    message:
      "This call can cost up to $0.000029, but the balance is $0.000028. Top up the account, or lower max_tokens.",
    metadata: { balance_micros: "28", held_micros: "0", required_micros: "29" },
  },
  model_not_found: {
    message: 'There is no model "vx-sandbox-tiny".',
    fields: [{ field: "model", description: 'there is no model "vx-sandbox-tiny"' }],
  },
  key_limit_reached: {
    message: 'The plan "free" allows 2 active keys. Revoke one that is not used.',
    metadata: { plan: "free", max_active_keys: "2" },
  },
  idempotency_in_progress: { retryAfterSeconds: 1 },
  generation_interrupted: {
    message:
      "The response of the first call with this idempotency key was cut: the server stopped. What it used was charged once. Send a new idempotency key to generate again.",
    metadata: { first_reason: "unavailable" },
  },
  insufficient_scope: {
    message: 'The API key lacks the scope "keys".',
    metadata: { scope: "keys" },
  },
  rate_limit_exceeded: {
    message: "The limit of 60 requests per minute of this key is exceeded. Wait 34 s.",
    metadata: { rate_limit_rpm: "60" },
    retryAfterSeconds: 34,
  },
  too_many_failed_authentications: { retryAfterSeconds: 34 },
};

/** Written by the same code as every real error. */
export function errorExample(reason: Reason): unknown {
  return JSON.parse(errorBody(new DomainError(reason, ERROR_FACTS[reason]), CHARGE.request_id));
}
