import { beforeAll, expect, test } from "vitest";
import { laneOfId } from "../../src/domain/lane.ts";
import { readPage } from "../../src/domain/page.ts";
import { listUnusedKeys } from "../../src/keys/store.ts";
import { allPages } from "../support/all-pages.ts";
import { useOwnStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

const store = useOwnStore();

type TestKey = {
  readonly name: string;
  /** Days ago. */
  readonly created: number;
  readonly used?: number;
  readonly revoked?: true;
  readonly expired?: true;
};

const KEYS: readonly TestKey[] = [
  { name: "never used", created: 31 },
  { name: "used today", created: 400, used: 0 },
  { name: "used long ago", created: 400, used: 95 },
  { name: "revoked", created: 400, revoked: true },
  { name: "expired", created: 400, expired: true },
  { name: "new", created: 29 },
  { name: "used a month ago", created: 100, used: 31 },
];

beforeAll(async () => {
  const accountId = typeIds.account();
  const lane = laneOfId(accountId);
  await store.owner`
    INSERT INTO vx.accounts (lane, id, name, plan, created_at) VALUES (${lane}, ${accountId}, 'acme', 'free', now())`;
  for (const { name, created, used, revoked, expired } of KEYS) {
    const id = typeIds.key(lane);
    await store.owner`
      INSERT INTO vx.keys (lane, fingerprint, id, account_id, name, plan, scopes, visible_start, visible_end, created_at,
        revoked_at, expires_at)
      VALUES (${lane}, sha256(${id}::bytea), ${id}, ${accountId}, ${name}, 'free', 1, 'abcd', 'wxyz',
        now() - ${created} * interval '1 day', ${revoked ? new Date() : null}, ${expired ? new Date() : null})`;
    if (used !== undefined)
      await store.owner`INSERT INTO vx.key_minutes VALUES (${lane}, ${id}, 1, 1, 1, 20, now() - ${used} * interval '1 day')`;
  }
});

test.each([
  [30, ["never used", "used long ago", "used a month ago"]],
  [90, ["used long ago"]],
  [365, []],
])("keys that were not used for %i days are found once, in pieces and pages of every size", async (days, names) => {
  for (const pageSize of [1, 2, 100]) {
    for (const rows of [1, 2, 3, 100]) {
      const pages = await allPages((pageToken) =>
        listUnusedKeys(store.database, days, readPage("keys", { pageSize, pageToken }, []), { rows, max: 100 }),
      );
      expect(pages.flat().every(({ account_name: name }) => name === "acme")).toBe(true);
      const found = pages.flat().map(({ name }) => name);
      expect(found).toEqual(names);
    }
  }
});
