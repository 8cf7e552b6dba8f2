import { create, type DescMessage, fromJson, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { Webhook as Verifier } from "standardwebhooks";
import type { Caller, Input } from "./caller.ts";
import { AbortError, TimeoutError } from "./errors.ts";
import { EVENT_DATA, type EventData } from "./gen/event-data.ts";
import {
  type Event,
  EventSchema,
  EventService,
  type ListEventsRequestSchema,
  type WatchEventsRequestSchema,
} from "./gen/vx/v1/event_pb.ts";
import {
  type CreateWebhookRequestSchema,
  type CreateWebhookResponse,
  type Delivery,
  type DeliveryOutcome,
  type ListDeliveriesRequestSchema,
  type RedeliverRequestSchema,
  type RedeliverResponse,
  type RotateWebhookRequestSchema,
  type RotateWebhookResponse,
  type UpdateWebhookRequestSchema,
  type Webhook,
  WebhookService,
} from "./gen/vx/v1/webhook_pb.ts";
import { Pages } from "./pages.ts";
import { type CallOptions, delay, delayOf, isRetried } from "./retries.ts";
import { abortedWith, endCall } from "./signals.ts";
import { toVxError } from "./to-vx-error.ts";

/** A connection that broke unnoticed is replaced after this time. */
const CONNECTION_MS = 300_000;

/** The events of the account. */
export class EventCalls {
  readonly #caller: Caller;
  readonly #events;

  constructor(caller: Caller) {
    this.#caller = caller;
    this.#events = createClient(EventService, caller.transport);
  }

  /** The events after `after`, oldest first; with `order: "desc"` those before it, newest first. */
  list(input: Input<typeof ListEventsRequestSchema> = {}, options: CallOptions = {}): Pages<Event> {
    return new Pages(async (after) => {
      const request = { ...input, after: after || (input.after ?? "") };
      const { events, hasMore, nextAfter } = await this.#caller.call("read", options, (attempt) =>
        this.#events.listEvents(request, attempt),
      );
      return { items: events, nextPageToken: hasMore ? nextAfter : "" };
    });
  }

  /**
   * The events after `after` and then each new one, without an end. A broken connection is made again, and continues after the last
   * event that the loop has finished. Store its id, and pass it as `after` when the program starts again: no event is missed, and one may
   * come twice. With `maxRetries`, the error of so many failed connections in a row is thrown; `timeoutMs` has no effect.
   */
  async *watch(
    input: Input<typeof WatchEventsRequestSchema> = {},
    options: CallOptions = {},
  ): AsyncGenerator<Event, void, undefined> {
    const { maxRetries = Number.POSITIVE_INFINITY } = options;
    let after = input.after === "now" ? await this.#lastId(options) : (input.after ?? "");
    for (let failures = 0; ; ) {
      const abort = new AbortController();
      const signal = options.signal ? abortedWith(options.signal, abort) : abort.signal;
      const call = { headers: { ...options.headers }, signal, timeoutMs: CONNECTION_MS };
      const rest = this.#events.watchEvents({ ...input, after }, call)[Symbol.asyncIterator]();
      try {
        for (let next = await rest.next(); !next.done; next = await rest.next()) {
          failures = 0;
          const { event } = next.value;
          if (!event) continue;
          yield event;
          after = event.id;
        }
        throw new ConnectError("The stream ended.", Code.Unavailable);
      } catch (thrown) {
        const error = toVxError(thrown, undefined);
        if (error instanceof TimeoutError) continue;
        if (error instanceof AbortError || failures >= maxRetries || !isRetried(error, "read")) throw error;
        await delay(delayOf(error, failures++), options.signal, undefined);
      } finally {
        endCall(abort, rest);
      }
    }
  }

  /** Where "now" is, for all connections of a watch. Empty if there is no event. */
  async #lastId(options: CallOptions): Promise<string> {
    for await (const { items } of this.list({ order: "desc", pageSize: 1 }, options).pages()) return items[0]?.id ?? "";
    return "";
  }
}

/** The webhooks of the account. */
export class WebhookCalls {
  readonly #caller: Caller;
  readonly #webhooks;

  constructor(caller: Caller) {
    this.#caller = caller;
    this.#webhooks = createClient(WebhookService, caller.transport);
  }

  /** Creates a webhook. Only this response has its secret. Not repeated if its connection ends. */
  create(input: Input<typeof CreateWebhookRequestSchema>, options: CallOptions = {}): Promise<CreateWebhookResponse> {
    return this.#caller.call("write", options, (attempt) => this.#webhooks.createWebhook(input, attempt));
  }

  async list(options: CallOptions = {}): Promise<Webhook[]> {
    const response = await this.#caller.call("read", options, (attempt) => this.#webhooks.listWebhooks({}, attempt));
    return response.webhooks;
  }

  async get(webhookId: string, options: CallOptions = {}): Promise<Webhook> {
    const response = await this.#caller.call("read", options, (attempt) => this.#webhooks.getWebhook({ webhookId }, attempt));
    return response.webhook as Webhook;
  }

  /** Changes the fields that are set, or those that `updateMask` names. */
  async update(input: Input<typeof UpdateWebhookRequestSchema>, options: CallOptions = {}): Promise<Webhook> {
    // The same change twice has the effect of one.
    const response = await this.#caller.call("read", options, (attempt) => this.#webhooks.updateWebhook(input, attempt));
    return response.webhook as Webhook;
  }

  /** Deletes a webhook. Not repeated if its connection ends, because it may not exist then. */
  async delete(webhookId: string, options: CallOptions = {}): Promise<void> {
    await this.#caller.call("write", options, (attempt) => this.#webhooks.deleteWebhook({ webhookId }, attempt));
  }

  /** Gives a webhook a new secret. Not repeated if its connection ends, because the webhook may have it then. */
  rotate(input: Input<typeof RotateWebhookRequestSchema>, options: CallOptions = {}): Promise<RotateWebhookResponse> {
    return this.#caller.call("write", options, (attempt) => this.#webhooks.rotateWebhook(input, attempt));
  }

  /** Sends an event of the type "webhook.test", and returns the outcome. */
  async test(webhookId: string, options: CallOptions = {}): Promise<DeliveryOutcome> {
    const response = await this.#caller.call("write", options, (attempt) => this.#webhooks.testWebhook({ webhookId }, attempt));
    return response.outcome as DeliveryOutcome;
  }

  /** The events that a webhook receives, the newest first, with the outcome of the last attempt. */
  deliveries(input: Input<typeof ListDeliveriesRequestSchema>, options: CallOptions = {}): Pages<Delivery> {
    return new Pages(async (pageToken) => {
      const request = { ...input, pageToken: pageToken || (input.pageToken ?? "") };
      const response = await this.#caller.call("read", options, (attempt) => this.#webhooks.listDeliveries(request, attempt));
      return { items: response.deliveries, nextPageToken: response.nextPageToken };
    });
  }

  /** Delivers one event, or those of a time, again. */
  redeliver(input: Input<typeof RedeliverRequestSchema>, options: CallOptions = {}): Promise<RedeliverResponse> {
    return this.#caller.call("write", options, (attempt) => this.#webhooks.redeliver(input, attempt));
  }
}

/** An event whose type decides what its data is. */
export type TypedEvent = {
  [Type in keyof EventData]: Omit<Event, "$typeName" | "$unknown" | "type" | "data"> & {
    readonly type: Type;
    readonly data: EventData[Type];
  };
}[keyof EventData];

/** The event with data of its type. Undefined if the server is newer and this client does not know the type. */
export function typedEvent(event: Event): TypedEvent | undefined {
  const schema: DescMessage | undefined = Object.hasOwn(EVENT_DATA, event.type)
    ? EVENT_DATA[event.type as keyof EventData]
    : undefined;
  if (!schema) return undefined;
  const data = fromJson(schema, event.data ?? {}, { ignoreUnknownFields: true });
  return { ...event, data } as TypedEvent;
}

/** The headers of a request, as fetch, Node or a framework has them. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * The event of a request that a webhook got. Throws WebhookVerificationError if its signature is not of this secret, or if it is more
 * than five minutes old. The body is as it arrived: parsed and written again, it may differ.
 */
export function verifyWebhook(body: string | Uint8Array, headers: WebhookHeaders, secret: string): Event {
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers);
  new Verifier(secret).verify(text, Object.fromEntries(entries.map(([name, value]) => [name, String(value)])));
  const received = JSON.parse(text) as Received;
  return create(EventSchema, {
    id: received.id,
    type: received.type,
    createdAt: timestampFromDate(new Date(received.timestamp)),
    accountId: received.account_id,
    seq: BigInt(received.seq),
    data: received.data,
  });
}

type Received = {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly account_id: string;
  readonly seq: number;
  readonly data: JsonObject;
};
