import type { Server } from "./server.ts";

/** An account whose balance a bench cannot use up, and its key. */
export type Payer = { readonly accountId: string; readonly keyId: string; readonly secret: string };

/** The highest limit that an operator can set: 16,666 calls per second. A faster arm needs several keys. */
const PLAN = { name: "bench", rpm: 1_000_000, maxActiveKeys: 100_000, maxKeysCreatedPerHour: 100_000 };
const BALANCE_MICROS = "1000000000000";
const CONCURRENT = 32;

/** Over the operator's API, which stays the same when the schema changes. */
export async function createPayers(server: Server, count: number): Promise<Payer[]> {
  await server.operate("PutPlan", PLAN);
  const payers: Payer[] = [];
  while (payers.length < count) {
    const size = Math.min(CONCURRENT, count - payers.length);
    payers.push(...(await Promise.all(Array.from({ length: size }, () => createPayer(server)))));
  }
  return payers;
}

async function createPayer({ operate }: Server): Promise<Payer> {
  type Created<Name extends string> = Record<Name, { id: string }>;
  const { account } = await operate<Created<"account">>("CreateAccount", { name: "bench", plan: PLAN.name });
  await operate("CreditAccount", {
    accountId: account.id,
    amountMicros: BALANCE_MICROS,
    reason: "bench",
    idempotencyKey: account.id,
  });
  const { apiKey, secret } = await operate<Created<"apiKey"> & { secret: string }>("CreateKey", {
    accountId: account.id,
    name: "bench",
    scopes: ["generate", "read", "keys"],
  });
  return { accountId: account.id, keyId: apiKey.id, secret };
}
