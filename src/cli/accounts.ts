import { setTimeout as sleep } from "node:timers/promises";
import {
  AccountSchema,
  type AdjustAccountResponse,
  type CloseAccountResponse,
  CloseAccountResponseSchema,
  type CreditAccountResponse,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { call, list } from "./call.ts";
import { withAdmin } from "./client.ts";
import { exportAccount } from "./export-account.ts";
import { usageFailure } from "./failure.ts";
import {
  ACCOUNT,
  argument,
  flag,
  idempotencyKey,
  JSON_RESPONSE,
  JSON_RESULT,
  option,
  REASON,
  REQUIRED_REASON,
  required,
  unused,
  type Values,
} from "./parameters.ts";
import { amountUnlessZero, type Column, columnsOf, formatTable, printResponse, tableOf } from "./print.ts";
import { command, noun } from "./row.ts";
import * as parse from "./values.ts";

const columns = columnsOf(
  AccountSchema,
  "id, name, externalId as EXTERNAL ID, state, plan, balance, heldMicros, owedMicros, createdAt",
  {
    "as BALANCE": "balanceMicros",
    "STATE says it": "suspendedAt, closedAt",
    "only in --json": "email, notes, lowBalanceMicros, spentTodayMicros, spentMonthMicros, grants",
  },
  { owedMicros: amountUnlessZero },
);

const OF_ACCOUNT = { reason: REASON, accountId: ACCOUNT };
const profile = {
  externalId: option("--external-id <id>", "the id of the account in other systems, unique among the accounts"),
  email: option("--email <address>", "an e-mail address"),
  notes: option("--notes <text>", "notes for operators"),
  reason: REASON,
};
const ofConsole = unused("the console sorts and filters");
const order = { sort: ofConsole, state: ofConsole, balanceBelowMicros: ofConsole };
const kept = unused("another command changes it");

const closing = {
  json: JSON_RESPONSE,
  accountId: ACCOUNT,
  reason: REQUIRED_REASON,
  writeOff: flag("--write-off", "the balance is lost"),
  refunded: flag("--refunded", "the customer got the balance back"),
  dryRun: flag("--dry-run", "only show what would be closed"),
};

const movement = {
  accountId: ACCOUNT,
  reason: REQUIRED_REASON,
  idempotencyKey: idempotencyKey("repeated commands with the same key change the balance once (default: a random key)"),
};
type Movement = CreditAccountResponse | AdjustAccountResponse;
const movementColumns: readonly Column<Movement>[] = [
  { title: "ENTRY", value: ({ entry }) => entry?.id ?? "" },
  { title: "KIND", value: ({ entry }) => entry?.kind ?? "" },
  { title: "AMOUNT", value: ({ entry }) => entry?.amount ?? "", align: "right" },
  { title: "ACCOUNT", value: ({ account }) => account?.id ?? "" },
  // The current balance, even if a repeated call returns an old entry.
  { title: "BALANCE", value: ({ account }) => account?.balance ?? "", align: "right" },
  { title: "REASON", value: ({ entry }) => entry?.reason ?? "" },
];
const showMovement = (response: Movement) => formatTable(movementColumns, [response]);
const retry = ({ idempotencyKey: key }: { readonly idempotencyKey: string }) =>
  `add --idempotency-key ${/^[\w.:/@-]+$/.test(key) ? key : `'${key.replaceAll("'", "'\\''")}'`}`;

export const row = noun(["create --name acme --plan pro", "list"], {
  create: call("createAccount", columns, {
    about: "Create an account with a balance of zero.",
    fields: {
      ...profile,
      name: required("--name <name>", "the name of the account"),
      plan: option("--plan <plan>", 'the plan of the account (default: "free")'),
    },
    examples: ["--name acme --plan pro"],
  }),
  list: list("listAccounts", columns, {
    about: "List accounts, newest first.",
    none: "There are no accounts.",
    fields: { ...order, search: unused("accounts search has it") },
    examples: ["--limit 20"],
  }),
  search: list("listAccounts", columns, {
    about: "List accounts whose external id or e-mail address starts with a text, whose name contains it, or that have this id.",
    none: "No account matches.",
    fields: { ...order, search: argument("<text>", "the text") },
    examples: ["acme"],
  }),
  get: call("getAccount", columns, { about: "Show one account.", fields: { accountId: ACCOUNT }, examples: ["acct_…", "acme"] }),
  rename: call("updateAccount", columns, {
    about: "Change the name of an account.",
    fields: {
      ...OF_ACCOUNT,
      name: argument("<name>", "the new name"),
      ...{ externalId: kept, email: kept, notes: kept, lowBalanceMicros: kept },
    },
    examples: ["acct_… acme-europe"],
  }),
  update: call("updateAccount", columns, {
    about: "Change the profile of an account. An empty value removes the field.",
    fields: {
      ...profile,
      lowBalanceMicros: option(
        "--low-balance <amount>",
        'write the event "balance.low" when a charge takes the balance below this amount; 0 for never',
        parse.notNegative,
      ),
      accountId: ACCOUNT,
      name: kept,
    },
    needsOption: true,
    examples: ["acct_… --external-id crm-17 --email ops@acme.example"],
  }),
  suspend: call("suspendAccount", columns, {
    about: "Refuse the calls of an account. Running calls finish.",
    fields: { reason: REQUIRED_REASON, accountId: ACCOUNT },
    examples: ['acct_… --reason "invoice 1001 is overdue"'],
  }),
  resume: call("resumeAccount", columns, {
    about: "End the suspension of an account.",
    fields: OF_ACCOUNT,
    examples: ["acct_…"],
  }),
  export: command({
    about: "Write what is stored about an account into an archive of JSON lines and CSV. Needs the role finance.",
    parameters: {
      account: ACCOUNT,
      output: required("--output <file>", "the file to write, which must not exist"),
      archives: option("--archives <folder>", "the folder of vx archive, for the entries of archived months"),
      json: JSON_RESULT,
    },
    examples: ["acct_… --output acme.tar.gz", "acme --output acme.tar.gz --archives /archives"],
    run: exportAccount,
  }),
  close: command({
    about: "Close an account for good: revoke its keys, wait for running calls, take the balance, and erase personal data.",
    parameters: closing,
    examples: ['acct_… --reason "the customer left" --write-off --dry-run', 'acct_… --reason "the customer left" --refunded'],
    run: close,
  }),
  credit: call("creditAccount", showMovement, {
    about: "Add an amount to the balance of an account.",
    fields: {
      ...movement,
      amountMicros: argument("<amount>", "greater than 0, with at most 6 decimals", parse.creditAmount),
      expiresAt: option("--expires <day>", "the last day on which the credit can be used, in UTC", parse.lastDay),
      promotional: flag("--promotional", "nobody paid for the credit"),
    },
    retry,
    examples: ['acct_… 25.00 --reason "invoice 1001"', 'acct_… 5.00 --reason "welcome" --expires 2030-01-31 --promotional'],
  }),
  adjust: call("adjustAccount", showMovement, {
    about: "Add an amount to the balance of an account, or subtract it.",
    fields: { ...movement, amountMicros: argument("<amount>", "negative to subtract; at most 6 decimals", parse.adjustAmount) },
    retry,
    examples: ['acct_… -5.00 --reason "credited twice"'],
  }),
  "set-plan": call("setAccountPlan", columns, {
    about: "Move an account and its active keys on the previous plan to another plan.",
    fields: { ...OF_ACCOUNT, plan: argument("<plan>", "the new plan") },
    examples: ["acct_… scale"],
  }),
});

const CLOSING_PAUSE_MS = 1_000;

/** Waits for running calls, and can be interrupted and repeated at any time. */
async function close({ json, accountId, reason, writeOff, refunded, dryRun }: Values<typeof closing>): Promise<void> {
  if (writeOff && refunded) throw usageFailure("--write-off and --refunded exclude each other");
  const balance = writeOff ? "written_off" : refunded ? "refunded" : "";
  const response = await withAdmin(async (admin) => {
    const first = await admin.closeAccount({ accountId, reason, balance, dryRun });
    let last = first;
    while (!last.closed && !dryRun) {
      await sleep(CLOSING_PAUSE_MS);
      // Closing erases the name and the external id.
      last = await admin.closeAccount({ accountId: first.account?.id ?? "", reason, balance });
    }
    const { activeKeys, webhooks, pendingTopups, paymentMethod } = first;
    return { ...last, activeKeys, webhooks, pendingTopups, paymentMethod };
  });
  await printResponse(json, CloseAccountResponseSchema, response, () => closingText(response, dryRun));
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
  return `${tableOf(columns, account)}\n${title}\n${ends.map((line) => `  ${line}\n`).join("")}`;
}
