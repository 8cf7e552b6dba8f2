import { create } from "@bufbuild/protobuf";
import {
  type AccountUsageRow,
  AccountUsageRowSchema,
  ExportUsageResponseSchema,
  type GetUsageResponse,
  GetUsageResponseSchema,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { list } from "./call.ts";
import { NO_TIMEOUT, withAdmin } from "./client.ts";
import { usageFailure } from "./failure.ts";
import { firstRows, LIST_OPTIONS, type ListOptions, type PageRequest, printList } from "./list.ts";
import { createProgress, printOut } from "./output.ts";
import { ACCOUNT_TEXT, combined, flag, JSON_RESPONSE, mapped, option, type Values } from "./parameters.ts";
import { amountUnlessZero, columnsOf, jsonLine } from "./print.ts";
import { command, noun } from "./row.ts";
import { collect, oneOf, time } from "./values.ts";

const METERS = "cachedInputTokens, cacheWriteTokens, reasoningTokens, imageTokens";
const columns = columnsOf(
  AccountUsageRowSchema,
  "start, accountId, accountName, keyId, keyName, model, user, requests, inputTokens as INPUT, outputTokens as OUTPUT, cost",
  {
    "in COST": "costMicros",
    "in vx usage margin": "upstream, upstreamCost, upstreamCostMicros, uncostedMicros, margin, marginMicros",
    "only in --json": METERS,
  },
);
const marginColumns = columnsOf(
  AccountUsageRowSchema,
  `start, accountId, accountName, keyId, model, user, upstream, requests, cost as CHARGES, upstreamCost as COST, margin,
  uncostedMicros as CHARGES WITHOUT COST`,
  {
    "in CHARGES, COST and MARGIN": "costMicros, upstreamCostMicros, marginMicros",
    "in vx usage show": "keyName, inputTokens, outputTokens",
    "only in --json": METERS,
  },
  { uncostedMicros: amountUnlessZero },
);

const account = option("--account <account>", `only this account: ${ACCOUNT_TEXT}`);
const range = {
  from: option("--from <time>", "usage at this time or later (default: the start of this month)", time),
  to: option("--to <time>", "usage before this time (default: now)", time),
};
const filters = {
  accountId: combined({ argument: option("[account]", "the same as --account"), option: account }, ({ argument, option }) => {
    if (argument === undefined || option === undefined || argument === option) return argument ?? option;
    throw usageFailure("--account and the argument name different accounts; give one account");
  }),
  ...range,
};
const zone = option("--tz <zone>", "the time zone of the periods (default: UTC)");

const SORTS = ["cost", "requests", "start"] as const;

const GROUPS = "hour, day or month; account, key, model, user";
const showing = {
  json: JSON_RESPONSE,
  ...filters,
  groupBy: option("--group-by <names>", `${GROUPS} (default: day)`, collect),
  sort: option(
    "--sort <order>",
    "cost or requests, the highest first, or start: by start, account, key, model and user (default: cost without a period, else start; with --json, start)",
    oneOf(SORTS, "one of cost, requests, start"),
  ),
  tz: zone,
  page: LIST_OPTIONS,
};

const exporting = {
  json: JSON_RESPONSE,
  accountId: account,
  ...range,
  format: option(
    "--format <format>",
    'csv: a line per quarter of an hour, or focus: a FOCUS file (default: "csv")',
    oneOf(["csv", "focus"], "csv or focus"),
  ),
  focusVersion: option(
    "--focus-version <version>",
    'the version of FOCUS: 1.2 or 1.3 (default: "1.2")',
    oneOf(["1.2", "1.3"], "1.2 or 1.3"),
  ),
  includeCosts: flag("--costs", "add the upstreams and their costs; not for files that customers get"),
};

export const row = noun(["show acme --group-by day,model", "export --format focus --from 2030-01-01"], {
  show: command({
    about: "Show the usage of an account, or of all accounts.",
    parameters: showing,
    examples: [
      "acme --group-by day,key --tz Europe/Berlin",
      "--from 2030-01-01 --to 2030-02-01 --group-by month,account",
      "--group-by key --limit 10",
    ],
    run: show,
  }),
  margin: list("getUsage", marginColumns, {
    about: "Show the charges, also those that promotional credit paid, the cost at the upstreams and the margin.",
    none: "There are no charged calls in this range.",
    fields: {
      ...filters,
      groupBy: mapped(
        option("--group-by <names>", `${GROUPS}, upstream (default: model,upstream)`, collect),
        (names) => names ?? ["model", "upstream"],
      ),
      tz: zone,
    },
    examples: ["", "acme --group-by day,model", "--group-by upstream --from 2030-01-01"],
  }),
  export: command({
    about: "Print the usage as a file. The finance role is required. With --json, each line is a piece of it.",
    parameters: exporting,
    examples: ["--format csv > usage.csv", "--format focus --from 2030-01-01 --to 2030-02-01"],
    run: exportFile,
  }),
});

async function show({ json, sort, page, groupBy = [], ...given }: Values<typeof showing>): Promise<void> {
  const { accountId = "", tz = "", ...between } = given;
  const order = sort ?? defaultSort(groupBy, json);
  await withAdmin(async (admin) => {
    const read = (at: PageRequest) => admin.getUsage({ accountId, groupBy, tz, ...between, ...at });
    await printList(
      { json, ...page },
      {
        desc: GetUsageResponseSchema,
        fetch: order === "start" ? read : () => readSorted(page, read, order),
        rows: (response) => response.rows,
        columns,
        none: "There is no usage in this range.",
      },
    );
  });
}

const PERIODS = ["hour", "day", "month"];

/** Costs of different periods are rarely compared; without a period, the largest are wanted. */
function defaultSort(groupBy: readonly string[], json: boolean): (typeof SORTS)[number] {
  const groups = groupBy.length === 0 ? ["day"] : groupBy.flatMap((names) => names.split(","));
  return json || groups.some((name) => PERIODS.includes(name)) ? "start" : "cost";
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
  page: ListOptions,
  read: (page: PageRequest) => Promise<GetUsageResponse>,
  sort: keyof typeof COMPARE,
): Promise<GetUsageResponse> {
  if (page.pageSize !== undefined || page.pageToken !== undefined)
    throw usageFailure("a list that is sorted by cost or requests has no pages; use --limit");
  let throughSeq: bigint | undefined;
  const readPage = async (at: PageRequest) => {
    const response = await read(at);
    throughSeq ??= response.throughSeq;
    return response;
  };
  const rows = await firstRows(page, { fetch: readPage, rows: (response) => response.rows }, COMPARE[sort]);
  return create(GetUsageResponseSchema, { rows, throughSeq: throughSeq ?? 0n });
}

async function exportFile({ json, ...given }: Values<typeof exporting>): Promise<void> {
  const { accountId = "", format = "csv", focusVersion = "1.2" } = given;
  const request = { ...given, accountId, format, focusVersion };
  await withAdmin(async (admin) => {
    const progress = createProgress();
    try {
      for await (const piece of admin.exportUsage(request, NO_TIMEOUT)) {
        if (!(await printOut(json ? jsonLine(ExportUsageResponseSchema, piece) : piece.text))) return;
        const share = piece.lanes === 0 ? 0 : piece.lanesDone / piece.lanes;
        progress.show(share, `${piece.rows.toLocaleString("en")} lines`);
      }
    } finally {
      progress.clear();
    }
  });
}
