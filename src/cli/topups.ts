import { ListTopUpsResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { accountIdOf } from "./arguments.ts";
import { withAdmin } from "./client.ts";
import { topUpColumns } from "./columns.ts";
import { callCommand, type Define } from "./command.ts";
import { addListOptions, type ListOptions, printList } from "./list.ts";

export const define: Define = (group) => {
  addListOptions(
    callCommand(group, "list", "List top-ups, the newest first.", [
      "vx topups list --account acme",
      "vx topups list --problems",
    ])
      .option("--account <account>", "only top-ups of this account")
      .option("--problems", "only top-ups whose payment differs from them, and was not credited"),
  ).action(list);
};

type Filter = { readonly account?: string; readonly problems?: boolean };

async function list(options: ListOptions & Filter): Promise<void> {
  const { account = "", problems: onlyProblems = false } = options;
  await withAdmin(async (admin) => {
    const accountId = account === "" ? "" : await accountIdOf(admin, account);
    await printList(options, {
      desc: ListTopUpsResponseSchema,
      fetch: (page) => admin.listTopUps({ accountId, onlyProblems, ...page }),
      rows: (page) => page.topups,
      columns: topUpColumns,
      none: "There are no such top-ups.",
    });
  });
}
