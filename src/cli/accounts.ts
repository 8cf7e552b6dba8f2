import {
  type Account,
  CreateAccountResponseSchema,
  GetAccountResponseSchema,
  ListAccountsResponseSchema,
  SetAccountPlanResponseSchema,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { addMovements } from "./account-movements.ts";
import { addProfileCommands, type ProfileOptions, profileOptions } from "./account-profile.ts";
import { accountIdOf } from "./account-reference.ts";
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
    profileOptions(
      callCommand(group, "create", "Create an account with a balance of zero.", [
        "vx accounts create --name acme --plan pro",
      ]),
    ),
  );
  requiredOption(creating, "--name <name>", "the name of the account")
    .option("--plan <plan>", 'the plan of the account (default: "free")')
    .action(create);
  addListOptions(
    callCommand(group, "list", "List accounts, newest first.", ["vx accounts list --limit 20"]),
  ).action(list);
  addListOptions(
    callCommand(
      group,
      "search",
      "List accounts whose external id or e-mail address starts with a text, whose name contains it, or that have this id.",
      ["vx accounts search acme"],
    ).argument("<text>", "the text"),
  ).action(search);
  callCommand(group, "get", "Show one account.", ["vx accounts get acct_…", "vx accounts get acme"])
    .argument("<account>", "the id, external id or unique name of the account")
    .action(get);
  addProfileCommands(group);
  addMovements(group);
  reasonOption(
    callCommand(
      group,
      "set-plan",
      "Move an account and its active keys on the previous plan to another plan.",
      ["vx accounts set-plan acct_… scale"],
    ),
  )
    .argument("<account>", "the id, external id or unique name of the account")
    .argument("<plan>", "the new plan")
    .action(setPlan);
};

async function create(
  options: JsonOption & ReasonOption & ProfileOptions & { name: string; plan?: string },
): Promise<void> {
  const { name, plan = "", reason = "", externalId = "", email = "", notes = "" } = options;
  const response = await withAdmin((admin) =>
    admin.createAccount({ name, plan, reason, externalId, email, notes }),
  );
  await show(options, CreateAccountResponseSchema, response, () => tableOf(response.account));
}

async function list(options: ListOptions): Promise<void> {
  await printAccounts("", options);
}

async function search(text: string, options: ListOptions): Promise<void> {
  await printAccounts(text, options);
}

async function printAccounts(search: string, options: ListOptions): Promise<void> {
  await withAdmin((admin) =>
    printList(options, {
      desc: ListAccountsResponseSchema,
      fetch: (page) => admin.listAccounts({ search, ...page }),
      rows: (page) => page.accounts,
      columns: accountColumns,
      none: search === "" ? "There are no accounts." : "No account matches.",
    }),
  );
}

async function get(account: string, options: JsonOption): Promise<void> {
  const response = await withAdmin((admin) => admin.getAccount({ accountId: account }));
  await show(options, GetAccountResponseSchema, response, () => tableOf(response.account));
}

async function setPlan(account: string, plan: string, options: JsonOption & ReasonOption): Promise<void> {
  const { reason = "" } = options;
  const response = await withAdmin(async (admin) =>
    admin.setAccountPlan({ accountId: await accountIdOf(admin, account), plan, reason }),
  );
  await show(options, SetAccountPlanResponseSchema, response, () => tableOf(response.account));
}

function tableOf(account: Account | undefined): string {
  return formatTable(accountColumns, account ? [account] : []);
}
