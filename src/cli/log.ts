import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { AdminService, ListOperatorEventsResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { ConsoleService } from "../../gen/vx/admin/v1/console_pb.js";
import { nearestOf } from "../domain/text.ts";
import { time } from "./arguments.ts";
import { type Admin, withAdmin } from "./client.ts";
import { eventColumns } from "./columns.ts";
import { type Define, withExamples } from "./command.ts";
import { usageFailure } from "./failure.ts";
import { addListOptions, type ListOptions, printList } from "./list.ts";

type Options = ListOptions & {
  readonly actor?: string;
  readonly method?: string;
  readonly target?: string;
  readonly account?: string;
  readonly from?: Date;
  readonly to?: Date;
};

export const define: Define = (command) => {
  withExamples(command, ["vx log --limit 20", "vx log --actor op_… --method CreditAccount --from 2030-01-01"])
    .option("--json", "print the response message as JSON")
    .option("--actor <id>", "only events of this operator")
    .option("--method <method>", "only events of this method, such as CreditAccount", methodOf)
    .option("--target <id>", "only events of this account, key or operator, or of this plan")
    .option("--account <account>", "only events of this account and its keys")
    .option("--from <time>", "only events at this time or later", time("--from"))
    .option("--to <time>", "only events before this time", time("--to"));
  addListOptions(command).action(list);
};

/** The methods in the log: changes, refused calls of any method, and sign-ins. */
const METHODS = [
  ...[AdminService, ConsoleService].flatMap(({ methods }) => methods.map(({ name }) => name)),
  "SignIn",
  "SignOut",
];

function methodOf(text: string): string {
  if (METHODS.includes(text)) return text;
  throw usageFailure(`--method: there is no method ${JSON.stringify(text)}; did you mean ${nearestOf(text, METHODS)}?`);
}

async function list(options: Options): Promise<void> {
  const { actor = "", method = "", target = "", account = "", from, to } = options;
  const filter = {
    actorId: actor,
    method,
    target,
    ...(from && { from: timestampFromDate(from) }),
    ...(to && { to: timestampFromDate(to) }),
  };
  await withAdmin(async (admin) => {
    const accountId = account === "" ? "" : await idOf(admin, account);
    await printList(options, {
      desc: ListOperatorEventsResponseSchema,
      fetch: (page) => admin.listOperatorEvents({ accountId, ...filter, ...page }),
      rows: (page) => page.events,
      columns: eventColumns,
      none: "There are no such events.",
    });
  });
}

/** The log keeps the events of an account by its id. */
async function idOf(admin: Admin, accountId: string): Promise<string> {
  return /^acct_[0-9a-z]{26}$/.test(accountId) ? accountId : ((await admin.getAccount({ accountId })).account?.id ?? "");
}
