import { randomBytes } from "node:crypto";
import type postgres from "postgres";
import { drawKey } from "../src/domain/api-key.ts";
import { typeIds } from "../src/domain/ids.ts";
import { laneOfId } from "../src/domain/lane.ts";

/** An account whose balance a bench cannot use up, and its key. */
export type Payer = { readonly accountId: string; readonly keyId: string; readonly secret: string };

const BALANCE_MICROS = 1_000_000_000_000n;

/** The plan's limit is too high to be reached. */
export async function createPayers(owner: postgres.Sql, count: number): Promise<Payer[]> {
  await owner`INSERT INTO vx.plans VALUES ('bench', 10000000, 1000000, 10000000) ON CONFLICT DO NOTHING`;
  const rows = Array.from({ length: count }, () => {
    const accountId = typeIds.account();
    const lane = laneOfId(accountId);
    return { lane, accountId, keyId: typeIds.key(lane), key: drawKey(lane, randomBytes) };
  });
  const lanes = rows.map(({ lane }) => lane);
  const accountIds = rows.map(({ accountId }) => accountId);
  await owner`
    INSERT INTO vx.accounts (lane, id, name, plan, balance_micros, created_at)
    SELECT lane, id, 'bench', 'bench', ${BALANCE_MICROS.toString()}::bigint, now()
    FROM unnest(${lanes}::smallint[], ${accountIds}::text[]) AS a (lane, id)`;
  await owner`
    INSERT INTO vx.keys (lane, fingerprint, id, account_id, name, plan, scopes, visible_start, visible_end, created_at)
    SELECT lane, decode(fingerprint, 'hex'), id, account_id, 'bench', 'bench', 7, 'abcd', 'wxyz', now()
    FROM unnest(${lanes}::smallint[], ${rows.map(({ key }) => key.fingerprint)}::text[],
      ${rows.map(({ keyId }) => keyId)}::text[], ${accountIds}::text[]) AS k (lane, fingerprint, id, account_id)`;
  await owner`ANALYZE`;
  return rows.map(({ accountId, keyId, key }) => ({ accountId, keyId, secret: key.secret }));
}
