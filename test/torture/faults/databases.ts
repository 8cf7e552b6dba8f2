import { setTimeout as wait } from "node:timers/promises";
import postgres from "postgres";
import { SERVER_LOGIN } from "../database.ts";
import type { Line } from "../line.ts";
import { replaceInFunction } from "../planted/plant.ts";
import type { Fault } from "./fault.ts";

/** Sends SIGKILL to PostgreSQL and all its children, and restarts it two seconds later. */
export const killDatabase: Fault = {
  name: "PostgreSQL killed",
  strike: async ({ arena, onDatabaseKill }) => {
    arena.database.kill();
    onDatabaseKill();
    await wait(1_500);
    await arena.database.revive();
  },
};

/** Locks every lane for longer than the statement timeout, as a careless maintenance job would. */
export const lockLanes: Fault = {
  name: "all lanes locked for 5 s",
  strike: async ({ arena }) => {
    await arena.database.owner.begin(async (sql) => {
      await sql`SELECT lane FROM vx.lanes ORDER BY lane FOR UPDATE`;
      await wait(5_000);
    });
  },
};

/** Other clients take every connection of PostgreSQL while the servers lose theirs. */
export const exhaustConnections: Fault = {
  name: "no database connections left",
  strike: async ({ arena }) => {
    const taken = Array.from({ length: 110 }, () =>
      postgres({ ...arena.database.login, max: 1, connect_timeout: 2, fetch_types: false }),
    );
    const take = () => Promise.allSettled(taken.map((sql) => sql`SELECT 1`));
    try {
      await take();
      for (const proxy of arena.databaseLines) proxy.cut();
      // Take the connections that the servers have lost since the first attempt.
      for (let i = 0; i < 5; i++) {
        await take();
        await wait(300);
      }
    } finally {
      await Promise.all(taken.map((sql) => sql.end({ timeout: 0 })));
    }
  },
};

/**
 * Stops all processes of PostgreSQL for longer than the servers' timeouts. They then execute what they
 * received.
 */
export function pauseDatabase(seconds: number): Fault {
  return {
    name: `PostgreSQL stopped for ${seconds} s`,
    lastsSeconds: seconds,
    strike: async ({ arena }) => {
      const resume = arena.database.pause();
      await wait(seconds * 1_000);
      resume();
    },
  };
}

/** Statements on the servers' present connections arrive long after the servers have opened new ones. */
export const lateStatements: Fault = {
  name: "database: statements 10 s late",
  lastsSeconds: 13,
  strike: async ({ arena, victim }) => {
    const line = arena.databaseLines[victim];
    const release = line && (await stallBatch(line));
    await wait(10_000);
    release?.();
  },
};

const BILLING = "vx billing";
/** Longer than the other statements on the connection for holds and settlements. */
const BATCH_BYTES = 1_000;
/** With other faults at the same time, there may be no such batch. */
const MAX_ATTEMPTS = 5;

/**
 * Stalls the present connections when a batch with many holds is next. Calls are admitted while the replies to holds and
 * settlements wait, so their holds queue. A late statement without holds would be harmless, so another statement is
 * released, and the stall begins again.
 */
async function stallBatch(line: Line): Promise<() => void> {
  for (let attempts = 1; ; attempts++) {
    const releaseReplies = line.holdReplies(BILLING);
    await wait(500);
    const release = line.stall();
    releaseReplies();
    await wait(100);
    if (line.heldForwardBytes(BILLING) > BATCH_BYTES || attempts === MAX_ATTEMPTS) return release;
    release();
  }
}

/** The servers' role may not log in, and their connections are terminated. */
export const lockRole: Fault = {
  name: "role cannot log in for 2.5 s",
  strike: async ({ arena }) => {
    const { owner } = arena.database;
    await owner.unsafe(`ALTER ROLE ${SERVER_LOGIN} NOLOGIN`);
    await owner`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ${SERVER_LOGIN}`;
    await wait(2_500);
    await owner.unsafe(`ALTER ROLE ${SERVER_LOGIN} LOGIN`);
  },
};

/** Statements fail with an error that the servers do not expect. */
export const renameFunction: Fault = {
  name: "missing function for 2.5 s",
  strike: async ({ arena }) => {
    const { owner } = arena.database;
    await owner`ALTER FUNCTION vx.bill RENAME TO renamed`;
    await wait(2_500);
    await owner`ALTER FUNCTION vx.renamed RENAME TO bill`;
  },
};

/**
 * The clock of the database goes back and returns, twice: a used-up minute must not start again. It goes back
 * exactly one minute, because after a larger step counting restarts.
 */
export const stepDatabaseClock: Fault = {
  name: "the database clock changes",
  isHarmless: true,
  strike: async ({ arena, onClockStep }) => {
    const { owner } = arena.database;
    await owner.unsafe(CLOCK);
    const restored = await replaceInFunction(owner, "admit", { find: "clock_timestamp()", put: "torture.clock()" });
    onClockStep();
    try {
      for (let i = 0; i < 2; i++) {
        await owner`UPDATE torture.shift SET by = interval '-60 seconds'`;
        await wait(900);
        await owner`UPDATE torture.shift SET by = interval '0'`;
        await wait(300);
      }
    } finally {
      await owner.unsafe(restored);
    }
  },
};

const CLOCK = `
  CREATE SCHEMA IF NOT EXISTS torture;
  CREATE TABLE IF NOT EXISTS torture.shift (by interval NOT NULL);
  DELETE FROM torture.shift;
  INSERT INTO torture.shift VALUES ('0');
  CREATE OR REPLACE FUNCTION torture.clock() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT clock_timestamp() + by FROM torture.shift'`;
