// vx as `npm start` runs it, with its embedded PostgreSQL.
import { OWN_CHECKOUT } from "../checkout.ts";
import { createPayers } from "../payers.ts";
import { createRemoteModels } from "../remote-models.ts";
import { freePort, startServer, temporaryFolder } from "../server.ts";
import type { StartPeer } from "./peer.ts";

export const startVx: StartPeer = async (cleanup, upstream) => {
  const options = {
    env: { PORT: String(await freePort()), VX_MODELS: createRemoteModels(cleanup, { bench: upstream }) },
    dataDir: temporaryFolder(cleanup),
    hasDefaultLog: true,
  };
  let server = await startServer(OWN_CHECKOUT, cleanup, options);
  const [payer] = await createPayers(server, 1);
  return {
    version: "vx",
    url: server.url,
    get pid() {
      return server.pid;
    },
    model: "bench",
    secret: payer?.secret ?? "",
    headers: "",
    meter: {
      name: "balance, PostgreSQL",
      readSpent: async () => {
        const { account } = await server.operate<{ account: { balanceMicros: string } }>("GetAccount", {
          accountId: payer?.accountId,
        });
        return -Number(account.balanceMicros);
      },
      restart: async () => {
        server = await startServer(OWN_CHECKOUT, cleanup, options);
      },
    },
  };
};
