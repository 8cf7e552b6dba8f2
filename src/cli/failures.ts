import { FailureCountSchema, FailureSchema } from "../../gen/vx/v1/failure_pb.js";
import { call, list } from "./call.ts";
import { ANY_ACCOUNT, option } from "./parameters.ts";
import { columnsOf, formatTable, formatTime, unlessZero } from "./print.ts";
import { noun } from "./row.ts";
import { time } from "./values.ts";

const columns = columnsOf(
  FailureSchema,
  "time, status, code, method, model, upstream, keyId, latencyMs as MS, requestId as REQUEST ID, message",
  { "in MESSAGE": "omitted" },
  {
    status: unlessZero,
    latencyMs: (ms, { code }) => (code === "" ? "" : String(ms)),
    message: (message, { omitted }) => (omitted === 0 ? message : `${omitted} more calls failed in this minute`),
  },
);
const countColumns = columnsOf(FailureCountSchema, "start, code, calls", {}, { code: (code) => code || "(not listed)" });

const NONE = "There are no such calls.";
const filters = {
  accountId: ANY_ACCOUNT,
  keyId: option("--key <id>", "only calls with this key"),
  model: option("--model <id>", "only calls of this model"),
  from: option("--from <time>", "only calls that ended at this time or later", time),
  to: option("--to <time>", "only calls that ended before this time", time),
};

export const row = noun([], {
  list: list("listFailures", columns, {
    about: "List the calls of an account that failed, newest first.",
    none: NONE,
    fields: { ...filters, code: option("--code <code>", "only calls that ended with this error, such as insufficient_balance") },
    examples: ["--account acme --limit 20", "acme --code insufficient_balance --from 2030-01-01"],
  }),
  count: call("countFailures", ({ counts }) => (counts.length === 0 ? "" : formatTable(countColumns, counts)), {
    about: "Count the calls of an account that failed, by error.",
    fields: {
      ...filters,
      groupBy: option("--by <period>", "hour, day or month (default: day)"),
      tz: option("--tz <zone>", "the time zone of the periods, such as Europe/Berlin (default: UTC)"),
    },
    note: ({ counts, countedFrom: from }) => (counts.length === 0 ? NONE : `Calls are counted from ${formatTime(from)} on.`),
    examples: ["acme", "acme --by hour --from 2030-01-31"],
  }),
});
