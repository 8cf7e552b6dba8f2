import type { Cells } from "../database/driver/cells.ts";
import { DomainError } from "../domain/errors.ts";
import type { DeliveryAddresses } from "./addresses.ts";
import type { Outcome, Sender } from "./sender.ts";
import {
  type Attempt,
  type Claim,
  claimDeliveries,
  isOfOperators,
  type Room,
  storeAttempts,
  type WebhookToTest,
} from "./store.ts";

const POLL_MS = 500;
/** Attempts at once of any kind, those of them to endpoints that hang, and those to fast endpoints only. */
const MAX_ROOM: Room = { any: 9, hanging: 4, fast: 10 };
const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
/** The pauses after failed attempts. The attempt after the last pause is the last one. */
const RETRIES_MS = [5 * SECOND, 300 * SECOND, 0.5 * HOUR, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR)];
const JITTER = 0.1;
const MAX_RETRY_AFTER_MS = 24 * HOUR;
const MAX_BODY_BYTES = 20_000;
/** Tests at once: one for each account. */
const MAX_TESTS = 256;

type DelivererOptions = {
  readonly database: Cells;
  /** For webhooks of operators, and for those of accounts. */
  readonly senders: { readonly operators: Sender; readonly customers: Sender };
  readonly random: () => number;
  readonly onAttempt: (outcome: Outcome) => void;
  /** Called for the first of several failures of a cell. */
  readonly onFailure: (cell: number, error: unknown) => void;
};

/**
 * Delivers events to webhooks. Servers claim endpoints in the database, each for one attempt, so the first attempts of an endpoint are in
 * the order of the events. The next attempt of an endpoint is claimed after the outcome of the last one is stored.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #stopped = new AbortController();
  readonly #running = new Set<Claim>();
  /** The accounts whose test runs. */
  readonly #testing = new Set<string>();
  /** What is reserved for claims that are under way. */
  readonly #reserved = { any: 0, hanging: 0, fast: 0 };
  readonly #ended = new Map<number, Attempt[]>();
  readonly #rounds = new Map<number, Promise<void>>();
  readonly #isWoken = new Set<number>();
  readonly #failing = new Set<number>();
  readonly #attempts = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #isEnding = false;

  constructor(options: DelivererOptions) {
    this.#options = options;
  }

  addressesFor(webhookId: string): DeliveryAddresses {
    return this.#senderFor(webhookId).addresses;
  }

  get running(): number {
    return this.#running.size + this.#testing.size;
  }

  start(): void {
    this.#timer = setInterval(() => {
      for (const cell of this.#options.database.all.keys()) this.#wake(cell);
    }, POLL_MS);
  }

  /** Makes no further attempts. */
  endClaims(): void {
    clearInterval(this.#timer);
    this.#isEnding = true;
  }

  /** Ends attempts, which other servers make again. */
  async stop(): Promise<void> {
    this.endClaims();
    this.#stopped.abort(new Error("The server was stopped. Repeat the test."));
    await Promise.all(this.#attempts);
    while (this.#rounds.size > 0) await Promise.all(this.#rounds.values());
    const { operators, customers } = this.#options.senders;
    await Promise.all([operators.close(), customers.close()]);
  }

  /** Sends an event of the type "webhook.test", in any state of the webhook: one at a time for each account. */
  async test(id: string, webhook: WebhookToTest, requestId: string): Promise<Outcome> {
    const { account_id } = webhook;
    if (this.#testing.has(account_id) || this.#testing.size === MAX_TESTS)
      throw new DomainError("overloaded", { message: "Another test is running. Repeat the test in a few seconds." });
    const messageId = `test_${requestId}`;
    const data = JSON.stringify({ webhook_id: id });
    const event = { event_id: messageId, type: "webhook.test", created_at: new Date(), account_id, seq: 0n, data };
    this.#testing.add(account_id);
    try {
      return await this.#senderFor(id).send(webhook, messageId, bodyOf(event), this.#stopped.signal);
    } finally {
      this.#testing.delete(account_id);
    }
  }

  /** Runs a round of a cell, or another one after the present one. */
  #wake(cell: number): void {
    if (this.#rounds.has(cell)) {
      this.#isWoken.add(cell);
      return;
    }
    const round = this.#work(cell)
      .then(() => void this.#failing.delete(cell))
      .catch((error: unknown) => {
        if (!this.#failing.has(cell)) this.#options.onFailure(cell, error);
        this.#failing.add(cell);
      })
      .finally(() => {
        this.#rounds.delete(cell);
        if (this.#isWoken.delete(cell)) this.#wake(cell);
      });
    this.#rounds.set(cell, round);
  }

  async #work(cell: number): Promise<void> {
    const ended = this.#ended.get(cell) ?? [];
    if (ended.length > 0) {
      await storeAttempts(this.#options.database, cell, ended);
      this.#ended.set(cell, (this.#ended.get(cell) ?? []).slice(ended.length));
    }
    if (this.#isEnding) return;
    const room = this.#reserve();
    if (room.any + room.fast === 0) return;
    try {
      const claims = await claimDeliveries(this.#options.database, cell, room, this.#running);
      for (const claim of claims) this.#begin(cell, claim);
      if (claims.length > 0) this.#isWoken.add(cell);
    } finally {
      this.#reserved.any -= room.any;
      this.#reserved.hanging -= room.hanging;
      this.#reserved.fast -= room.fast;
    }
  }

  #room(): Room {
    let fast = MAX_ROOM.fast - this.#reserved.fast;
    let any = MAX_ROOM.any - this.#reserved.any;
    let hanging = MAX_ROOM.hanging - this.#reserved.hanging;
    for (const claim of this.#running) {
      if (claim.is_fast_only) fast--;
      else any--;
      if (claim.is_hanging) hanging--;
    }
    return { any, hanging: Math.max(0, hanging), fast };
  }

  /** A share of the room, so that cells do not take it from each other. */
  #reserve(): Room {
    const cells = this.#options.database.all.length;
    const { any, hanging, fast } = this.#room();
    const shareOf = (places: number) => Math.ceil(places / cells);
    const room = { any: shareOf(any), hanging: shareOf(hanging), fast: shareOf(fast) };
    this.#reserved.any += room.any;
    this.#reserved.hanging += room.hanging;
    this.#reserved.fast += room.fast;
    return room;
  }

  #begin(cell: number, claim: Claim): void {
    this.#running.add(claim);
    const attempt = this.#attempt(claim).then((ended) => {
      this.#attempts.delete(attempt);
      // Before the outcome is stored: a cell that does not answer must not take the places of others.
      this.#running.delete(claim);
      this.#ended.set(cell, [...(this.#ended.get(cell) ?? []), ended]);
      this.#wake(cell);
    });
    this.#attempts.add(attempt);
  }

  #senderFor(webhookId: string): Sender {
    const { operators, customers } = this.#options.senders;
    return isOfOperators(webhookId) ? operators : customers;
  }

  async #attempt(claim: Claim): Promise<Attempt> {
    const sender = this.#senderFor(claim.webhook_id);
    const outcome = await sender.send(claim, claim.event_id, bodyOf(claim), this.#stopped.signal);
    if (this.#stopped.signal.aborted && outcome.status === undefined) return { claim, outcome: undefined };
    this.#options.onAttempt(outcome);
    const { retryAfterMs = 0, ...stored } = outcome;
    const asked = stored.error === "" ? 0 : Math.min(retryAfterMs, MAX_RETRY_AFTER_MS);
    const retryMs = RETRIES_MS[claim.attempts];
    return {
      claim,
      outcome: {
        ...stored,
        retryMs: stored.error === "" || retryMs === undefined ? undefined : Math.max(asked, this.#jitter(retryMs)),
        pauseMs: asked === 0 ? undefined : asked,
      },
    };
  }

  #jitter(ms: number): number {
    return Math.round(ms * (1 + JITTER * (2 * this.#options.random() - 1)));
  }
}

/** What an endpoint receives. An event that is too large is sent without its data, which GET /v1/events has. */
function bodyOf(event: Pick<Claim, "event_id" | "type" | "created_at" | "account_id" | "seq" | "data">): string {
  const { event_id: id, type, created_at: time, account_id, seq, data } = event;
  const start = JSON.stringify({ id, type, timestamp: time.toISOString(), account_id, seq: Number(seq) });
  const body = `${start.slice(0, -1)},"data":${data}}`;
  return Buffer.byteLength(body) < MAX_BODY_BYTES ? body : `${start.slice(0, -1)},"data":{}}`;
}
