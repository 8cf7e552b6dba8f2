// What deliveries to many webhooks cost POST /v1/generate. Both arms use one server, in turn.

import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { cpuFigure, type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { generateBody, httpArm, postRequest } from "../http-load.ts";
import type { Part } from "../part.ts";
import { createPayers, type Payer } from "../payers.ts";
import { startProgram } from "../program.ts";
import { type Server, startServer } from "../server.ts";

const ACCOUNTS = 63;
/** The maximum of an account: together 1,008. */
const WEBHOOKS = 16;
const PER_SECOND = 500;
const KEYS = 8;
const CONNECTIONS = 64;
const SECONDS = 4;

/** Calls per second: about half of what two cores can do without deliveries. */
const RATE = 2_000;

type Delivering = ServerLoad & { readonly delivered: number };

export const webhooks: Part<{ delivering: Delivering; none: ServerLoad; fullDelivering: Delivering; full: ServerLoad }> = {
  rounds: 9,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const receiver = startProgram([join(import.meta.dirname, "..", "programs", "receiver.ts")]);
    cleanup.defer(receiver.stop);
    const address = await receiver.next(/^ready on (\S+)/);
    // Checkouts without the second setting need the first for the webhooks of accounts too.
    const server = await startServer(checkout, cleanup, {
      env: { VX_WEBHOOK_ALLOWED_CIDRS: "127.0.0.1", VX_WEBHOOK_CUSTOMER_CIDRS: "127.0.0.1" },
    });
    const requests = (await createPayers(server, KEYS)).map(({ secret }) => postRequest("/v1/generate", generateBody(), secret));
    const accounts = await createPayers(server, ACCOUNTS);
    for (const { accountId } of accounts)
      for (let i = 0; i < WEBHOOKS; i++)
        await server.operate("CreateWebhook", { accountId, url: `${address}/${accountId}/${i}`, reason: "bench" });
    const target = { url: server.url, requests, connections: CONNECTIONS, seconds: SECONDS };
    const none = withCpuTime(server.pid, httpArm({ ...target, rate: RATE }));
    const full = withCpuTime(server.pid, httpArm(target));
    return {
      none,
      delivering: () => whileDelivering(server, accounts, none),
      full,
      fullDelivering: () => whileDelivering(server, accounts, full),
    };
  },
  figures: [
    {
      name: `POST /v1/generate at ${RATE}/s, beside deliveries to ${ACCOUNTS * WEBHOOKS} webhooks`,
      unit: "/s",
      value: (r) => r.delivering.perSecond,
    },
    { name: "  p99", unit: "ms", value: (r) => r.delivering.p99Ms },
    cpuFigure("delivering"),
    { name: "deliveries", unit: "/s", min: 0.9 * PER_SECOND, value: (r) => r.delivering.delivered },
    { name: "without deliveries", unit: "/s", value: (r) => r.none.perSecond },
    { name: "  p99", unit: "ms", value: (r) => r.none.p99Ms },
    cpuFigure("none"),
    {
      name: "calls per second, with / without deliveries",
      unit: "×",
      min: 0.97,
      value: (r) => r.delivering.perSecond / r.none.perSecond,
    },
    {
      name: "the same, with as many calls as the machine can do",
      unit: "×",
      value: (r) => r.fullDelivering.perSecond / r.full.perSecond,
    },
    { name: "  deliveries", unit: "/s", value: (r) => r.fullDelivering.delivered },
  ],
};

/** Credits cause the events: each has a delivery to every webhook of its account. */
async function whileDelivering(
  server: Server,
  accounts: readonly Payer[],
  measure: () => Promise<ServerLoad>,
): Promise<Delivering> {
  const ended = new AbortController();
  const before = await readAccepted(server);
  const startedAt = performance.now();
  let events = 0;
  const produce = async () => {
    for (; !ended.signal.aborted; events++) {
      const { accountId } = accounts[events % ACCOUNTS] as Payer;
      const idempotencyKey = `${startedAt}-${events}`;
      await server.operate("CreditAccount", { accountId, amountMicros: "1", reason: "bench", idempotencyKey });
      await wait(Math.max(0, startedAt + ((events + 1) * WEBHOOKS * 1_000) / PER_SECOND - performance.now()));
    }
  };
  const producing = produce();
  const load = await measure();
  ended.abort();
  await producing;
  const seconds = (performance.now() - startedAt) / 1_000;
  const delivered = ((await readAccepted(server)) - before) / seconds;
  // The next arm begins without deliveries.
  while ((await readAccepted(server)) < before + events * WEBHOOKS) await wait(20);
  return { ...load, delivered };
}

async function readAccepted(server: Server): Promise<number> {
  const [, count = "0"] = /^vx_webhook_attempts_total\{outcome="accepted"\} (\d+)/m.exec(await server.readMetrics()) ?? [];
  return Number(count);
}
