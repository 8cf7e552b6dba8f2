import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import {
  type AdjustAccountResponse,
  AdjustAccountResponseSchema,
  type CreditAccountResponse,
  CreditAccountResponseSchema,
} from "../../gen/vx/admin/v1/admin_pb.js";
import type { Micros } from "../domain/money.ts";
import { accountIdOf } from "./account-reference.ts";
import { adjustAmount, creditAmount } from "./arguments.ts";
import { type Admin, withAdmin } from "./client.ts";
import { callCommand, type JsonOption, reasonOption } from "./command.ts";
import { CallFailure } from "./explain.ts";
import { CommandFailure } from "./failure.ts";
import { type Column, formatTable } from "./print.ts";
import { show } from "./show.ts";

type Options = JsonOption & { readonly reason: string; readonly idempotencyKey?: string };
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
export function addMovements(group: Command): void {
  movementCommand(group, "credit", "Add an amount to the balance of an account.", [
    'vx accounts credit acct_… 25.00 --reason "invoice 1001"',
  ])
    .argument("<amount>", "greater than 0, with at most 6 decimals", creditAmount)
    .action(credit);
  movementCommand(group, "adjust", "Add an amount to the balance of an account, or subtract it.", [
    'vx accounts adjust acct_… -5.00 --reason "credited twice"',
  ])
    .argument("<amount>", "negative to subtract; at most 6 decimals", adjustAmount)
    .action(adjust);
}

function movementCommand(group: Command, name: string, description: string, examples: string[]): Command {
  const command = callCommand(group, name, description, examples).argument(
    "<account>",
    "the id, external id or unique name of the account",
  );
  return reasonOption(command, { isRequired: true }).option(
    "--idempotency-key <key>",
    "repeated commands with the same key change the balance once (default: a random key)",
  );
}

async function credit(account: string, amountMicros: Micros, options: Options): Promise<void> {
  const response = await move(account, amountMicros, options, (admin, movement, signal) =>
    admin.creditAccount(movement, { signal }),
  );
  await show(options, CreditAccountResponseSchema, response, () => formatTable(columns, [response]));
}

async function adjust(account: string, amountMicros: Micros, options: Options): Promise<void> {
  const response = await move(account, amountMicros, options, (admin, movement, signal) =>
    admin.adjustAccount(movement, { signal }),
  );
  await show(options, AdjustAccountResponseSchema, response, () => formatTable(columns, [response]));
}

/** If the outcome is unknown, the error names the idempotency key with which a retry is safe. */
async function move<Answer>(
  account: string,
  amountMicros: Micros,
  { reason, idempotencyKey = randomUUID() }: Options,
  call: (admin: Admin, movement: Movement, signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  try {
    return await withAdmin(async (admin) =>
      call(
        admin,
        {
          accountId: await accountIdOf(admin, account, { signal: stop.signal }),
          amountMicros,
          reason,
          idempotencyKey,
        },
        stop.signal,
      ),
    );
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
