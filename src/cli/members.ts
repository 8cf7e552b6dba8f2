import type { Command } from "commander";
import { ACCOUNT } from "./arguments.ts";
import { callAndShow } from "./client.ts";
import { invitationColumns, memberColumns } from "./columns.ts";
import { callCommand, type Define, type JsonOption, type ReasonOption, reasonOption, requiredOption } from "./command.ts";
import { visible } from "./output.ts";
import { formatTable } from "./print.ts";

export const define: Define = (group) => {
  ofAccount(group, "list", "List the members of an account and its open invitations.", ["vx members list acme"]).action(list);
  const inviting = ofAccount(group, "invite", "Print a link that makes one person a member of an account.", [
    "vx members invite acct_… --role owner --email ada@example.com --reason 'ticket 4711'",
  ]);
  requiredOption(inviting, "--role <role>", "the role: viewer, developer, billing, owner");
  reasonOption(emailOption(inviting), { isRequired: true }).action(invite);
  reasonOption(
    emailOption(
      callCommand(group, "invite-sign-up", "Print a link with which one person signs up for a new account.", [
        "vx members invite-sign-up --email ada@example.com --reason 'ticket 4711'",
      ]),
    ),
    { isRequired: true },
  ).action(inviteSignUp);
  reasonOption(
    ofAccount(group, "remove", "Remove a member from an account.", [
      "vx members remove acct_… usr_… --reason 'ticket 4711'",
    ]).argument("<person_id>", "the id of the person"),
    { isRequired: true },
  ).action(remove);
  reasonOption(
    ofAccount(group, "view", "Print a link to the page of an account, to look at it for an hour.", [
      "vx members view acct_… --reason 'ticket 4711'",
    ]),
    { isRequired: true },
  ).action(view);
};

function ofAccount(group: Command, name: string, description: string, examples: readonly string[]): Command {
  return callCommand(group, name, description, examples).argument("<account>", ACCOUNT);
}

function emailOption(command: Command): Command {
  return command.option("--email <email>", "only a person with this verified address can use the link");
}

type InviteOptions = JsonOption & ReasonOption & { readonly email?: string };

async function list(accountId: string, options: JsonOption): Promise<void> {
  await callAndShow(options, "listMembers", { accountId }, ({ members, invitations }) =>
    [
      members.length === 0 ? "The account has no members." : formatTable(memberColumns, members),
      ...(invitations.length === 0 ? [] : [formatTable(invitationColumns, invitations)]),
    ].join("\n\n"),
  );
}

async function invite(accountId: string, options: InviteOptions & { readonly role: string }): Promise<void> {
  const { role, email = "", reason = "" } = options;
  await callAndShow(options, "createInvitation", { accountId, role, email, reason }, ({ url }) => visible(url));
}

async function inviteSignUp(options: InviteOptions): Promise<void> {
  const { email = "", reason = "" } = options;
  await callAndShow(options, "createSignUpInvitation", { email, reason }, ({ url }) => visible(url));
}

async function remove(accountId: string, personId: string, options: JsonOption & ReasonOption): Promise<void> {
  const { reason = "" } = options;
  await callAndShow(options, "removeMember", { accountId, personId, reason }, () => "The member is removed.");
}

async function view(accountId: string, options: JsonOption & ReasonOption): Promise<void> {
  const { reason = "" } = options;
  await callAndShow(options, "viewCustomerPage", { accountId, reason }, ({ url }) => visible(url));
}
