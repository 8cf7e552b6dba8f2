import type { Schema } from "./schema.ts";

const KEY = { key_id: "key_01kam4xy3wf4dtyhvcm8qtc5cg", name: "billing-worker production" };

const PRICES = {
  input: 250_000,
  cached_input: 125_000,
  cache_write: 250_000,
  cache_write_1h: 250_000,
  output: 1_000_000,
  reasoning: 1_000_000,
  image: 0,
  request: 0,
};

const TOP_UP = {
  topup_id: "top_01kb0zq5p9e8tvm4x2c7h3j6rq",
  state: "paid",
  amount_micros: 25_000_000,
  refunded_micros: 0,
  disputed_micros: 0,
  entry_id: "",
  balance_micros: 8_500_000,
  owed_micros: 0,
  automatic: false,
};

const AUTO_TOP_UP = {
  topup_id: TOP_UP.topup_id,
  reason: "insufficient_funds",
  failures: 1,
  amount_micros: 25_000_000,
  monthly_max_micros: 100_000_000,
  balance_micros: 4_990_000,
};

/** The data of an event of each type. */
export const EVENT_DATA: Readonly<Record<string, Schema>> = {
  "balance.low": { balance_micros: 4_990_000, low_balance_micros: 5_000_000 },
  "balance.depleted": { balance_micros: 12, required_micros: 8_420 },
  "limit.threshold": {
    percent: 80,
    user: "",
    limit: {
      id: "lim_01kam4xxa5fzsbw0pdmm2h60vq",
      metric: "cost",
      window: "month",
      amount: 25_000_000,
      model: "",
      per: "",
      owner: "account",
      owner_id: "acct_01kam4xxa5fzsbw0pdmm2h60vq",
      spent: 20_000_310,
      resets_at: "2026-12-01T00:00:00Z",
    },
  },
  "credit.posted": {
    entry_id: "led_01kam4xy3whe1vv46nxmwdzxpx",
    amount_micros: 10_000_000,
    balance_after_micros: 10_000_000,
    reason: "invoice 1001",
  },
  "adjustment.posted": {
    entry_id: "led_01kam4xy3whe1vv46nxmwdzxpx",
    amount_micros: -1_500_000,
    balance_after_micros: 8_500_000,
    reason: "refund of invoice 1001",
  },
  "grant.expired": {
    entry_id: "led_01kam4xy3whe1vv46nxmwdzxpx",
    credit_id: "led_01kam4xxa5fzsbw0pdmm2h60vq",
    amount_micros: 1_250_000,
    balance_after_micros: 8_500_000,
    expires_at: "2027-02-01T00:00:00Z",
  },
  "topup.paid": { ...TOP_UP, entry_id: "led_01kam4xy3whe1vv46nxmwdzxpx", balance_micros: 33_500_000 },
  "topup.failed": { ...TOP_UP, state: "failed" },
  "topup.expired": { ...TOP_UP, state: "expired" },
  "topup.refunded": { ...TOP_UP, state: "refunded", refunded_micros: TOP_UP.amount_micros },
  "topup.disputed": {
    ...TOP_UP,
    state: "disputed",
    disputed_micros: TOP_UP.amount_micros,
    balance_micros: 0,
    owed_micros: 16_500_000,
  },
  "topup.auto_failed": AUTO_TOP_UP,
  "topup.auto_disabled": { ...AUTO_TOP_UP, reason: "failures", failures: 3 },
  "key.created": KEY,
  "key.updated": { ...KEY, fields: ["rate_limit_rpm", "expires_at"] },
  "key.rotated": { ...KEY, previous_expires_at: "2026-11-27T14:03:21.481Z" },
  "key.revoked": { ...KEY, by: "operator" },
  "key.expiring": { ...KEY, expires_at: "2026-12-03T14:00:00Z", days: 7 },
  "member.invited": {
    person_id: "",
    role: "developer",
    invitation_id: "inv_01kb12m8nqe5fsbw0pdmm2h60v",
  },
  "member.joined": { person_id: "usr_01kb12q4cse5fsbw0pdmm2h60v", role: "developer", invitation_id: "" },
  "member.removed": { person_id: "usr_01kb12q4cse5fsbw0pdmm2h60v", role: "", invitation_id: "" },
  "account.suspended": {},
  "account.resumed": {},
  "webhook.disabled": {
    webhook_id: "wh_01kam5a2kvfj1v1m4bd0t0c6cg",
    url: "https://billing.example.com/vx-events",
    reason: "failing",
  },
  "webhook.test": { webhook_id: "wh_01kam5a2kvfj1v1m4bd0t0c6cg" },
  "price.changed": {
    model: "example-large",
    version: 2,
    prices: PRICES,
    previous: { ...PRICES, output: 900_000 },
  },
};
