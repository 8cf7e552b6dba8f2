// Chat completions through the whole server, metered, beside @portkey-ai/gateway, which keeps no accounts. Both stand
// before the same model server. Not streamed: there the peer answers 500 on this Node ("immutable" headers).
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { createTemporaryFolder } from "../test/support/temporary-folder.ts";
import { openHttpLoad, postRequest } from "./http-load.ts";
import { createRemoteModel } from "./models.ts";
import { createPayers } from "./payers.ts";
import { freePort, startServer } from "./server.ts";
import { type BenchDatabase, type Figure, hammer, median, startProgram } from "./support.ts";

const PEER = "@portkey-ai/gateway@1.15.2";
const ACCOUNTS = 1_000;
const CONNECTIONS = 64;
const SECONDS = 3;
const ROUNDS = 5;
const PATH = "/v1/chat/completions";

export async function gateway(database: BenchDatabase): Promise<Figure[]> {
  const folder = createTemporaryFolder("bench-gateway");
  try {
    if (!(await install(folder.path))) return [];
    return await compare(database, folder.path);
  } finally {
    folder.remove();
  }
}

async function install(folder: string): Promise<boolean> {
  try {
    const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save"];
    await promisify(execFile)("npm", ["install", ...options, "--prefix", folder, PEER]);
    return true;
  } catch (error) {
    console.log(`  SKIPPED: ${PEER} cannot be installed, so there is nothing to compare with`);
    console.log(`  ${(error as Error).message.split("\n")[0]}`);
    return false;
  }
}

async function compare(database: BenchDatabase, folder: string): Promise<Figure[]> {
  const upstream = startProgram(["bench/upstream-server.ts"], {});
  const upstreamUrl = await upstream.next(/^ready on (\S+)/);
  const model = createRemoteModel(upstreamUrl);
  const payers = await createPayers(database.owner, ACCOUNTS);
  const server = await startServer(database, { VX_MODELS: model.path });
  const port = await freePort();
  const peer = startProgram(
    [`${folder}/node_modules/@portkey-ai/gateway/build/start-server.js`, `--port=${port}`, "--headless"],
    { NODE_ENV: "production" },
  );
  await peer.next(/Ready for connections/);

  const ask = (name: string) =>
    JSON.stringify({ model: name, messages: [{ role: "user", content: "Say hello." }], max_tokens: 100 });
  const peerHeaders = `x-portkey-provider: openai\r\nx-portkey-custom-host: ${upstreamUrl}/v1\r\n`;
  const ours = await openHttpLoad(
    server.url,
    CONNECTIONS,
    payers.map(({ secret }) => postRequest(PATH, ask("bench"), secret)),
  );
  const theirs = await openHttpLoad(
    `http://127.0.0.1:${port}`,
    CONNECTIONS,
    postRequest(PATH, ask("m"), "none", peerHeaders),
  );
  for (const load of [ours, theirs]) await hammer(CONNECTIONS, 3, load.call);
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      ours: await hammer(CONNECTIONS, SECONDS, ours.call),
      theirs: await hammer(CONNECTIONS, SECONDS, theirs.call),
    });
  }
  for (const load of [ours, theirs]) load.close();
  for (const program of [server, peer, upstream]) await program.stop();
  model.remove();
  return [
    {
      name: `chat completions, ${CONNECTIONS} connections, metered`,
      value: median(rounds.map((r) => r.ours.perSecond)),
      unit: "/s",
    },
    { name: "  p99", value: median(rounds.map((r) => r.ours.p99Ms)), unit: "ms" },
    { name: `${PEER}, not metered`, value: median(rounds.map((r) => r.theirs.perSecond)), unit: "/s" },
    { name: "  p99", value: median(rounds.map((r) => r.theirs.p99Ms)), unit: "ms" },
    {
      name: "metered / not metered",
      value: median(rounds.map((r) => r.ours.perSecond / r.theirs.perSecond)),
      unit: "×",
      atLeast: 5,
    },
    {
      name: "p99 metered / p99 not metered",
      value: median(rounds.map((r) => r.ours.p99Ms / r.theirs.p99Ms)),
      unit: "×",
      atMost: 1,
    },
  ];
}
