// Large chat completions, metered, compared with a bare proxy and with @portkey-ai/gateway in front of the same
// kind of model server, and the delay that they cause to small calls. One part for each kind of large call.
import type { Checkout } from "../checkout.ts";
import { LARGE_CHATS, type LargeChat } from "../large-chats.ts";
import { type LargeLoad, type LargeServerLoad, largeArm, largeServerArm, type SmallCalls, smallCallsArm } from "../large-load.ts";
import { buildLoadProgram } from "../load-program.ts";
import type { AnyPart, Figure } from "../part.ts";
import { createPayers, type Payer } from "../payers.ts";
import { startPortkey } from "../peers/portkey.ts";
import { startBaseline } from "../program.ts";
import { createRemoteModels } from "../remote-models.ts";
import { startServer } from "../server.ts";

const SEVERAL = 4;
const MAX_DELAY_MS = 50;

type Round = {
  server: LargeServerLoad;
  /** The model server without anything in front of it. */
  direct: LargeLoad;
  bare: LargeLoad;
  /** Not for streams: the peer returns 500 for them on this Node. */
  peer: LargeLoad;
  noLarge: SmallCalls;
  oneLarge: SmallCalls;
  severalLarge: SmallCalls;
};

export const largeCalls: Record<string, AnyPart> = Object.fromEntries(
  Object.entries(LARGE_CHATS).map(([name, chat]) => [name, partFor(chat)]),
);

function partFor(chat: LargeChat): AnyPart {
  return {
    rounds: 5,
    warmUpRounds: 1,
    open: (checkout, cleanup) => openServer(chat, checkout, cleanup),
    openBaselines: (cleanup) => openBaselines(chat, cleanup),
    // The arms of openServer and openBaselines.
    figures: figuresFor(chat) as unknown as AnyPart["figures"],
  };
}

function startUpstream(chat: LargeChat, cleanup: AsyncDisposableStack): Promise<string> {
  if (chat.pieces === undefined) return startBaseline(cleanup, "upstream-server");
  return startBaseline(cleanup, "many-pieces-server", { args: [String(chat.pieces)] });
}

async function openServer(chat: LargeChat, checkout: Checkout, cleanup: AsyncDisposableStack) {
  await buildLoadProgram();
  const large = await startUpstream(chat, cleanup);
  const small = await startBaseline(cleanup, "upstream-server");
  const env = { VX_MODELS: createRemoteModels(cleanup, { large, small }) };
  const server = await startServer(checkout, cleanup, { env });
  const [one, other] = (await createPayers(server, 2)) as [Payer, Payer];
  const target = { url: server.url, model: "large", secret: one.secret };
  const probe = { url: server.url, model: "small", secret: other.secret };
  return {
    server: largeServerArm(server.pid, chat, target),
    noLarge: smallCallsArm(chat, target, probe, 0),
    oneLarge: smallCallsArm(chat, target, probe, 1),
    severalLarge: smallCallsArm(chat, target, probe, SEVERAL),
  };
}

async function openBaselines(chat: LargeChat, cleanup: AsyncDisposableStack) {
  const upstream = await startUpstream(chat, cleanup);
  const bare = await startBaseline(cleanup, "bare-proxy", { env: { UPSTREAM: upstream } });
  const target = { model: "m", secret: "none" };
  const arms = { direct: largeArm(chat, { ...target, url: upstream }), bare: largeArm(chat, { ...target, url: bare }) };
  if (chat.pieces !== undefined) return arms;
  const peer = await startPortkey(cleanup, upstream);
  return { ...arms, peer: largeArm(chat, { ...target, url: peer.url, headers: peer.headers }) };
}

function figuresFor(chat: LargeChat): Figure<Round>[] {
  return [
    { name: `${chat.name}, ${chat.callers} callers`, unit: "/s", value: (r) => r.server.perSecond },
    { name: "  a proxy that does nothing else", unit: "/s", value: (r) => r.bare.perSecond },
    { name: "  server / proxy", unit: "×", value: (r) => r.server.perSecond / r.bare.perSecond },
    { name: "  CPU time of server and PostgreSQL per call", unit: "ms", value: (r) => r.server.cpuMs },
    ...addedBy("the server", "server"),
    ...addedBy("the proxy", "bare"),
    ...(chat.pieces === undefined ? comparedWithPeer() : []),
    ...delays("one large call at a time", "oneLarge"),
    ...delays(`${SEVERAL} large calls at a time`, "severalLarge"),
  ];
}

function comparedWithPeer(): Figure<Round>[] {
  return [
    { name: "  @portkey-ai/gateway", unit: "/s", value: (r) => r.peer.perSecond },
    { name: "  server / @portkey-ai/gateway", unit: "×", min: 0.5, value: (r) => r.server.perSecond / r.peer.perSecond },
    ...addedBy("@portkey-ai/gateway", "peer"),
  ];
}

/** The latency that each adds to that of the model server itself, for one caller. */
function addedBy(name: string, arm: "server" | "bare" | "peer"): Figure<Round>[] {
  return [
    { name: `  p50 added by ${name}`, unit: "ms", value: (r) => r[arm].aloneP50Ms - r.direct.aloneP50Ms },
    { name: `  p99 added by ${name}`, unit: "ms", value: (r) => r[arm].aloneP99Ms - r.direct.aloneP99Ms },
  ];
}

/** The latency that large calls add to small ones. */
function delays(name: string, arm: "oneLarge" | "severalLarge"): Figure<Round>[] {
  return [
    { name: `  ${name}: p99 added to GET /v1/me`, unit: "ms", max: MAX_DELAY_MS, value: (r) => r[arm].meP99 - r.noLarge.meP99 },
    { name: "    at most", unit: "ms", value: (r) => r[arm].meMax - r.noLarge.meP50 },
    {
      name: "    p99 added to a small chat completion",
      unit: "ms",
      max: MAX_DELAY_MS,
      value: (r) => r[arm].chatP99 - r.noLarge.chatP99,
    },
    { name: "    at most", unit: "ms", value: (r) => r[arm].chatMax - r.noLarge.chatP50 },
  ];
}
