import { type DatabaseAddress, endpointsOf } from "./endpoints.ts";
import { Session } from "./session.ts";

const TIMEOUT_MS = 2_000;

/** Rejects unless a server of the address has the schema, for the role. It may be a standby. */
export async function reachCell(address: DatabaseAddress, schema: string, role: string): Promise<void> {
  await Promise.any(
    endpointsOf(address).map(async (endpoint) => {
      const options = { statementTimeoutMs: TIMEOUT_MS, name: "vx waiting cell", role };
      const session = await Session.connect(endpoint, options);
      try {
        await session.sql.unsafe(`SELECT name FROM ${schema}.cell_state()`);
      } finally {
        await session.close();
      }
    }),
  );
}
