// Written by tools/write-sql-calls.ts from the catalogue of a migrated database: npm run generate:sql. The SQL names what can
// be null: see tools/sql/catalogue.ts.

export const priceRates = [
  "above_input_tokens",
  "input",
  "cached_input",
  "cache_write",
  "cache_write_1h",
  "output",
  "reasoning",
  "image",
  "request",
] as const;

export const admitItem = [
  "lane",
  "fingerprint",
  "generate",
  "read",
  "keys",
  "webhooks",
  "billing",
  "any_scope",
  "cidrs",
] as const;

export const holdItem = [
  "lane",
  "account_id",
  "generation_id",
  "key_id",
  "amount",
  "seconds",
  "idempotency_key",
  "digest",
  "model",
  "user_id",
  "tokens",
  "fingerprint",
  "scopes",
  "cidrs",
  "price_list_version",
] as const;

export const entryItem = [
  "lane",
  "account_id",
  "generation_id",
  "id",
  "month",
  "kind",
  "amount",
  "reason",
  "request_id",
  "key_id",
  "model",
  "price_version",
  "input",
  "cached_input",
  "cache_write",
  "output",
  "reasoning",
  "images",
  "image_tokens",
  "user_id",
  "trace_id",
  "answer",
  "cache_write_1h",
  "price_tier",
  "price_list_version",
  "upstream",
  "upstream_cost",
  "adjusted_id",
] as const;

export const priceItem = [
  "model",
  "rates",
] as const;

export const failureMinute = [
  "lane",
  "account_id",
  "id",
  "at_ms",
  "calls",
  "omitted",
] as const;

export const failureItem = [
  "minute",
  "later",
  "id",
  "at_ms",
  "key_id",
  "method",
  "model",
  "upstream",
  "status",
  "code",
  "message",
  "latency_ms",
  "request_id",
] as const;

export const caller = [
  "kind",
  "id",
  "name",
  "account_id",
  "fingerprint",
  "scope",
  "role",
  "covered_scopes",
  "while_suspended",
  "cidrs",
  "method",
  "target",
  "reason",
  "details",
  "request_id",
] as const;
