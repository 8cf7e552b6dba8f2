// Bytes on disk, with indexes, for each ledger entry and each key, and the duration of an audit. The entries are
// written by holds and settlements, the keys by copies of keys with new ids.
import postgres from "postgres";
import { loginIn } from "../../test/support/embedded.ts";
import { runCallers } from "../load.ts";
import type { Part } from "../part.ts";
import { startServer } from "../server.ts";
import { openBilling } from "./billing.ts";

const ACCOUNTS = 1_000;
const CALLERS = 256;
const FILL_SECONDS = 20;
const KEYS_PER_ACCOUNT = 200;

type Entries = { entries: number; bytesPerEntry: number; auditedPerSecond: number };
type Keys = { bytesPerKey: number };

export const storage: Part<{ ledger: Entries; keys: Keys }> = {
  rounds: 1,
  warmUpRounds: 0,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    const generate = await openBilling(checkout, cleanup, server, ACCOUNTS);
    const owner = postgres({ ...loginIn(server.dataDir), max: 1, onnotice: () => undefined });
    cleanup.defer(() => owner.end());
    return {
      ledger: async () => {
        await runCallers(CALLERS, FILL_SECONDS, () => generate(Math.floor(Math.random() * ACCOUNTS)));
        const { rows, bytes } = await sizeOf(owner, "ledger");
        const startedAt = performance.now();
        await server.operate("Audit", {});
        const seconds = (performance.now() - startedAt) / 1_000;
        return { entries: rows, bytesPerEntry: bytes / rows, auditedPerSecond: rows / seconds };
      },
      keys: async () => {
        await copyKeys(owner);
        const { rows, bytes } = await sizeOf(owner, "keys");
        return { bytesPerKey: bytes / rows };
      },
    };
  },
  figures: [
    { name: "ledger entries of the following figures", unit: "", value: (r) => r.ledger.entries },
    { name: "disk space per ledger entry, with indexes", unit: "B", value: (r) => r.ledger.bytesPerEntry },
    { name: "audited entries", unit: "/s", value: (r) => r.ledger.auditedPerSecond },
    { name: "disk space per key, with indexes", unit: "B", value: (r) => r.keys.bytesPerKey },
  ],
};

/** A table with its partitions and their indexes. */
async function sizeOf(owner: postgres.Sql, table: string): Promise<{ rows: number; bytes: number }> {
  await owner.unsafe(`VACUUM ANALYZE vx.${table}`);
  const [rows] = await owner.unsafe<{ count: string }[]>(`SELECT count(*) FROM vx.${table}`);
  const [size] = await owner<{ bytes: string }[]>`
    SELECT pg_total_relation_size(t.oid) + coalesce(
      (SELECT sum(pg_total_relation_size(p.relid)) FROM pg_partition_tree(t.oid) p WHERE p.isleaf AND p.relid <> t.oid), 0) AS bytes
    FROM pg_class t WHERE t.oid = ${`vx.${table}`}::regclass`;
  return { rows: Number(rows?.count), bytes: Number(size?.bytes) };
}

/** Ids increase with time, so the copies are written in the order of their ids, and not account by account. */
async function copyKeys(owner: postgres.Sql): Promise<void> {
  await owner`
    INSERT INTO vx.keys (lane, fingerprint, id, account_id, name, plan, scopes, visible_start, visible_end, created_at)
    SELECT k.lane, sha256(convert_to(c.id, 'UTF8')), c.id, k.account_id, k.name, k.plan, k.scopes, left(md5(c.id), 4),
      right(md5(c.id), 4), k.created_at
    FROM vx.keys k, generate_series(1, ${KEYS_PER_ACCOUNT}::int) n,
      LATERAL (SELECT overlay(k.id PLACING left(lpad(n::text, 10, '0') || md5(k.id || n), length(k.id) - 6) FROM 5) AS id) c
    WHERE k.name = 'bench' ORDER BY n, c.id`;
}
