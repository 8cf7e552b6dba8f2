import { randomUUID } from "node:crypto";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { LedgerEntrySchema } from "../../gen/vx/v1/ledger_pb.js";
import type { Micros } from "../domain/money.ts";
import { ACCOUNT, ACCOUNT_OPTION, accountOf, creditAmount, time } from "./arguments.ts";
import { callAndShow, withAdmin } from "./client.ts";
import { entryColumns } from "./columns.ts";
import { callCommand, type Define, type JsonOption, type ReasonOption, reasonOption, withExamples } from "./command.ts";
import { addListOptions, callAndPrintList, type ListOptions, printCsv } from "./list.ts";
import { tableOf } from "./print.ts";

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
    .option("--kind <kind>", "only entries of this kind: generation, credit, topup, refund, adjustment or expiry")
    .option("--key <id>", "only entries of calls with this key")
    .option("--model <id>", "only entries of this model")
    .option("--from <time>", "only entries at this time or later", time("--from"))
    .option("--to <time>", "only entries before this time", time("--to"));
  listing.option("--csv", "print the entries as CSV, with all fields");
  addListOptions(listing).action(list);
  const refunding = callCommand(group, "refund", "Give back the charge of a generation, or a part of it.", [
    'vx ledger refund acct_… gen_… --reason "the reply was empty"',
    'vx ledger refund acct_… led_… --amount 0.05 --reason "half of the reply was missing"',
  ]);
  refunding
    .argument("<account>", ACCOUNT)
    .argument("<id>", "the id of the generation, or of its ledger entry")
    .option("--amount <amount>", "the amount (default: all that is left of the charge)", creditAmount)
    .option("--idempotency-key <key>", "repeated calls with the same key give the amount back once")
    .action(refund);
  reasonOption(refunding, { isRequired: true });
};

type RefundOptions = JsonOption & ReasonOption & { readonly amount?: Micros; readonly idempotencyKey?: string };

async function refund(accountId: string, entryId: string, options: RefundOptions): Promise<void> {
  const { amount: amountMicros = 0n, reason = "", idempotencyKey = randomUUID() } = options;
  const request = { accountId, entryId, amountMicros, reason, idempotencyKey };
  await callAndShow(options, "refundEntry", request, ({ entry }) => tableOf(entryColumns, entry));
}

async function list(argument: string | undefined, options: Options): Promise<void> {
  const { kind = "", key: keyId = "", model = "", from, to } = options;
  const filter = {
    accountId: accountOf(argument, options.account),
    kind,
    keyId,
    model,
    ...(from && { from: timestampFromDate(from) }),
    ...(to && { to: timestampFromDate(to) }),
  };
  if (options.csv) {
    await withAdmin((admin) =>
      printCsv(options, {
        fetch: (page) => admin.listLedgerEntries({ ...filter, ...page }),
        desc: LedgerEntrySchema,
        rows: (page) => page.entries,
      }),
    );
    return;
  }
  await callAndPrintList(options, "listLedgerEntries", {
    request: filter,
    rows: (page) => page.entries,
    columns: entryColumns,
    none: "The ledger of the account is empty.",
  });
}
