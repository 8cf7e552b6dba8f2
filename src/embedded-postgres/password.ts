import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { link, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { EmbeddedPostgresError, unless } from "./error.ts";
import { ownUid } from "./server-user.ts";

/** The superuser of the cluster. */
export const superuser = "postgres";

const fileName = "postgres-password";
const scramIterations = 4096;

/**
 * Passwords of the roles of a cluster. One secret is stored; the superuser's password is the secret itself, those of
 * other roles are derived from it, so that a process that has one of them cannot become the superuser.
 */
export class Passwords {
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  static draw(): Passwords {
    return new Passwords(randomBytes(32).toString("base64url"));
  }

  /** Undefined if none is stored in the data folder. */
  static async read(dataDir: string): Promise<Passwords | undefined> {
    const path = passwordPath(dataDir);
    const secret = await unless(["ENOENT"], readFile(path, "utf8").catch(unreadable(path)));
    if (secret === undefined) return undefined;
    if (secret.trim() === "") {
      throw new EmbeddedPostgresError(`${path} is empty: remove it, and a new password is made`);
    }
    return new Passwords(secret.trim());
  }

  of(role: string): string {
    if (role === superuser) return this.#secret;
    return createHmac("sha256", this.#secret).update(role).digest("base64url");
  }

  /** What PostgreSQL stores. In a statement, and thus in a log, it does not disclose the password. */
  verifierOf(role: string): string {
    const salt = randomBytes(16);
    const salted = pbkdf2Sync(this.of(role), salt, scramIterations, 32, "sha256");
    const hmac = (text: string) => createHmac("sha256", salted).update(text).digest();
    const storedKey = createHash("sha256").update(hmac("Client Key")).digest("base64");
    const serverKey = hmac("Server Key").toString("base64");
    return `SCRAM-SHA-256$${scramIterations}:${salt.toString("base64")}$${storedKey}:${serverKey}`;
  }

  /** Stores them for the user who runs the server. Of several starts at once the first one counts, for all of them. */
  async store(dataDir: string): Promise<Passwords> {
    await this.#write(dataDir, (temporary, path) => unless(["EEXIST"], link(temporary, path)));
    return (await Passwords.read(dataDir)) ?? this;
  }

  async replace(dataDir: string): Promise<Passwords> {
    await this.#write(dataDir, rename);
    return this;
  }

  /** The file is never seen half written, nor by another user. */
  async #write(dataDir: string, put: (temporary: string, path: string) => Promise<void>): Promise<void> {
    const path = passwordPath(dataDir);
    const temporary = `${path}.${randomBytes(6).toString("hex")}`;
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(`${this.#secret}\n`);
      await file.sync();
      await put(temporary, path);
    } finally {
      await file.close();
      await rm(temporary, { force: true });
    }
  }
}

export function passwordPath(dataDir: string): string {
  return join(dataDir, fileName);
}

function unreadable(path: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (error.code !== "EACCES") throw error;
    throw new EmbeddedPostgresError(
      `uid ${ownUid()} cannot read the password of the database in ${path}: start as its owner or as root, or hand it over with chown`,
    );
  };
}
