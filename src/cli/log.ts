import { AdminService, OperatorEventSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { ConsoleService } from "../../gen/vx/admin/v1/console_pb.js";
import { nearestOf } from "../domain/text.ts";
import { list } from "./call.ts";
import { usageFailure } from "./failure.ts";
import { option } from "./parameters.ts";
import { columnsOf, pairsText } from "./print.ts";
import { type Parser, time } from "./values.ts";

const columns = columnsOf(
  OperatorEventSchema,
  "createdAt as TIME, actorName as OPERATOR, method, target, outcome, details, reason",
  { "only in --json": "id, actorId, accountId, requestId, accountName, targetName" },
  { details: pairsText },
);

/** The methods in the log: changes, refused calls of any method, and sign-ins. */
const METHODS = [
  ...[AdminService, ConsoleService].flatMap(({ methods }) => methods.map(({ name }) => name)),
  "SignIn",
  "SignOut",
];

const method: Parser<string> = (text, name) => {
  if (METHODS.includes(text)) return text;
  throw usageFailure(`${name}: there is no method ${JSON.stringify(text)}; did you mean ${nearestOf(text, METHODS)}?`);
};

export const row = list("listOperatorEvents", columns, {
  none: "There are no such events.",
  fields: {
    actorId: option("--actor <id>", "only events of this operator"),
    method: option("--method <method>", "only events of this method, such as CreditAccount", method),
    target: option("--target <id>", "only events of this account, key or operator, or of this plan"),
    accountId: option("--account <account>", "only events of this account and its keys"),
    from: option("--from <time>", "only events at this time or later", time),
    to: option("--to <time>", "only events before this time", time),
  },
  // The log keeps the events of an account by its id.
  prepare: async (admin, { accountId, ...request }) => {
    if (accountId === "" || /^acct_[0-9a-z]{26}$/.test(accountId)) return { ...request, accountId };
    return { ...request, accountId: (await admin.getAccount({ accountId })).account?.id ?? "" };
  },
  examples: ["--limit 20", "--actor op_… --method CreditAccount --from 2030-01-01"],
});
