import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ListLedgerEntriesResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { LedgerEntrySchema } from "../../gen/vx/v1/ledger_pb.js";
import { ACCOUNT_OPTION, accountIdOf, accountOf, time } from "./arguments.ts";
import { withAdmin } from "./client.ts";
import { entryColumns } from "./columns.ts";
import { callCommand, type Define, withExamples } from "./command.ts";
import { addListOptions, type ListOptions, type PageRequest, printCsv, printList } from "./list.ts";

type Options = ListOptions & {
  readonly account?: string;
  readonly kind?: string;
  readonly key?: string;
  readonly model?: string;
  readonly from?: Date;
  readonly to?: Date;
  readonly csv?: true;
};

export const define: Define = (group) => {
  withExamples(group, ["vx ledger list acct_…"]);
  const listing = callCommand(group, "list", "List the ledger entries of an account, newest first.", [
    "vx ledger list acct_… --limit 20",
    "vx ledger list acme --kind generation --from 2030-01-01",
  ])
    .argument("[account]", "the same as --account")
    .option("--account <account>", ACCOUNT_OPTION);
  listing
    .option("--kind <kind>", "only entries of this kind: generation, credit or adjustment")
    .option("--key <id>", "only entries of calls with this key")
    .option("--model <id>", "only entries of this model")
    .option("--from <time>", "only entries at this time or later", time("--from"))
    .option("--to <time>", "only entries before this time", time("--to"));
  listing.option("--csv", "print the entries as CSV, with all fields");
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
    const fetch = (page: PageRequest) => admin.listLedgerEntries({ accountId, ...filter, ...page });
    if (options.csv) {
      await printCsv(options, { fetch, desc: LedgerEntrySchema, rows: (page) => page.entries });
      return;
    }
    await printList(options, {
      desc: ListLedgerEntriesResponseSchema,
      fetch,
      rows: (page) => page.entries,
      columns: entryColumns,
      none: "The ledger of the account is empty.",
    });
  });
}
