import { InvitationSchema, MemberSchema } from "../../gen/vx/account/v1/account_pb.js";
import { call } from "./call.ts";
import { visible } from "./output.ts";
import { ACCOUNT, argument, option, REQUIRED_REASON, required } from "./parameters.ts";
import { columnsOf, formatTable } from "./print.ts";
import { noun } from "./row.ts";

const columns = columnsOf(MemberSchema, "personId as ID, role, email, joinedAt as JOINED", {});
const invited = columnsOf(InvitationSchema, "id as INVITATION, role, email, expiresAt", {
  "only in --json": "createdAt, createdBy",
});

const EMAIL = option("--email <email>", "only a person with this verified address can use the link");
const OF_ACCOUNT = { accountId: ACCOUNT, reason: REQUIRED_REASON };
const showUrl = ({ url }: { readonly url: string }) => visible(url);

export const row = noun([], {
  list: call(
    "listMembers",
    ({ members, invitations }) => {
      const table = members.length === 0 ? "The account has no members." : formatTable(columns, members);
      return invitations.length === 0 ? table : `${table}\n\n${formatTable(invited, invitations)}`;
    },
    {
      about: "List the members of an account and its open invitations.",
      fields: { accountId: ACCOUNT },
      examples: ["acme"],
    },
  ),
  invite: call("createInvitation", showUrl, {
    about: "Print a link that makes one person a member of an account.",
    fields: {
      accountId: ACCOUNT,
      role: required("--role <role>", "the role: viewer, developer, billing, owner"),
      email: EMAIL,
      reason: REQUIRED_REASON,
    },
    examples: ["acct_… --role owner --email ada@example.com --reason 'ticket 4711'"],
  }),
  "invite-sign-up": call("createSignUpInvitation", showUrl, {
    about: "Print a link with which one person signs up for a new account.",
    fields: { email: EMAIL, reason: REQUIRED_REASON },
    examples: ["--email ada@example.com --reason 'ticket 4711'"],
  }),
  remove: call("removeMember", () => "The member is removed.", {
    about: "Remove a member from an account.",
    fields: { ...OF_ACCOUNT, personId: argument("<person_id>", "the id of the person") },
    examples: ["acct_… usr_… --reason 'ticket 4711'"],
  }),
  view: call("viewCustomerPage", showUrl, {
    about: "Print a link to the page of an account, to look at it for an hour.",
    fields: OF_ACCOUNT,
    examples: ["acct_… --reason 'ticket 4711'"],
  }),
});
