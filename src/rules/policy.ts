import { type DescField, type DescMessage, type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import {
  Access,
  base_path as basePathOption,
  collects_unknown_fields,
  MemberRole as MemberRoleNumber,
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

/** The requirements that a method's .proto declares for its callers. */
export type Policy = {
  readonly access: "developer" | "operator" | "member";
  readonly scope: Scope | undefined;
  /** The lowest role of operators that may call the method; undefined for methods of others. */
  readonly role: Role | undefined;
  /** The role of the members that may call the method; undefined for methods of others. */
  readonly memberRole: NeededRole | undefined;
  readonly rateLimited: boolean;
  readonly metered: boolean;
  /** Whether keys of a suspended account may call the method too. */
  readonly whileSuspended: boolean;
};

/** Thrown at start: a method without a complete policy is not served. */
export class PolicyError extends Error {}

const ACCESS = {
  [Access.DEVELOPER]: "developer",
  [Access.OPERATOR]: "operator",
  [Access.MEMBER]: "member",
} as const;

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

export function policyOf(method: DescMethod): Policy {
  const name = `${method.parent.typeName}.${method.name}`;
  if (!hasOption(method, policyOption)) throw new PolicyError(`${name} declares no policy`);
  const { access, scope, rateLimited, metered, whileSuspended, ...declared } = getOption(method, policyOption);
  const role = ROLES[declared.role];
  if (access === Access.UNSPECIFIED) throw new PolicyError(`${name} declares no access`);
  if ((access === Access.OPERATOR) !== (role !== undefined)) {
    throw new PolicyError(`${name} must declare a role if it is for operators, and only then`);
  }
  const memberRole = MEMBER_ROLES[declared.memberRole];
  if ((access === Access.MEMBER) !== (memberRole !== undefined)) {
    throw new PolicyError(`${name} must declare a role of members if it is for members, and only then`);
  }
  if (scope !== "" && !isScope(scope)) throw new PolicyError(`${name} needs the unknown scope "${scope}"`);
  if (metered && !rateLimited) throw new PolicyError(`${name} is metered but not rate limited`);
  // Admission grants no slot to such a call of a suspended account.
  if (whileSuspended && scope === "generate")
    throw new PolicyError(`${name} generates and may be called while the account is suspended`);
  return {
    access: ACCESS[access],
    scope: scope === "" ? undefined : scope,
    role,
    memberRole,
    rateLimited,
    metered,
    whileSuspended,
  };
}

export function policiesOf(services: readonly DescService[]): Map<DescMethod, Policy> {
  return new Map(services.flatMap((service) => service.methods.map((method) => [method, policyOf(method)] as const)));
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

/** Reading an option takes as long as the rest of a validation, so each message is searched once. */
const collectingFields = new WeakMap<DescMessage, DescField | undefined>();

/** The field that gets the members of a body which the message does not have. */
export function fieldForUnknown(desc: DescMessage): DescField | undefined {
  if (!collectingFields.has(desc)) {
    const collecting = desc.fields.find((field) => getOption(field, collects_unknown_fields));
    collectingFields.set(desc, collecting);
  }
  return collectingFields.get(desc);
}
