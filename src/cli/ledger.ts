import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ListLedgerEntriesResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { accountIdOf } from "./account-reference.ts";
import { accountOf, time } from "./arguments.ts";
import { withAdmin } from "./client.ts";
import { entryColumns } from "./columns.ts";
import { callCommand, type Define, withExamples } from "./command.ts";
import { addListOptions, type ListOptions, printList } from "./list.ts";

type Options = ListOptions & {
  readonly account?: string;
  readonly kind?: string;
  readonly key?: string;
  readonly model?: string;
  readonly from?: Date;
  readonly to?: Date;
};

export const define: Define = (group) => {
  withExamples(group, ["vx ledger list acct_…"]);
  const listing = callCommand(group, "list", "List the ledger entries of an account, newest first.", [
    "vx ledger list acct_… --limit 20",
    "vx ledger list acme --kind generation --from 2030-01-01",
  ])
    .argument("[account]", "the same as --account")
    .option("--account <account>", "the id, external id or unique name of the account");
  listing
    .option("--kind <kind>", "only entries of this kind: generation, credit or adjustment")
    .option("--key <id>", "only entries of calls with this key")
    .option("--model <id>", "only entries of this model")
    .option("--from <time>", "only entries at this time or later", time("--from"))
    .option("--to <time>", "only entries before this time", time("--to"));
  addListOptions(listing).action(list);
};

async function list(argument: string | undefined, options: Options): Promise<void> {
  const account = accountOf(argument, options.account);
  const { kind = "", key: keyId = "", model = "", from, to } = options;
  const filter = {
    kind,
    keyId,
    model,
    ...(from && { from: timestampFromDate(from) }),
    ...(to && { to: timestampFromDate(to) }),
  };
  await withAdmin(async (admin) => {
    const accountId = await accountIdOf(admin, account);
    await printList(options, {
      desc: ListLedgerEntriesResponseSchema,
      fetch: (page) => admin.listLedgerEntries({ accountId, ...filter, ...page }),
      rows: (page) => page.entries,
      columns: entryColumns,
      none: "The ledger of the account is empty.",
    });
  });
}
