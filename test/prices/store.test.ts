import { beforeEach, describe, expect, test } from "vitest";
import { audit } from "../../src/audit/store.ts";
import type { Prices } from "../../src/domain/price.ts";
import { listPrices, pricesOfRow, registerPrices } from "../../src/prices/store.ts";
import { untilWaiting } from "../support/database.ts";
import { charge, createPayer } from "../support/payer.ts";
import { modelOf } from "../support/samples.ts";
import { createTestBilling, useOwnStore } from "../support/store.ts";

const COUNTED = { input: 1n, cachedInput: 2n, cacheWrite: 3n, cacheWrite1h: 9n, output: 4n, reasoning: 5n };
const PRICES: Prices = { ...COUNTED, image: 6n, request: 7n, tiers: [] };
const PAGE = { list: "prices", size: 100, after: "" } as const;

const store = useOwnStore({ connections: 5 });

beforeEach(() => store.owner`DELETE FROM vx.price_versions`);
async function versionOf(prices: Partial<Prices> = {}): Promise<number | undefined> {
  const [model] = await registerPrices(store.database, [modelOf({ prices: { ...PRICES, ...prices } })]);
  return model?.priceVersion;
}

async function rules() {
  return (await audit(store.database, new AbortController().signal)).findings.map(({ rule }) => rule);
}

describe("registering the prices of a catalog", () => {
  test("only a change creates a version, including a change to earlier prices", async () => {
    expect([await versionOf(), await versionOf()]).toEqual([1, 1]);
    expect([await versionOf({ output: 0n }), await versionOf({ output: 0n })]).toEqual([2, 2]);
    expect(await versionOf()).toBe(3);
    const { rows } = await listPrices(store.database, "m", PAGE);
    expect(rows.map((row) => [row.version, pricesOfRow(row).output])).toEqual([
      [3, 4n],
      [2, 0n],
      [1, 4n],
    ]);
    const times = rows.map(({ effective_from }) => effective_from.getTime());
    expect(times).toEqual(times.toSorted((one, other) => other - one));
    expect(await rules()).toEqual([]);
  });

  test.each(Object.keys(PRICES).filter((name) => name !== "tiers"))("a change of the price %s makes a version", async (name) => {
    await versionOf();
    expect(await versionOf({ [name]: 8n })).toBe(2);
  });

  test("a change of a tier makes a version", async () => {
    const { tiers: _, ...rates } = PRICES;
    const tier = { aboveInputTokens: 100, ...rates };
    await versionOf();
    expect([await versionOf({ tiers: [tier] }), await versionOf({ tiers: [tier] })]).toEqual([2, 2]);
    expect(await versionOf({ tiers: [{ ...tier, aboveInputTokens: 101 }] })).toBe(3);
    expect(await versionOf({ tiers: [{ ...tier, aboveInputTokens: 101, cacheWrite1h: 0n }] })).toBe(4);
    const { rows } = await listPrices(store.database, "m", PAGE);
    expect(rows.map(pricesOfRow)).toEqual([
      { ...PRICES, tiers: [{ ...tier, aboveInputTokens: 101, cacheWrite1h: 0n }] },
      { ...PRICES, tiers: [{ ...tier, aboveInputTokens: 101 }] },
      { ...PRICES, tiers: [tier] },
      PRICES,
    ]);
    expect(await rules()).toEqual([]);
  });

  test("several servers that load the same change at once create one version", async () => {
    await versionOf();
    let versions: Promise<(number | undefined)[]> = Promise.resolve([]);
    // Holds the writers back until several of them have started.
    await store.owner.begin(async (sql) => {
      await sql`LOCK TABLE vx.price_versions IN SHARE ROW EXCLUSIVE MODE`;
      versions = Promise.all(Array.from({ length: 5 }, () => versionOf({ image: 9n })));
      await untilWaiting(store, 5, "register_prices");
    });
    expect(new Set(await versions)).toEqual(new Set([2]));
    expect((await listPrices(store.database, "m", PAGE)).rows).toHaveLength(2);
  });

  test("models have separate versions, in the order of the catalog", async () => {
    await versionOf();
    const models = ["b", "m", "a"].map((id) => modelOf({ id }));
    const registered = await registerPrices(store.database, models);
    expect(registered.map(({ id, priceVersion }) => [id, priceVersion])).toEqual([
      ["b", 1],
      ["m", 2],
      ["a", 1],
    ]);
  });

  test("pages have no gap and no overlap", async () => {
    for (let i = 0; i < 5; i++) await versionOf({ request: BigInt(i) });
    const first = await listPrices(store.database, "m", { ...PAGE, size: 2 });
    expect(first.rows.map(({ version }) => version)).toEqual([5, 4]);
    const second = await listPrices(store.database, "m", { ...PAGE, size: 3, after: "4" });
    expect(second.rows.map(({ version }) => version)).toEqual([3, 2, 1]);
    expect(second.nextPageToken).toBe("");
  });
});

describe("the audit", () => {
  test("finds a change of any column of a version, and a removed version", async () => {
    const { owner } = store;
    const columns = await owner<{ name: string }[]>`
      SELECT column_name AS name FROM information_schema.columns
      WHERE table_schema = 'vx' AND table_name = 'price_versions' AND column_name NOT IN ('model', 'version', 'hash')
      ORDER BY ordinal_position`;
    expect(columns.map(({ name }) => name)).toEqual(["rates", "effective_from"]);
    const rates = await owner<{ name: string }[]>`
      SELECT attname AS name FROM pg_attribute WHERE attrelid = 'vx.price_rates'::regclass AND attnum > 0`;
    expect(rates).toHaveLength(9);
    const changes = [
      "effective_from = effective_from + interval '1 microsecond'",
      "rates = rates || rates[1]",
      ...rates.map(({ name }) => `rates[1].${name} = (rates[1]).${name} + 1`),
    ];
    for (const change of [...changes, "model = 'other'", "hash = sha256(hash)"]) {
      await owner`DELETE FROM vx.price_versions`;
      for (const input of [1n, 2n, 3n]) await versionOf({ input });
      await owner.unsafe(`UPDATE vx.price_versions SET ${change} WHERE version = 2`);
      expect(await rules(), change).toContain("prices_unchanged");
    }
    await owner`DELETE FROM vx.price_versions WHERE version = 1`;
    expect(await rules()).toContain("prices_unchanged");
  });

  test("finds a charge that is not the cost of its usage, and one without its prices", async () => {
    const { owner } = store;
    const payer = await createPayer(store.database, 1_000n);
    const billing = createTestBilling(store.database);
    await charge(billing, payer, 250n);
    expect(await rules()).toEqual([]);
    const isCharge = owner`account_id = ${payer.accountId} AND kind = 'generation'`;
    for (const meter of ["input", "cached_input", "cache_write", "output", "reasoning", "price_version", "price_tier"]) {
      await owner`UPDATE vx.ledger SET ${owner(meter)} = ${owner(meter)} + 1 WHERE ${isCharge}`;
      expect(await rules(), meter).toContain("charge_matches_prices");
      await owner`UPDATE vx.ledger SET ${owner(meter)} = ${owner(meter)} - 1 WHERE ${isCharge}`;
    }
    expect(await rules()).toEqual([]);
  });
});
