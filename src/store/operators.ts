import { DomainError } from "../domain/errors.ts";
import { LANE_COUNT } from "../domain/lane.ts";
import type { Operator, Role } from "../domain/operator.ts";
import { cutPage, type Page } from "../domain/page.ts";
import { type Action, change } from "./action.ts";
import type { Cells } from "./driver/cells.ts";

export type OperatorRow = {
  id: string;
  name: string;
  role: Role;
  state: "active" | "revoked";
  created_at: Date;
  revoked_at: Date | null;
  last_used_at: Date | null;
  email: string;
  identity_bound: boolean;
};

/** The operator with this token; undefined if it is unknown or revoked. The fingerprint is in hex. */
export async function findOperator(database: Cells, fingerprint: string): Promise<Operator | undefined> {
  const [row] = await database.home.call<Operator>("find_operator", Buffer.from(fingerprint, "hex"));
  return row;
}

export async function createOperator(
  database: Cells,
  action: Action,
  { id, name, role, email }: Operator & { readonly email: string },
  fingerprint: string,
): Promise<OperatorRow> {
  const bytes = Buffer.from(fingerprint, "hex");
  const row = await change<OperatorRow>(database, LANE_COUNT, action, "create_operator", id, name, role, email, bytes);
  await database.share();
  return row[0] as OperatorRow;
}

export async function listOperators(database: Cells, page: Page) {
  const rows = await database.home.call<OperatorRow>("view_operators", "", page.after, page.size + 1);
  return cutPage(rows, page, (row) => row.id);
}

/** Once this returns, every server rejects the token. */
export async function revokeOperator(database: Cells, action: Action, id: string): Promise<OperatorRow> {
  const [row] = await change<OperatorRow>(database, LANE_COUNT, action, "revoke_operator", id);
  if (!row) throw unknownOperator(id);
  await database.share();
  return row;
}

/** Once this returns, every server applies the role, also to open sessions. */
export async function setOperatorRole(database: Cells, action: Action, id: string, role: Role): Promise<OperatorRow> {
  const [row] = await change<OperatorRow>(database, LANE_COUNT, action, "set_operator_role", id, role);
  if (!row) throw unknownOperator(id);
  await database.share();
  return row;
}

function unknownOperator(id: string): DomainError {
  return new DomainError("not_found", { message: `There is no operator "${id}".` });
}

/** A session of the console, as its operator. */
export type Session = Operator & { readonly expiresAt: Date };

/** A user of an OpenID Connect provider. */
export type Identity = {
  readonly issuer: string;
  readonly subject: string;
  /** Empty if the provider gave none, or did not verify it. */
  readonly verifiedEmail: string;
};

/** Starts a session. Returns its operator; undefined if no active operator has the identity. */
export async function signInOperator(
  database: Cells,
  { issuer, subject, verifiedEmail }: Identity,
  fingerprint: string,
  requestId: string,
): Promise<Operator | undefined> {
  const bytes = Buffer.from(fingerprint, "hex");
  const [row] = await database.home.call<Operator>("sign_in_operator", issuer, subject, verifiedEmail, bytes, requestId);
  return row;
}

/** Undefined if the session is unknown, expired or ended, or its operator is revoked. */
export async function findSession(database: Cells, fingerprint: string, isUse: boolean): Promise<Session | undefined> {
  type Row = Operator & { readonly expires_at: Date };
  const [row] = await database.home.call<Row>("find_session", Buffer.from(fingerprint, "hex"), isUse);
  return row && { id: row.id, name: row.name, role: row.role, expiresAt: row.expires_at };
}

/** Once this returns, every server rejects the session. */
export async function endSession(database: Cells, fingerprint: string, requestId: string): Promise<void> {
  await database.home.call("end_session", Buffer.from(fingerprint, "hex"), requestId);
}
