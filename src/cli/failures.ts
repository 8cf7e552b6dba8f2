import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ACCOUNT_OPTION, accountOf, time } from "./arguments.ts";
import { failureColumns } from "./columns.ts";
import { callCommand, type Define } from "./command.ts";
import { addListOptions, callAndPrintList, type ListOptions } from "./list.ts";

type Options = ListOptions & {
  readonly account?: string;
  readonly key?: string;
  readonly model?: string;
  readonly code?: string;
  readonly from?: Date;
  readonly to?: Date;
};

export const define: Define = (group) => {
  const listing = callCommand(group, "list", "List the calls of an account that failed, newest first.", [
    "vx failures list --account acme --limit 20",
    "vx failures list acme --code insufficient_balance --from 2030-01-01",
  ])
    .argument("[account]", "the same as --account")
    .option("--account <account>", ACCOUNT_OPTION)
    .option("--key <id>", "only calls with this key")
    .option("--model <id>", "only calls of this model")
    .option("--code <code>", "only calls that ended with this error, such as insufficient_balance")
    .option("--from <time>", "only calls that ended at this time or later", time("--from"))
    .option("--to <time>", "only calls that ended before this time", time("--to"));
  addListOptions(listing).action(list);
};

async function list(argument: string | undefined, options: Options): Promise<void> {
  const { key: keyId = "", model = "", code = "", from, to } = options;
  await callAndPrintList(options, "listFailures", {
    request: {
      accountId: accountOf(argument, options.account),
      keyId,
      model,
      code,
      ...(from && { from: timestampFromDate(from) }),
      ...(to && { to: timestampFromDate(to) }),
    },
    rows: (page) => page.failures,
    columns: failureColumns,
    none: "There are no such calls.",
  });
}
