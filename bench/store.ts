import type { CellRouter } from "../src/database/cells/cell-router.ts";
import type { Database, Servers } from "../src/database/driver/database.ts";
import { loginIn } from "../test/support/embedded.ts";
import type { Checkout } from "./checkout.ts";

type DatabaseModule = typeof import("../src/database/driver/database.ts");
type RouterModule = typeof import("../src/database/cells/cell-router.ts");
type DirectoryModule = typeof import("../src/database/cells/cell-directory.ts");

const OPTIONS = { name: "bench", role: "vx_app", statementTimeoutMs: 5_000, maxStatements: 4_096, maxWaitMs: 5_000 };

/** The connections of the store to the database of a server, as role of the server. */
export async function openStore(
  checkout: Checkout,
  cleanup: AsyncDisposableStack,
  { dataDir, connections }: { dataDir: string; connections: number },
): Promise<Database> {
  const { Database } = await checkout.load<DatabaseModule>("src/database/driver/database.ts");
  const login = loginIn(dataDir, "vx_app");
  const database = new Database(
    { kind: "socket", folder: login.host, user: login.username, password: login.password, database: login.database },
    { ...OPTIONS, connections },
  );
  cleanup.defer(() => database.close());
  return database;
}

/** The same to several cells. */
export async function openCells(
  checkout: Checkout,
  cleanup: AsyncDisposableStack,
  cells: readonly { readonly name: string; readonly servers: Servers; readonly schema: string }[],
  connections: number,
): Promise<CellRouter> {
  const { Database } = await checkout.load<DatabaseModule>("src/database/driver/database.ts");
  const { CellRouter } = await checkout.load<RouterModule>("src/database/cells/cell-router.ts");
  const { CellDirectory } = await checkout.load<DirectoryModule>("src/database/cells/cell-directory.ts");
  const pools = cells.map(({ servers, schema }) => new Database(servers, { ...OPTIONS, schema, connections }));
  const directory = new CellDirectory(
    cells.map(({ name }, i) => {
      return { name, pool: pools[i] as Database, assumedLanes: [], prepare: () => Promise.resolve() };
    }),
    () => undefined,
  );
  for (const index of pools.keys()) await directory.maintain(index);
  const router = new CellRouter(pools, directory);
  cleanup.defer(() => router.close());
  return router;
}
