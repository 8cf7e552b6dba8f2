import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { OPERATOR_TOKEN } from "../support/app.ts";
import { FakeStripe } from "../support/fake-stripe.ts";
import { FilledAccount } from "../support/filled-account.ts";
import { operatorOf } from "../support/fixtures.ts";
import { type Metered, startMetered } from "../support/metered.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

/** More than a step erases. */
const END_USERS = 4_500;
/** What the killed server may wait for in the database while it closes an account. */
const STEPS = "close_account|apply_payment|unlink_person";
/** Each server of this test starts a process. */
const TIMEOUT_MS = 120_000;

let stripe: FakeStripe;
let metered: Metered;
/** An account with the page of a top-up that is not paid. */
type Filled = FilledAccount & { readonly page: ReturnType<FakeStripe["sessionOf"]> };

let account: Filled;
let folder: ReturnType<typeof createTemporaryFolder>;
let victim: ServerProcess;
/** What closing leaves if nothing interrupts it. */
let expected: Awaited<ReturnType<typeof traces>>;

beforeAll(async () => {
  stripe = await FakeStripe.start();
  metered = await startMetered({ env: { ...stripe.env, VX_PUBLIC_URL: "https://api.example" } });
  folder = createTemporaryFolder("closing-killed");
  account = await fill();
  expect(await close()).toMatchObject({ closed: true });
  expected = await traces();
});
beforeEach(async () => {
  account = await fill();
  victim = startServerProcess({
    ...stripe.env,
    DATABASE_URL: metered.app.database.url,
    VX_DATA_DIR: folder.path,
    VX_MODELS: metered.modelsFile,
    VX_ADMIN_TOKEN: OPERATOR_TOKEN,
    VX_PUBLIC_URL: "https://api.example",
  });
  await victim.line(/^vx ready on (\S+)$/m);
});
afterEach(async () => {
  stripe.before = () => undefined;
  stripe.losesAnswer = () => false;
  if (victim.child.exitCode === null && victim.child.signalCode === null) await victim.end("SIGKILL");
});
afterAll(async () => {
  await metered.stop();
  await stripe.stop();
  folder.remove();
});

async function fill(): Promise<Filled> {
  const account = await FilledAccount.create(metered, stripe);
  const page = stripe.sessionOf(await account.fill());
  const { accountId } = account.key;
  await metered.app.database.owner`
    INSERT INTO vx.end_users
      SELECT vx.lane_of(${accountId}), ${accountId}, 'user_' || n, ${`${account.secret} `} || n FROM generate_series(1, ${END_USERS}) n`;
  return Object.assign(account, { page });
}

function close(operator = metered.operator) {
  const { accountId } = account.key;
  return operator.closeAccount({ accountId, reason: "the customer left", balance: "written_off" });
}

/** The server that is killed closes the account. */
function closeAtVictim(): Promise<unknown> {
  const adminUrl = victim.adminUrl();
  return close(operatorOf({ adminUrl })).catch((error: unknown) => error);
}

/** Whatever is done twice is here twice. */
async function traces() {
  const { accountId } = account.key;
  const { entries } = await metered.operator.listLedgerEntries({ accountId });
  const { events } = await metered.operator.listEvents({ accountId });
  const kinds = entries.map(({ kind, amountMicros }) => `${kind} ${amountMicros}`);
  return { entries: kinds, events: events.map(({ type }) => type).sort() };
}

/** Another server, as after a restart, ends what the killed one began. */
async function expectCompletion(): Promise<void> {
  expect(await close()).toMatchObject({ closed: true, account: { state: "closed", balanceMicros: 0n } });
  expect(await traces()).toEqual(expected);
  expect(await account.remains()).toEqual([]);
  expect(account.page.status).toBe("expired");
  expect((await metered.operator.audit({})).findings).toEqual([]);
  const { owner } = metered.app.database;
  const { accountId } = account.key;
  expect(await owner`SELECT FROM vx.person_accounts WHERE account_id = ${accountId}`).toHaveLength(0);
  const before = await traces();
  expect(await close()).toMatchObject({ closed: true });
  expect(await traces()).toEqual(before);
}

const REQUESTS = ["POST /v1/checkout/sessions/", "GET /v1/checkout/sessions/", "DELETE /v1/customers/"];

/** Each closing has an account of its own and waits where the server is killed. */
test(
  "a server killed at a request to the provider, before or after the provider did it, or while it unlinks the members, leaves closings that continue",
  async () => {
    const { owner } = metered.app.database;
    const cases: { request: string; moment: string; account: Filled }[] = [];
    for (const request of REQUESTS)
      for (const moment of ["before", "after"]) cases.push({ request, moment, account: await fill() });
    const customers = await owner<{ account: string; customer: string }[]>`
      SELECT account_id AS account, customer_id AS customer FROM vx.auto_topups`;
    const reached = new Set<string>();
    /** Whether a closing waits at this moment of the request; if so, until the server is killed. */
    const waits = async (seen: string, moment: string) => {
      const found = cases.find((one) => {
        const ids = [one.account.page.id, customers.find((row) => row.account === one.account.key.accountId)?.customer];
        return one.moment === moment && seen.startsWith(one.request) && ids.some((id) => id && seen.includes(id));
      });
      if (!found) return false;
      reached.add(`${moment} ${found.request}`);
      await victim.exited();
      return true;
    };
    stripe.before = async (seen) => ((await waits(seen, "before")) ? 500 : undefined);
    stripe.losesAnswer = (seen) => waits(seen, "after");
    const members = account;
    stripe.abandoned = [];
    await owner.begin(async (sql) => {
      await sql`SELECT FROM vx.person_accounts WHERE account_id = ${members.key.accountId} FOR UPDATE`;
      const closings = [closeAtVictim()];
      for (const one of cases) {
        account = one.account;
        closings.push(closeAtVictim());
      }
      await vi.waitFor(() => expect(reached.size).toBe(cases.length));
      await waitersFor(1);
      victim.child.kill("SIGSTOP");
      await waitersFor(1);
      // A closing whose request timed out is at another step.
      expect(stripe.abandoned).toEqual([]);
      await victim.end("SIGKILL");
      await Promise.all(closings);
    });
    stripe.before = () => undefined;
    stripe.losesAnswer = () => false;
    await nothingRuns();
    for (const one of [...cases, { account: members }]) {
      account = one.account;
      const { account: stopped } = await metered.operator.getAccount({ accountId: account.key.accountId });
      expect(stopped).toMatchObject({ state: "suspended" });
      expect((await account.generate()).status).toBe(401);
      await expectCompletion();
    }
  },
  TIMEOUT_MS,
);

/**
 * The transactions of a closing are the first step, the end of the page, and three steps of erasing, of which the last one closes. The
 * first two end where a server waits for the provider in the test above.
 */
const LAST = 4;
test.each([2, LAST])(
  "a server killed in transaction %i of the closing, whose result it does not see, leaves a closing that continues",
  async (number) => {
    const lane = await holdLane();
    const closing = closeAtVictim();
    for (let passed = 0; passed < number; passed++) await lane.letOnePass();
    await waitersFor(1);
    await victim.end("SIGKILL");
    await closing;
    await lane.release();
    await nothingRuns();
    const { account: left } = await metered.operator.getAccount({ accountId: account.key.accountId });
    expect(left?.state).toBe(number === LAST ? "closed" : "suspended");
    await expectCompletion();
  },
  TIMEOUT_MS,
);

/** Holds the lane of the account, which lets the transactions of the closing pass one by one. */
async function holdLane() {
  let holder = hold();
  await holder.isHeld;
  return {
    /**
     * Another holder waits behind the transaction that is next. The server is paused until that one has the lane: otherwise its next
     * transaction could take it first.
     */
    letOnePass: async () => {
      await waitersFor(1);
      const next = hold();
      await waitersFor(1, "held");
      victim.child.kill("SIGSTOP");
      await holder.release();
      holder = next;
      await holder.isHeld;
      victim.child.kill("SIGCONT");
    },
    release: () => holder.release(),
  };
}

function hold() {
  const isHeld = Promise.withResolvers<void>();
  const isFree = Promise.withResolvers<void>();
  const ended = metered.app.database.owner.begin(async (sql) => {
    await sql`SELECT 1 FROM vx.lanes WHERE lane = vx.lane_of(${account.key.accountId}) FOR UPDATE /* held */`;
    isHeld.resolve();
    await isFree.promise;
  });
  return {
    isHeld: isHeld.promise,
    release: async () => {
      isFree.resolve();
      await ended;
    },
  };
}

async function waitersFor(count: number, query = STEPS): Promise<void> {
  await vi.waitFor(async () => expect(await backends("wait_event_type = 'Lock'", query)).toBe(count));
}

/** The database learns that the server is gone when it sends the result. */
async function nothingRuns(): Promise<void> {
  await vi.waitFor(async () => expect(await backends("state <> 'idle'", STEPS)).toBe(0));
}

async function backends(condition: string, query: string): Promise<number> {
  const rows = await metered.app.database.owner.unsafe(
    `SELECT FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND ${condition} AND query ~ $1`,
    [query],
  );
  return rows.length;
}
