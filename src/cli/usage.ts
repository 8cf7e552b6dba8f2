import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type AccountUsageRow,
  ExportUsageResponseSchema,
  type GetUsageResponse,
  GetUsageResponseSchema,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { ACCOUNT, collect, time } from "./arguments.ts";
import { withAdmin } from "./client.ts";
import { marginColumns, usageColumns } from "./columns.ts";
import { callCommand, type Define, type JsonOption, withExamples } from "./command.ts";
import { usageFailure } from "./failure.ts";
import { addListOptions, callAndPrintList, firstRows, type ListOptions, type PageRequest, printList } from "./list.ts";
import { createProgress, printOut } from "./output.ts";
import { jsonLine } from "./print.ts";

type RangeOptions = { readonly account?: string; readonly from?: Date; readonly to?: Date };
type ShowOptions = RangeOptions & ListOptions & { readonly groupBy?: string[]; readonly tz?: string; readonly sort?: Sort };
type ExportOptions = RangeOptions &
  JsonOption & { readonly format: string; readonly focusVersion: string; readonly costs?: true };

const SORTS = ["cost", "requests", "start"] as const;
type Sort = (typeof SORTS)[number];
const PERIODS = ["hour", "day", "month"];

/** An export reads every row of the range, so its duration has no useful bound. */
const NO_TIMEOUT_MS = 0;

export const define: Define = (group) => {
  withExamples(group, ["vx usage show acme --group-by day,model", "vx usage export --format focus --from 2030-01-01"]);
  const showing = callCommand(group, "show", "Show the usage of an account, or of all accounts.", [
    "vx usage show acme --group-by day,key --tz Europe/Berlin",
    "vx usage show --from 2030-01-01 --to 2030-02-01 --group-by month,account",
    "vx usage show --group-by key --limit 10",
  ]).argument("[account]", "the same as --account");
  addRange(showing)
    .option("--group-by <names>", "hour, day or month; account, key, model, user (default: day)", collect)
    .option(
      "--sort <order>",
      "cost or requests, the highest first, or start: by start, account, key, model and user (default: cost without a period, else start; with --json, start)",
      sortOf,
    )
    .option("--tz <zone>", "the time zone of the periods (default: UTC)");
  addListOptions(showing).action(show);
  const margin = callCommand(
    group,
    "margin",
    "Show the charges, also those that promotional credit paid, the cost at the upstreams and the margin.",
    ["vx usage margin", "vx usage margin acme --group-by day,model", "vx usage margin --group-by upstream --from 2030-01-01"],
  ).argument("[account]", "the same as --account");
  addRange(margin)
    .option("--group-by <names>", "hour, day or month; account, key, model, user, upstream (default: model,upstream)", collect)
    .option("--tz <zone>", "the time zone of the periods (default: UTC)");
  addListOptions(margin).action(showMargin);
  const exporting = callCommand(
    group,
    "export",
    "Print the usage as a file. The finance role is required. With --json, each line is a piece of it.",
    ["vx usage export --format csv > usage.csv", "vx usage export --format focus --from 2030-01-01 --to 2030-02-01"],
  );
  addRange(exporting)
    .option("--format <format>", "csv: a line per quarter of an hour, or focus: a FOCUS file", "csv")
    .option("--focus-version <version>", "the version of FOCUS: 1.2 or 1.3", "1.2")
    .option("--costs", "add the upstreams and their costs; not for files that customers get")
    .action(exportFile);
};

function addRange(command: ReturnType<typeof callCommand>) {
  return command
    .option("--account <account>", `only this account: ${ACCOUNT}`)
    .option("--from <time>", "usage at this time or later (default: the start of this month)", time("--from"))
    .option("--to <time>", "usage before this time (default: now)", time("--to"));
}

function rangeOf({ account: accountId = "", from, to }: RangeOptions) {
  return {
    accountId,
    ...(from && { from: timestampFromDate(from) }),
    ...(to && { to: timestampFromDate(to) }),
  };
}

async function showMargin(argument: string | undefined, options: ShowOptions): Promise<void> {
  const { groupBy = ["model", "upstream"], tz = "" } = options;
  await callAndPrintList(options, "getUsage", {
    request: { ...rangeOf({ ...options, ...oneAccount(argument, options) }), groupBy, tz },
    rows: (page) => page.rows,
    columns: marginColumns,
    none: "There are no charged calls in this range.",
  });
}

function oneAccount(argument: string | undefined, options: RangeOptions): Pick<RangeOptions, "account"> {
  const account = options.account ?? argument;
  if (argument !== undefined && account !== argument) {
    throw usageFailure("--account and the argument name different accounts; give one account");
  }
  return account === undefined ? {} : { account };
}

async function show(argument: string | undefined, options: ShowOptions): Promise<void> {
  const account = oneAccount(argument, options);
  const { groupBy = [], tz = "", sort = defaultSort(options) } = options;
  await withAdmin(async (admin) => {
    const range = rangeOf({ ...options, ...account });
    const read = (page: PageRequest) => admin.getUsage({ ...range, groupBy, tz, ...page });
    await printList(options, {
      desc: GetUsageResponseSchema,
      fetch: sort === "start" ? read : () => readSorted(options, read, sort),
      rows: (page) => page.rows,
      columns: usageColumns,
      none: "There is no usage in this range.",
    });
  });
}

function sortOf(text: string): Sort {
  const sort = SORTS.find((known) => known === text);
  if (sort === undefined) throw usageFailure(`--sort: must be one of ${SORTS.join(", ")}`);
  return sort;
}

/** Costs of different periods are rarely compared; without a period, the largest are wanted. */
function defaultSort({ groupBy = ["day"], json }: ShowOptions): Sort {
  const hasPeriod = groupBy.flatMap((names) => names.split(",")).some((name) => PERIODS.includes(name));
  return hasPeriod || json ? "start" : "cost";
}

const COMPARE = {
  cost: byFalling(({ usage }) => usage?.costMicros ?? 0n),
  requests: byFalling(({ usage }) => usage?.requests ?? 0n),
};

function byFalling(value: (row: AccountUsageRow) => bigint) {
  return (one: AccountUsageRow, other: AccountUsageRow) => Number(value(other) - value(one));
}

/** One page with the first rows of all pages. */
async function readSorted(
  options: ShowOptions,
  read: (page: PageRequest) => Promise<GetUsageResponse>,
  sort: keyof typeof COMPARE,
): Promise<GetUsageResponse> {
  if (options.pageSize !== undefined || options.pageToken !== undefined)
    throw usageFailure("a list that is sorted by cost or requests has no pages; use --limit");
  let throughSeq: bigint | undefined;
  const readPage = async (page: PageRequest) => {
    const response = await read(page);
    throughSeq ??= response.throughSeq;
    return response;
  };
  const rows = await firstRows(options, readPage, (page) => page.rows, COMPARE[sort]);
  return create(GetUsageResponseSchema, { rows, throughSeq: throughSeq ?? 0n });
}

async function exportFile(options: ExportOptions): Promise<void> {
  const { format, focusVersion, costs: includeCosts = false } = options;
  if (format !== "csv" && format !== "focus") throw usageFailure("--format: must be csv or focus");
  if (focusVersion !== "1.2" && focusVersion !== "1.3") throw usageFailure("--focus-version: must be 1.2 or 1.3");
  await withAdmin(async (admin) => {
    const request = { ...rangeOf(options), format, includeCosts, focusVersion };
    const progress = createProgress();
    try {
      for await (const piece of admin.exportUsage(request, { timeoutMs: NO_TIMEOUT_MS })) {
        const text = options.json ? jsonLine(ExportUsageResponseSchema, piece) : piece.text;
        if (!(await printOut(text))) return;
        const share = piece.lanes === 0 ? 0 : piece.lanesDone / piece.lanes;
        progress.show(share, `${piece.rows.toLocaleString("en")} lines`);
      }
    } finally {
      progress.clear();
    }
  });
}
