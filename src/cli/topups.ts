import { AccountTopUpSchema, ListTopUpsRequestSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { AutoTopUpSchema } from "../../gen/vx/v1/top_up_pb.js";
import { allowedTextsOf } from "../rules/body-limits.ts";
import { call, list } from "./call.ts";
import { ACCOUNT, fixed, flag, option, REASON, required, unused } from "./parameters.ts";
import { columnsOf } from "./print.ts";
import { noun } from "./row.ts";
import { positiveAmount } from "./values.ts";

const columns = columnsOf(
  AccountTopUpSchema,
  "id, accountId, state, amount, refundedMicros, disputedMicros, automatic, paymentId, problem, createdAt",
  {
    "in AMOUNT and PROBLEM": "amountMicros, failure",
    "only in --json": "accountName, entryId, paidAt",
    "pages for the customer": "url, receiptUrl, invoiceUrl",
  },
  { problem: (problem, { topup }) => problem || (topup?.failure ?? "") },
);

const autoColumns = columnsOf(
  AutoTopUpSchema,
  `state, thresholdMicros as BELOW, amountMicros, monthMicros as THIS MONTH, monthlyMaxMicros, paymentMethod, failures,
  lastFailure, setupUrl as PAGE FOR THE PAYMENT METHOD`,
  { "in STATE": "enabled", "in vx topups list": "topupId" },
  { state: (state) => state.replaceAll("_", " ") },
);

const STATES = allowedTextsOf(ListTopUpsRequestSchema.field.state);
const ended = unused("the automatic top-ups end");

export const row = noun([], {
  list: list("listTopUps", columns, {
    about: "List top-ups, the newest first.",
    none: "There are no such top-ups.",
    fields: {
      accountId: option("--account <account>", "only top-ups of this account"),
      onlyProblems: flag("--problems", "only top-ups whose payment differs from them, and was not credited"),
      state: option("--state <state>", "only top-ups with this state", STATES),
    },
    examples: ["--account acme", "--problems", "--state disputed"],
  }),
  auto: call("getAutoTopUp", autoColumns, {
    about: "Show the automatic top-ups of an account.",
    fields: { accountId: ACCOUNT },
    examples: ["acme"],
  }),
  "set-auto": call("putAutoTopUp", autoColumns, {
    about: "Start or change the automatic top-ups of an account.",
    fields: {
      accountId: ACCOUNT,
      enabled: fixed(true),
      thresholdMicros: required("--threshold <amount>", "top up when a charge takes the balance below it", positiveAmount),
      amountMicros: required("--amount <amount>", "the amount of each top-up", positiveAmount),
      monthlyMaxMicros: required("--monthly-max <amount>", "what they add up to at most in a month, in UTC", positiveAmount),
      replacePaymentMethod: flag(
        "--replace-payment-method",
        "ask for a page on which the customer stores another payment method",
      ),
      reason: REASON,
    },
    examples: ["acct_… --threshold 10.00 --amount 25.00 --monthly-max 100.00"],
  }),
  "stop-auto": call("putAutoTopUp", autoColumns, {
    about: "Stop the automatic top-ups of an account.",
    fields: {
      ...{ accountId: ACCOUNT, enabled: fixed(false), reason: REASON },
      ...{ thresholdMicros: ended, amountMicros: ended, monthlyMaxMicros: ended, replacePaymentMethod: ended },
    },
    examples: ["acct_…"],
  }),
});
