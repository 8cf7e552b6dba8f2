import { CallerDisconnected } from "../../codec/body.ts";
import { isClosed } from "../http.ts";
import { untilWritable } from "../until-writable.ts";

/** A response that can be written in pieces, over HTTP/1.1 or HTTP/2. */
type EventSink = {
  write(text: string): boolean;
  end(): unknown;
  once(event: "close" | "drain", listener: () => void): unknown;
  off(event: "close" | "drain", listener: () => void): unknown;
};

type EventStreamOptions = {
  /** Sends the headers; undefined if the response has ended. */
  readonly open: () => EventSink | undefined;
  readonly event: (message: unknown) => string;
  /** An error after the headers; `position` is the number of events before it. */
  readonly errorEvent: (error: unknown, position: number) => string;
  readonly keepAlive: string;
  readonly keepAliveMs: number;
  /** Sent after the last event; empty for nothing. */
  readonly end: string;
  /** Ends an open stream, even if the service is still running. */
  readonly signal: () => AbortSignal;
};

/** Long enough to cost little, short enough for proxies that close silent connections. */
export const KEEP_ALIVE_MS = 15_000;

/**
 * Sends each message as a server-sent event. The headers are sent with the first one, or with the first keep-alive. An
 * earlier error is thrown: it can still be an ordinary response.
 */
export async function sendEvents(
  messages: AsyncIterator<unknown>,
  options: EventStreamOptions,
): Promise<void> {
  let sink: EventSink | undefined;
  let position = 0;
  let cut: (reason: unknown) => void = () => undefined;
  let stopListening: (() => void) | undefined;
  const open = () => {
    sink = options.open();
    if (!sink) return;
    const signal = options.signal();
    const onAbort = () => cut(signal.reason);
    signal.addEventListener("abort", onAbort);
    stopListening = () => signal.removeEventListener("abort", onAbort);
  };
  const keepAlive = setInterval(() => {
    if (!sink) open();
    sink?.write(options.keepAlive);
  }, options.keepAliveMs);
  const nextMessage = () =>
    new Promise<IteratorResult<unknown>>((resolve, reject) => {
      cut = reject;
      if (sink && options.signal().aborted) cut(options.signal().reason);
      messages.next().then(resolve, reject);
    });
  try {
    let next = await nextMessage();
    if (!sink) open();
    if (!sink) return;
    for (; next.done !== true; next = await nextMessage()) {
      if (isClosed(sink)) throw new CallerDisconnected();
      if (!sink.write(options.event(next.value))) await untilWritable(sink);
      position++;
      keepAlive.refresh();
    }
    if (options.end !== "") sink.write(options.end);
  } catch (error) {
    if (!sink) throw error;
    if (isClosed(sink)) throw new CallerDisconnected();
    sink.write(options.errorEvent(error, position));
    throw error;
  } finally {
    stopListening?.();
    clearInterval(keepAlive);
    sink?.end();
    await messages.return?.();
  }
}
