import { type LedgerEntry, LedgerEntrySchema } from "../../gen/vx/v1/ledger_pb.js";
import { call, list } from "./call.ts";
import { ACCOUNT, ANY_ACCOUNT, argument, idempotencyKey, option, REQUIRED_REASON } from "./parameters.ts";
import { columnsOf } from "./print.ts";
import { noun } from "./row.ts";
import { creditAmount, time } from "./values.ts";

/** Entries that are not generations have no tokens. */
const tokens = (count: bigint, { kind }: LedgerEntry) => (kind === "generation" ? String(count) : "");

const columns = columnsOf(
  LedgerEntrySchema,
  `seq, createdAt as TIME, kind, amount, balanceAfter as BALANCE, keyId, model, inputTokens as INPUT, outputTokens as OUTPUT,
  reason`,
  {
    "in AMOUNT and BALANCE": "amountMicros, balanceAfterMicros",
    "ids, in --json and --csv": "id, requestId, generationId, user, traceId, adjustedEntryId",
    "meters, in --json and --csv":
      "cachedInputTokens, cacheWriteTokens, cacheWrite1hTokens, reasoningTokens, imageTokens, images",
    "prices, in --json and --csv": "prices, priceVersion, priceTier, priceListVersion",
  },
  { inputTokens: tokens, outputTokens: tokens },
);

export const row = noun(["list acct_…"], {
  list: list("listLedgerEntries", columns, {
    about: "List the ledger entries of an account, newest first.",
    none: "The ledger of the account is empty.",
    fields: {
      accountId: ANY_ACCOUNT,
      kind: option("--kind <kind>", "only entries of this kind: generation, credit, topup, refund, adjustment or expiry"),
      keyId: option("--key <id>", "only entries of calls with this key"),
      model: option("--model <id>", "only entries of this model"),
      from: option("--from <time>", "only entries at this time or later", time),
      to: option("--to <time>", "only entries before this time", time),
    },
    csv: true,
    examples: ["acct_… --limit 20", "acme --kind generation --from 2030-01-01"],
  }),
  refund: call("refundEntry", columns, {
    about: "Give back the charge of a generation, or a part of it.",
    fields: {
      accountId: ACCOUNT,
      entryId: argument("<id>", "the id of the generation, or of its ledger entry"),
      amountMicros: option("--amount <amount>", "the amount (default: all that is left of the charge)", creditAmount),
      idempotencyKey: idempotencyKey("repeated calls with the same key give the amount back once"),
      reason: REQUIRED_REASON,
    },
    examples: [
      'acct_… gen_… --reason "the reply was empty"',
      'acct_… led_… --amount 0.05 --reason "half of the reply was missing"',
    ],
  }),
});
