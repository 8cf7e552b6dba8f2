import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { ACCOUNT_OPTION, accountOf, time } from "./arguments.ts";
import { callAndShow } from "./client.ts";
import { failureColumns, failureCountColumns } from "./columns.ts";
import { callCommand, type Define, type JsonOption } from "./command.ts";
import { addListOptions, callAndPrintList, type ListOptions } from "./list.ts";
import { printError } from "./output.ts";
import { formatTable, formatTime } from "./print.ts";

type Filter = {
  readonly account?: string;
  readonly key?: string;
  readonly model?: string;
  readonly from?: Date;
  readonly to?: Date;
};
type Options = ListOptions & Filter & { readonly code?: string };
type CountOptions = JsonOption & Filter & { readonly by?: string; readonly tz?: string };

export const define: Define = (group) => {
  const listing = callCommand(group, "list", "List the calls of an account that failed, newest first.", [
    "vx failures list --account acme --limit 20",
    "vx failures list acme --code insufficient_balance --from 2030-01-01",
  ]);
  addFilters(listing).option("--code <code>", "only calls that ended with this error, such as insufficient_balance");
  addListOptions(listing).action(list);
  const counting = callCommand(group, "count", "Count the calls of an account that failed, by error.", [
    "vx failures count acme",
    "vx failures count acme --by hour --from 2030-01-31",
  ]);
  addFilters(counting)
    .option("--by <period>", "hour, day or month (default: day)")
    .option("--tz <zone>", "the time zone of the periods, such as Europe/Berlin (default: UTC)")
    .action(count);
};

function addFilters(command: Command): Command {
  return command
    .argument("[account]", "the same as --account")
    .option("--account <account>", ACCOUNT_OPTION)
    .option("--key <id>", "only calls with this key")
    .option("--model <id>", "only calls of this model")
    .option("--from <time>", "only calls that ended at this time or later", time("--from"))
    .option("--to <time>", "only calls that ended before this time", time("--to"));
}

function filterOf(argument: string | undefined, { account, key = "", model = "", from, to }: Filter) {
  return {
    accountId: accountOf(argument, account),
    keyId: key,
    model,
    ...(from && { from: timestampFromDate(from) }),
    ...(to && { to: timestampFromDate(to) }),
  };
}

async function list(argument: string | undefined, options: Options): Promise<void> {
  await callAndPrintList(options, "listFailures", {
    request: { ...filterOf(argument, options), code: options.code ?? "" },
    rows: (page) => page.failures,
    columns: failureColumns,
    none: "There are no such calls.",
  });
}

async function count(argument: string | undefined, options: CountOptions): Promise<void> {
  const request = { ...filterOf(argument, options), groupBy: options.by ?? "", tz: options.tz ?? "" };
  const { counts, countedFrom } = await callAndShow(options, "countFailures", request, (response) =>
    response.counts.length === 0 ? "" : formatTable(failureCountColumns, response.counts),
  );
  if (options.json) return;
  await printError(counts.length === 0 ? "There are no such calls." : `Calls are counted from ${formatTime(countedFrom)} on.`);
}
