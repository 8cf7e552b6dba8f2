import { afterAll, beforeEach, expect, inject } from "vitest";
import { type Running, startApp } from "../../src/app/app.ts";
import { readConfig } from "../../src/app/settings/config.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { started } from "./started.ts";
import { createTemporaryFolder } from "./temporary-folder.ts";

export const OPERATOR_TOKEN = "operator-token-of-the-tests";

/** Of the log that a failure prints, in characters. */
const MAX_TOLD = 5_000;

/** A whole server on free ports, with its own database unless it shares one. */
export type TestApp = {
  readonly url: string;
  readonly adminUrl: string;
  readonly database: TestDatabase;
  /** Everything the server has logged so far. */
  readonly logText: () => string;
  /** What SIGHUP does. */
  reload(): Promise<void>;
  stop(): Promise<void>;
};

type TestAppOptions = { readonly env?: Record<string, string>; readonly database?: TestDatabase };

let shared: Promise<TestApp> | undefined;

/**
 * The server that the files of a worker share: tests create accounts, and names of what a whole server has, such as plans, of their own.
 * The log has what it has written since the tests of the file began.
 */
export function useTestApp(): TestApp {
  const app = started(async () => {
    shared ??= startTestApp();
    return { ...sinceNow(await shared), stop: async () => undefined };
  });
  tellOnFailure(() => [app]);
  return app;
}

export function sinceNow(app: TestApp): TestApp {
  const before = app.logText().length;
  return { ...app, logText: () => app.logText().slice(before) };
}

/** A server while the tests run: for tests that need an empty database or settings of their own. */
export function useOwnApp(options?: TestAppOptions): TestApp {
  const app = started(() => startTestApp(options));
  tellOnFailure(() => [app]);
  return app;
}

/** A test that fails prints what the servers have logged since it began. */
export function tellOnFailure(apps: () => readonly TestApp[]): void {
  beforeEach(({ onTestFailed }) => {
    const before = apps().map(({ logText }) => logText().length);
    onTestFailed(() => {
      for (const [i, { logText }] of apps().entries())
        console.error(`server ${i + 1} logged:\n${logText().slice(before[i]).slice(-MAX_TOLD)}`);
    });
  });
}

/** Checks after the tests that nothing failed in the server itself, apart from upkeep that a slow machine did not finish in time. */
export function expectNoFailures(app: TestApp): void {
  afterAll(() => {
    const lines = app.logText().split("\n");
    const failures = lines.filter((line) => /uncaught|unhandled|request failed|"level":"error"/.test(line));
    expect(failures.filter((line) => !line.includes("canceling statement due to statement timeout"))).toEqual([]);
  });
}

export async function startTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const database = options.database ?? (await createTestDatabase());
  const folder = createTemporaryFolder("app", inject("runFolder"));
  const env = { VX_ADMIN_TOKEN: OPERATOR_TOKEN, VX_DATA_DIR: folder.path, ...options.env };
  const launched = launchTestApp({ DATABASE_URL: database.url, ...env });
  const app = await launched.started;
  return {
    url: app.url,
    adminUrl: app.adminUrl,
    database,
    logText: launched.logText,
    reload: () => app.reload(),
    stop: async () => {
      await app.stop();
      if (!options.database) await database.drop();
      folder.remove();
    },
  };
}

/** A server that may still be starting, in the process of the test. */
export type LaunchedApp = {
  /** Rejects with the error that `vx serve` prints. */
  readonly started: Promise<Running>;
  /** The lines that it has printed on the terminal. */
  readonly printed: readonly string[];
  readonly logText: () => string;
  /** The key of the demo account, which the first start prints. */
  readonly demoKey: () => string;
  /** What SIGTERM does, without the exit of the process. */
  end(): Promise<void>;
};

/** Starts a server on free ports with these settings, as `vx serve` does. */
export function launchTestApp(env: Record<string, string>): LaunchedApp {
  const config = readConfig({ PORT: "0", VX_ADMIN_PORT: "0", ...env });
  const printed: string[] = [];
  let logged = "";
  const log = createLog(config.logLevel, {
    write: (line) => {
      logged += line;
    },
  });
  const stopping = new AbortController();
  const started = startApp({ config, log, print: (line) => printed.push(line), stopSignal: stopping.signal });
  // The test handles it when it waits for it.
  started.catch(() => undefined);
  return {
    started,
    printed,
    logText: () => logged,
    demoKey: () => /vx_live_\w+/.exec(printed.join("\n"))?.[0] ?? "",
    end: async () => {
      stopping.abort();
      const app = await started.catch(() => undefined);
      await app?.stop();
    },
  };
}
