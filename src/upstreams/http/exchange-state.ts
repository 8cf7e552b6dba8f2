import type { EventStream } from "./event-stream.ts";

/** Collects the body of an error response. */
export type Refused = {
  readonly kind: "refused";
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly chunks: Buffer[];
  readonly timer: NodeJS.Timeout;
};

export type ExchangeState =
  /** Waits for a connection. */
  | { readonly kind: "queued" }
  /** The request is being written, or its response has not begun. */
  | { readonly kind: "sent" }
  /** Reads a reply of server-sent events. */
  | { readonly kind: "streaming"; readonly events: EventStream; readonly maxBytes: number }
  /** Reads only the usage of a reply that was cut at a limit. */
  | {
      readonly kind: "cut";
      readonly events: EventStream;
      readonly maxBytes: number;
      readonly timer: NodeJS.Timeout;
    }
  /** Collects a reply that is one JSON object. */
  | { readonly kind: "collecting"; readonly chunks: Buffer[]; readonly maxBytes: number }
  | Refused
  /** The reply is complete. The end of the response frees the connection for the next call. */
  | { readonly kind: "draining"; readonly timer: NodeJS.Timeout; readonly maxBytes: number }
  /** The response has ended, or the request was aborted. Later callbacks have no effect. */
  | { readonly kind: "closed" };

type Kind = ExchangeState["kind"];

const NEXT: Readonly<Record<Kind, readonly Kind[]>> = {
  queued: ["sent", "closed"],
  // Undici sends a request again when its connection closes before it was written.
  sent: ["sent", "streaming", "collecting", "refused", "closed"],
  streaming: ["cut", "draining", "closed"],
  cut: ["draining", "closed"],
  collecting: ["closed"],
  refused: ["closed"],
  draining: ["closed"],
  closed: [],
};

export const QUEUED: ExchangeState = { kind: "queued" };
export const SENT: ExchangeState = { kind: "sent" };
export const CLOSED: ExchangeState = { kind: "closed" };

export function canBecome(from: Kind, to: Kind): boolean {
  return NEXT[from].includes(to);
}
