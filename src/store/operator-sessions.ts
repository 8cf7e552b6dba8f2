import type { Operator } from "../domain/operator.ts";
import type { Cells } from "./driver/cells.ts";

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
  const [row] = await database.home.call<Operator>(
    "sign_in_operator",
    issuer,
    subject,
    verifiedEmail,
    bytes,
    requestId,
  );
  return row;
}

/** Undefined if the session is unknown, expired or ended, or its operator is revoked. */
export async function findSession(
  database: Cells,
  fingerprint: string,
  isUse: boolean,
): Promise<Session | undefined> {
  type Row = Operator & { readonly expires_at: Date };
  const [row] = await database.home.call<Row>("find_session", Buffer.from(fingerprint, "hex"), isUse);
  return row && { id: row.id, name: row.name, role: row.role, expiresAt: row.expires_at };
}

/** Once this returns, every server rejects the session. */
export async function endSession(database: Cells, fingerprint: string, requestId: string): Promise<void> {
  await database.home.call("end_session", Buffer.from(fingerprint, "hex"), requestId);
}
