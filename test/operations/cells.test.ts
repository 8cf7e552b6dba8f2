import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { setAccountSuspended } from "../../src/accounts/store.ts";
import { CellDirectory } from "../../src/database/cells/cell-directory.ts";
import { CellRouter } from "../../src/database/cells/cell-router.ts";
import { Database } from "../../src/database/driver/database.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { QUARTER_MS } from "../../src/domain/periods.ts";
import { TEST_ACTION } from "../support/action.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { type CellDatabase, createTwoCells, moveLane, writeCellsFile } from "../support/cells.ts";
import { createTestDatabase } from "../support/database.ts";
import { createTestKey, type Operator, operatorOf, type TestKey } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { type SocketProxy, startSocketProxy } from "../support/socket-proxy.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";

const folder = createTemporaryFolder("cells");
const BALANCE = 1_000_000n;
let cells: readonly [CellDatabase, CellDatabase];
let proxy: SocketProxy;
let app: TestApp;
let operator: Operator;
/** Keys of accounts of the cells a and b. */
let [ofA, ofB]: TestKey[] = [];

beforeAll(async () => {
  cells = await createTwoCells();
  proxy = await startSocketProxy(folder.path, inject("socketDir"));
  const [a, b] = cells;
  const file = writeCellsFile(folder.path, [a, { ...b, url: proxy.urlOf(b.url) }]);
  app = await startTestApp({
    env: { DATABASE_URL: "", VX_CELLS: file, VX_WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8", VX_WEBHOOK_CUSTOMER_CIDRS: "127.0.0.0/8" },
    database: a,
  });
  operator = operatorOf(app);
  ofA = await keyOf((lane) => lane < 512);
  ofB = await keyOf((lane) => lane >= 512);
});
afterAll(async () => {
  await app.stop();
  await proxy.sever();
  for (const cell of cells) await cell.drop();
  folder.remove();
});

/** Tests move the lanes of their accounts, so that no other account may be in one of them. */
const usedLanes = new Set<number>();

/** A key of a new account with a balance, whose lane matches. */
async function keyOf(matches: (lane: number) => boolean, scopes?: string[]): Promise<TestKey> {
  for (;;) {
    const key = await createTestKey(operator, { ...(scopes && { scopes }) });
    const lane = laneOfId(key.accountId);
    if (usedLanes.has(lane) || !matches(lane)) continue;
    usedLanes.add(lane);
    await credit(key);
    return key;
  }
}

async function credit({ accountId }: TestKey): Promise<void> {
  await operator.creditAccount({ accountId, amountMicros: BALANCE, reason: "test", idempotencyKey: randomUUID() });
}

const send = (key: TestKey | undefined, path: string, body?: object) =>
  fetch(app.url + path, {
    method: body ? "POST" : "GET",
    headers: { authorization: `Bearer ${key?.secret}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
const me = (key: TestKey | undefined) => send(key, "/v1/me");
const generate = (key: TestKey | undefined) =>
  send(key, "/v1/generate", { model: "vx-sandbox-small", max_tokens: 5, messages: [{ role: "user", content: "hello" }] });

test("each account is served by the cell of its lane, and no other cell has its rows", async () => {
  for (const key of [ofA, ofB]) {
    expect((await me(key)).status).toBe(200);
    expect((await generate(key)).status).toBe(200);
    expect((await send(key, "/v1/ledger")).status).toBe(200);
    expect((await send(key, "/v1/usage")).status).toBe(200);
    expect((await send(key, "/v1/keys", { name: "child" })).status).toBe(200);
    expect((await send(key, "/v1/generate", {})).status).toBe(400);
  }
  for (const key of [ofA, ofB]) {
    const failures = async () => await (await send(key, "/v1/failures")).json();
    await expect.poll(failures).toMatchObject({ failures: [{ code: "invalid_argument" }] });
  }
  for (const [i, cell] of cells.entries()) {
    const tables = ["accounts", "keys", "key_minutes", "ledger", "usage_quarters", "key_creations", "failures"];
    for (const table of tables) {
      const rows = await cell.owner<{ lane: number }[]>`SELECT DISTINCT lane FROM ${cell.owner(`vx.${table}`)}`;
      expect(rows.length, table).toBeGreaterThan(0);
      expect(
        rows.filter(({ lane }) => lane < 512 !== (i === 0)),
        table,
      ).toEqual([]);
    }
  }
});

test("lists of all cells are in one order, and pages contain each row once", async () => {
  const { accounts: all } = await operator.listAccounts({ pageSize: 1_000 });
  const ids = all.map(({ id }) => id);
  expect(ids).toEqual([...ids].sort().reverse());
  for (const half of [(lane: number) => lane < 512, (lane: number) => lane >= 512])
    expect(ids.some((id) => half(laneOfId(id)))).toBe(true);

  type Page = { readonly pageSize: number; readonly pageToken: string };
  const accounts = (search: string) => async (page: Page) => {
    const { accounts, nextPageToken } = await operator.listAccounts({ ...page, search });
    return { rows: accounts.map(({ id }) => id), next: nextPageToken };
  };
  const keys = (query: string) => async (page: Page) => {
    const { keys, nextPageToken } = await operator.searchKeys({ ...page, query });
    return { rows: keys.map(({ apiKey }) => apiKey?.id), next: nextPageToken };
  };
  const entries = async (page: Page) => {
    const { entries, nextPageToken } = await operator.listRecentEntries(page);
    return { rows: entries.map(({ entry }) => entry?.id), next: nextPageToken };
  };
  const events = async (page: Page) => {
    const { events, nextPageToken } = await operator.listOperatorEvents(page);
    return { rows: events.map(({ target, method, requestId }) => `${target} ${method} ${requestId}`), next: nextPageToken };
  };
  const lists = [accounts(""), accounts("test"), accounts("es"), keys("test"), keys("es"), entries, events];
  for (const list of lists) {
    const whole = await list({ pageSize: 1_000, pageToken: "" });
    const paged: unknown[] = [];
    for (let next: string | undefined = ""; next !== undefined; ) {
      const page = await list({ pageSize: 2, pageToken: next });
      paged.push(...page.rows);
      next = page.next === "" ? undefined : page.next;
    }
    expect(paged).toEqual(whole.rows);
    expect(new Set(paged).size).toBe(paged.length);
    expect(paged.length).toBeGreaterThanOrEqual(2);
  }
});

test("plans, operators and prices of the first cell reach the others", async () => {
  await operator.putPlan({ name: "tiny", rpm: 5, maxActiveKeys: 2 });
  await operator.createOperator({ name: "grace", role: "admin" });
  const { secret, operator: ada } = await operator.createOperator({ name: "ada", role: "admin" });
  const asAda = operatorOf(app, secret);
  for (const key of [ofA, ofB]) {
    const { account } = await asAda.setAccountPlan({ accountId: key?.accountId ?? "", plan: "tiny" });
    expect(account?.plan).toBe("tiny");
    expect((await me(key)).status).toBe(200);
    await asAda.setAccountPlan({ accountId: key?.accountId ?? "", plan: "scale" });
  }
  await operator.setOperatorRole({ operatorId: ada?.id ?? "", role: "support" });
  for (const key of [ofA, ofB]) {
    const accountId = key?.accountId ?? "";
    expect((await asAda.setAccountPlan({ accountId, plan: "scale" })).account?.plan).toBe("scale");
  }
  await operator.revokeOperator({ operatorId: ada?.id ?? "" });
  await expect(asAda.listAccounts({})).rejects.toMatchObject({ code: Code.Unauthenticated });
  const states = await Promise.all(
    cells.map(async ({ owner }) => ({
      plans: await owner`SELECT * FROM vx.plans ORDER BY name`,
      prices: await owner`SELECT * FROM vx.price_versions ORDER BY model, version`,
      operators: await owner`SELECT id, name, role, revoked_at FROM vx.operators`,
    })),
  );
  expect(states[0]?.prices.length).toBeGreaterThan(0);
  expect(states[1]).toEqual(states[0]);
});

test("the audit and the usage of all accounts cover all cells", async () => {
  const audit = await operator.audit({});
  expect(audit.findings).toEqual([]);
  const rows = await Promise.all(cells.map(({ owner }) => owner`SELECT id FROM vx.accounts`));
  expect(audit.accounts).toBe(BigInt(rows.flat().length));
  const { rows: usage } = await operator.getUsage({ groupBy: ["account"] });
  for (const key of [ofA, ofB]) expect(usage.map((row) => row.accountId)).toContain(key?.accountId);
});

test("calls follow a lane that moves to another cell, and each is charged once", async () => {
  const key = await keyOf((lane) => lane < 512);
  const lane = laneOfId(key.accountId);
  const running = Array.from({ length: 20 }, () => generate(key));
  await running[0];
  await moveLane(lane, ...cells);
  const later = Array.from({ length: 20 }, () => generate(key));
  const statuses = (await Promise.all([...running, ...later])).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200]));
  const [{ owner: a }, { owner: b }] = cells;
  const [row] = await b`
    SELECT count(*)::int AS entries, count(DISTINCT id)::int AS distinct FROM vx.ledger
    WHERE account_id = ${key.accountId} AND kind = 'generation'`;
  expect(row).toEqual({ entries: 40, distinct: 40 });
  // The old rows stay in the first cell; no list shows them.
  expect((await a`SELECT 1 FROM vx.accounts WHERE id = ${key.accountId}`).length).toBe(1);
  const { accounts } = await operator.listAccounts({ pageSize: 1_000 });
  expect(accounts.filter(({ id }) => id === key.accountId).length).toBe(1);
  expect((await operator.audit({})).findings).toEqual([]);
});

test("a change by a signed-in operator follows a lane that moves out of the first cell", async () => {
  const { accountId } = await keyOf((lane) => lane < 512);
  const id = (await operator.createOperator({ name: "signed-in", role: "admin" })).operator?.id ?? "";
  const session = randomBytes(32);
  await cells[0].owner`INSERT INTO vx.operator_sessions VALUES (${session}, ${id}, now(), now())`;
  const pools = cells.map(({ address, name }) => ({
    name,
    assumedLanes: [],
    prepare: () => Promise.resolve(),
    pool: new Database(address, { name, connections: 2, statementTimeoutMs: 5_000, maxStatements: 10, maxWaitMs: 5_000 }),
  }));
  const directory = new CellDirectory(pools, () => undefined);
  const router = new CellRouter(
    pools.map(({ pool }) => pool),
    directory,
  );
  try {
    for (const i of router.all.keys()) await directory.maintain(i);
    await moveLane(laneOfId(accountId), ...cells);
    const fingerprint = session.toString("hex");
    const actor = { kind: "operator_session", id, name: "signed-in", role: "admin", fingerprint } as const;
    await setAccountSuspended(router, { ...TEST_ACTION, actor }, accountId, true);
    expect(await cells[1].owner`SELECT FROM vx.accounts WHERE id = ${accountId} AND suspended_at IS NOT NULL`).toHaveLength(1);
  } finally {
    await router.close();
  }
});

test("an attempt at a delivery that ends after its lane moved is stored in the new cell", async () => {
  const key = await keyOf((lane) => lane < 512, ["webhooks"]);
  const receiver = await new WebhookReceiver().start();
  try {
    const answer = Promise.withResolvers<() => void>();
    receiver.respond = (response) => answer.resolve(() => response.writeHead(204).end());
    const created = await send(key, "/v1/webhooks", { url: receiver.url(), types: ["credit.posted"] });
    const { webhook } = (await created.json()) as { webhook: { id: string } };
    await credit(key);
    const accept = await answer.promise;
    await moveLane(laneOfId(key.accountId), ...cells);
    accept();
    const deliveries = async () => await (await send(key, `/v1/webhooks/${webhook.id}/deliveries`)).json();
    await expect.poll(deliveries).toMatchObject({ deliveries: [{ state: "delivered", attempts: 1 }] });
    receiver.respond = (response) => response.writeHead(204).end();
    await credit(key);
    // The claim has ended, so the next event arrives at once.
    expect((await receiver.until(2)).length).toBe(2);
  } finally {
    await receiver.stop();
  }
});

test("a webhook of operators starts anew in all cells when its address changes", async () => {
  const receiver = await new WebhookReceiver().start();
  const reason = "test";
  receiver.respond = (response, { path }) => {
    if (path === "/old") response.writeHead(503, { "retry-after": "3600" }).end();
    else response.writeHead(204).end();
  };
  const created = { url: receiver.url("/old"), types: ["credit.posted"], reason };
  const webhookId = (await operator.createWebhook(created)).webhook?.id ?? "";
  try {
    await keyOf((lane) => lane >= 512);
    const { owner } = cells[1];
    await expect
      .poll(() => owner`SELECT 1 FROM vx.webhook_queues WHERE webhook_id = ${webhookId} AND blocked_until > now()`)
      .toHaveLength(1);
    await operator.updateWebhook({ webhookId, url: receiver.url("/new"), reason, updateMask: { paths: ["url"] } });
    expect(await receiver.until(1, "/new")).toHaveLength(1);
  } finally {
    await operator.deleteWebhook({ webhookId, reason });
    await receiver.stop();
  }
});

test("an operator who is revoked before the body arrives makes no cell deliver events again", async () => {
  const reason = "test";
  const leaver = await operator.createOperator({ name: "leaver", role: "support" });
  const created = { url: "https://hooks.example.com/", types: ["credit.posted"], reason };
  const webhookId = (await operator.createWebhook(created)).webhook?.id ?? "";
  await operator.updateWebhook({ webhookId, state: "paused", types: ["key.created"], reason });
  for (const { owner } of cells)
    expect(await owner`SELECT state, types FROM vx.webhooks WHERE id = ${webhookId}`).toEqual([
      { state: "paused", types: ["key.created"] },
    ]);
  const body = JSON.stringify({ webhookId, from: new Date(0), reason });
  const call = request(`${app.adminUrl}/vx.admin.v1.AdminService/Redeliver`, {
    method: "POST",
    headers: {
      ...bearer(leaver.secret),
      "content-type": "application/json",
      "content-length": body.length,
      expect: "100-continue",
    },
  });
  call.flushHeaders();
  const answered = once(call, "response");
  await once(call, "continue");
  await operator.revokeOperator({ operatorId: leaver.operator?.id ?? "" });
  call.end(body);
  const [response] = (await answered) as [IncomingMessage];
  expect(response.resume().statusCode).toBe(401);
  for (const { owner } of cells) expect(await owner`SELECT 1 FROM vx.deliveries WHERE webhook_id = ${webhookId}`).toHaveLength(0);
  await operator.deleteWebhook({ webhookId, reason });
});

test("a re-rating and an export wait for lanes that no cell owns for a moment", async () => {
  const key = await keyOf((lane) => lane < 512);
  expect((await generate(key)).status).toBe(200);
  const lane = laneOfId(key.accountId);
  const { owner } = cells[0];
  const setOwned = (isOwned: boolean) => owner`UPDATE vx.lanes SET is_owned = ${isOwned}, epoch = epoch + 1 WHERE lane = ${lane}`;
  const [{ start, end }] = await owner<[{ start: bigint; end: bigint }]>`
    SELECT min(quarter) AS start, max(quarter) + 1 AS end FROM vx.usage_quarters WHERE account_id = ${key.accountId}`;
  const timeOf = (quarter: bigint) => timestampFromMs(Number(quarter) * QUARTER_MS);
  const range = { from: timeOf(start), to: timeOf(end) };
  const corrected: string[] = [];
  const correct = async () => {
    const rerating = { model: "vx-sandbox-small", ...range, reason: "test", apply: true };
    for await (const { accountId } of operator.rerate({ ...rerating, prices: {} })) corrected.push(accountId);
  };
  let file = "";
  const exportAll = async () => {
    for await (const { text } of operator.exportUsage({ ...range, format: "csv" })) file += text;
  };
  await setOwned(false);
  const call = me(key);
  // Once the server knows that no cell owns the lane.
  const listed = async () => (await operator.listAccounts({ pageSize: 1_000 })).accounts.map(({ id }) => id);
  await expect.poll(listed).not.toContain(key.accountId);
  const running = Promise.all([correct(), exportAll()]);
  await setOwned(true);
  await running;
  expect((await call).status).toBe(200);
  expect(corrected).toContain(key.accountId);
  expect(file).toContain(key.accountId);
});

test("a cell that is added to the file is used as soon as a lane has no other owner, but not under another name", async () => {
  const c: CellDatabase = { ...(await createTestDatabase()), name: "c", lanes: "" };
  await c.owner`UPDATE vx.lanes SET is_owned = false`;
  await c.owner`INSERT INTO vx.cell_name VALUES ('a')`;
  const [a, b] = cells;
  const unreachable = { ...c, name: "d", url: "postgres:///none?host=/nowhere" };
  writeCellsFile(folder.path, [a, { ...b, url: proxy.urlOf(b.url) }, c, unreachable]);
  await app.reload();
  const key = await keyOf((lane) => lane < 512);
  const ready = async () => await (await fetch(`${app.url}/readyz`)).text();
  expect(await ready()).toBe("ready\n");
  // A split waits until each server has announced that it reaches the new cell.
  await vi.waitFor(async () => expect(await a.owner`SELECT cells FROM vx.servers`).toEqual([{ cells: '["a","b","c"]' }]));

  await moveLane(laneOfId(key.accountId), a, c);
  const running = Array.from({ length: 10 }, () => generate(key));
  await vi.waitFor(async () => expect(await ready()).toContain('the cell "c" cannot be used\n'));
  await c.owner`UPDATE vx.cell_name SET name = 'c'`;
  const statuses = (await Promise.all(running)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200]));
  await vi.waitFor(async () => expect(await ready()).not.toContain('"c"'));
  const entries = await c.owner`SELECT FROM vx.ledger WHERE kind = 'generation'`;
  expect(entries.length).toBe(10);
  expect((await operator.audit({})).findings).toEqual([]);

  // A promoted copy of another cell has accounts of that one: nothing of them may expire there.
  await c.owner`UPDATE vx.cell_name SET name = 'a'`;
  await vi.waitFor(async () => expect(await ready()).toContain('the cell "c" cannot be used\n'));
  await c.owner`UPDATE vx.accounts SET grants_expire_at = now() WHERE id = ${key.accountId}`;
  const failures = () => app.logText().split("database maintenance failed").length;
  const before = failures();
  await vi.waitFor(() => expect(failures()).toBeGreaterThan(before + 1));
  const expiring = () => c.owner`SELECT FROM vx.accounts WHERE grants_expire_at IS NOT NULL`;
  expect(await expiring()).toHaveLength(1);
  await c.owner`UPDATE vx.cell_name SET name = 'c'`;
  await vi.waitFor(async () => expect(await expiring()).toEqual([]));
  await vi.waitFor(async () => expect(await ready()).not.toContain('"c"'));
  await moveLane(laneOfId(key.accountId), c, b);
  expect((await generate(key)).status).toBe(200);
});

test("a cell that fails affects only its own accounts, and recovers", async () => {
  await proxy.sever();
  await vi.waitFor(async () =>
    expect(await (await fetch(`${app.url}/readyz`)).text()).toBe('ready\nthe cell "b" cannot be used\n'),
  );
  expect((await fetch(`${app.url}/readyz`)).status).toBe(200);
  const refused = await generate(ofB);
  expect(refused.status).toBe(503);
  expect(await refused.json()).toMatchObject({ error: { code: "unavailable" } });
  expect((await me(ofB)).status).toBe(503);
  expect((await generate(ofA)).status).toBe(200);
  expect((await send(ofA, "/v1/usage")).status).toBe(200);
  for (let n = 0; n < 12; n++) await operator.createAccount({ name: "created in the other cell" });
  await operator.putPlan({ name: "tiny", rpm: 6, maxActiveKeys: 2 });
  expect(await readMetric('vx_cell_up{cell="b"}')).toBe("0");
  const lists = [
    () => operator.listAccounts({}),
    () => operator.listAccounts({ search: "x" }),
    () => operator.getAccount({ accountId: "no id" }),
    () => operator.searchKeys({ query: "vx_live_abcd" }),
    () => operator.listOperatorEvents({}),
    () => operator.listRecentEntries({}),
    () => operator.getUsage({}),
    () => operator.audit({}),
  ];
  for (const list of lists) await expect(list()).rejects.toThrow('The cell "b" is temporarily unavailable.');

  await proxy.restore();
  await vi.waitFor(async () => expect((await generate(ofB)).status).toBe(200));
  expect(await (await fetch(`${app.url}/readyz`)).text()).toBe("ready\n");
  const [plan] = await cells[1].owner`SELECT rpm FROM vx.plans WHERE name = 'tiny'`;
  expect(plan).toEqual({ rpm: 6 });
  expect(await readMetric('vx_cell_up{cell="b"}')).toBe("1");
});

test("a cell that refuses writes affects only its own accounts", async () => {
  const { owner } = cells[1];
  await owner.unsafe(`CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$`);
  await owner`CREATE TRIGGER refuse BEFORE INSERT ON vx.write_probes FOR EACH ROW EXECUTE FUNCTION public.refuse()`;
  const ready = async () => await (await fetch(`${app.url}/readyz`)).text();
  await vi.waitFor(async () => expect(await ready()).toBe('ready\nthe cell "b" cannot be used\n'));
  expect((await generate(ofA)).status).toBe(200);
  expect((await generate(ofB)).status).toBe(503);
  await owner`DROP TRIGGER refuse ON vx.write_probes`;
  await vi.waitFor(async () => expect((await generate(ofB)).status).toBe(200));
});

async function readMetric(name: string): Promise<string | undefined> {
  const headers = { authorization: "Bearer operator-token-of-the-tests" };
  const text = await (await fetch(`${app.adminUrl}/metrics`, { headers })).text();
  return text
    .split("\n")
    .find((line) => line.startsWith(`${name} `))
    ?.split(" ")[1];
}
