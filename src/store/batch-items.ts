import { CompositeType } from "./driver/composite-type.ts";

/** An item of vx.admit: all calls of a batch with the same key. */
export const admitItem = new CompositeType("admit_item", ["lane", "fingerprint", "generate", "read", "keys"]);

/** A hold that vx.bill places. */
export const holdItem = new CompositeType("hold_item", [
  "lane",
  "account_id",
  "hold_id",
  "key_id",
  "amount",
  "seconds",
  "idempotency_key",
  "digest",
]);

/** The ending of a hold by vx.bill: with a charge, or without one. */
export const entryItem = new CompositeType("entry_item", [
  "lane",
  "account_id",
  "hold_id",
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
]);

/** The prices of a model, for vx.register_prices. */
export const priceItem = new CompositeType("price_item", [
  "model",
  "input",
  "cached_input",
  "cache_write",
  "output",
  "reasoning",
  "image",
  "request",
]);
