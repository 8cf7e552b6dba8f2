import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { givenToKey } from "../../tools/openapi/key-samples.ts";
import { type JsonAnswer, sendJson } from "../rest/send-json.ts";
import { dumpTables } from "./database.ts";
import type { FakeStripe } from "./fake-stripe.ts";
import { createTestKey, type TestKey } from "./fixtures.ts";
import { type Metered, MODEL } from "./metered.ts";

/** A call holds 26 micros and costs 14. The fourth one takes a limit of 68 to 80 %. */
export const COST = 14n;
const LIMIT = 68n;
const BALANCE = 10_000_000n;
const SCOPES = ["read", "billing", "generate", "webhooks", "keys"];

/** An account that is to be closed. */
export class FilledAccount {
  readonly #metered: Metered;
  readonly #stripe: FakeStripe;
  readonly key: TestKey;
  /** In every text about the customer. */
  readonly secret = `Rosalind-${randomUUID()}`;

  private constructor(metered: Metered, stripe: FakeStripe, key: TestKey) {
    this.#metered = metered;
    this.#stripe = stripe;
    this.key = key;
  }

  static async create(metered: Metered, stripe: FakeStripe): Promise<FilledAccount> {
    const { accountId } = await metered.payer(BALANCE);
    return new FilledAccount(metered, stripe, await createTestKey(metered.operator, { accountId, scopes: SCOPES }));
  }

  async send(verb: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<JsonAnswer> {
    return await sendJson(this.#metered.app.url, {
      verb,
      path,
      secret: this.key.secret,
      headers,
      ...(body === undefined ? {} : { body }),
    });
  }

  async generate(headers: Record<string, string> = {}): Promise<JsonAnswer> {
    const messages = [{ role: "user", content: "hi" }];
    const body = { model: MODEL, messages, max_tokens: 10, user: this.secret };
    return await this.send("POST", "/v1/generate", body, headers);
  }

  /** Stores personal data in all tables of the account. Returns the id of a top-up that is not paid. */
  async fill(): Promise<string> {
    const { operator, app } = this.#metered;
    const { secret } = this;
    const { accountId } = this.key;
    await operator.updateAccount({ accountId, name: secret, email: `${secret}@example.com`, externalId: secret, notes: secret });
    const limit = { metric: "cost", window: "day", amount: LIMIT, per: "user" };
    await operator.setLimit({ owner: { case: "accountId", value: accountId }, limit });
    for (const i of [1, 2, 3, 4]) expect((await this.generate({ "idempotency-key": `${secret} ${i}` })).status).toBe(200);
    const key = { ...givenToKey(), name: `${secret}'s laptop`, models: [] };
    expect((await this.send("POST", "/v1/keys", key)).status).toBe(200);
    const webhook = { url: `https://hooks.example/${secret}`, description: secret };
    expect((await this.send("POST", "/v1/webhooks", webhook)).status).toBe(200);
    const topUp = { amount_micros: 25_000_000, return_url: `https://app.example/${secret}` };
    const { body } = await this.send("POST", "/v1/topups", topUp, { "idempotency-key": secret });
    await operator.putAutoTopUp({
      accountId,
      enabled: true,
      thresholdMicros: 1_000_000n,
      amountMicros: 10_000_000n,
      monthlyMaxMicros: 100_000_000n,
    });
    await this.#stripe.deliver(this.#stripe.storeCard(this.#stripe.setupOf(accountId)), app.url);
    const { owner } = app.database;
    await owner`
      INSERT INTO vx.people (id, issuer, subject, email, created_at, signed_in_at)
      VALUES (${accountId}, 'test', ${accountId}, 'ada@example.com', clock_timestamp(), clock_timestamp())`;
    await owner`INSERT INTO vx.person_accounts VALUES (${accountId}, ${accountId}, 'sign-up')`;
    await owner`
      INSERT INTO vx.members VALUES (vx.lane_of(${accountId}), ${accountId}, ${accountId}, ${secret}, 'owner', clock_timestamp(), 'sign-up')`;
    await owner`
      INSERT INTO vx.invitations VALUES (vx.lane_of(${accountId}), 'inv_' || ${accountId}, ${accountId}, sha256(''), 'viewer', ${secret},
        ${accountId}, clock_timestamp(), clock_timestamp() + interval '1 day')`;
    return (body as { topup: { id: string } }).topup.id;
  }

  /** Those of the columns, such as `keys.name`, that have a value in a row of the account. */
  async filledColumns(columns: readonly string[]): Promise<string[]> {
    const { owner } = this.#metered.app.database;
    const found = columns.map(async (path) => {
      const [table = "", column = ""] = path.split(".");
      const rows = await owner`
        SELECT FROM vx.${owner(table)} WHERE ${owner(table === "accounts" ? "id" : "account_id")} = ${this.key.accountId}
          AND coalesce(${owner(column)}::text, '') NOT IN ('', 'closed')`;
      return rows.length > 0 ? [path] : [];
    });
    return (await Promise.all(found)).flat();
  }

  /** The rows with a text about the customer. */
  async remains(): Promise<string[]> {
    const rows = (await dumpTables(this.#metered.app.database)).split("\n");
    return rows.filter((row) => row.includes(this.secret));
  }
}
