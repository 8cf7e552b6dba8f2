import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import { type SetLimitRequest, SetLimitResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { type Limit, LimitSchema } from "../../gen/vx/v1/limit_pb.js";
import { countsCost } from "../domain/limit.ts";
import { parseAmount } from "../domain/money.ts";
import { ACCOUNT, time } from "./arguments.ts";
import { callAndShow, withAdmin } from "./client.ts";
import { limitColumns } from "./columns.ts";
import {
  callCommand,
  type Define,
  type JsonOption,
  type ReasonOption,
  reasonOption,
  requiredOption,
  withExamples,
} from "./command.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { formatTable, show, tableOf } from "./print.ts";

type OwnerOptions = { readonly plan?: string; readonly account?: string; readonly key?: string };
type SetOptions = JsonOption &
  ReasonOption &
  OwnerOptions & {
    metric: string;
    window?: string;
    amount: string;
    model?: string;
    perUser?: true;
    until?: Date;
  };

export const define: Define = (group) => {
  withExamples(group, [
    "vx limits set --account acct_… --metric cost --window month --amount 25.00",
    "vx limits list --key key_…",
  ]);
  const list = callCommand(group, "list", "List the limits of a plan or an account, or all that apply to a key.", [
    "vx limits list --account acct_…",
    "vx limits list --key key_… --user ada",
  ]);
  ownerOptions(list)
    .option("--user <user>", "the end user whose use of limits per user is shown (default: calls without a user)")
    .action(listLimits);
  const setting = callCommand(group, "set", "Set a limit, or change its amount. It applies from the next call.", [
    "vx limits set --plan pro --metric tokens --window minute --amount 100000",
    "vx limits set --key key_… --metric concurrent --amount 4",
    "vx limits set --account acct_… --metric cost --window month --amount 50.00 --until 2030-01-31",
    "vx limits set --account acct_… --metric cost_alert --window month --amount 40.00",
  ]);
  ownerOptions(setting)
    .addOption(
      new Option("--window <window>", "the window, in UTC (none for concurrent)").choices([
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "total",
      ]),
    )
    .option("--model <model>", "limit only calls of this model")
    .option("--per-user", "give each end user the amount")
    .option("--until <time>", "raise the amount of an existing limit until this time", time("--until"))
    .action(set);
  setting.addOption(
    new Option("--metric <metric>", "what is limited; cost_alert never refuses a call")
      .choices(["cost", "tokens", "generations", "concurrent", "cost_alert"])
      .makeOptionMandatory(),
  );
  requiredOption(
    setting,
    "--amount <amount>",
    "a whole number; for cost and cost_alert an amount such as 25.00",
    (text: string) => text,
  );
  reasonOption(setting);
  const removal = callCommand(group, "remove", "Remove a limit. It no longer applies from the next call.", [
    "vx limits remove lim_… --account acct_…",
  ]);
  reasonOption(ownerOptions(removal)).argument("<limit_id>", "the id of the limit").action(remove);
};

function ownerOptions(command: Command): Command {
  return command
    .option("--plan <plan>", "the plan whose keys are limited (this, --account or --key is required)")
    .option("--account <account>", ACCOUNT)
    .option("--key <key_id>", "the id of the key");
}

function ownerOf({ plan, account, key }: OwnerOptions): SetLimitRequest["owner"] {
  const owners = [plan, account, key].filter((owner) => owner !== undefined);
  if (owners.length !== 1) throw usageFailure("the owner is missing; add one of --plan, --account and --key");
  if (plan !== undefined) return { case: "plan", value: plan };
  if (key !== undefined) return { case: "keyId", value: key };
  return { case: "accountId", value: account ?? "" };
}

async function listLimits(options: JsonOption & OwnerOptions & { user?: string }): Promise<void> {
  const request = { owner: ownerOf(options), user: options.user ?? "" };
  await callAndShow(options, "listLimits", request, ({ limits }) =>
    limits.length === 0 ? "The plan has no limits of its own.\n" : formatTable(limitColumns, limits),
  );
}

async function set(options: SetOptions): Promise<void> {
  const { metric, window = "", model = "", perUser = false, until, reason = "" } = options;
  const amount = limitAmount("--amount", metric, options.amount);
  const limit: MessageInitShape<typeof LimitSchema> = {
    metric,
    window,
    model,
    per: perUser ? "user" : "",
    amount,
  };
  const owner = ownerOf(options);
  const response = await withAdmin(async (admin) => {
    if (until !== undefined) {
      const { limits } = await admin.listLimits({ owner });
      limit.amount = existing(limits, create(LimitSchema, limit), owner.case).amount;
      limit.temporaryAmount = amount;
      limit.temporaryUntil = timestampFromDate(until);
    }
    return await admin.setLimit({ owner, limit, reason });
  });
  await show(options, SetLimitResponseSchema, response, () => tableOf(limitColumns, response.limit));
}

/** The amount of an option called `name`. */
export function limitAmount(name: string, metric: string, text: string): bigint {
  if (!countsCost(metric) && /^\d{1,16}$/.test(text)) return BigInt(text);
  const micros = countsCost(metric) && !text.startsWith("-") ? parseAmount(text) : undefined;
  if (micros !== undefined) return micros;
  const rule = countsCost(metric) ? "an amount such as 25.00" : "a whole number";
  throw usageFailure(`${name}: must be ${rule}, not ${JSON.stringify(text)}`);
}

/** The limit that a temporary amount raises. */
function existing(limits: readonly Limit[], wanted: Limit, kind: SetLimitRequest["owner"]["case"]): Limit {
  const found = limits.find(
    (limit) =>
      limit.owner === kind?.replace("Id", "") &&
      limit.metric === wanted.metric &&
      limit.window === wanted.window &&
      limit.model === wanted.model &&
      limit.per === wanted.per,
  );
  if (!found) throw new CommandFailure("there is no such limit to raise; set it without --until first");
  return found;
}

async function remove(limitId: string, options: JsonOption & ReasonOption & OwnerOptions): Promise<void> {
  const { reason = "" } = options;
  const request = { owner: ownerOf(options), limitId, reason };
  await callAndShow(options, "removeLimit", request, () => `removed ${limitId}\n`);
}
