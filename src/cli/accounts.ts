import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import {
  type Account,
  type AdjustAccountResponse,
  AdjustAccountResponseSchema,
  type CloseAccountResponse,
  CloseAccountResponseSchema,
  type CreditAccountResponse,
  CreditAccountResponseSchema,
} from "../../gen/vx/admin/v1/admin_pb.js";
import type { Micros } from "../domain/money.ts";
import { ACCOUNT, adjustAmount, creditAmount, lastDay, lowBalance } from "./arguments.ts";
import { type Admin, CallFailure, callAndShow, type RequestOf, withAdmin } from "./client.ts";
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
import { exportAccount } from "./export-account.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { addListOptions, callAndPrintList, type ListOptions } from "./list.ts";
import { type Column, formatTable, show, tableOf } from "./print.ts";

export const define: Define = (group) => {
  withExamples(group, ["vx accounts create --name acme --plan pro", "vx accounts list"]);
  const creating = reasonOption(
    profileOptions(
      callCommand(group, "create", "Create an account with a balance of zero.", ["vx accounts create --name acme --plan pro"]),
    ),
  );
  requiredOption(creating, "--name <name>", "the name of the account")
    .option("--plan <plan>", 'the plan of the account (default: "free")')
    .action(create);
  addListOptions(callCommand(group, "list", "List accounts, newest first.", ["vx accounts list --limit 20"])).action(list);
  addListOptions(
    callCommand(
      group,
      "search",
      "List accounts whose external id or e-mail address starts with a text, whose name contains it, or that have this id.",
      ["vx accounts search acme"],
    ).argument("<text>", "the text"),
  ).action(search);
  callCommand(group, "get", "Show one account.", ["vx accounts get acct_…", "vx accounts get acme"])
    .argument("<account>", ACCOUNT)
    .action(get);
  addProfileCommands(group);
  addMovements(group);
  reasonOption(
    callCommand(group, "set-plan", "Move an account and its active keys on the previous plan to another plan.", [
      "vx accounts set-plan acct_… scale",
    ]),
  )
    .argument("<account>", ACCOUNT)
    .argument("<plan>", "the new plan")
    .action(setPlan);
};

async function create(options: JsonOption & ReasonOption & ProfileOptions & { name: string; plan?: string }): Promise<void> {
  const { name, plan = "", reason = "", externalId = "", email = "", notes = "" } = options;
  const request = { name, plan, reason, externalId, email, notes };
  await callAndShow(options, "createAccount", request, accountTable);
}

async function list(options: ListOptions): Promise<void> {
  await printAccounts("", options);
}

async function search(text: string, options: ListOptions): Promise<void> {
  await printAccounts(text, options);
}

async function printAccounts(search: string, options: ListOptions): Promise<void> {
  await callAndPrintList(options, "listAccounts", {
    request: { search },
    rows: (page) => page.accounts,
    columns: accountColumns,
    none: search === "" ? "There are no accounts." : "No account matches.",
  });
}

async function get(accountId: string, options: JsonOption): Promise<void> {
  await callAndShow(options, "getAccount", { accountId }, accountTable);
}

async function setPlan(accountId: string, plan: string, options: ChangeOptions): Promise<void> {
  const { reason = "" } = options;
  await callAndShow(options, "setAccountPlan", { accountId, plan, reason }, accountTable);
}

function accountTable({ account }: { readonly account?: Account | undefined }): string {
  return tableOf(accountColumns, account);
}

type ProfileOptions = {
  readonly externalId?: string;
  readonly email?: string;
  readonly notes?: string;
};

type ChangeOptions = JsonOption & ReasonOption;

function profileOptions(command: Command): Command {
  return command
    .option("--external-id <id>", "the id of the account in other systems, unique among the accounts")
    .option("--email <address>", "an e-mail address")
    .option("--notes <text>", "notes for operators");
}

/** The commands that change the name, the profile and the suspension of an account. */
function addProfileCommands(group: Command): void {
  reasonOption(callCommand(group, "rename", "Change the name of an account.", ["vx accounts rename acct_… acme-europe"]))
    .argument("<account>", ACCOUNT)
    .argument("<name>", "the new name")
    .action((account: string, name: string, options: ChangeOptions) => update(account, { name }, options));
  reasonOption(
    profileOptions(
      callCommand(group, "update", "Change the profile of an account. An empty value removes the field.", [
        "vx accounts update acct_… --external-id crm-17 --email ops@acme.example",
      ]),
    ),
  )
    .option(
      "--low-balance <amount>",
      'write the event "balance.low" when a charge takes the balance below this amount; 0 for never',
      lowBalance,
    )
    .argument("<account>", ACCOUNT)
    .action(updateProfile);
  reasonOption(
    callCommand(group, "suspend", "Refuse the calls of an account. Running calls finish.", [
      'vx accounts suspend acct_… --reason "invoice 1001 is overdue"',
    ]),
    { isRequired: true },
  )
    .argument("<account>", ACCOUNT)
    .action(suspend);
  reasonOption(callCommand(group, "resume", "End the suspension of an account.", ["vx accounts resume acct_…"]))
    .argument("<account>", ACCOUNT)
    .action(resume);
  addExport(group);
  addClosing(group);
}

async function updateProfile(
  account: string,
  options: ChangeOptions & ProfileOptions & { readonly lowBalance?: Micros },
): Promise<void> {
  const { externalId, email, notes, lowBalance: lowBalanceMicros } = options;
  const profile = {
    ...(lowBalanceMicros === undefined ? {} : { lowBalanceMicros }),
    ...(externalId === undefined ? {} : { externalId }),
    ...(email === undefined ? {} : { email }),
    ...(notes === undefined ? {} : { notes }),
  };
  if (Object.keys(profile).length === 0) {
    throw usageFailure("nothing to change; add --external-id, --email, --notes or --low-balance");
  }
  await update(account, profile, options);
}

async function update(accountId: string, changes: RequestOf<"updateAccount">, options: ChangeOptions): Promise<void> {
  const { reason = "" } = options;
  await callAndShow(options, "updateAccount", { ...changes, accountId, reason }, accountTable);
}

async function suspend(accountId: string, options: ChangeOptions): Promise<void> {
  const { reason = "" } = options;
  await callAndShow(options, "suspendAccount", { accountId, reason }, accountTable);
}

async function resume(accountId: string, options: ChangeOptions): Promise<void> {
  const { reason = "" } = options;
  await callAndShow(options, "resumeAccount", { accountId, reason }, accountTable);
}

function addExport(group: Command): void {
  const exporting = group
    .command("export")
    .description("Write what is stored about an account into an archive of JSON lines and CSV. Needs the role finance.")
    .argument("<account>", ACCOUNT);
  withExamples(exporting, [
    "vx accounts export acct_… --output acme.tar.gz",
    "vx accounts export acme --output acme.tar.gz --archives /archives",
  ]);
  requiredOption(exporting, "--output <file>", "the file to write, which must not exist")
    .option("--archives <folder>", "the folder of vx archive, for the entries of archived months")
    .option("--json", "print the result as JSON")
    .action(exportAccount);
}

type CloseOptions = JsonOption & {
  readonly reason: string;
  readonly writeOff?: true;
  readonly refunded?: true;
  readonly dryRun?: true;
};

function addClosing(group: Command): void {
  const closing = callCommand(
    group,
    "close",
    "Close an account for good: revoke its keys, wait for running calls, take the balance, and erase personal data.",
    [
      'vx accounts close acct_… --reason "the customer left" --write-off --dry-run',
      'vx accounts close acct_… --reason "the customer left" --refunded',
    ],
  ).argument("<account>", ACCOUNT);
  reasonOption(closing, { isRequired: true })
    .option("--write-off", "the balance is lost")
    .option("--refunded", "the customer got the balance back")
    .option("--dry-run", "only show what would be closed")
    .action(close);
}

/** Waits for running calls, and can be interrupted and repeated at any time. */
async function close(account: string, options: CloseOptions): Promise<void> {
  const { reason, writeOff, refunded, dryRun = false } = options;
  if (writeOff && refunded) throw usageFailure("--write-off and --refunded exclude each other");
  const balance = writeOff ? "written_off" : refunded ? "refunded" : "";
  const response = await withAdmin(async (admin) => {
    const first = await admin.closeAccount({ accountId: account, reason, balance, dryRun });
    let last = first;
    while (!last.closed && !dryRun) {
      await sleep(CLOSING_PAUSE_MS);
      // Closing erases the name and the external id.
      last = await admin.closeAccount({ accountId: first.account?.id ?? "", reason, balance });
    }
    return { ...last, ...countsOf(first) };
  });
  await show(options, CloseAccountResponseSchema, response, () => closingText(response, dryRun));
}

const CLOSING_PAUSE_MS = 1_000;

function countsOf({ activeKeys, webhooks, pendingTopups, paymentMethod }: CloseAccountResponse) {
  return { activeKeys, webhooks, pendingTopups, paymentMethod };
}

function closingText(response: CloseAccountResponse, dryRun: boolean): string {
  const { account, entry, activeKeys, webhooks, pendingTopups, paymentMethod } = response;
  const ends = [
    `keys revoked: ${activeKeys}`,
    `webhooks deleted: ${webhooks}`,
    `pending top-ups: ${pendingTopups}`,
    `payment method deleted: ${paymentMethod || "none"}`,
    dryRun
      ? `balance: ${account?.balance ?? ""}`
      : `ledger entry of the balance: ${entry ? `${entry.id} ${entry.amount}` : "none"}`,
  ];
  const title = dryRun ? "Nothing is changed. Closing would end:" : "The account is closed:";
  return `${tableOf(accountColumns, account)}\n${title}\n${ends.map((line) => `  ${line}\n`).join("")}`;
}

type MovementOptions = JsonOption & { readonly reason: string; readonly idempotencyKey?: string };
type Movement = { accountId: string; amountMicros: Micros; reason: string; idempotencyKey: string };
type Response = CreditAccountResponse | AdjustAccountResponse;

const columns: readonly Column<Response>[] = [
  { title: "ENTRY", value: ({ entry }) => entry?.id ?? "" },
  { title: "KIND", value: ({ entry }) => entry?.kind ?? "" },
  { title: "AMOUNT", value: ({ entry }) => entry?.amount ?? "", align: "right" },
  { title: "ACCOUNT", value: ({ account }) => account?.id ?? "" },
  // The current balance, even if a repeated call returns an old entry.
  { title: "BALANCE", value: ({ account }) => account?.balance ?? "", align: "right" },
  { title: "REASON", value: ({ entry }) => entry?.reason ?? "" },
];

/** The commands that change a balance. */
function addMovements(group: Command): void {
  movementCommand(group, "credit", "Add an amount to the balance of an account.", [
    'vx accounts credit acct_… 25.00 --reason "invoice 1001"',
    'vx accounts credit acct_… 5.00 --reason "welcome" --expires 2030-01-31 --promotional',
  ])
    .argument("<amount>", "greater than 0, with at most 6 decimals", creditAmount)
    .option("--expires <day>", "the last day on which the credit can be used, in UTC", lastDay("--expires"))
    .option("--promotional", "nobody paid for the credit")
    .action(credit);
  movementCommand(group, "adjust", "Add an amount to the balance of an account, or subtract it.", [
    'vx accounts adjust acct_… -5.00 --reason "credited twice"',
  ])
    .argument("<amount>", "negative to subtract; at most 6 decimals", adjustAmount)
    .action(adjust);
}

function movementCommand(group: Command, name: string, description: string, examples: string[]): Command {
  const command = callCommand(group, name, description, examples).argument("<account>", ACCOUNT);
  return reasonOption(command, { isRequired: true }).option(
    "--idempotency-key <key>",
    "repeated commands with the same key change the balance once (default: a random key)",
  );
}

type CreditOptions = MovementOptions & { readonly expires?: Date; readonly promotional?: true };

async function credit(account: string, amountMicros: Micros, options: CreditOptions): Promise<void> {
  const { expires, promotional = false } = options;
  const expiry = expires && { expiresAt: timestampFromDate(expires) };
  const response = await move(account, amountMicros, options, (admin, movement, signal) =>
    admin.creditAccount({ ...movement, promotional, ...expiry }, { signal }),
  );
  await show(options, CreditAccountResponseSchema, response, () => formatTable(columns, [response]));
}

async function adjust(account: string, amountMicros: Micros, options: MovementOptions): Promise<void> {
  const response = await move(account, amountMicros, options, (admin, movement, signal) =>
    admin.adjustAccount(movement, { signal }),
  );
  await show(options, AdjustAccountResponseSchema, response, () => formatTable(columns, [response]));
}

/** If the outcome is unknown, the error names the idempotency key with which a retry is safe. */
async function move<Result>(
  accountId: string,
  amountMicros: Micros,
  { reason, idempotencyKey = randomUUID() }: MovementOptions,
  call: (admin: Admin, movement: Movement, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  try {
    const movement = { accountId, amountMicros, reason, idempotencyKey };
    return await withAdmin((admin) => call(admin, movement, stop.signal));
  } catch (error) {
    if (!(error instanceof CallFailure) || error.refused) throw error;
    const advice = `to retry safely, add --idempotency-key ${shellQuote(idempotencyKey)}`;
    throw new CommandFailure(`${error.message}; ${advice}`);
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

function shellQuote(text: string): string {
  return /^[\w.:/@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
