// Metered chat completions through the whole server, compared with @portkey-ai/gateway, which has no
// accounts. Both use the same model server. Not streamed, because the peer returns 500 for streams on this
// Node ("immutable" headers). Two more targets show where the time goes: the server with free holds and
// settlements, and a bare proxy.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { START } from "../test/support/start-script.ts";
import { createTemporaryFolder } from "../test/support/temporary-folder.ts";
import { openHttpLoad, postRequest } from "./http-load.ts";
import { createRemoteModel } from "./models.ts";
import { createPayers } from "./payers.ts";
import { freePort, startServer } from "./server.ts";
import { type BenchDatabase, type Figure, hammer, type Load, median, startProgram } from "./support.ts";

const PEER = "@portkey-ai/gateway@1.15.2";
const ACCOUNTS = 1_000;
const CONNECTIONS = 64;
/** Long enough to compile the code of each target. */
const WARM_UP_SECONDS = 8;
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
  const env = { VX_MODELS: model.path };
  const server = await startServer(database, env);
  const free = await startServer(database, env, ["--import", "./bench/free-billing.ts", ...START]);
  const bare = startProgram(["bench/bare-proxy.ts"], { UPSTREAM: upstreamUrl });
  const bareUrl = await bare.next(/^ready on (\S+)/);
  const port = await freePort();
  const peer = startProgram(
    [`${folder}/node_modules/@portkey-ai/gateway/build/start-server.js`, `--port=${port}`, "--headless"],
    { NODE_ENV: "production" },
  );
  await peer.next(/Ready for connections/);

  const ask = (name: string) =>
    JSON.stringify({ model: name, messages: [{ role: "user", content: "Say hello." }], max_tokens: 100 });
  const peerHeaders = `x-portkey-provider: openai\r\nx-portkey-custom-host: ${upstreamUrl}/v1\r\n`;
  const requests = payers.map(({ secret }) => postRequest(PATH, ask("bench"), secret));
  const targets = {
    ours: { url: server.url, requests },
    theirs: { url: `http://127.0.0.1:${port}`, requests: [postRequest(PATH, ask("m"), "none", peerHeaders)] },
    free: { url: free.url, requests },
    bare: { url: bareUrl, requests: [postRequest(PATH, ask("bench"), "none")] },
  };
  for (const target of Object.values(targets)) await measure(target, WARM_UP_SECONDS);
  const rounds: Round[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      ours: await measure(targets.ours, SECONDS),
      theirs: await measure(targets.theirs, SECONDS),
      free: await measure(targets.free, SECONDS),
      bare: await measure(targets.bare, SECONDS),
    });
  }
  for (const program of [server, free, bare, peer, upstream]) await program.stop();
  model.remove();
  return figuresOf(rounds);
}

type Target = { readonly url: string; readonly requests: readonly string[] };

/** Opens new connections, because the peer closes those that are idle while other targets are measured. */
async function measure({ url, requests }: Target, seconds: number): Promise<Load> {
  const load = await openHttpLoad(url, CONNECTIONS, requests);
  const measured = await hammer(CONNECTIONS, seconds, load.call);
  load.close();
  return measured;
}

type Round = Readonly<Record<"ours" | "theirs" | "free" | "bare", Load>>;

function figuresOf(rounds: readonly Round[]): Figure[] {
  const beside = (one: keyof Round) => median(rounds.map((r) => r[one].perSecond / r.theirs.perSecond));
  return [
    {
      name: `chat completions, ${CONNECTIONS} connections, metered`,
      value: median(rounds.map((r) => r.ours.perSecond)),
      unit: "/s",
    },
    { name: "  p99", value: median(rounds.map((r) => r.ours.p99Ms)), unit: "ms" },
    { name: `${PEER}, not metered`, value: median(rounds.map((r) => r.theirs.perSecond)), unit: "/s" },
    { name: "  p99", value: median(rounds.map((r) => r.theirs.p99Ms)), unit: "ms" },
    { name: "metered / not metered", value: beside("ours"), unit: "×", atLeast: 5 },
    { name: "  without hold and settle / not metered", value: beside("free"), unit: "×" },
    { name: "  a proxy that does nothing else / not metered", value: beside("bare"), unit: "×" },
    {
      name: "p99 metered / p99 not metered",
      value: median(rounds.map((r) => r.ours.p99Ms / r.theirs.p99Ms)),
      unit: "×",
      atMost: 1,
    },
  ];
}
