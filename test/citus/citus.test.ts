import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { setAccountSuspended } from "../../src/accounts/store.ts";
import { auditDatabases } from "../../src/app/audit-embedded.ts";
import { audit } from "../../src/audit/store.ts";
import { changeAllNodes, distributionOf, functionsForCitus, withShards } from "../../src/database/cells/citus/distribution.ts";
import { CitusWorkers } from "../../src/database/cells/citus/workers.ts";
import { splitCell } from "../../src/database/cells/split-cell.ts";
import { connect, type Sql } from "../../src/database/driver/connect.ts";
import { Database } from "../../src/database/driver/database.ts";
import { migrate } from "../../src/database/schema/migrate.ts";
import { applyFunctions, readFunctions } from "../../src/database/schema/sql-files.ts";
import { generateKey } from "../../src/domain/credentials.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { type Scope, toScopeBits } from "../../src/domain/scope.ts";
import type { Billing } from "../../src/generations/billing.ts";
import { Admitter } from "../../src/keys/admit.ts";
import { createKey } from "../../src/keys/store.ts";
import { LedgerPartitions } from "../../src/ledger/store.ts";
import { TEST_ACTION, TEST_CALLER } from "../support/action.ts";
import { withinOneMinute } from "../support/minute.ts";
import { charge, createPayer, moneyProblems, type Payer } from "../support/payer.ts";
import { clock, createTestBilling } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";
import { Callers } from "./callers.ts";
import { buildCitus, type Cluster, connectNodes, moveSchema, startCluster, workerPort } from "./cluster.ts";

const SOURCE = process.env.VX_TEST_CITUS_SOURCE;
if (!SOURCE) console.warn("SKIPPED: Citus is not tested: VX_TEST_CITUS_SOURCE must name a checkout of it");

const BUILD_MS = 10 * 60_000;
const MOVES = Number(process.env.VX_TEST_CITUS_MOVES ?? 20);
const MOVE_MS = 30_000;
const NOT_ABORTED = new AbortController().signal;
const ACCOUNTS = 12;
const CALLERS = 24;

const OPTIONS = { connections: 4, statementTimeoutMs: 5_000, role: "vx_app", maxStatements: 1_000, maxWaitMs: 5_000 };

describe.skipIf(!SOURCE)("a cell on Citus", () => {
  let cluster: Cluster;
  let coordinator: postgres.Sql;
  let urls: string[];
  const servers: { database: Database; billing: Billing; timer: NodeJS.Timeout }[] = [];
  const [onCoordinator, onWorker] = [() => urls[0] as string, () => urls[1] as string];
  const migrateAt = (url: string, engine: "citus" | "postgresql" = "citus", schema = "vx") =>
    migrate({ kind: "url", url }, { distribution: distributionOf(engine), schema });

  /** The pools of a server, which look for the worker every second as its health check does. */
  function startServer(serverId: string, schema = "vx"): Database {
    const database = openThroughCatalog(serverId, schema);
    const timer = setInterval(() => void database.findNewerPrimary(), 1_000);
    servers.push({ database, billing: createTestBilling(database, { serverId, pipelines: 2 }), timer });
    return database;
  }

  /** At the worker that has the schema when a session is opened. */
  function openThroughCatalog(name: string, schema: string): Database {
    const workers = new CitusWorkers({ kind: "url", url: onCoordinator() }, schema);
    return new Database(workers, { ...OPTIONS, schema, name });
  }

  /** The worker of the schema, and the other one. */
  async function placesOf(schema: string): Promise<{ source: number; target: number }> {
    const source = await workerPort(coordinator, schema);
    return { source, target: cluster.ports.slice(1).find((port) => port !== source) as number };
  }

  async function sessionsOf(port: number, name: string): Promise<number> {
    const sql = postgres(cluster.url(port), { max: 1 });
    const sessions = await sql`SELECT FROM pg_stat_activity WHERE application_name = ${name}`;
    await sql.end();
    return sessions.length;
  }

  /** At any node, without looking for the worker. */
  function openAt(url: string, schema: string) {
    const database = new Database({ kind: "url", url }, { ...OPTIONS, schema, name: "node" });
    return { database, billing: createTestBilling(database) };
  }

  /** The nodes at which the functions of a batch work on the shards. */
  async function nodesOf(schema: string): Promise<number[]> {
    const found = cluster.ports.map(async (port) => {
      const sql = postgres(cluster.url(port), { max: 1 });
      const [row] = await sql<{ is_here: boolean }[]>`SELECT ${sql(schema)}.pin_schema() AS is_here`;
      await sql.end();
      return row?.is_here ? [port] : [];
    });
    return (await Promise.all(found)).flat();
  }

  const workerOfSchema = () => workerPort(coordinator, "vx");

  async function partitions(): Promise<string[]> {
    const rows = await coordinator<{ name: string }[]>`
      SELECT relid::regclass::text AS name FROM pg_partition_tree('vx.ledger') WHERE isleaf ORDER BY 1`;
    return rows.map(({ name }) => name);
  }

  beforeAll(async () => {
    buildCitus(SOURCE as string);
    cluster = await startCluster();
    urls = cluster.ports.map(cluster.url);
    coordinator = postgres(onCoordinator(), { max: 2, onnotice: () => undefined });
  }, BUILD_MS);
  afterAll(async () => {
    for (const { database, timer } of servers) {
      clearInterval(timer);
      await database.close();
    }
    await coordinator?.end();
    await cluster?.stop();
  });

  test("is not created without workers, at a worker, or as plain PostgreSQL", async () => {
    await expect(migrateAt(onCoordinator())).rejects.toThrow("the Citus cluster has no worker: run citus_add_node");
    await connectNodes(coordinator, cluster.ports);
    await expect(migrateAt(onWorker())).rejects.toThrow("a worker of its Citus cluster; use the URL of the coordinator");
    await migrateAt(onCoordinator());
    for (const url of urls) await expect(migrateAt(url, "postgresql")).rejects.toThrow('"vx" is distributed by Citus');
  });

  test("has the same functions on every node, and the next migration changes nothing", async () => {
    const read = async (url: string) => {
      const sql = postgres(url, { max: 1 });
      const rows = await sql`SELECT oid::regprocedure::text AS name, md5(prosrc) AS text, xmin::text FROM pg_proc
        WHERE pronamespace = 'vx'::regnamespace ORDER BY 1`;
      await sql.end();
      return rows;
    };
    const before = await Promise.all(urls.map(read));
    const texts = before.map((rows) => rows.map(({ name, text }) => `${name} ${text}`));
    expect(texts[0]?.length).toBeGreaterThan(100);
    expect(texts[1]).toEqual(texts[0]);
    expect(texts[2]).toEqual(texts[0]);
    await migrateAt(onCoordinator());
    expect(await Promise.all(urls.map(read))).toEqual(before);
  });

  test("gets the next partitions of the ledger from a server, whose sessions are at a worker", async () => {
    const before = await partitions();
    const last = before.findLast((name) => /^vx\.ledger_\d/.test(name)) as string;
    await coordinator.unsafe(`DROP TABLE ${last}`);
    expect(await partitions()).not.toContain(last);
    const database = startServer("partitions");
    await new LedgerPartitions(database, () => undefined).maintain();
    expect(await partitions()).toEqual(before);
    expect(await sessionsOf(await workerOfSchema(), "partitions")).toBeGreaterThan(0);
  });

  test("shares the cluster with another cell", async () => {
    await migrateAt(onCoordinator(), "citus", "vx_b");
    const database = startServer("other", "vx_b");
    const payer = await createPayer(database, 100n);
    await charge(servers.at(-1)?.billing as Billing, payer, 10n);
    const report = await audit(database, NOT_ABORTED);
    expect(report).toMatchObject({ accounts: 1n, entries: 2n, balanceMicros: 90n, findings: [] });
    expect((await coordinator`SELECT FROM vx.accounts`).length).toBe(0);
  });

  test("decides batches at every node, faster at the worker of the schema", async () => {
    for (const url of urls) {
      const { database, billing } = openAt(url, "vx_b");
      const payer = await createPayer(database, 100n);
      await charge(billing, payer, 10n);
      const admitter = new Admitter(database, { pipelines: 1, maxWaiting: 10, clocks: [clock] });
      await withinOneMinute(async () => {
        const lane = laneOfId(payer.accountId);
        const key = generateKey(lane, randomBytes);
        await createKey(database, TEST_ACTION, narrowKey(payer.accountId), key);
        const admit = async (scope: Scope, whileSuspended = false) => {
          const { fingerprint } = key;
          const admission = await admitter.admit({
            lane,
            fingerprint,
            scope,
            limited: true,
            address: "127.0.0.1",
            whileSuspended,
          });
          return `${admission.outcome}, ${"window" in admission && admission.window?.remaining} left`;
        };
        expect(await admit("read")).toBe("admitted, 1 left");
        expect(await admit("keys")).toBe("out_of_scope, 1 left");
        await setAccountSuspended(database, TEST_ACTION, payer.accountId, true);
        expect(await Promise.all([admit("read"), admit("read"), admit("keys", true)])).toEqual([
          "suspended, false left",
          "suspended, false left",
          "out_of_scope, 1 left",
        ]);
        await setAccountSuspended(database, TEST_ACTION, payer.accountId, false);
        expect(await Promise.all([admit("keys"), admit("read")])).toEqual(["out_of_scope, 1 left", "admitted, 0 left"]);
        expect(await admit("read")).toBe("rate_limited, 0 left");
      });
      await database.close();
    }
    const report = await audit(startServer("audit", "vx_b"), NOT_ABORTED);
    expect(report).toMatchObject({ accounts: BigInt(1 + urls.length), findings: [] });
    expect(await nodesOf("vx_b")).toEqual([await workerPort(coordinator, "vx_b")]);
  });

  test("is audited at its worker, also right after it moved", async () => {
    const database = openThroughCatalog("auditor", "vx_b");
    const before = await audit(database, NOT_ABORTED);
    const { source, target } = await placesOf("vx_b");
    expect(await sessionsOf(source, "auditor")).toBeGreaterThan(0);
    await moveSchema(coordinator, "vx_b", target);
    expect(await audit(database, NOT_ABORTED)).toEqual(before);
    expect(await sessionsOf(target, "auditor")).toBeGreaterThan(0);
    await vi.waitFor(async () => expect(await sessionsOf(source, "auditor")).toBe(0));
    await database.close();
    // As the command that also reads the archives.
    const cell = { address: { kind: "url", url: onCoordinator() }, schema: "vx_b", engine: "citus" } as const;
    const direct = await auditDatabases([cell], { signal: NOT_ABORTED, onProgress: () => undefined });
    expect(direct).toEqual(before);
  });

  test("is not audited at another node, whose statements would read in several snapshots", async () => {
    const { source } = await placesOf("vx_b");
    for (const port of cluster.ports.filter((each) => each !== source)) {
      const { database } = openAt(cluster.url(port), "vx_b");
      await expect(audit(database, NOT_ABORTED)).rejects.toMatchObject({ cause: { message: "schema_moved" } });
      await database.close();
    }
  });

  test(
    "keeps the counts of admissions when its schema moves: their commits wait for the disk",
    async () => {
      const database = startServer("counts", "vx_b");
      const { accountId } = await createPayer(database, 100n);
      const lane = laneOfId(accountId);
      const key = generateKey(lane, randomBytes);
      await createKey(database, TEST_ACTION, narrowKey(accountId, 100), key);
      const admitter = new Admitter(database, { pipelines: 1, maxWaiting: 10, clocks: [clock] });
      const admit = async () =>
        (
          await admitter.admit({
            lane,
            fingerprint: key.fingerprint,
            scope: "read",
            address: "127.0.0.1",
            limited: true,
            whileSuspended: false,
          })
        ).outcome;
      const { source, target } = await placesOf("vx_b");
      const worker = postgres(cluster.url(source), { max: 3 });

      const releaseAtRest = await holdCommits(worker);
      expect(await admit()).toBe("admitted");
      await releaseAtRest();

      // The move creates its replication slot, which then waits for the end of this transaction.
      const transaction = await worker.reserve();
      await transaction`BEGIN`;
      await transaction`SELECT pg_current_xact_id()`;
      const moved = moveSchema(coordinator, "vx_b", target);
      await vi.waitFor(async () => expect((await worker`SELECT FROM pg_replication_slots`).length).toBeGreaterThan(0), {
        timeout: MOVE_MS,
      });
      const release = await holdCommits(worker);
      const admitted = admit();
      try {
        await vi.waitFor(async () => expect(await waitingCommits(worker, "counts")).toBe(1), {
          timeout: OPTIONS.statementTimeoutMs,
        });
      } finally {
        await release();
        await transaction`COMMIT`;
        transaction.release();
        await moved;
        await worker.end();
      }
      expect(await admitted).toBe("admitted");
      expect(await workerPort(coordinator, "vx_b")).toBe(target);
    },
    MOVE_MS * 2,
  );

  test("gets the names of other shards, as in a restored cluster, by the next migration", async () => {
    const sql = await connect({ kind: "url", url: onCoordinator() }, { statementTimeoutMs: MOVE_MS, name: "restore" });
    await changeAllNodes(sql);
    await sql.begin(async (transaction) => {
      await transaction`SET LOCAL search_path = vx_b, pg_temp`;
      const tables = await transaction<{ name: string }[]>`
        SELECT c.relname AS name FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
        WHERE c.relnamespace = 'vx_b'::regnamespace`;
      const functions = functionsForCitus(readFunctions());
      const restored = withShards(functions, new Map(tables.map(({ name }) => [name, "1"])));
      await applyFunctions(transaction as unknown as Sql, "vx_b", restored);
    });
    await sql.end();
    await expect(nodesOf("vx_b")).rejects.toThrow("could not find valid entry for shard");
    await migrateAt(onCoordinator(), "citus", "vx_b");
    expect(await nodesOf("vx_b")).toEqual([await workerPort(coordinator, "vx_b")]);
    const database = openThroughCatalog("restored", "vx_b");
    expect(await audit(database, NOT_ABORTED)).toMatchObject({ accounts: 5n, findings: [] });
    await database.close();
  });

  test("cannot be split", async () => {
    const cell = { name: "a", address: { kind: "url", url: onCoordinator() }, schema: "vx", engine: "citus", lanes: [] } as const;
    const running = splitCell({
      source: cell,
      cells: [cell],
      standby: cell.address,
      lanes: [0],
      newId: () => "split_1",
      onStep: () => undefined,
      onWait: () => undefined,
    });
    await expect(running).rejects.toThrow('the cell "a" is on Citus');
  });

  test(
    `keeps money right while its schema moves ${MOVES} times under load`,
    async () => {
      const databases = [startServer("one"), startServer("two")];
      const billings = servers.slice(-2).map(({ billing }) => billing);
      const payers: Payer[] = [];
      for (let i = 0; i < ACCOUNTS; i++) payers.push(await createPayer(databases[0] as Database, 1_000_000_000n));
      const callers = new Callers(billings, payers, CALLERS);
      for (let move = 0; move < MOVES; move++) {
        const endedBefore = callers.ended;
        const { target: to } = await placesOf("vx");
        await moveSchema(coordinator, "vx", to);
        expect(await workerOfSchema()).toBe(to);
        expect(await nodesOf("vx")).toEqual([to]);
        await vi.waitFor(() => expect(callers.ended).toBeGreaterThan(endedBefore + 100), { timeout: MOVE_MS });
        // The next move then starts from sessions that have followed this one.
        await wait(1_000);
      }
      await callers.stop();
      console.log(`${callers.ended} generations, the slowest took ${Math.round(callers.slowestMs)} ms`);
      expect(callers.failures).toEqual([]);
      expect(await moneyProblems({ owner: coordinator })).toEqual([]);
      const [charged] = await coordinator<{ entries: string; micros: string }[]>`
        SELECT count(*) AS entries, -sum(amount_micros) AS micros FROM vx.ledger WHERE kind = 'generation'`;
      expect(charged).toEqual({ entries: String(callers.ended), micros: String(callers.chargedMicros) });
    },
    MOVES * MOVE_MS,
  );

  test("has an audit without findings", async () => {
    const report = await audit(servers[0]?.database as Database, NOT_ABORTED);
    expect(report).toMatchObject({ accounts: BigInt(ACCOUNTS), findings: [] });
  });

  test("is audited while the other nodes of the cluster are down, and after they restarted", async () => {
    const { source } = await placesOf("vx_b");
    const others = cluster.nodes.filter(({ port }) => port !== source);
    const database = openThroughCatalog("alone", "vx_b");
    const before = await audit(database, NOT_ABORTED);
    for (const node of others) await node.stop();
    expect(await audit(database, NOT_ABORTED)).toEqual(before);
    for (const node of others) await node.restart();
    expect(await audit(database, NOT_ABORTED)).toEqual(before);
    await database.close();
  });

  test("accepts probes of writes at every node, which keep few rows", async () => {
    for (const url of urls) {
      await coordinator`
        INSERT INTO vx_b.write_probes SELECT clock_timestamp() - interval '1 hour', '' FROM generate_series(1, 64)`;
      const { database } = openAt(url, "vx_b");
      const [row] = await database.call<{ clock: Date }>("probe_writes");
      expect(Math.abs(Number(row?.clock) - Date.now())).toBeLessThan(60_000);
      expect(await coordinator`SELECT FROM vx_b.write_probes`).toHaveLength(1);
      await coordinator`TRUNCATE vx_b.write_probes`;
      await database.close();
    }
  });

  test("gets the partition of a month that had none, with its entries, by the next migration", async () => {
    const database = openThroughCatalog("months", "vx_b");
    const { accountId } = await createPayer(database, 100n);
    const before = await audit(database, NOT_ABORTED);
    const month = 1_200;
    await database.call(
      "move_balance",
      TEST_CALLER,
      laneOfId(accountId),
      accountId,
      typeIds.entry(laneOfId(accountId)),
      month,
      "credit",
      5,
      "test",
      "1",
    );
    for (const url of urls) {
      const node = openAt(url, "vx_b");
      expect([...(await node.database.call("months_without_partition"))]).toEqual([{ month, entries: 1n }]);
      await node.database.close();
    }
    await migrateAt(onCoordinator(), "citus", "vx_b");
    expect([...(await database.call("months_without_partition"))]).toEqual([]);
    expect(await coordinator`SELECT FROM vx_b.ledger_2070_01 WHERE month = ${month}`).toHaveLength(1);
    expect(await audit(database, NOT_ABORTED)).toMatchObject({
      entries: before.entries + 1n,
      balanceMicros: before.balanceMicros + 5n,
      findings: [],
    });
    await database.close();
  });
});

/** Lets commits that wait for the disk wait for a standby that does not exist. Returns when they do. */
async function holdCommits(worker: postgres.Sql): Promise<() => Promise<void>> {
  await worker.unsafe("ALTER SYSTEM SET synchronous_standby_names = 'absent'");
  await worker`SELECT pg_reload_conf()`;
  let isHeld = false;
  const commits = (async () => {
    while (!isHeld) await worker`SELECT pg_logical_emit_message(true, 'test', '')`;
  })();
  await vi.waitFor(async () => expect(await waitingCommits(worker, "postgres.js")).toBe(1));
  isHeld = true;
  return async () => {
    await worker.unsafe("ALTER SYSTEM RESET synchronous_standby_names");
    await worker`SELECT pg_reload_conf()`;
    await commits;
  };
}

/** Sessions of this name whose commit waits. */
async function waitingCommits(worker: postgres.Sql, name: string): Promise<number> {
  const sessions = await worker`
    SELECT FROM pg_stat_activity WHERE application_name = ${name} AND wait_event = 'SyncRep'`;
  return sessions.length;
}

function narrowKey(accountId: string, rpm = 2) {
  const id = typeIds.key(laneOfId(accountId));
  return { id, accountId, columns: { name: "narrow", scopes: toScopeBits(["read"]), rate_limit_rpm: rpm } };
}
