// How many of the calls that a gateway answered it also charges: what its key has paid, divided by the price of one
// call. With a crash, all processes of the gateway and of its database are killed right after the last answer, and
// its charges are read after a restart.
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { pidsOf } from "../cpu-time.ts";
import { CHAT_PATH, type Chat, chatBody, PIECE, PIECES } from "./chats.ts";
import type { Meter, Peer } from "./peer.ts";

const CALLERS = 16;
const CALLS_EACH = 25;
const POLL_MS = 250;
/** Charges may be stored after the answer. */
const UNCHANGED_POLLS = 20;

export type Charged = { readonly answered: number; readonly charged: number };

export async function countCharged(peer: Peer, meter: Meter, chat: Chat, isKilled: boolean): Promise<Charged> {
  const before = await readSettled(meter);
  if (!(await isAnswered(peer, chat))) return { answered: 0, charged: 0 };
  const price = (await readSettled(meter)) - before;
  if (!(price > 0)) throw new Error(`${peer.version} did not charge a call`);
  const pids = pidsOf(peer.pid);
  let answered = 1;
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      for (let made = 0; made < CALLS_EACH; made++) if (await isAnswered(peer, chat)) answered++;
    }),
  );
  if (isKilled) {
    await kill(pids);
    await meter.restart();
  }
  return { answered, charged: Math.round(((await readSettled(meter)) - before) / price) };
}

/** Calls the gateway and reads the whole reply. */
async function isAnswered(peer: Peer, chat: Chat): Promise<boolean> {
  const response = await fetch(peer.url + CHAT_PATH, {
    method: "POST",
    headers: { authorization: `Bearer ${peer.secret}`, "content-type": "application/json" },
    body: chatBody(peer, chat),
  });
  const text = await response.text();
  return response.ok && text.split(PIECE).length > PIECES;
}

/** What has been charged, when it no longer changes. */
async function readSettled({ readSpent }: Meter): Promise<number> {
  let spent = await readSpent();
  for (let unchanged = 0; unchanged < UNCHANGED_POLLS; unchanged++) {
    await wait(POLL_MS);
    const now = await readSpent();
    if (now !== spent) unchanged = 0;
    spent = now;
  }
  return spent;
}

async function kill(pids: readonly number[]): Promise<void> {
  for (const pid of pids.filter(isRunning)) process.kill(pid, "SIGKILL");
  while (pids.some(isRunning)) await wait(POLL_MS);
}

function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
