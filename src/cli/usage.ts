import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { GetUsageResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { accountIdOf } from "./account-reference.ts";
import { collect, time } from "./arguments.ts";
import { type Admin, withAdmin } from "./client.ts";
import { usageColumns } from "./columns.ts";
import { callCommand, type Define, withExamples } from "./command.ts";
import { usageFailure } from "./failure.ts";
import { addListOptions, type ListOptions, printList } from "./list.ts";
import { printOut } from "./output.ts";
import { createProgress } from "./progress.ts";

type RangeOptions = { readonly account?: string; readonly from?: Date; readonly to?: Date };
type ShowOptions = RangeOptions & ListOptions & { readonly groupBy?: string[]; readonly tz?: string };
type ExportOptions = RangeOptions & { readonly format: string };

/** An export reads every row of the range, so its duration has no useful bound. */
const NO_TIMEOUT_MS = 0;

export const define: Define = (group) => {
  withExamples(group, [
    "vx usage show acme --group-by day,model",
    "vx usage export --format focus --from 2030-01-01",
  ]);
  const showing = callCommand(group, "show", "Show the usage of an account, or of all accounts.", [
    "vx usage show acme --group-by day,key --tz Europe/Berlin",
    "vx usage show --from 2030-01-01 --to 2030-02-01 --group-by month,account",
  ]).argument("[account]", "the same as --account");
  addRange(showing)
    .option("--group-by <names>", "hour, day or month; account, key, model, user (default: day)", collect)
    .option("--tz <zone>", "the time zone of the periods (default: UTC)");
  addListOptions(showing).action(show);
  const exporting = withExamples(
    group.command("export").description("Print the usage as a file. The finance role is required."),
    [
      "vx usage export --format csv > usage.csv",
      "vx usage export --format focus --from 2030-01-01 --to 2030-02-01",
    ],
  );
  addRange(exporting)
    .option("--format <format>", "csv: a line per quarter of an hour, or focus: a FOCUS 1.2 file", "csv")
    .action(exportFile);
};

function addRange(command: ReturnType<typeof callCommand>) {
  return command
    .option("--account <account>", "only this account: its id, external id or unique name")
    .option("--from <time>", "usage at this time or later (default: the start of this month)", time("--from"))
    .option("--to <time>", "usage before this time (default: now)", time("--to"));
}

async function rangeOf(admin: Admin, { account, from, to }: RangeOptions) {
  return {
    accountId: account === undefined ? "" : await accountIdOf(admin, account),
    ...(from && { from: timestampFromDate(from) }),
    ...(to && { to: timestampFromDate(to) }),
  };
}

async function show(argument: string | undefined, options: ShowOptions): Promise<void> {
  const account = options.account ?? argument;
  if (argument !== undefined && account !== argument) {
    throw usageFailure("--account and the argument name different accounts; give one account");
  }
  const { groupBy = [], tz = "" } = options;
  await withAdmin(async (admin) => {
    const range = await rangeOf(admin, { ...options, ...(account !== undefined && { account }) });
    await printList(options, {
      desc: GetUsageResponseSchema,
      fetch: (page) => admin.getUsage({ ...range, groupBy, tz, ...page }),
      rows: (page) => page.rows,
      columns: usageColumns,
      none: "There is no usage in this range.",
    });
  });
}

async function exportFile(options: ExportOptions): Promise<void> {
  const { format } = options;
  if (format !== "csv" && format !== "focus") throw usageFailure("--format: must be csv or focus");
  await withAdmin(async (admin) => {
    const request = { ...(await rangeOf(admin, options)), format };
    const progress = createProgress(process.stderr);
    try {
      for await (const piece of admin.exportUsage(request, { timeoutMs: NO_TIMEOUT_MS })) {
        if (!(await printOut(piece.text))) return;
        const share = piece.lanes === 0 ? 0 : piece.lanesDone / piece.lanes;
        progress.show(share, `${piece.rows.toLocaleString("en")} lines`);
      }
    } finally {
      progress.clear();
    }
  });
}
