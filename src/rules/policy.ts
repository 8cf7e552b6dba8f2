import { type DescMessage, type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import {
  Access,
  base_path as basePathOption,
  MemberRole as MemberRoleNumber,
  type MethodPolicy,
  omit_unset,
  policy as policyOption,
  Role as RoleNumber,
  rest_only as restOnlyOption,
  Surface as SurfaceNumber,
  surface as surfaceOption,
} from "../../gen/vx/options/v1/options_pb.js";
import type { NeededRole } from "../domain/member.ts";
import type { Role } from "../domain/operator.ts";
import { isScope, type Scope } from "../domain/scope.ts";

/** What a method requires of one kind of callers, as its .proto declares it. */
export type Policy = {
  readonly access: "developer" | "operator" | "member";
  readonly scope: Scope | undefined;
  /** The lowest role of operators that may call the method; undefined for other callers. */
  readonly role: Role | undefined;
  /** The role of the members that may call the method; undefined for other callers. */
  readonly memberRole: NeededRole | undefined;
  readonly rateLimited: boolean;
  readonly metered: boolean;
  /** Whether callers of a suspended account may call the method too. */
  readonly whileSuspended: boolean;
  /** Whether changes by these callers are in the operator log and in the activity of the account. */
  readonly logged: boolean;
};

/** Thrown at start: a method without a complete policy is not served. */
export class PolicyError extends Error {}

const ROLES: Readonly<Record<RoleNumber, Role | undefined>> = {
  [RoleNumber.UNSPECIFIED]: undefined,
  [RoleNumber.VIEWER]: "viewer",
  [RoleNumber.SUPPORT]: "support",
  [RoleNumber.FINANCE]: "finance",
  [RoleNumber.ADMIN]: "admin",
};

const MEMBER_ROLES: Readonly<Record<MemberRoleNumber, NeededRole | undefined>> = {
  [MemberRoleNumber.UNSPECIFIED]: undefined,
  [MemberRoleNumber.PERSON]: "person",
  [MemberRoleNumber.VIEWER]: "viewer",
  [MemberRoleNumber.DEVELOPER]: "developer",
  [MemberRoleNumber.BILLING]: "billing",
  [MemberRoleNumber.OWNER]: "owner",
};

/** What the method requires of keys or of operators. */
export function policyOf(method: DescMethod): Policy {
  const name = nameOf(method);
  const { access, scope, rateLimited, metered, whileSuspended, ...declared } = declaredPolicyOf(method);
  const role = ROLES[declared.role];
  if (access === Access.UNSPECIFIED) throw new PolicyError(`${name} declares no access`);
  const isForOperators = access === Access.OPERATOR;
  if (isForOperators !== (role !== undefined)) {
    throw new PolicyError(`${name} must declare a role if it is for operators, and only then`);
  }
  if (scope !== "" && !isScope(scope)) throw new PolicyError(`${name} needs the unknown scope "${scope}"`);
  if (metered && !rateLimited) throw new PolicyError(`${name} is metered but not rate limited`);
  // Admission grants no slot to such a call of a suspended account.
  if (whileSuspended && scope === "generate")
    throw new PolicyError(`${name} generates and may be called while the account is suspended`);
  return {
    access: isForOperators ? "operator" : "developer",
    scope: scope === "" ? undefined : scope,
    role,
    memberRole: undefined,
    rateLimited,
    metered,
    whileSuspended,
    logged: isForOperators,
  };
}

/** What the method requires of the sessions of the customer page; undefined if they cannot call it. */
export function memberPolicyOf(method: DescMethod): Policy | undefined {
  const { member, metered } = declaredPolicyOf(method);
  if (!member) return undefined;
  const name = nameOf(method);
  const memberRole = MEMBER_ROLES[member.role];
  if (memberRole === undefined) throw new PolicyError(`${name} declares no role of members`);
  if (metered) throw new PolicyError(`${name} is metered, and sessions may call it`);
  const { whileSuspended, logged } = member;
  return { access: "member", scope: undefined, role: undefined, memberRole, rateLimited: false, metered, whileSuspended, logged };
}

function declaredPolicyOf(method: DescMethod): MethodPolicy {
  if (!hasOption(method, policyOption)) throw new PolicyError(`${nameOf(method)} declares no policy`);
  return getOption(method, policyOption);
}

function nameOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}.${name}`;
}

export function policiesOf(services: readonly DescService[]): Map<DescMethod, Policy> {
  return new Map(services.flatMap((service) => service.methods.map((method) => [method, policyOf(method)] as const)));
}

/** The policies of the methods that sessions of the customer page may call. */
export function memberPoliciesOf(services: readonly DescService[]): Map<DescMethod, Policy> {
  const policies = services.flatMap(({ methods }) => methods.map((method) => [method, memberPolicyOf(method)] as const));
  return new Map(policies.filter((entry): entry is [DescMethod, Policy] => entry[1] !== undefined));
}

/** The API whose conventions a service follows over REST. */
export type Surface = "native" | "openai" | "openai-responses" | "anthropic";

const SURFACES: Readonly<Record<SurfaceNumber, Surface>> = {
  [SurfaceNumber.UNSPECIFIED]: "native",
  [SurfaceNumber.OPENAI]: "openai",
  [SurfaceNumber.OPENAI_RESPONSES]: "openai-responses",
  [SurfaceNumber.ANTHROPIC]: "anthropic",
};

export function surfaceOf(service: DescService): Surface {
  return SURFACES[getOption(service, surfaceOption)];
}

/** Whether a service does not exist over gRPC, gRPC-Web and Connect. */
export function isRestOnly(service: DescService): boolean {
  return getOption(service, restOnlyOption);
}

/** The start of the second addresses of a service; empty without them. */
export function basePathOf(service: DescService): string {
  return getOption(service, basePathOption);
}

/** The options of the .proto that change the JSON form of a message. */

/** Whether the unset fields of a message are left out, in place of null. */
export function omitsUnset(desc: DescMessage): boolean {
  return getOption(desc, omit_unset);
}
