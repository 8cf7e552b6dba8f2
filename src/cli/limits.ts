import { create } from "@bufbuild/protobuf";
import { type SetLimitRequest, SetLimitResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { type Limit, LimitSchema } from "../../gen/vx/v1/limit_pb.js";
import { countsCost } from "../domain/limit.ts";
import { formatMicros, parseAmount } from "../domain/money.ts";
import { allowedTextsOf } from "../rules/body-limits.ts";
import { call } from "./call.ts";
import { withAdmin } from "./client.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { ACCOUNT_TEXT, argument, combined, flag, JSON_RESPONSE, option, REASON, required } from "./parameters.ts";
import { columnsOf, formatTable, formatTime, printResponse, tableOf } from "./print.ts";
import { command, noun } from "./row.ts";
import { type Parser, time } from "./values.ts";

const columns = columnsOf(
  LimitSchema,
  `id, owner, metric, window, model, per, amount, temporaryUntil as UNTIL, spent as USED, held, remaining as LEFT,
  resetsAt as RESETS, countedSince`,
  { "in OWNER": "ownerId", "in UNTIL": "temporaryAmount", "operators may change every limit": "setByOperator" },
  {
    ...{ amount: amountText, spent: amountText, held: amountText, remaining: amountText },
    owner: (owner, { ownerId }) => `${owner} ${ownerId}`,
    temporaryUntil: (until, limit) => {
      const { temporaryAmount: amount } = limit;
      return amount === undefined ? "" : `${amountText(amount, limit)} until ${formatTime(until)}`;
    },
  },
);

function amountText(amount: bigint, { metric }: Pick<Limit, "metric">): string {
  return countsCost(metric) ? formatMicros(amount) : String(amount);
}

const METRICS = allowedTextsOf(LimitSchema.field.metric);
const WINDOWS = allowedTextsOf(LimitSchema.field.window);

export const LIMIT_TEXT = "a limit such as cost/month=25.00, tokens/minute=5000,model=small,per=user or concurrent=4";

/** "metric/window=amount", with ",model=M" and ",per=user". */
export const collectLimits: Parser<Limit[]> = (text, name, before = []) => {
  const match = /^([a-z_]+)(?:\/([a-z]+))?=([^,]+)((?:,(?:model=[^,]+|per=user))*)$/.exec(text);
  if (!match) throw usageFailure(`${name}: must be ${LIMIT_TEXT}, not ${JSON.stringify(text)}`);
  const [, metric = "", window = "", amount = "", rest = ""] = match;
  const model = /,model=([^,]+)/.exec(rest)?.[1] ?? "";
  const per = rest.includes(",per=user") ? "user" : "";
  return [...before, create(LimitSchema, { metric, window, amount: parseLimit(name, metric, amount), model, per })];
};

/** The same, or the word "none" for no limits. */
export const collectLimitsOrNone: Parser<Limit[]> = (text, name, before) =>
  text === "none" ? [] : collectLimits(text, name, before);

/** A limit in the form of the options. */
export function limitText(limit: Limit): string {
  const { metric, window, amount, model, per } = limit;
  return `${metric}${window && `/${window}`}=${amountText(amount, limit)}${model && `,model=${model}`}${per && `,per=${per}`}`;
}

function parseLimit(name: string, metric: string, text: string): bigint {
  if (!countsCost(metric) && /^\d{1,16}$/.test(text)) return BigInt(text);
  const micros = countsCost(metric) && !text.startsWith("-") ? parseAmount(text) : undefined;
  if (micros !== undefined) return micros;
  const rule = countsCost(metric) ? "an amount such as 25.00" : "a whole number";
  throw usageFailure(`${name}: must be ${rule}, not ${JSON.stringify(text)}`);
}

const OWNER = combined(
  {
    plan: option("--plan <plan>", "the plan whose keys are limited (this, --account or --key is required)"),
    accountId: option("--account <account>", ACCOUNT_TEXT),
    keyId: option("--key <key_id>", "the id of the key"),
  },
  (values): SetLimitRequest["owner"] => {
    const [owner, other] = Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }]));
    if (!owner || other) throw usageFailure("the owner is missing; add one of --plan, --account and --key");
    return { case: owner.name as keyof typeof values, value: owner.value };
  },
);

export const row = noun(["set --account acct_… --metric cost --window month --amount 25.00", "list --key key_…"], {
  list: call(
    "listLimits",
    ({ limits }) => (limits.length === 0 ? "The plan has no limits of its own.\n" : formatTable(columns, limits)),
    {
      about: "List the limits of a plan or an account, or all that apply to a key.",
      fields: {
        owner: OWNER,
        user: option("--user <user>", "the end user whose use of limits per user is shown (default: calls without a user)"),
      },
      examples: ["--account acct_…", "--key key_… --user ada"],
    },
  ),
  set: command({
    about: "Set a limit, or change its amount. It applies from the next call.",
    parameters: {
      json: JSON_RESPONSE,
      owner: OWNER,
      window: option("--window <window>", "the window, in UTC (none for concurrent)", WINDOWS),
      model: option("--model <model>", "limit only calls of this model"),
      isPerUser: flag("--per-user", "give each end user the amount"),
      until: option("--until <time>", "raise the amount of an existing limit until this time", time),
      metric: required("--metric <metric>", "what is limited; cost_alert never refuses a call", METRICS),
      text: required("--amount <amount>", "a whole number; for cost and cost_alert an amount such as 25.00"),
      reason: REASON,
    },
    examples: [
      "--plan pro --metric tokens --window minute --amount 100000",
      "--key key_… --metric concurrent --amount 4",
      "--account acct_… --metric cost --window month --amount 50.00 --until 2030-01-31",
      "--account acct_… --metric cost_alert --window month --amount 40.00",
    ],
    run: async ({ json, owner, metric, window = "", model = "", isPerUser, until, text, reason = "" }) => {
      const amount = parseLimit("--amount", metric, text);
      const limit = create(LimitSchema, { metric, window, model, per: isPerUser ? "user" : "", amount });
      const response = await withAdmin(async (admin) => {
        if (until !== undefined) {
          const { limits } = await admin.listLimits({ owner });
          limit.amount = existing(limits, limit, owner.case).amount;
          limit.temporaryAmount = amount;
          limit.temporaryUntil = until;
        }
        return await admin.setLimit({ owner, limit, reason });
      });
      await printResponse(json, SetLimitResponseSchema, response, () => tableOf(columns, response.limit));
    },
  }),
  remove: call("removeLimit", (_, { limitId }) => `removed ${limitId}\n`, {
    about: "Remove a limit. It no longer applies from the next call.",
    fields: { owner: OWNER, reason: REASON, limitId: argument("<limit_id>", "the id of the limit") },
    examples: ["lim_… --account acct_…"],
  }),
});

const IDENTITY = ["metric", "window", "model", "per"] as const;

/** The limit that a temporary amount raises. */
function existing(limits: readonly Limit[], wanted: Limit, kind: SetLimitRequest["owner"]["case"]): Limit {
  const ofOwner = limits.filter(({ owner }) => owner === kind?.replace("Id", ""));
  const found = ofOwner.find((limit) => IDENTITY.every((field) => limit[field] === wanted[field]));
  if (!found) throw new CommandFailure("there is no such limit to raise; set it without --until first");
  return found;
}
