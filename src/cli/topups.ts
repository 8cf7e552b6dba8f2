import { topUpColumns } from "./columns.ts";
import { callCommand, type Define } from "./command.ts";
import { addListOptions, callAndPrintList, type ListOptions } from "./list.ts";

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
  const { account: accountId = "", problems: onlyProblems = false } = options;
  await callAndPrintList(options, "listTopUps", {
    request: { accountId, onlyProblems },
    rows: (page) => page.topups,
    columns: topUpColumns,
    none: "There are no such top-ups.",
  });
}
