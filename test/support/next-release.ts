import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createTemporaryFolder } from "./temporary-folder.ts";

export const NEXT_MIGRATION = "0002_next";

const CHECK = "conrelid = 'ledger'::regclass AND conname = 'seq_is_positive'";
/** Adds a check without a lock that stops calls. */
const ONLINE = `DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_constraint WHERE ${CHECK}) THEN
    ALTER TABLE ledger ADD CONSTRAINT seq_is_positive CHECK (seq > 0) NOT VALID;
    COMMIT;
  END IF;
  ALTER TABLE ledger VALIDATE CONSTRAINT seq_is_positive;
END
$$;
`;
const MIGRATION = `DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_constraint WHERE ${CHECK} AND convalidated) THEN
    RAISE EXCEPTION 'the check is not valid before the migration';
  END IF;
END
$$;
ALTER TABLE accounts ADD COLUMN colour text NOT NULL DEFAULT '';
CREATE INDEX ledger_by_model ON ledger (lane, account_id, model, seq);
`;

/** A made-up next release: the code of this one, with a migration, its work online, and changed functions of each batch. */
export function createNextRelease(): { readonly program: string; remove(): void } {
  const { path, remove } = createTemporaryFolder("next-release");
  cpSync("src", join(path, "src"), { recursive: true });
  for (const name of ["gen", "node_modules"]) symlinkSync(resolve(name), join(path, name));
  const manifest = JSON.parse(readFileSync("package.json", "utf8"));
  writeFileSync(join(path, "package.json"), JSON.stringify({ ...manifest, version: "99.0.0" }));
  const schema = join(path, "src/database/schema");
  writeFileSync(join(schema, "tables", `${NEXT_MIGRATION}.sql`), MIGRATION);
  writeFileSync(join(schema, "tables", `${NEXT_MIGRATION}.online.sql`), ONLINE);
  for (const name of ["keys/admission.sql", "generations/holds.sql"]) {
    const file = join(path, "src", name);
    const changed = /^CREATE OR REPLACE FUNCTION (?:admit|place_holds|post_entries)\(/gm;
    writeFileSync(file, readFileSync(file, "utf8").replace(changed, "-- A changed text.\n$&"));
  }
  return { program: join(path, "src/vx.js"), remove };
}
