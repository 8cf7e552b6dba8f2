import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { AccountService, ActivitySchema, SessionSchema } from "../../gen/vx/account/v1/account_pb.js";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { CreateKeyRequestSchema } from "../../gen/vx/v1/key_pb.js";
import { updateAccount } from "../accounts/store.ts";
import { type ApiCall, type Deps, defineService, type Member } from "../api/define-service.ts";
import { viewOf } from "../api/view.ts";
import { fingerprintOf, isWellFormedSessionToken } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import { laneOfId } from "../domain/lane.ts";
import type { MemberRole } from "../domain/member.ts";
import type { Micros } from "../domain/money.ts";
import { readPage } from "../domain/page.ts";
import { newKey } from "../keys/changes.ts";
import { createKey as createKeyRow } from "../keys/store.ts";
import { viewStatement } from "../ledger/statements.ts";
import { limitToSet, removeLimitOf, setLimitOf } from "../limits/changes.ts";
import type { LimitOwner } from "../limits/store.ts";
import { makeLoggedChange } from "../operators/operator-action.ts";
import { listOperatorEvents } from "../operators/operator-log.ts";
import { createBillingPage } from "../payments/billing-page.ts";
import { simulatedPaymentOf } from "../payments/simulated-payments.ts";
import { getTopUp } from "../payments/store.ts";
import { policyOf } from "../rules/policy.ts";
import { dateOf } from "../rules/request-values.ts";
import { createInvitation, removeMember, viewInvitation, viewMember } from "./admin.ts";
import {
  acceptInvitation,
  accountOfInvitation,
  claimSignUp,
  createSignUpAccount,
  deleteInvitation,
  endPageSession,
  findMember,
  type InvitationToken,
  listClosedAccounts,
  listInvitations,
  listMembers,
  listPageSessions,
  listPersonAccounts,
  setMemberRole,
} from "./store.ts";

/** Who may create an account by signing up, and what the account gets. */
export type SignUp = {
  readonly mode: "closed" | "invite" | "open";
  readonly plan: string;
  readonly creditMicros: Micros;
  /** Undefined if the credit does not expire. */
  readonly creditDays: number | undefined;
  /** In lower case. Empty if addresses of all domains may sign up. */
  readonly domains: readonly string[];
};

/** The dependencies of the service of the customer page. */
export type PageDeps = Deps & {
  readonly signUp: SignUp;
  readonly now: () => number;
};

const PLAYGROUND_KEY_MS = 3_600_000;
const DAY_MS = 86_400_000;

export const accountPageService = defineService<typeof AccountService, PageDeps>(AccountService, {
  getSession: async (deps, _request, { member }) => ({
    personId: member.personId,
    email: member.email,
    operator: member.operatorName,
    expiresAt: timestampFromDate(member.expiresAt),
    accounts: await accountsOf(deps, member),
    canSignUp: refusalOfSignUp(deps.signUp, member) === undefined,
    simulatesPayments: member.isDemoOwner && deps.simulatedTopUps !== undefined,
    closedAccounts: (await listClosedAccounts(deps.database, member.personId)).map((row) => ({
      id: row.account_id,
      closedAt: timestampFromDate(row.closed_at),
    })),
  }),
  signUp,
  getClosedStatement: async ({ database }, { accountId }, { member }) => {
    const closed = await listClosedAccounts(database, member.personId);
    const account = closed.find((row) => row.account_id === accountId);
    if (!account) throw new DomainError("not_found", { message: "You had no such account in the last 30 days." });
    const month = account.closed_at.toISOString().slice(0, 7);
    return { statement: await viewStatement(database, accountId, month) };
  },
  acceptInvitation: async ({ database, ids }, { token }, call) => {
    const { member } = call;
    requirePerson(member);
    const invitation = invitationTokenOf(token, "inv");
    const accountId = await accountOfInvitation(database, invitation, member.email);
    if (accountId === undefined) throw new DomainError("invalid_invitation");
    const action = { ...call.action, target: invitation.id };
    await acceptInvitation(database, action, { accountId, linkId: ids.link() }, invitation, member.email);
    return { accountId };
  },
  listSessions: async ({ database }, _request, { member }) => ({
    sessions: (await listPageSessions(database, requirePerson(member))).map((row) =>
      viewOf(SessionSchema, row, { current: row.id === member.id }),
    ),
  }),
  endSession: async ({ database }, { sessionId }, { member, action }) => {
    await endPageSession(database, action, sessionId || member.id);
    return {};
  },

  listMembers: async ({ database }, _request, { key }) => ({
    members: (await listMembers(database, key.accountId)).map(viewMember),
  }),
  setMemberRole: async (deps, { personId, role }, call) => {
    const row = await makeLoggedChange(deps, call, { target: personId, details: { role } }, (action) =>
      setMemberRole(deps.database, action, call.key.accountId, personId, role as MemberRole),
    );
    return { member: viewMember(row) };
  },
  removeMember: (deps, { personId }, call) => removeMember(deps, { personId, accountId: call.key.accountId }, call),
  leaveAccount: (deps, _request, call) =>
    removeMember(deps, { personId: requirePerson(call.member), accountId: call.key.accountId }, call),
  createInvitation: (deps, { role, email }, call) => createInvitation(deps, { role, email, accountId: call.key.accountId }, call),
  listInvitations: async ({ database }, _request, { key }) => ({
    invitations: (await listInvitations(database, key.accountId)).map(viewInvitation),
  }),
  deleteInvitation: async (deps, { invitationId }, call) => {
    await makeLoggedChange(deps, call, { target: invitationId }, (action) =>
      deleteInvitation(deps.database, action, call.key.accountId, invitationId),
    );
    return {};
  },
  renameAccount: async (deps, { name }, call) => {
    const { accountId } = call.key;
    const change = { target: accountId, details: { fields: "name" } };
    await makeLoggedChange(deps, call, change, (action) => updateAccount(deps.database, action, accountId, { name }));
    return {};
  },
  listActivity: async ({ database }, request, { key: { accountId } }) => {
    const { personId: actorId, method } = request;
    const from = dateOf("from", request.from);
    const to = dateOf("to", request.to);
    const filter = { actorId, method, target: "", accountId, from, to };
    const [{ rows, nextPageToken }, members] = await Promise.all([
      listOperatorEvents(database, filter, readPage("activity", request, [accountId])),
      listMembers(database, accountId),
    ]);
    const emails = new Map(members.map((member) => [member.person_id, member.email]));
    const activity = rows.map((row) =>
      viewOf(ActivitySchema, row, {
        email: emails.get(row.actor_id) ?? "",
        personId: row.actor_id.startsWith("usr_") ? row.actor_id : "",
      }),
    );
    return { activity, nextPageToken };
  },

  setLimit: (deps, { limit }, call) => setLimitOf(deps, accountOf(call), limitToSet(deps, limit, "limit"), call),
  removeLimit: (deps, { limitId }, call) => removeLimitOf(deps, accountOf(call), limitId, call),

  createPlaygroundKey,
  paySimulatedTopUp: async ({ database, simulatedTopUps }, { id }, { key, member }) => {
    if (!member.isDemoOwner || !simulatedTopUps) throw new DomainError("payments_not_configured");
    // Refuses the top-up of another account.
    await getTopUp(database, key.accountId, id);
    await simulatedTopUps.handle({ id, type: "simulated", topUpId: id, ...simulatedPaymentOf(id) });
    return {};
  },
  createBillingPage,
});

function accountOf({ key }: ApiCall): LimitOwner {
  return { kind: "account", id: key.accountId };
}

async function accountsOf({ database }: Deps, member: Member) {
  const { personId: id, email } = member;
  const ids = id === "" ? [member.accountId] : await listPersonAccounts(database, id);
  const found = await Promise.all(
    ids.map(async (accountId) => {
      const person = id === "" ? undefined : { id, email };
      // The accounts of a cell that does not respond are missing from the list.
      const membership = await findMember(database, accountId, person).catch(ifUnavailable);
      return membership && { id: accountId, name: membership.name, role: membership.role };
    }),
  );
  return found
    .filter((account) => account !== undefined)
    .sort((one, other) => one.name.localeCompare(other.name, "en") || (one.id < other.id ? -1 : 1));
}

function ifUnavailable(error: unknown): undefined {
  if (error instanceof DomainError && error.reason === "unavailable") return undefined;
  throw error;
}

/** A page that is loaded again gets the same key with another secret: each member has one, of the active keys that the plan allows. */
async function createPlaygroundKey(deps: PageDeps, _request: unknown, call: ApiCall) {
  const { accountId } = call.key;
  const expiresAt = timestampFromDate(new Date(deps.now() + PLAYGROUND_KEY_MS));
  const request = create(CreateKeyRequestSchema, { name: "Playground", scopes: ["generate"], expiresAt });
  return await newKey(deps, accountId, request, (key, generated) =>
    makeLoggedChange(deps, call, { target: accountId }, (action) =>
      createKeyRow(deps.database, action, { ...key, isPlayground: true }, generated),
    ),
  );
}

/** Operators who view the page change nothing. */
function requirePerson({ personId }: Member): string {
  if (personId === "") throw new DomainError("insufficient_role", { message: "An operator only views the page." });
  return personId;
}

/** Why the person cannot sign up; undefined if it can, with an invitation where one is required. */
function refusalOfSignUp({ mode, domains }: SignUp, { personId, email }: Member): string | undefined {
  if (mode === "closed") return "New accounts are created by the operator of this service.";
  if (personId === "") return "An operator only views the page.";
  if (email === "") return "The identity provider has not verified the e-mail address of this person.";
  const domain = email.slice(email.lastIndexOf("@") + 1).toLowerCase();
  if (domains.length > 0 && !domains.includes(domain))
    return `Only people with an e-mail address of certain domains can sign up, and ${domain} is not among them.`;
  return undefined;
}

/** Can be repeated: all calls of a person get the same account, and the first one that creates it decides its name and its credit. */
async function signUp(
  deps: PageDeps,
  { name, invitation }: { readonly name: string; readonly invitation: string },
  call: ApiCall,
) {
  const { database, ids, signUp: settings, now } = deps;
  const { email } = call.member;
  const refusal = refusalOfSignUp(settings, call.member);
  if (refusal !== undefined) throw new DomainError("sign_up_refused", { message: refusal });
  const token = settings.mode === "invite" ? invitationTokenOf(invitation, "sinv") : undefined;
  const inviterRole = policyOf(AdminService.method.createSignUpInvitation).role;
  const claim = await claimSignUp(database, call.action, ids.account(), token, inviterRole);
  const { account_id: accountId } = claim;
  const { plan, creditMicros, creditDays } = settings;
  const action = { ...call.action, target: accountId, details: { plan } };
  await createSignUpAccount(database, action, {
    id: accountId,
    name,
    plan,
    email,
    creditMicros: claim.gets_credit ? creditMicros : 0n,
    creditEntryId: ids.entry(laneOfId(accountId)),
    creditExpiresAt: creditDays === undefined ? undefined : new Date((Math.floor(now() / DAY_MS) + creditDays + 1) * DAY_MS),
  });
  return { accountId };
}

/** The token at the end of an invitation's link. */
function invitationTokenOf(token: string, prefix: "inv" | "sinv"): InvitationToken {
  const [id = "", secret = "", ...others] = token.split(".");
  const isWellFormed = new RegExp(`^${prefix}_[0-9a-z]{26}$`).test(id) && isWellFormedSessionToken(secret);
  if (!isWellFormed || others.length > 0) throw new DomainError("invalid_invitation");
  return { id, fingerprint: fingerprintOf(secret) };
}
