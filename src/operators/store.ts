import * as sql from "../../gen/sql/calls.ts";
import type { Action } from "../database/action.ts";
import type { Cells } from "../database/driver/cells.ts";
import { DomainError } from "../domain/errors.ts";
import type { Operator, Role } from "../domain/operator.ts";
import { cutPage, type Page } from "../domain/page.ts";

export type OperatorRow = sql.OperatorView;

/** The operator with this token; undefined if it is unknown or revoked. The fingerprint is in hex. */
export async function findOperator(database: Cells, fingerprint: string): Promise<Operator | undefined> {
  const [row] = await sql.findOperator(database.home, { fingerprint: Buffer.from(fingerprint, "hex") });
  return row;
}

export async function createOperator(
  database: Cells,
  action: Action,
  operator: Operator & { readonly email: string },
  fingerprint: string,
): Promise<OperatorRow> {
  const [row] = await sql.createOperator(database, action, { ...operator, fingerprint: Buffer.from(fingerprint, "hex") });
  await database.share();
  return row as OperatorRow;
}

export async function listOperators(database: Cells, page: Page) {
  const rows = await sql.viewOperators(database.home, { id: "", before: page.after, limit: page.size + 1 });
  return cutPage(rows, page, (row) => row.id);
}

/** Once this returns, every server rejects the token. */
export async function revokeOperator(database: Cells, action: Action, id: string): Promise<OperatorRow> {
  const [row] = await sql.revokeOperator(database, action, { id });
  if (!row) throw unknownOperator(id);
  await database.share();
  return row;
}

/** Once this returns, every server applies the role, also to open sessions. */
export async function setOperatorRole(database: Cells, action: Action, id: string, role: Role): Promise<OperatorRow> {
  const [row] = await sql.setOperatorRole(database, action, { id, role });
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
  const session = { fingerprint: Buffer.from(fingerprint, "hex"), requestId };
  const [row] = await sql.signInOperator(database.home, { issuer, subject, email: verifiedEmail, ...session });
  return row;
}

/** Undefined if the session is unknown, expired or ended, or its operator is revoked. */
export async function findSession(database: Cells, fingerprint: string, isUse: boolean): Promise<Session | undefined> {
  const [row] = await sql.findSession(database.home, { fingerprint: Buffer.from(fingerprint, "hex"), isUse });
  return row && { id: row.id, name: row.name, role: row.role, expiresAt: row.expires_at };
}

/** Once this returns, every server rejects the session. */
export async function endSession(database: Cells, fingerprint: string, requestId: string): Promise<void> {
  await sql.endSession(database.home, { fingerprint: Buffer.from(fingerprint, "hex"), requestId });
}
