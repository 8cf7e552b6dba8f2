import { startApp } from "../../src/app/app.ts";
import { readConfig } from "../../src/app/settings/config.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
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

export async function startTestApp(
  options: { env?: Record<string, string>; database?: TestDatabase } = {},
): Promise<TestApp> {
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
