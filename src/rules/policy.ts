import { type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { Access, policy as policyOption, Role as RoleNumber } from "../../gen/vx/options/v1/options_pb.js";
import type { Role } from "../domain/operator.ts";
import { isScope, type Scope } from "../domain/scope.ts";

/** The requirements that a method's .proto declares for its callers. */
export type Policy = {
  readonly access: "developer" | "operator";
  readonly scope: Scope | undefined;
  /** The lowest role of operators that may call the method; undefined for developers' methods. */
  readonly role: Role | undefined;
  readonly rateLimited: boolean;
  readonly metered: boolean;
  /** Whether keys of a suspended account may call the method too. */
  readonly whileSuspended: boolean;
};

/** Thrown at start: a method without a complete policy is not served. */
export class PolicyError extends Error {}

const ACCESS = { [Access.DEVELOPER]: "developer", [Access.OPERATOR]: "operator" } as const;

const ROLES: Readonly<Record<RoleNumber, Role | undefined>> = {
  [RoleNumber.UNSPECIFIED]: undefined,
  [RoleNumber.VIEWER]: "viewer",
  [RoleNumber.SUPPORT]: "support",
  [RoleNumber.FINANCE]: "finance",
  [RoleNumber.ADMIN]: "admin",
};

export function policyOf(method: DescMethod): Policy {
  const name = `${method.parent.typeName}.${method.name}`;
  if (!hasOption(method, policyOption)) throw new PolicyError(`${name} declares no policy`);
  const { access, scope, rateLimited, metered, whileSuspended, ...declared } = getOption(
    method,
    policyOption,
  );
  const role = ROLES[declared.role];
  if (access === Access.UNSPECIFIED) throw new PolicyError(`${name} declares no access`);
  if ((access === Access.OPERATOR) !== (role !== undefined)) {
    throw new PolicyError(`${name} must declare a role if it is for operators, and only then`);
  }
  if (scope !== "" && !isScope(scope)) throw new PolicyError(`${name} needs the unknown scope "${scope}"`);
  if (rateLimited && scope === "") throw new PolicyError(`${name} is rate limited but needs no scope`);
  if (metered && !rateLimited) throw new PolicyError(`${name} is metered but not rate limited`);
  // Admission grants no slot to such a call of a suspended account.
  if (whileSuspended && scope === "generate")
    throw new PolicyError(`${name} generates and may be called while the account is suspended`);
  return {
    access: ACCESS[access],
    scope: scope === "" ? undefined : scope,
    role,
    rateLimited,
    metered,
    whileSuspended,
  };
}

export function policiesOf(services: readonly DescService[]): Map<DescMethod, Policy> {
  return new Map(
    services.flatMap((service) => service.methods.map((method) => [method, policyOf(method)] as const)),
  );
}
