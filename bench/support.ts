import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import postgres from "postgres";
import { startEmbeddedPostgres } from "../src/embedded-postgres/embedded-postgres.ts";
import type { DatabaseAddress } from "../src/store/driver/connect.ts";
import { migrate } from "../src/store/schema/migrate.ts";
import { loginTo, urlTo } from "../test/support/embedded.ts";
import { createTemporaryFolder } from "../test/support/temporary-folder.ts";

export type BenchDatabase = {
  readonly address: DatabaseAddress;
  readonly url: string;
  readonly owner: postgres.Sql;
  stop(): Promise<void>;
};

/** A PostgreSQL for the bench, configured as the server configures it, with fsync on. */
export async function startDatabase(): Promise<BenchDatabase> {
  const folder = createTemporaryFolder("bench");
  const embedded = await startEmbeddedPostgres({ dataDir: folder.path, say: () => undefined });
  await migrate({ kind: "url", url: urlTo(embedded) });
  const owner = postgres({ ...loginTo(embedded), max: 2 });
  await owner.unsafe(`ALTER ROLE vx_app PASSWORD '${embedded.verifierOf("vx_app")}'`);
  const app = loginTo(embedded, "vx_app");
  return {
    address: {
      kind: "socket",
      folder: app.host,
      user: app.username,
      password: app.password,
      database: app.database,
    },
    url: urlTo(embedded),
    owner,
    stop: async () => {
      await owner.end();
      await embedded.stop();
      folder.remove();
    },
  };
}

/** Creates keys on a plan whose limit is too high to be reached. Returns their fingerprints, in hex. */
export async function createKeys(owner: postgres.Sql, count: number): Promise<BenchKey[]> {
  await owner`INSERT INTO vx.plans VALUES ('bench', 1000000, 1000000, 10000000) ON CONFLICT DO NOTHING`;
  await owner`
    INSERT INTO vx.accounts (lane, id, name, plan, created_at)
    SELECT vx.lane_of('acct_' || lpad(i::text, 9, '0')), 'acct_' || lpad(i::text, 9, '0'), 'bench', 'bench', now()
    FROM generate_series(1, ${count}::int) i`;
  await owner`
    INSERT INTO vx.keys (lane, fingerprint, id, account_id, name, plan, scopes, visible_start, visible_end, created_at)
    SELECT a.lane, sha256(convert_to(a.id, 'UTF8')), 'key_' || substr(a.id, 6), a.id, 'bench', 'bench', 7, 'abcd',
           'wxyz', now()
    FROM vx.accounts a`;
  await owner`ANALYZE`;
  return await owner<BenchKey[]>`SELECT lane, encode(fingerprint, 'hex') AS fingerprint FROM vx.keys`;
}

export type BenchKey = { readonly lane: number; readonly fingerprint: string };

export type Program = {
  readonly pid: number;
  /** Resolves to the next line of the output that matches. */
  next(pattern: RegExp): Promise<string>;
  stop(): Promise<void>;
};

/** Programs to kill on exit, because a failed part of the bench does not stop its programs. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a program of the repository. */
export function startProgram(script: readonly string[], env: Record<string, string>): Program {
  const child = spawn(process.execPath, script, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    pid: child.pid ?? 0,
    next: async (pattern) => {
      for (let line = await lines.next(); line.done !== true; line = await lines.next()) {
        const found = pattern.exec(line.value);
        if (found) return found[1] ?? found[0];
      }
      throw new Error(`${script[0]} ended without a line like ${pattern}`);
    },
    stop: () => stopProgram(child),
  };
}

async function stopProgram(child: ChildProcess): Promise<void> {
  child.kill("SIGTERM");
  if (child.exitCode === null) await once(child, "exit");
}

/** Resident memory of a process in MiB (Linux). */
export function residentMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}

/** Runs concurrent callers for the given time. Each sends its next call as soon as the last one has ended. */
export async function hammer(
  callers: number,
  seconds: number,
  call: (caller: number) => Promise<unknown>,
): Promise<Load> {
  const latencies: number[] = [];
  const startedAt = performance.now();
  const until = startedAt + seconds * 1000;
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let at = performance.now(); at < until; ) {
        await call(caller);
        const now = performance.now();
        latencies.push(now - at);
        at = now;
      }
    }),
  );
  latencies.sort((a, b) => a - b);
  const at = (share: number) =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  return {
    perSecond: (latencies.length / (performance.now() - startedAt)) * 1000,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  };
}

export type Load = { readonly perSecond: number; readonly p50Ms: number; readonly p99Ms: number };

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** One line of the result: the measured value, and its floor or ceiling if it has one. */
export type Figure = {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly atLeast?: number;
  readonly atMost?: number;
};
