import { setTimeout } from "node:timers/promises";
import { cpuMicrosOf } from "./cpu-time.ts";
import { getRequest, postRequest } from "./http-load.ts";
import type { LargeChat } from "./large-chats.ts";
import { type LoadResult, runLoadProgram } from "./load-program.ts";

/** Where large calls go, and the key and headers of their callers. */
type ChatTarget = { readonly url: string; readonly model: string; readonly secret: string; readonly headers?: string };

export type LargeLoad = {
  readonly perSecond: number;
  readonly aloneP50Ms: number;
  readonly aloneP99Ms: number;
  readonly calls: number;
};

export type LargeServerLoad = LargeLoad & {
  /** CPU time of the server and its PostgreSQL per call. */
  readonly cpuMs: number;
};

const CHAT_PATH = "/v1/chat/completions";
const SECONDS = 1.5;

/** An arm that sends large calls, first one at a time and then with several callers. */
export function largeArm(chat: LargeChat, target: ChatTarget): () => Promise<LargeLoad> {
  const send = senderOf(chat, target);
  return async () => {
    const alone = await send(1, SECONDS);
    const { perSecond, calls } = await send(chat.callers, SECONDS);
    return { perSecond, aloneP50Ms: alone.p50Ms, aloneP99Ms: alone.p99Ms, calls: alone.calls + calls };
  };
}

/** Adds the CPU time per call of the server. */
export function largeServerArm(pid: number, chat: LargeChat, target: ChatTarget): () => Promise<LargeServerLoad> {
  const arm = largeArm(chat, target);
  return async () => {
    const before = cpuMicrosOf(pid);
    const load = await arm();
    return { ...load, cpuMs: (cpuMicrosOf(pid) - before) / 1_000 / load.calls };
  };
}

/** In milliseconds: latencies of small calls. */
export type SmallCalls = {
  readonly meP50: number;
  readonly meP99: number;
  readonly meMax: number;
  readonly chatP50: number;
  readonly chatP99: number;
  readonly chatMax: number;
};

const PROBE_PAUSE_MS = 5;
const HEAD_START_MS = 300;

/**
 * An arm that makes small calls, one at a time, while the given number of callers send large ones. Each kind of
 * call has a client process of its own, so that the clients do not delay each other.
 */
export function smallCallsArm(
  chat: LargeChat,
  target: ChatTarget,
  small: ChatTarget,
  largeCallers: number,
): () => Promise<SmallCalls> {
  const send = senderOf(chat, target);
  const body = { messages: [{ role: "user", content: "Say hello." }], max_tokens: 100 };
  const smallChat = postRequest(CHAT_PATH, JSON.stringify({ model: small.model, ...body }), small.secret);
  return async () => {
    const large = largeCallers > 0 ? send(largeCallers, SECONDS + (2 * HEAD_START_MS) / 1_000) : Promise.resolve();
    await setTimeout(HEAD_START_MS);
    const probes = { Callers: 1, Seconds: SECONDS, PauseMs: PROBE_PAUSE_MS };
    const [me, chats] = await Promise.all([
      sendRequest(small.url, getRequest("/v1/me", small.secret), probes),
      sendRequest(small.url, smallChat, probes),
      large,
    ]);
    return {
      meP50: me.p50Ms,
      meP99: me.p99Ms,
      meMax: me.maxMs,
      chatP50: chats.p50Ms,
      chatP99: chats.p99Ms,
      chatMax: chats.maxMs,
    };
  };
}

function senderOf(chat: LargeChat, { url, model, secret, headers }: ChatTarget) {
  const request = postRequest(CHAT_PATH, chat.bodyFor(model), secret, headers);
  const expect = chat.pieces === undefined ? {} : { Expect: "data: [DONE]" };
  return (callers: number, seconds: number) => sendRequest(url, request, { Callers: callers, Seconds: seconds, ...expect });
}

type Callers = { readonly Callers: number; readonly Seconds: number; readonly PauseMs?: number; readonly Expect?: string };

function sendRequest(url: string, request: string, callers: Callers): Promise<LoadResult> {
  return runLoadProgram({
    Protocol: "http",
    Address: new URL(url).host,
    Requests: [Buffer.from(request, "latin1").toString("base64")],
    ...callers,
  });
}
