// npm run bench:peers [-- --rounds N --kills N]
//     measures this server beside other gateways, in interleaved rounds: the same machine, the same model server,
//     default settings and logs. Then it counts how many answered calls are charged, without a crash and with one.
// Gateways that cannot be installed are skipped. They are installed into .clients, once.
import { parseArgs } from "node:util";
import { cpuMicrosOf } from "../cpu-time.ts";
import { postRequest } from "../http-load.ts";
import { median } from "../load.ts";
import { buildLoadProgram, type LoadResult, runLoadProgram } from "../load-program.ts";
import { Unavailable } from "../part.ts";
import { startBaseline } from "../program.ts";
import { CHAT_PATH, CHATS, type Chat, chatBody, PIECE, PIECES } from "./chats.ts";
import { type Charged, countCharged } from "./crash.ts";
import { startLitellm } from "./litellm.ts";
import { startOmniroute } from "./omniroute.ts";
import { startOneApi } from "./one-api.ts";
import type { Peer } from "./peer.ts";
import { startPortkey } from "./portkey.ts";
import { startVx } from "./vx.ts";

const CALLERS = 64;
const SECONDS = 3;
const WARM_UP_ROUNDS = 2;

const { values } = parseArgs({ options: { rounds: { type: "string", default: "5" }, kills: { type: "string", default: "3" } } });
const [rounds, kills] = [Number(values.rounds), Number(values.kills)];

type Measured = { readonly many: LoadResult; readonly cpuMicros: number; readonly one: LoadResult };
type Row = {
  readonly peer: Peer;
  readonly chat: Chat;
  readonly measured: Measured[];
  readonly calm: Charged[];
  readonly killed: Charged[];
};

await using cleanup = new AsyncDisposableStack();
await buildLoadProgram();
const upstream = await startBaseline(cleanup, "many-pieces-server", { args: [String(PIECES)] });
const rows = (await startPeers()).flatMap((peer) =>
  CHATS.map((chat): Row => ({ peer, chat, measured: [], calm: [], killed: [] })),
);
for (let round = rounds > 0 ? -WARM_UP_ROUNDS : 0; round < rounds; round++) {
  for (const { peer, chat, measured } of rows) {
    const one = await measurePeer(peer, chat);
    if (round >= 0) measured.push(one);
  }
}
for (const { peer, chat, calm, killed } of rows) {
  const { meter } = peer;
  while (meter && killed.length < kills) {
    calm.push(await countCharged(peer, meter, chat, false));
    killed.push(await countCharged(peer, meter, chat, true));
  }
}
for (const chat of CHATS) printTable(chat);

async function startPeers(): Promise<Peer[]> {
  const peers: Peer[] = [];
  for (const [name, start] of Object.entries({
    vx: startVx,
    Portkey: startPortkey,
    OmniRoute: startOmniroute,
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
  return peers;
}

async function measurePeer(peer: Peer, chat: Chat): Promise<Measured> {
  const cpuBefore = cpuMicrosOf(peer.pid);
  const many = await callPeer(peer, chat, CALLERS);
  const cpuMicros = (cpuMicrosOf(peer.pid) - cpuBefore) / many.calls;
  return { many, cpuMicros, one: await callPeer(peer, chat, 1) };
}

function callPeer(peer: Peer, chat: Chat, callers: number): Promise<LoadResult> {
  const request = postRequest(CHAT_PATH, chatBody(peer, chat), peer.secret, peer.headers);
  return runLoadProgram({
    Protocol: "http",
    Address: new URL(peer.url).host,
    Callers: callers,
    Seconds: SECONDS,
    Requests: [Buffer.from(request).toString("base64")],
    Expect: PIECE,
    ExpectTimes: PIECES,
    // Counted and printed: some gateways fail calls when many come at once.
    MayFail: true,
  });
}

/** A Markdown table. Its values are medians of the rounds. */
function printTable(chat: Chat): void {
  console.log(`\n${chat.title}\n`);
  console.log(
    `| gateway | charges | calls/s, ${CALLERS} callers | p50 | p99 | failed | CPU per call | p50, one caller | ` +
      "charged | after SIGKILL |",
  );
  console.log("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|");
  for (const row of rows.filter((one) => one.chat === chat)) console.log(`| ${cellsOf(row).join(" | ")} |`);
}

function cellsOf({ peer: { version, meter }, measured, calm, killed }: Row): string[] {
  const of = (value: (one: Measured) => number, unit: string, digits: number) => {
    const middle = median(measured.map(value));
    // Without a successful call there is no latency.
    return Number.isFinite(middle) ? `${middle.toFixed(digits)}${unit}` : "–";
  };
  const ms = (load: (one: Measured) => LoadResult, share: "p50Ms" | "p99Ms") =>
    of((one) => (load(one).calls > 0 ? load(one)[share] : Number.NaN), " ms", 1);
  const share = (counts: readonly Charged[]) => {
    const sum = (value: (one: Charged) => number) => counts.reduce((total, one) => total + value(one), 0);
    const answered = sum((one) => one.answered);
    return answered > 0 ? `${sum((one) => one.charged)} of ${answered}` : "–";
  };
  return [
    version,
    meter?.name ?? "no",
    of((one) => one.many.perSecond, "", 0),
    ms((one) => one.many, "p50Ms"),
    ms((one) => one.many, "p99Ms"),
    of((one) => one.many.failed, "", 0),
    of((one) => one.cpuMicros, " µs", 0),
    ms((one) => one.one, "p50Ms"),
    share(calm),
    share(killed),
  ];
}
