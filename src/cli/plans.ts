import { MAX_RPM, positiveNumber } from "./arguments.ts";
import { callAndShow } from "./client.ts";
import { listedPlanColumns, planColumns } from "./columns.ts";
import {
  callCommand,
  type Define,
  type JsonOption,
  type ReasonOption,
  reasonOption,
  requiredOption,
  withExamples,
} from "./command.ts";
import { printError } from "./output.ts";
import { formatTable, tableOf } from "./print.ts";

export const define: Define = (group) => {
  withExamples(group, ["vx plans list", "vx plans set tiny --rpm 5 --max-active-keys 2"]);
  callCommand(group, "list", "List plans, sorted by name.", ["vx plans list"]).action(list);
  const setting = callCommand(group, "set", "Create a plan or replace its limits. New limits apply from the next call.", [
    "vx plans set tiny --rpm 5 --max-active-keys 2",
  ])
    .argument("<name>", "the name of the plan")
    .option(
      "--max-keys-created-per-hour <n>",
      "the maximum number of keys that an account can create per hour with its own keys (default: 10 times --max-active-keys)",
      positiveNumber("--max-keys-created-per-hour"),
    )
    .action(set);
  reasonOption(setting);
  requiredOption(setting, "--rpm <n>", "requests per minute of each key", positiveNumber("--rpm", MAX_RPM));
  requiredOption(
    setting,
    "--max-active-keys <n>",
    "the maximum number of active keys of an account on the plan",
    positiveNumber("--max-active-keys"),
  );
};

async function list(options: JsonOption): Promise<void> {
  const { plans } = await callAndShow(options, "listPlans", { counts: true }, ({ plans: listed }) =>
    listed.length === 0 ? "" : formatTable(listedPlanColumns, listed),
  );
  if (plans.length === 0 && !options.json) await printError("There are no plans.");
}

async function set(
  name: string,
  options: JsonOption & ReasonOption & { rpm: number; maxActiveKeys: number; maxKeysCreatedPerHour?: number },
): Promise<void> {
  const { rpm, maxActiveKeys, maxKeysCreatedPerHour, reason = "" } = options;
  const request = {
    name,
    rpm,
    maxActiveKeys,
    reason,
    ...(maxKeysCreatedPerHour === undefined ? {} : { maxKeysCreatedPerHour }),
  };
  await callAndShow(options, "putPlan", request, ({ plan }) => tableOf(planColumns, plan));
}
