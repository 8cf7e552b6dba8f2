import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder that every user may enter, because tests that run as root start PostgreSQL as another user. */
export function createTemporaryFolder(name: string, parent = tmpdir()): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(parent, `vx-${name}-`));
  chmodSync(path, 0o755);
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
