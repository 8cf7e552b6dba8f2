import { afterAll, expect } from "vitest";
import { startApp } from "../../src/app/app.ts";
import { readConfig } from "../../src/app/settings/config.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { started } from "./started.ts";
import { createTemporaryFolder } from "./temporary-folder.ts";

export const OPERATOR_TOKEN = "operator-token-of-the-tests";

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

/** The same while the tests run. */
export function useTestApp(options?: TestAppOptions): TestApp {
  return started(() => startTestApp(options));
}

/** Checks after the tests that nothing failed in the server itself. */
export function expectNoFailures(app: TestApp): void {
  afterAll(() => expect(app.logText()).not.toMatch(/uncaught|unhandled|request failed|"level":"error"/));
}

export async function startTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const database = options.database ?? (await createTestDatabase());
  const folder = createTemporaryFolder("app");
  const lines: string[] = [];
  const config = readConfig({
    DATABASE_URL: database.url,
    PORT: "0",
    VX_ADMIN_PORT: "0",
    VX_ADMIN_TOKEN: OPERATOR_TOKEN,
    VX_DATA_DIR: folder.path,
    ...options.env,
  });
  const log = createLog(config.logLevel, { write: (line) => lines.push(line) });
  const app = await startApp({
    config,
    log,
    print: () => undefined,
    stopSignal: new AbortController().signal,
  });
  return {
    url: app.url,
    adminUrl: app.adminUrl,
    database,
    logText: () => lines.join(""),
    reload: () => app.reload(),
    stop: async () => {
      await app.stop();
      if (!options.database) await database.drop();
      folder.remove();
    },
  };
}
