import type { Command } from "commander";
import {
  type Account,
  ResumeAccountResponseSchema,
  SuspendAccountResponseSchema,
  UpdateAccountResponseSchema,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { accountIdOf } from "./account-reference.ts";
import { type Admin, withAdmin } from "./client.ts";
import { accountColumns } from "./columns.ts";
import { callCommand, type JsonOption, type ReasonOption, reasonOption } from "./command.ts";
import { usageFailure } from "./failure.ts";
import { formatTable } from "./print.ts";
import { show } from "./show.ts";

export type ProfileOptions = {
  readonly externalId?: string;
  readonly email?: string;
  readonly notes?: string;
};

type Options = JsonOption & ReasonOption;

const ACCOUNT = "the id, external id or unique name of the account";

export function profileOptions(command: Command): Command {
  return command
    .option("--external-id <id>", "the id of the account in other systems, unique among the accounts")
    .option("--email <address>", "an e-mail address")
    .option("--notes <text>", "notes for operators");
}

/** The commands that change the name, the profile and the suspension of an account. */
export function addProfileCommands(group: Command): void {
  reasonOption(
    callCommand(group, "rename", "Change the name of an account.", ["vx accounts rename acme acme-europe"]),
  )
    .argument("<account>", ACCOUNT)
    .argument("<name>", "the new name")
    .action((account: string, name: string, options: Options) => update(account, { name }, options));
  reasonOption(
    profileOptions(
      callCommand(group, "update", "Change the profile of an account. An empty value removes the field.", [
        "vx accounts update acme --external-id crm-17 --email ops@acme.example",
      ]),
    ),
  )
    .argument("<account>", ACCOUNT)
    .action(updateProfile);
  reasonOption(
    callCommand(group, "suspend", "Refuse the calls of an account. Running calls finish.", [
      'vx accounts suspend acme --reason "invoice 1001 is overdue"',
    ]),
    { isRequired: true },
  )
    .argument("<account>", ACCOUNT)
    .action(suspend);
  reasonOption(callCommand(group, "resume", "End the suspension of an account.", ["vx accounts resume acme"]))
    .argument("<account>", ACCOUNT)
    .action(resume);
}

async function updateProfile(account: string, options: Options & ProfileOptions): Promise<void> {
  const { externalId, email, notes } = options;
  const profile = {
    ...(externalId === undefined ? {} : { externalId }),
    ...(email === undefined ? {} : { email }),
    ...(notes === undefined ? {} : { notes }),
  };
  if (Object.keys(profile).length === 0) {
    throw usageFailure("nothing to change; add --external-id, --email or --notes");
  }
  await update(account, profile, options);
}

async function update(
  account: string,
  changes: ProfileOptions & { readonly name?: string },
  options: Options,
): Promise<void> {
  const response = await withAccount(account, (admin, accountId) =>
    admin.updateAccount({ accountId, ...changes, reason: options.reason ?? "" }),
  );
  await show(options, UpdateAccountResponseSchema, response, () => tableOf(response.account));
}

async function suspend(account: string, options: Options): Promise<void> {
  const response = await withAccount(account, (admin, accountId) =>
    admin.suspendAccount({ accountId, reason: options.reason ?? "" }),
  );
  await show(options, SuspendAccountResponseSchema, response, () => tableOf(response.account));
}

async function resume(account: string, options: Options): Promise<void> {
  const response = await withAccount(account, (admin, accountId) =>
    admin.resumeAccount({ accountId, reason: options.reason ?? "" }),
  );
  await show(options, ResumeAccountResponseSchema, response, () => tableOf(response.account));
}

function withAccount<Response>(
  account: string,
  use: (admin: Admin, accountId: string) => Promise<Response>,
): Promise<Response> {
  return withAdmin(async (admin) => use(admin, await accountIdOf(admin, account)));
}

function tableOf(account: Account | undefined): string {
  return formatTable(accountColumns, account ? [account] : []);
}
