import type { Actor } from "../../database/action.ts";
import type { CallRate } from "../../domain/call-rate.ts";
import { measured } from "../../domain/call-trace.ts";
import { fingerprintOf } from "../../domain/credentials.ts";
import { DomainError } from "../../domain/errors.ts";
import { inTurnsOf } from "../../domain/fairness.ts";
import { isAccountId } from "../../domain/ids.ts";
import { coversRole, SCOPES_OF_ROLE } from "../../domain/member.ts";
import { SCOPES, toScopeBits } from "../../domain/scope.ts";
import type { AdmittedKey } from "../../keys/admit.ts";
import type { Membership, PageSession } from "../../members/store.ts";
import type { Admitted, Call } from "../call.ts";
import type { SessionAuthentication } from "../credentials/session-authentication.ts";
import { beforeDeadline } from "./deadline.ts";
import type { AdmittedCall, Interceptor } from "./interceptor.ts";

export type MemberAuthentication = {
  readonly sessions: SessionAuthentication<PageSession>;
  readonly findMember: (
    accountId: string,
    person: { readonly id: string; readonly email: string } | undefined,
  ) => Promise<Membership | undefined>;
  /** Whether the owner of the demo account may make the call. */
  readonly isDemoOwnerAllowed: (call: Call) => boolean;
  /** Of each session. */
  readonly rate: CallRate;
  /** Records that the member lacks the role for a call. */
  readonly logRefusal: (call: Call, actor: Actor, error: DomainError) => Promise<void>;
};

/** Admits a person who is signed in: session (401), rate (429), membership (404), role and suspension (403). */
export function authenticateMember(options: MemberAuthentication): Interceptor<Call, AdmittedCall> {
  return (next) => async (call) => {
    const span = call.trace?.startStage("gate");
    const admission = await measured(span, beforeDeadline(call, admissionOf(call, options, true)));
    const admitted = { ...admission, recheck: () => admissionOf(call, options, false) };
    await inTurnsOf(admission.key?.accountId, () => next(Object.assign(call, { admitted })));
  };
}

async function admissionOf(call: Call, options: MemberAuthentication, isUse: boolean): Promise<Omit<Admitted, "recheck">> {
  const { sessions, findMember, isDemoOwnerAllowed, rate, logRefusal } = options;
  const session = await sessions.authenticateCall(call, isUse);
  if (session.isDemoOwner && !isDemoOwnerAllowed(call))
    throw new DomainError("invalid_session", { message: "This server has no demo owner. Sign in again." });
  if (isUse) rate.add(session.id);
  const { memberRole } = call.policy;
  const { personId: id, operatorName: name, email } = session;
  const actor = { id, name, fingerprint: fingerprintOf(sessions.tokenOf(call)) };
  if (memberRole === "person") return { actor: { ...actor, kind: "person" }, member: { ...session, role: undefined } };
  if (memberRole === undefined) throw new Error("a method of members has no role");
  const accountId = accountOf(call, session);
  const membership = await findMember(accountId, id === "" ? undefined : { id, email });
  if (!membership) throw new DomainError("not_found", { message: "There is no such account." });
  const { role } = membership;
  const ofAccount = { ...actor, kind: "member" as const, accountId, role };
  if (!coversRole(role, memberRole)) {
    const error = new DomainError("insufficient_role", {
      message: `This needs the role "${memberRole}" or "owner" in the account; yours is "${role}".`,
      metadata: { required_role: memberRole, role },
    });
    await logRefusal(call, ofAccount, error);
    throw error;
  }
  const isAllowedWhileSuspended = call.policy.whileSuspended;
  if (membership.is_suspended && !isAllowedWhileSuspended) throw new DomainError("account_suspended");
  const coveredScopes = toScopeBits(SCOPES_OF_ROLE[role]);
  return {
    actor: { ...ofAccount, coveredScopes, isAllowedWhileSuspended },
    member: { ...session, role },
    key: keyOf(accountId, membership),
  };
}

/** The account that the header names. An operator views one account only. */
function accountOf(call: Call, session: PageSession): string {
  const [accountId = "", ...others] = call.headers("x-vx-account");
  if (others.length > 0 || !isAccountId(accountId)) throw DomainError.ofField("x-vx-account", "must be the id of an account");
  if (session.personId === "" && accountId !== session.accountId)
    throw new DomainError("not_found", { message: "There is no such account." });
  return accountId;
}

/** Services read the account of a call from its key. A call of a member has none: its id is empty, and it may do what the role allows. */
function keyOf(accountId: string, membership: Membership): AdmittedKey {
  return {
    keyId: "",
    fingerprint: "",
    accountId,
    keyName: "",
    plan: membership.plan,
    scopes: SCOPES,
    visibleStart: "",
    visibleEnd: "",
    rateLimitRpm: 0,
    balanceMicros: membership.balance_micros,
    models: undefined,
    allowedCidrs: undefined,
    priceListVersion: membership.price_list_version,
  };
}
