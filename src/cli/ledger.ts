import { ListLedgerEntriesResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { accountIdOf } from "./account-reference.ts";
import { accountOf } from "./arguments.ts";
import { withAdmin } from "./client.ts";
import { entryColumns } from "./columns.ts";
import { callCommand, type Define, withExamples } from "./command.ts";
import { addListOptions, type ListOptions, printList } from "./list.ts";

export const define: Define = (group) => {
  withExamples(group, ["vx ledger list acct_…"]);
  const listing = callCommand(group, "list", "List the ledger entries of an account, newest first.", [
    "vx ledger list acct_… --limit 20",
  ])
    .argument("[account]", "the same as --account")
    .option("--account <account>", "the id, external id or unique name of the account");
  addListOptions(listing).action(list);
};

async function list(
  argument: string | undefined,
  options: ListOptions & { account?: string },
): Promise<void> {
  const account = accountOf(argument, options.account);
  await withAdmin(async (admin) => {
    const accountId = await accountIdOf(admin, account);
    await printList(options, {
      desc: ListLedgerEntriesResponseSchema,
      fetch: (page) => admin.listLedgerEntries({ accountId, ...page }),
      rows: (page) => page.entries,
      columns: entryColumns,
      none: "The ledger of the account is empty.",
    });
  });
}
