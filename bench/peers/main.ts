// npm run bench:peers   measures this server beside other gateways, in interleaved rounds: the same machine, the
//                       same model server, chat completions that are not streamed, default log settings.
// Gateways that cannot be installed are skipped. They are installed into .clients, once.

import { OWN_CHECKOUT } from "../checkout.ts";
import { cpuMicrosOf } from "../cpu-time.ts";
import { postRequest } from "../http-load.ts";
import { median } from "../load.ts";
import { buildLoadProgram, type LoadResult, runLoadProgram } from "../load-program.ts";
import { Unavailable } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startBaseline } from "../program.ts";
import { createRemoteModels } from "../remote-models.ts";
import { startServer } from "../server.ts";
import { startLitellm } from "./litellm.ts";
import { startOneApi } from "./one-api.ts";
import type { Peer, StartPeer } from "./peer.ts";
import { startPortkey } from "./portkey.ts";

const CALLERS = 64;
const SECONDS = 3;
const ROUNDS = 5;
const WARM_UP_ROUNDS = 2;

const startVx: StartPeer = async (cleanup, upstream) => {
  const env = { VX_MODELS: createRemoteModels(cleanup, { bench: upstream }) };
  const { url, pid, ...server } = await startServer(OWN_CHECKOUT, cleanup, { env, hasDefaultLog: true });
  const [payer] = await createPayers({ url, pid, ...server }, 1);
  return {
    version: "vx",
    url,
    pid,
    isMetered: true,
    model: "bench",
    secret: payer?.secret ?? "",
    headers: "",
  };
};

type Measured = { readonly many: LoadResult; readonly cpuMicros: number; readonly one: LoadResult };

await using cleanup = new AsyncDisposableStack();
await buildLoadProgram();
const upstream = await startBaseline(cleanup, "upstream-server");
const peers: Peer[] = [];
for (const [name, start] of Object.entries({
  vx: startVx,
  Portkey: startPortkey,
  LiteLLM: startLitellm,
  "one-api": startOneApi,
})) {
  try {
    peers.push(await start(cleanup, upstream));
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    console.error(`SKIPPED: ${name}: ${error.message}`);
  }
}

const rounds = new Map<Peer, Measured[]>(peers.map((peer) => [peer, []]));
for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
  for (const peer of peers) {
    const measured = await measurePeer(peer);
    if (round >= 0) rounds.get(peer)?.push(measured);
  }
}
printTable();

async function measurePeer(peer: Peer): Promise<Measured> {
  const cpuBefore = cpuMicrosOf(peer.pid);
  const many = await callPeer(peer, CALLERS);
  const cpuMicros = (cpuMicrosOf(peer.pid) - cpuBefore) / many.calls;
  return { many, cpuMicros, one: await callPeer(peer, 1) };
}

function callPeer({ url, model, secret, headers }: Peer, callers: number): Promise<LoadResult> {
  const body = { model, messages: [{ role: "user", content: "Say hello." }], max_tokens: 100 };
  const request = postRequest("/v1/chat/completions", JSON.stringify(body), secret, headers);
  return runLoadProgram({
    Protocol: "http",
    Address: new URL(url).host,
    Callers: callers,
    Seconds: SECONDS,
    Requests: [Buffer.from(request).toString("base64")],
    Expect: "Hello, world.",
    // Counted and printed: some gateways fail calls when many come at once.
    MayFail: true,
  });
}

/** A Markdown table. Its values are medians of the rounds. */
function printTable(): void {
  console.log(
    `\n| gateway | metered | calls/s, ${CALLERS} callers | p50 | p99 | failed | CPU per call | p50, one caller |`,
  );
  console.log("|---|---|--:|--:|--:|--:|--:|--:|");
  for (const [{ version, isMetered }, measured] of rounds) {
    const of = (value: (one: Measured) => number) => median(measured.map(value));
    const ms = (value: (one: Measured) => number) => `${of(value).toFixed(1)} ms`;
    console.log(
      `| ${version} | ${isMetered ? "yes" : "no"} | ${of((r) => r.many.perSecond).toFixed(0)} | ` +
        `${ms((r) => r.many.p50Ms)} | ${ms((r) => r.many.p99Ms)} | ` +
        `${of((r) => r.many.failed)} | ${of((r) => r.cpuMicros).toFixed(0)} µs | ` +
        `${ms((r) => r.one.p50Ms)} |`,
    );
  }
}
