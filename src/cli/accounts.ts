import {
  type Account,
  CreateAccountResponseSchema,
  GetAccountResponseSchema,
  ListAccountsResponseSchema,
  SetAccountPlanResponseSchema,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { addMovements } from "./account-movements.ts";
import { withAdmin } from "./client.ts";
import { accountColumns } from "./columns.ts";
import {
  callCommand,
  type Define,
  type JsonOption,
  type ReasonOption,
  reasonOption,
  requiredOption,
  withExamples,
} from "./command.ts";
import { addListOptions, type ListOptions, printList } from "./list.ts";
import { formatTable } from "./print.ts";
import { show } from "./show.ts";

export const define: Define = (group) => {
  withExamples(group, ["vx accounts create --name acme --plan pro", "vx accounts list"]);
  const creating = reasonOption(
    callCommand(group, "create", "Create an account with a balance of zero.", [
      "vx accounts create --name acme --plan pro",
    ]),
  );
  requiredOption(creating, "--name <name>", "the name of the account")
    .option("--plan <plan>", 'the plan of the account (default: "free")')
    .action(create);
  addListOptions(
    callCommand(group, "list", "List accounts, newest first.", ["vx accounts list --limit 20"]),
  ).action(list);
  callCommand(group, "get", "Show one account.", ["vx accounts get acct_…"])
    .argument("<account_id>", "the id of the account")
    .action(get);
  addMovements(group);
  reasonOption(
    callCommand(
      group,
      "set-plan",
      "Move an account and its active keys on the previous plan to another plan.",
      ["vx accounts set-plan acct_… scale"],
    ),
  )
    .argument("<account_id>", "the id of the account")
    .argument("<plan>", "the new plan")
    .action(setPlan);
};

async function create(options: JsonOption & ReasonOption & { name: string; plan?: string }): Promise<void> {
  const { name, plan = "", reason = "" } = options;
  const response = await withAdmin((admin) => admin.createAccount({ name, plan, reason }));
  await show(options, CreateAccountResponseSchema, response, () => tableOf(response.account));
}

async function list(options: ListOptions): Promise<void> {
  await withAdmin((admin) =>
    printList(options, {
      desc: ListAccountsResponseSchema,
      fetch: (page) => admin.listAccounts(page),
      rows: (page) => page.accounts,
      columns: accountColumns,
      none: "There are no accounts.",
    }),
  );
}

async function get(accountId: string, options: JsonOption): Promise<void> {
  const response = await withAdmin((admin) => admin.getAccount({ accountId }));
  await show(options, GetAccountResponseSchema, response, () => tableOf(response.account));
}

async function setPlan(accountId: string, plan: string, options: JsonOption & ReasonOption): Promise<void> {
  const { reason = "" } = options;
  const response = await withAdmin((admin) => admin.setAccountPlan({ accountId, plan, reason }));
  await show(options, SetAccountPlanResponseSchema, response, () => tableOf(response.account));
}

function tableOf(account: Account | undefined): string {
  return formatTable(accountColumns, account ? [account] : []);
}
