import { SCOPES, type Scope } from "./scope.ts";

export type MemberRole = "viewer" | "developer" | "billing" | "owner";

/** What a method of the customer page requires: a role in the account, or only a person who is signed in. */
export type NeededRole = MemberRole | "person";

/** Every member has the rights of a viewer, and an owner has all. */
export function coversRole(role: MemberRole, needed: NeededRole): boolean {
  return role === "owner" || role === needed || needed === "viewer" || needed === "person";
}

/** The scopes that a member may give to a key. */
export const SCOPES_OF_ROLE: Readonly<Record<MemberRole, readonly Scope[]>> = {
  viewer: [],
  developer: ["generate", "read", "keys", "webhooks"],
  billing: [],
  owner: SCOPES,
};
