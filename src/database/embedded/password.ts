import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { link, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { EmbeddedPostgresError, ignoring } from "./error.ts";
import { ownUid, writeAtomically } from "./server-user.ts";

export const superuser = "postgres";

const fileName = "postgres-password";
const scramIterations = 4096;

/**
 * Passwords of the roles of a cluster. One secret is stored. It is the superuser's password; those of other
 * roles are derived from it, so a process with one of them cannot become the superuser.
 */
export class Passwords {
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  static generate(): Passwords {
    return new Passwords(randomBytes(32).toString("base64url"));
  }

  static async read(dataDir: string): Promise<Passwords | undefined> {
    const path = passwordPath(dataDir);
    const secret = await ignoring(["ENOENT"], readFile(path, "utf8").catch(unreadable(path)));
    if (secret === undefined) return undefined;
    if (secret.trim() === "") {
      throw new EmbeddedPostgresError(`${path} is empty: remove it; the next start sets a new password`);
    }
    return new Passwords(secret.trim());
  }

  of(role: string): string {
    if (role === superuser) return this.#secret;
    return createHmac("sha256", this.#secret).update(role).digest("base64url");
  }

  /** The verifier that PostgreSQL stores. It does not disclose the password to statements or logs. */
  verifierOf(role: string): string {
    const salt = randomBytes(16);
    const salted = pbkdf2Sync(this.of(role), salt, scramIterations, 32, "sha256");
    const hmac = (text: string) => createHmac("sha256", salted).update(text).digest();
    const storedKey = createHash("sha256").update(hmac("Client Key")).digest("base64");
    const serverKey = hmac("Server Key").toString("base64");
    return `SCRAM-SHA-256$${scramIterations}:${salt.toString("base64")}$${storedKey}:${serverKey}`;
  }

  /**
   * Stores the secret, readable only for this user. Concurrent starts all use the secret that
   * was stored first.
   */
  async store(dataDir: string): Promise<Passwords> {
    await this.#write(dataDir, (temporary, path) => ignoring(["EEXIST"], link(temporary, path)));
    return (await Passwords.read(dataDir)) ?? this;
  }

  async replace(dataDir: string): Promise<Passwords> {
    await this.#write(dataDir, rename);
    return this;
  }

  async #write(dataDir: string, put: (temporary: string, path: string) => Promise<void>): Promise<void> {
    await writeAtomically(passwordPath(dataDir), `${this.#secret}\n`, put);
  }
}

export function passwordPath(dataDir: string): string {
  return join(dataDir, fileName);
}

function unreadable(path: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (error.code !== "EACCES") throw error;
    throw new EmbeddedPostgresError(
      `uid ${ownUid()} cannot read the password of the database in ${path}: start as its owner or as root, or change its owner with chown`,
    );
  };
}
