import type { CallRate } from "../../domain/call-rate.ts";
import { fingerprintOf } from "../../domain/credentials.ts";
import { DomainError } from "../../domain/errors.ts";
import { isAccountId } from "../../domain/ids.ts";
import { coversRole, SCOPES_OF_ROLE } from "../../domain/member.ts";
import { SCOPES, toScopeBits } from "../../domain/scope.ts";
import type { Actor } from "../../store/action.ts";
import type { AdmittedKey } from "../../store/admit.ts";
import type { Membership, PageSession } from "../../store/members.ts";
import type { IncomingCall } from "../call.ts";
import type { SessionAuthentication } from "./authenticate-session.ts";
import type { Gate } from "./gate.ts";

type MemberGateOptions = {
  readonly sessions: SessionAuthentication<PageSession>;
  readonly findMember: (
    accountId: string,
    person: { readonly id: string; readonly email: string } | undefined,
  ) => Promise<Membership | undefined>;
  /** Whether the owner of the demo account may make the call. */
  readonly isDemoOwnerAllowed: (call: IncomingCall) => boolean;
  /** Of each session. */
  readonly rate: CallRate;
  /** Records that the member lacks the role for a call. */
  readonly logRefusal: (call: IncomingCall, actor: Actor, error: DomainError) => Promise<void>;
};

/** Admits a member, or throws: session (401), rate (429), membership (404), role and suspension (403). */
export function memberGate(options: MemberGateOptions): Gate {
  const { sessions, findMember, isDemoOwnerAllowed, rate, logRefusal } = options;
  const admit = async (call: IncomingCall, isUse: boolean) => {
    const session = await sessions.authenticateCall(call, isUse);
    if (session.isDemoOwner && !isDemoOwnerAllowed(call))
      throw new DomainError("invalid_session", { message: "This server has no demo owner. Sign in again." });
    if (isUse) rate.add(session.id);
    const { memberRole } = call.policy;
    const { personId: id, operatorName: name, email } = session;
    const actor = { id, name, fingerprint: fingerprintOf(sessions.tokenOf(call)) };
    if (memberRole === "person") {
      const member = { ...session, role: undefined };
      return { actor: { ...actor, kind: "person" as const }, member, key: undefined };
    }
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
  };
  return async (call) => {
    const admitted = await admit(call, true);
    return { ...admitted, window: undefined, recheck: async () => void (await admit(call, false)) };
  };
}

/** The account that the header names. An operator views one account only. */
function accountOf(call: IncomingCall, session: PageSession): string {
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
