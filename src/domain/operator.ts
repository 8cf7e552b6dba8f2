/** From the fewest rights to the most: each role has the rights of the roles before it. */
export const ROLES = ["viewer", "support", "finance", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** Who makes a call of the operator API. */
export type Operator = { readonly id: string; readonly name: string; readonly role: Role };

/** The holder of VX_ADMIN_TOKEN: an admin who needs no row in the database and cannot be revoked. */
export const BREAK_GLASS: Operator = { id: "break-glass", name: "break-glass", role: "admin" };

export function hasRole({ role }: Operator, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}
