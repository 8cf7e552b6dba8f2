import { ApiKeySchema } from "../../gen/vx/v1/key_pb.js";
import { entryIdOf } from "../../src/domain/ids.ts";
import { formatMicros } from "../../src/domain/money.ts";
import { CREDIT_MICROS, type ExampleValues, TOKENS } from "../../src/server/pages/openapi-page.ts";
import { givenToKey, KEY_SAMPLES } from "./key-samples.ts";
import { messagesExamples } from "./messages-examples.ts";
import { nativeExamples } from "./native-examples.ts";
import { chatExamples, completionExamples, embeddingExamples, responsesExamples } from "./openai-examples.ts";
import type { OperationExample } from "./operation-example.ts";

const KEY_ID = "key_01kam4xy3wf4dtyhvcm8qtc5cg";

const GENERATION_ID = "gen_01kam4xy3xfk89k8z8sr4cvyj7";

/** A limit of tokens per minute of an account. */
const LIMIT = {
  id: "lim_01kam4xxa5fzsbw0pdmm2h60vq",
  metric: "tokens",
  window: "minute",
  amount: 100_000,
  model: "",
  per: "",
  temporary_amount: null,
  temporary_until: null,
  owner: "account",
  owner_id: "acct_01kam4xxa5fzsbw0pdmm2h60vq",
  spent: 18_200,
  held: 4_096,
  remaining: 77_704,
  resets_at: "2026-01-05T09:31:00Z",
  counted_since: null,
  set_by_operator: false,
};

/** Without models, which are not the same on every server. */
const KEY_PROPERTIES = { ...givenToKey(), models: [] };

const KEY_VALUES: Readonly<Record<string, unknown>> = {
  ...KEY_PROPERTIES,
  id: KEY_ID,
  masked_key: "vx_live_8Kq2…w7Zd",
  plan: "pro",
  state: "active",
  created_at: "2026-11-02T09:15:04.382Z",
  revoked_at: null,
  last_used_at: "2026-11-20T17:41:30.007Z",
  previous_expires_at: null,
  limits: [{ ...LIMIT, window: "day", resets_at: "2026-01-06T00:00:00Z", owner: "key", owner_id: KEY_ID }],
};
const API_KEY = Object.fromEntries(ApiKeySchema.fields.map(({ name }) => [name, KEY_VALUES[name]]));

const REVOKED = { api_key: { ...API_KEY, state: "revoked", revoked_at: "2026-11-21T08:00:00.120Z" } };

/** The request id in the examples. */
export const REQUEST_ID = "req_01kam4xy3wf30bffxj6g9kwb3h";

const CREDIT = {
  id: "led_01kam4xy3whe1vv46nxmwdzxpx",
  seq: 1,
  kind: "credit",
  amount_micros: Number(CREDIT_MICROS),
  amount: formatMicros(CREDIT_MICROS),
  balance_after_micros: Number(CREDIT_MICROS),
  balance_after: formatMicros(CREDIT_MICROS),
  reason: "invoice 1001",
  request_id: "",
  key_id: "",
  model: "",
  input_tokens: 0,
  output_tokens: 0,
  created_at: "2026-11-02T09:12:40.105Z",
  generation_id: "",
  user: "",
  trace_id: "",
  price_version: 0,
  prices: null,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  image_tokens: 0,
  images: 0,
  cache_write_1h_tokens: 0,
  price_tier: 0,
  price_list_version: 0,
  adjusted_entry_id: "",
};

const EVENT = {
  id: "evt_01kb0zq5p9e8tvm4x2c7h3j6rq",
  type: "credit.posted",
  created_at: CREDIT.created_at,
  account_id: "acct_01kam4xxa5fzsbw0pdmm2h60vq",
  data: {
    entry_id: CREDIT.id,
    amount_micros: CREDIT.amount_micros,
    balance_after_micros: CREDIT.balance_after_micros,
    reason: CREDIT.reason,
  },
  seq: 1,
};

const KEY_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  CreateKey: {
    body: KEY_PROPERTIES,
    response: {
      api_key: { ...API_KEY, last_used_at: null },
      // Not a valid key: its checksum does not match.
      secret: "vx_live_8Kq2ExampleExampleExample000w7Zd",
    },
  },
  ListKeys: { query: { page_size: 50 }, response: { api_keys: [API_KEY], next_page_token: "" } },
  GetKey: { path: { key_id: KEY_ID }, response: { api_key: API_KEY } },
  UpdateKey: {
    path: { key_id: KEY_ID },
    body: { rate_limit_rpm: KEY_SAMPLES.rateLimitRpm.given, expires_at: KEY_SAMPLES.expiresAt.given },
    response: { api_key: API_KEY },
  },
  RotateKey: {
    path: { key_id: KEY_ID },
    body: { overlap_seconds: 86_400 },
    response: {
      api_key: { ...API_KEY, previous_expires_at: "2026-11-22T09:30:00.000Z" },
      secret: "vx_live_8Kq2ExampleExampleExample000w7Zd",
    },
  },
  RevokeKey: { path: { key_id: KEY_ID }, response: REVOKED },
  RevokeKeyByDelete: { path: { key_id: KEY_ID }, response: REVOKED },
};

const GRANT = {
  id: "led_01kam4xxa5fzsbw0pdmm2h60vq",
  amount_micros: 5_000_000,
  remaining_micros: 1_250_000,
  expires_at: "2027-02-01T00:00:00Z",
  promotional: true,
};

const TOP_UP = {
  id: "top_01kb0zq5p9e8tvm4x2c7h3j6rq",
  state: "pending",
  amount_micros: 25_000_000,
  amount: "$25.00",
  url: "https://checkout.stripe.com/c/pay/cs_live_a1B2c3",
  created_at: "2026-11-26T14:03:21.481Z",
  paid_at: null,
  receipt_url: "",
  refunded_micros: 0,
  disputed_micros: 0,
  automatic: false,
  failure: "",
  invoice_url: "",
};
const AUTO_TOP_UP = {
  enabled: true,
  threshold_micros: 10_000_000,
  amount_micros: 25_000_000,
  monthly_max_micros: 100_000_000,
  state: "ready",
  month_micros: 50_000_000,
  payment_method: "visa •••• 4242, expires 12/2030",
  setup_url: "",
  failures: 0,
  last_failure: "",
  topup_id: "",
};
const PAID_TOP_UP = {
  ...TOP_UP,
  state: "paid",
  url: "",
  paid_at: "2026-11-26T14:05:02.119Z",
  receipt_url: "https://pay.stripe.com/receipts/a1B2c3",
  invoice_url: "https://invoice.stripe.com/i/acct_1a2B3c/live_d4E5f6",
};

const NO_CHARGES = { model: "", input_tokens: 0, output_tokens: 0 };
const BALANCE = { ...NO_CHARGES, created_at: null, id: "", description: "", entries: 0 };

function failureExample({ id }: ExampleValues["generation"]) {
  return {
    time: "2026-11-20T17:43:02.518Z",
    key_id: KEY_ID,
    method: "POST /v1/generate",
    model: id,
    upstream: "",
    status: 402,
    code: "insufficient_balance",
    message: "This call can cost up to $0.004, but the balance is $0.001. Top up the account, or lower max_tokens.",
    latency_ms: 3,
    request_id: REQUEST_ID,
    omitted: 0,
  };
}

/** The statement of a month with a credit and a charge of this model. */
function statementExample({
  id,
  balance,
  balanceMicros,
  amount,
  amountMicros,
}: ExampleValues["generation"]): OperationExample["response"] {
  return {
    month: "2026-11",
    account_id: "acct_01kam4xxa5fzsbw0pdmm2h60vq",
    currency: "USD",
    is_final: true,
    opening_balance_micros: 0,
    credits_micros: 10_000_000,
    topups_micros: 0,
    charges_micros: amountMicros,
    refunds_micros: 0,
    adjustments_micros: 0,
    expiries_micros: 0,
    closing_balance_micros: balanceMicros,
    lines: [
      { ...BALANCE, kind: "opening_balance", amount_micros: 0, amount: "$0.00" },
      {
        ...NO_CHARGES,
        kind: "credit",
        created_at: "2026-11-20T17:40:02.031Z",
        id: "led_01kam4xy3whe1vv46nxmwdzxpx",
        description: "invoice 1001",
        entries: 1,
        amount_micros: 10_000_000,
        amount: "$10.00",
      },
      {
        ...BALANCE,
        kind: "generation",
        model: id,
        entries: 1,
        input_tokens: 21,
        output_tokens: 7,
        amount_micros: amountMicros,
        amount,
      },
      { ...BALANCE, kind: "closing_balance", amount_micros: balanceMicros, amount: balance },
    ],
  };
}

const TOP_UP_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  CreateTopUp: {
    body: { amount_micros: TOP_UP.amount_micros, return_url: "https://app.example.com/billing" },
    response: { topup: TOP_UP },
  },
  GetTopUp: { path: { id: TOP_UP.id }, response: { topup: PAID_TOP_UP } },
  ListTopUps: { query: { page_size: 50 }, response: { topups: [PAID_TOP_UP], next_page_token: "" } },
  GetAutoTopUp: { response: AUTO_TOP_UP },
  PutAutoTopUp: {
    body: { enabled: false },
    response: { ...AUTO_TOP_UP, enabled: false, state: "off" },
  },
};

/** The examples by operation id, with these values of models. */
export function operationExamples(models: ExampleValues): Readonly<Record<string, OperationExample>> {
  return {
    ...accountExamples(models.generation),
    ...generationExamples(models),
    ...embeddingExamples(models.embeddings),
    ...KEY_EXAMPLES,
    ...TOP_UP_EXAMPLES,
    ListFailures: {
      query: { code: "insufficient_balance", page_size: 50 },
      response: { failures: [failureExample(models.generation)], next_page_token: "" },
    },
    CountFailures: {
      query: { group_by: "hour" },
      response: {
        counts: [
          { start: "2026-11-20T16:00:00Z", code: "upstream_error", calls: 2 },
          { start: "2026-11-20T17:00:00Z", code: "insufficient_balance", calls: 41 },
        ],
        counted_from: "2026-11-01T00:00:00Z",
      },
    },
    GetStatement: { path: { month: "2026-11" }, response: statementExample(models.generation) },
  };
}

function accountExamples(model: ExampleValues["generation"]): Readonly<Record<string, OperationExample>> {
  const { balance, balanceMicros, amountMicros, amount, resource, info } = model;
  const charge = {
    ...CREDIT,
    id: entryIdOf(GENERATION_ID),
    seq: 2,
    kind: "generation",
    amount_micros: amountMicros,
    amount,
    balance_after_micros: balanceMicros,
    balance_after: balance,
    reason: `Generation with ${model.id}: 21 tokens in, 7 tokens out`,
    request_id: REQUEST_ID,
    key_id: KEY_ID,
    model: model.id,
    input_tokens: TOKENS.inputTokens,
    output_tokens: TOKENS.outputTokens,
    created_at: "2026-11-20T17:41:30.212Z",
    generation_id: GENERATION_ID,
    user: "user-7",
    trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
    price_version: 1,
    prices: model.prices,
  };
  const status = {
    key: API_KEY.masked_key,
    key_name: API_KEY.name,
    plan: "pro",
    rate_limit_rpm: 60,
    balance,
    balance_micros: balanceMicros,
  };
  const account = {
    id: "acct_01kam4xxa5fzsbw0pdmm2h60vq",
    name: "acme",
    state: "active",
    balance_micros: balanceMicros,
    balance,
    held_micros: 0,
    held: "$0.00",
    available_micros: balanceMicros,
    available: balance,
    plan: "pro",
    key: { ...API_KEY, limits: [], allowed_cidrs: [] },
    top_up_url: "",
    low_balance_micros: 5_000_000,
    owed_micros: 0,
    owed: "$0.00",
    grants: [GRANT],
  };
  const query = { page_size: 50 };
  return {
    GetMe: { response: status },
    ListLimits: { response: { limits: [LIMIT] } },
    GetAccount: { response: account },
    UpdateAccount: { body: { low_balance_micros: 5_000_000 }, response: { account } },
    ListModels: {
      query,
      response: {
        object: "list",
        data: [resource],
        next_page_token: "",
        has_more: false,
        first_id: model.id,
        last_id: model.id,
      },
    },
    GetModel: { path: { model: model.id }, response: resource },
    ListModelInfos: {
      query: { limit: 20 },
      response: { data: [info], has_more: false, first_id: model.id, last_id: model.id },
    },
    GetModelInfo: { path: { model: model.id }, response: info },
    ListEntries: { query, response: { entries: [charge, CREDIT], next_page_token: "" } },
    GetGeneration: { path: { id: GENERATION_ID }, response: { entry: charge } },
    ListEvents: {
      query: { types: ["credit.posted", "balance.low"], page_size: 50 },
      response: { events: [EVENT], next_after: EVENT.id, has_more: false },
    },
    WatchEvents: { query: { types: ["credit.posted"] }, response: EVENT },
    ...webhookExamples(),
    GetUsage: {
      query: { from: "2026-11-01T00:00:00Z", group_by: ["day", "model"], tz: "UTC" },
      response: { rows: [usageExample(model)], through_seq: 2, next_page_token: "" },
    },
  };
}

const WEBHOOK_ID = "wh_01kam5a2kvfj1v1m4bd0t0c6cg";
const EVENT_ID = "evt_01kam5b7zqe8tvm4x2c7h3j6cg";

const WEBHOOK = {
  id: WEBHOOK_ID,
  url: "https://billing.example.com/vx-events",
  types: ["balance.low", "balance.depleted"],
  description: "billing alerts",
  state: "enabled",
  disabled_reason: "",
  created_at: "2026-11-20T17:45:12.090Z",
  previous_expires_at: null,
  account_id: "acct_01kam4xxa5fzsbw0pdmm2h60cg",
};

const WEBHOOK_SECRET = "whsec_RXhhbXBsZUV4YW1wbGVFeGFtcGxlRXhhbXBsZUV4YW0=";

const OUTCOME = { status: 204, latency_ms: 86, error: "", answer: "" };

function webhookExamples(): Readonly<Record<string, OperationExample>> {
  const path = { webhook_id: WEBHOOK_ID };
  return {
    CreateWebhook: {
      body: { url: WEBHOOK.url, types: WEBHOOK.types, description: WEBHOOK.description },
      response: { webhook: WEBHOOK, secret: WEBHOOK_SECRET },
    },
    ListWebhooks: { response: { webhooks: [WEBHOOK] } },
    GetWebhook: { path, response: { webhook: WEBHOOK } },
    UpdateWebhook: {
      path,
      body: { state: "paused" },
      response: { webhook: { ...WEBHOOK, state: "paused" } },
    },
    DeleteWebhook: { path, response: {} },
    RotateWebhook: {
      path,
      body: { overlap_seconds: 86_400 },
      response: {
        webhook: { ...WEBHOOK, previous_expires_at: "2026-11-21T17:45:12.090Z" },
        secret: WEBHOOK_SECRET,
      },
    },
    TestWebhook: { path, body: {}, response: { outcome: OUTCOME } },
    ListDeliveries: {
      path,
      query: { state: "delivered", page_size: 50 },
      response: {
        deliveries: [
          {
            event_id: EVENT_ID,
            type: EVENT.type,
            account_id: WEBHOOK.account_id,
            seq: 12,
            created_at: "2026-11-20T18:02:31.417Z",
            state: "delivered",
            attempts: 1,
            next_attempt_at: null,
            attempted_at: "2026-11-20T18:02:31.802Z",
            outcome: OUTCOME,
            data: EVENT.data,
          },
        ],
        next_page_token: "",
      },
    },
    Redeliver: { path, body: { event_id: EVENT_ID }, response: { events: 1, has_more: false } },
  };
}

function usageExample({ id, costMicros, cost }: ExampleValues["generation"]) {
  return {
    start: "2026-11-20T00:00:00Z",
    key_id: "",
    model: id,
    user: "",
    requests: 1,
    input_tokens: TOKENS.inputTokens,
    cached_input_tokens: 0,
    output_tokens: TOKENS.outputTokens,
    reasoning_tokens: 0,
    cache_write_tokens: 0,
    image_tokens: 0,
    cost_micros: costMicros,
    cost,
  };
}

function generationExamples(models: ExampleValues): Readonly<Record<string, OperationExample>> {
  const { id: model, missing, costMicros, cost, balanceMicros } = models.generation;
  const { inputTokens, outputTokens } = TOKENS;
  const done = {
    id: GENERATION_ID,
    model,
    finish_reason: "stop",
    usage: {
      input_tokens: inputTokens,
      output_tokens: outputTokens,
      cost_micros: costMicros,
      cost,
      cached_input_tokens: 0,
      cache_write_tokens: 0,
      reasoning_tokens: 0,
      image_tokens: 0,
    },
    balance_micros: balanceMicros,
    max_tokens: null,
  };
  const { id, balance_micros } = done;
  const charge = { id, inputTokens, outputTokens, costMicros, balanceMicros };
  const chat = { id, created: 1_763_683_200, model };
  const end = {
    usage: {
      prompt_tokens: inputTokens,
      completion_tokens: outputTokens,
      total_tokens: inputTokens + outputTokens,
      cost_micros: costMicros,
      prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0, image_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    },
    balance_micros,
  };
  return {
    ...messagesExamples(models.generation, charge),
    ...nativeExamples(models, done),
    ...responsesExamples(models.generation, charge),
    ...completionExamples(models.completion, chat, end),
    ...chatExamples(chat, end, missing),
  };
}
