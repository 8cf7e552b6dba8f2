import type { Reply } from "../../billing/generation-request.ts";
import { type Delta, deltasOf, OutputBuilder } from "../../domain/output.ts";
import type { Item } from "./responses-items.ts";
import { type OpenItem, openItemFor, type StreamedEvent } from "./responses-open-item.ts";
import {
  failedResponse,
  finishedResponse,
  isIncomplete,
  type ResponseInit,
  startedResponse,
} from "./responses-reply.ts";

/** What the events of one stream have in common. */
type StreamedResponse = {
  readonly generationId: string;
  readonly model: string;
  readonly settings: ResponseInit;
  readonly isEncryptedIncluded: boolean;
};

/**
 * Creates the events of a streamed response. An item ends before the next one starts. A function call ends only
 * with the reply, because its pieces may alternate with those of other calls: later items are sent whole.
 */
export class ResponseEvents {
  readonly #response: StreamedResponse;
  readonly #items: Item[] = [];
  readonly #positions = { message: 0, call: 0, reasoning: 0 };
  #open: OpenItem | undefined;
  /** The pieces after those of the open call. */
  #later: OutputBuilder | undefined;
  #sequenceNumber = 0;

  constructor(response: StreamedResponse) {
    this.#response = response;
  }

  *start(): Generator<StreamedEvent> {
    const response = this.#started;
    yield this.#event({ type: "response.created", response });
    yield this.#event({ type: "response.in_progress", response });
  }

  *append(delta: Delta): Generator<StreamedEvent> {
    const open = this.#open;
    if (open?.kind !== "call") {
      yield* this.#appendToItem(delta);
    } else if (open.accepts(delta)) {
      yield* this.#eventsOf(open.append(delta));
    } else {
      this.#later ??= new OutputBuilder();
      this.#later.append(delta.kind === "tool_call" ? withoutFirstCall(delta) : delta);
    }
  }

  *end(reply: Reply): Generator<StreamedEvent> {
    if (this.#later) {
      for (const delta of deltasOf(this.#later.output)) {
        yield* this.#endItem("completed");
        yield* this.#appendToItem(delta);
      }
    }
    // An empty reply is an empty message.
    if (this.#items.length === 0 && !this.#open) yield* this.#appendToItem({ kind: "text", text: "" });
    yield* this.#endItem(isIncomplete(reply) ? "incomplete" : "completed");
    const response = finishedResponse(reply, this.#items, this.#response.settings);
    yield this.#event({ type: `response.${response.status}`, response });
  }

  failed(error: unknown): StreamedEvent {
    const response = failedResponse(this.#started, this.#items, error);
    return this.#event({ type: "response.failed", response });
  }

  get #started(): ResponseInit {
    const { generationId, model, settings } = this.#response;
    return startedResponse(generationId, model, settings);
  }

  *#appendToItem(delta: Delta): Generator<StreamedEvent> {
    if (!this.#open?.accepts(delta)) {
      yield* this.#endItem("completed");
      this.#open = openItemFor(delta, this.#response, this.#positions);
      yield* this.#eventsOf(this.#open.start());
    }
    yield* this.#eventsOf(this.#open.append(delta));
  }

  *#endItem(status: "completed" | "incomplete"): Generator<StreamedEvent> {
    const open = this.#open;
    if (!open) return;
    yield* this.#eventsOf(open.end());
    const item = open.item(status);
    yield this.#event({ type: "response.output_item.done", outputIndex: this.#items.length, item });
    this.#items.push(item);
    this.#open = undefined;
  }

  /** Numbers the events of the open item. */
  *#eventsOf(events: Iterable<StreamedEvent>): Generator<StreamedEvent> {
    for (const event of events) yield this.#event({ ...event, outputIndex: this.#items.length });
  }

  #event(event: StreamedEvent): StreamedEvent {
    return { ...event, sequenceNumber: this.#sequenceNumber++ };
  }
}

/** The calls after the first one, counted from 0. */
function withoutFirstCall({ kind, toolCall }: Delta & { kind: "tool_call" }): Delta {
  return { kind, toolCall: { ...toolCall, index: toolCall.index - 1 } };
}
