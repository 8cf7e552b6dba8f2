import type { Database } from "../src/store/driver/database.ts";
import { loginIn } from "../test/support/embedded.ts";
import type { Checkout } from "./checkout.ts";

type DatabaseModule = typeof import("../src/store/driver/database.ts");

/** The connections of the store to the database of a server, as role of the server. */
export async function openStore(
  checkout: Checkout,
  cleanup: AsyncDisposableStack,
  { dataDir, connections }: { dataDir: string; connections: number },
): Promise<Database> {
  const { Database } = await checkout.load<DatabaseModule>("src/store/driver/database.ts");
  const login = loginIn(dataDir, "vx_app");
  const database = new Database(
    {
      kind: "socket",
      folder: login.host,
      user: login.username,
      password: login.password,
      database: login.database,
    },
    {
      connections,
      name: "bench",
      role: "vx_app",
      statementTimeoutMs: 5_000,
      maxStatements: 4_096,
      maxWaitMs: 5_000,
    },
  );
  cleanup.defer(() => database.close());
  return database;
}
