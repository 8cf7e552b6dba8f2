import { PlanSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { call } from "./call.ts";
import { argument, fixed, option, REASON, required } from "./parameters.ts";
import { columnsOf, formatTable } from "./print.ts";
import { noun } from "./row.ts";
import * as parse from "./values.ts";

const LIMITS = "name, rpm, maxActiveKeys, maxKeysCreatedPerHour";
const columns = columnsOf(PlanSchema, LIMITS, { "only counted in lists": "accounts, activeKeys" });
const listed = columnsOf(PlanSchema, `${LIMITS}, accounts, activeKeys` as const, {});

export const row = noun(["list", "set tiny --rpm 5 --max-active-keys 2"], {
  list: call("listPlans", ({ plans }) => (plans.length === 0 ? "" : formatTable(listed, plans)), {
    about: "List plans, sorted by name.",
    fields: { counts: fixed(true) },
    note: ({ plans }) => (plans.length === 0 ? "There are no plans." : undefined),
    examples: [""],
  }),
  set: call("putPlan", columns, {
    about: "Create a plan or replace its limits. New limits apply from the next call.",
    fields: {
      name: argument("<name>", "the name of the plan"),
      maxKeysCreatedPerHour: option(
        "--max-keys-created-per-hour <n>",
        "the maximum number of keys that an account can create per hour with its own keys (default: 10 times --max-active-keys)",
        parse.positive,
      ),
      reason: REASON,
      rpm: required("--rpm <n>", "requests per minute of each key", parse.rpm),
      maxActiveKeys: required(
        "--max-active-keys <n>",
        "the maximum number of active keys of an account on the plan",
        parse.positive,
      ),
    },
    examples: ["tiny --rpm 5 --max-active-keys 2"],
  }),
});
