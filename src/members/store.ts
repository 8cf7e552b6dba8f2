import * as sql from "../../gen/sql/calls.ts";
import { type Action, callerOf, SERVER } from "../database/action.ts";
import type { Cells } from "../database/driver/cells.ts";
import { DEMO_OWNER } from "../domain/demo-owner.ts";
import { DomainError, isRefusal } from "../domain/errors.ts";
import { monthOfId } from "../domain/ids.ts";
import { laneOfId } from "../domain/lane.ts";
import type { MemberRole } from "../domain/member.ts";
import type { Micros } from "../domain/money.ts";
import type { Role } from "../domain/operator.ts";
import type { Identity } from "../operators/store.ts";

/** People and their sessions are in the first cell; what they may do in an account is in the lane of the account. */

/** A session of the customer page. */
export type PageSession = {
  readonly id: string;
  /** Empty for an operator who views the page. */
  readonly personId: string;
  /** Empty if the provider verified none. */
  readonly email: string;
  /** Empty for a person. */
  readonly operatorName: string;
  /** The only account that an operator views; empty for a person. */
  readonly accountId: string;
  readonly expiresAt: Date;
  /** Whether the person is the owner of the demo account, who signs in without a credential. */
  readonly isDemoOwner: boolean;
};

/** What calls of a member need to know of the account. */
export type Membership = sql.FindMemberRow;

export type MemberRow = Omit<sql.ListMembersRow, "link_id">;

export type InvitationRow = Omit<sql.Invitations, "lane" | "account_id" | "fingerprint">;

/** The id and the fingerprint of the secret in the link of an invitation. */
export type InvitationToken = { readonly id: string; readonly fingerprint: string };

/** The browser of a sign-in. */
export type Browser = { readonly userAgent: string; readonly address: string };

const bytes = (fingerprint: string) => Buffer.from(fingerprint, "hex");

/** Starts a session of the person with this identity. Returns the id of the person. */
export async function signInPerson(
  { home }: Pick<Cells, "home">,
  { issuer, subject, verifiedEmail }: Identity,
  ids: { readonly person: string; readonly session: string },
  fingerprint: string,
  { userAgent, address }: Browser,
): Promise<string> {
  const [row] = await sql.signInPerson(home, {
    issuer,
    subject,
    email: verifiedEmail,
    newId: ids.person,
    sessionId: ids.session,
    fingerprint: bytes(fingerprint),
    userAgent,
    address,
  });
  return row?.person_id ?? "";
}

/** Undefined if the session is unknown, expired or ended. */
export async function findPageSession({ home }: Pick<Cells, "home">, fingerprint: string): Promise<PageSession | undefined> {
  const [row] = await sql.findPageSession(home, { fingerprint: bytes(fingerprint) });
  return (
    row && {
      id: row.id,
      personId: row.person_id,
      email: row.email,
      operatorName: row.operator_name,
      accountId: row.account_id,
      expiresAt: row.expires_at,
      isDemoOwner: row.issuer === DEMO_OWNER.issuer,
    }
  );
}

/** Creates the link with which an operator views the page of an account, after the log has it. */
export async function openCustomerPage(
  database: Cells,
  action: Action,
  accountId: string,
  sessionId: string,
  fingerprint: string,
): Promise<void> {
  await logOpenedPage(database, action, accountId);
  await sql.openCustomerPage(database, action, { accountId, sessionId, fingerprint: bytes(fingerprint) });
}

/** Proves the right to open a page of the account, and logs it, before the page is created elsewhere. */
export async function logOpenedPage(database: Cells, action: Action, accountId: string): Promise<void> {
  await sql.logOpenedPage(database, action, { lane: laneOfId(accountId), accountId });
}

/** Turns the link of an operator into a session. Returns whether the link was valid. */
export async function usePageLink(
  { home }: Pick<Cells, "home">,
  link: string,
  fingerprint: string,
  browser: Browser,
): Promise<boolean> {
  const [row] = await sql.usePageLink(home, { ...browser, link: bytes(link), fingerprint: bytes(fingerprint) });
  return row?.is_valid === true;
}

export async function listPageSessions({ home }: Pick<Cells, "home">, personId: string) {
  return await sql.listPageSessions(home, { personId });
}

/** Once this returns, every server rejects the session. */
export async function endPageSession(database: Cells, action: Action, id: string): Promise<void> {
  await sql.endPageSession(database, action, { id });
}

/** The accounts that the person may be a member of. */
export async function listPersonAccounts({ home }: Pick<Cells, "home">, personId: string): Promise<string[]> {
  const rows = await sql.listPersonAccounts(home, { personId });
  return rows.map((row) => row.account_id);
}

/** Undefined if the person is not a member. Without a person, the account for an operator who views its page. */
export async function findMember(
  database: Cells,
  accountId: string,
  person: { readonly id: string; readonly email: string } | undefined,
): Promise<Membership | undefined> {
  const lane = laneOfId(accountId);
  const [row] = await sql.findMember(database.at(lane), { lane, accountId, personId: person?.id, email: person?.email ?? "" });
  return row;
}

export async function listMembers(database: Cells, accountId: string) {
  const lane = laneOfId(accountId);
  return await sql.listMembers(database.at(lane), { lane, accountId });
}

export async function setMemberRole(
  database: Cells,
  action: Action,
  accountId: string,
  personId: string,
  role: MemberRole,
): Promise<MemberRow> {
  const [row] = await sql.setMemberRole(database, action, { lane: laneOfId(accountId), accountId, personId, role });
  return row as MemberRow;
}

export async function removeMember(database: Cells, action: Action, accountId: string, personId: string): Promise<void> {
  const lane = laneOfId(accountId);
  const [removed] = await sql.removeMember(database, action, { lane, accountId, personId });
  if (removed && !database.owns(0, lane)) await unlinkPerson(database, { personId, accountId, linkId: removed.link_id });
}

/** Why an account is looked in for a person. */
type Link = { readonly personId: string; readonly accountId: string; readonly linkId: string };

/** Deletes the link of a person who is no longer a member, or did not become one. If the account is closed, the person sees that for 30 days. */
export async function unlinkPerson({ home }: Pick<Cells, "home">, link: Link, isClosed = false): Promise<void> {
  await sql.unlinkPerson(home, { ...link, isClosed });
}

export async function listClosedAccounts({ home }: Pick<Cells, "home">, personId: string) {
  return await sql.listClosedAccounts(home, { personId });
}

/** The account for which the person signs up, the same for each call, and whether it gets the starting credit. */
export async function claimSignUp(
  database: Cells,
  action: Action,
  accountId: string,
  invitation: InvitationToken | undefined,
  inviterRole: Role | undefined,
) {
  const [row] = await sql.claimSignUp(database, action, {
    accountId,
    invitationId: invitation?.id,
    fingerprint: invitation && bytes(invitation.fingerprint),
    inviterRole,
  });
  return row as sql.ClaimSignUpRow;
}

type SignUpAccount = {
  readonly id: string;
  readonly name: string;
  readonly plan: string;
  readonly email: string;
  /** Zero for none. */
  readonly creditMicros: Micros;
  readonly creditEntryId: string;
  readonly creditExpiresAt: Date | undefined;
};

/**
 * Creates the account of a sign-up with its starting credit and its owner, unless an earlier call created it. Throws if the person was
 * removed from it since.
 */
export async function createSignUpAccount(
  database: Cells,
  action: Action,
  { creditEntryId, creditExpiresAt, ...account }: SignUpAccount,
): Promise<void> {
  const { id } = account;
  const details = { amount_micros: String(account.creditMicros) };
  const credit = { ...action, actor: { ...SERVER, accountId: id }, method: "CreditAccount", details };
  const [row] = await sql.createSignUpAccount(database, action, {
    lane: laneOfId(id),
    ...account,
    creditor: callerOf(credit),
    entryId: creditEntryId,
    month: monthOfId(creditEntryId),
    expiresAt: creditExpiresAt,
  });
  if (row?.is_member) return;
  await unlinkPerson(database, { personId: action.actor.id, accountId: id, linkId: "sign-up" });
  throw new DomainError("sign_up_refused", {
    message: "You are no longer a member of the account for which you signed up. Sign up again for another one.",
  });
}

export async function createInvitation(
  database: Cells,
  action: Action,
  accountId: string,
  { id, fingerprint }: InvitationToken,
  { role, email }: Pick<InvitationRow, "role" | "email">,
): Promise<InvitationRow> {
  const invitation = { id, fingerprint: bytes(fingerprint), role, email };
  const [row] = await sql.createInvitation(database, action, { lane: laneOfId(accountId), accountId, ...invitation });
  return row as InvitationRow;
}

/** Creates an invitation to sign up. */
export async function createSignUpInvitation(
  database: Cells,
  action: Action,
  { id, fingerprint }: InvitationToken,
  email: string,
): Promise<Omit<InvitationRow, "role">> {
  const [row] = await sql.createSignUpInvitation(database, action, { id, fingerprint: bytes(fingerprint), email });
  return row as sql.SignUpInvitations;
}

export async function listInvitations(database: Cells, accountId: string): Promise<InvitationRow[]> {
  const lane = laneOfId(accountId);
  return await sql.listInvitations(database.at(lane), { lane, accountId });
}

export async function deleteInvitation(database: Cells, action: Action, accountId: string, id: string): Promise<void> {
  await sql.deleteInvitation(database, action, { lane: laneOfId(accountId), accountId, id });
}

/** The account of the invitation; undefined if the person cannot use it. */
export async function accountOfInvitation(
  database: Cells,
  { id, fingerprint }: InvitationToken,
  email: string,
): Promise<string | undefined> {
  const lane = laneOfId(id);
  const [row] = await sql.readInvitation(database.at(lane), { lane, id, fingerprint: bytes(fingerprint), email });
  return row?.account_id;
}

/**
 * Makes the person a member. The account is linked with the person first: a person who is not linked cannot find it. The id of the link
 * is new for each call.
 */
export async function acceptInvitation(
  database: Cells,
  action: Action,
  { accountId, linkId }: Omit<Link, "personId">,
  { id, fingerprint }: InvitationToken,
  email: string,
): Promise<void> {
  const lane = laneOfId(accountId);
  // The link would keep the person's data.
  const unlink = () => unlinkPerson(database, { personId: action.actor.id, accountId, linkId });
  await sql.linkPerson(database, action, { accountId, linkId });
  const invitation = { lane, accountId, id, fingerprint: bytes(fingerprint), email, linkId };
  try {
    const [row] = await sql.acceptInvitation(database, action, invitation);
    if (!row?.has_joined) await unlink();
  } catch (error) {
    if (isRefusal(error)) await unlink();
    throw error;
  }
}
