import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

/**
 * The previous release. Its data is a dump by pg_dump of the schema vx, with accounts, keys, charges of each kind of call,
 * credits, operators and their log; its code is in the history of the repository.
 */
const FIXTURE = "test/fixtures/release-0.1.0.sql.gz";
const COMMIT = "2ffd6014ec446c26e5dcf9bfce5f23ec7b662626";

const INSTALL_MS = 120_000;

/** The entries of the ledger in the fixture. */
export const FIXTURE_ENTRIES = 42;

export function previousData(): string {
  return gunzipSync(readFileSync(FIXTURE)).toString();
}

/** The code of the previous release with its packages; undefined without its history or the registry. */
export function previousCode(): { readonly program: string; remove(): void } | undefined {
  const folder = createTemporaryFolder("previous");
  try {
    const archive = execFileSync(
      "git",
      ["archive", COMMIT, "src", "gen", "package.json", "package-lock.json"],
      {
        maxBuffer: 256 * 1024 * 1024,
        stdio: ["ignore", "pipe", "ignore"],
      },
    );
    execFileSync("tar", ["-x", "-C", folder.path], { input: archive });
    const omitted = ["--omit=dev", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"];
    execFileSync("npm", ["ci", ...omitted], { cwd: folder.path, stdio: "ignore", timeout: INSTALL_MS });
  } catch {
    folder.remove();
    return undefined;
  }
  return { program: join(folder.path, "src", "vx.js"), remove: folder.remove };
}
