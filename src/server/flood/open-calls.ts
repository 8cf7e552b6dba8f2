import { networkOf } from "../../domain/network.ts";
import type { HttpRequest, HttpResponse } from "../http.ts";
import { AddressShares } from "./address-shares.ts";

type OpenCallLimits = {
  /** Unary calls without a key that one process serves at a time. */
  readonly openUnaryCalls: number;
  /** The same for streams, such as those that watch the health. */
  readonly openStreams: number;
  readonly openStreamsPerConnection: number;
};

/**
 * Bounds the calls without a key that are open at a time: each costs memory until its caller has read the answer.
 * Unary calls have places of their own, so that no number of streams makes a health check fail.
 */
export class OpenCalls {
  readonly #unary: AddressShares;
  readonly #streams: AddressShares;
  readonly #perConnection: number;
  readonly #onConnection = new WeakMap<object, number>();

  constructor(limits: OpenCallLimits) {
    this.#unary = new AddressShares(limits.openUnaryCalls);
    this.#streams = new AddressShares(limits.openStreams);
    this.#perConnection = limits.openStreamsPerConnection;
  }

  /** Counts a call until its response is closed; false if it is one too many. */
  enter(isStream: boolean, request: HttpRequest, response: HttpResponse): boolean {
    const address = networkOf(request.socket.remoteAddress ?? "");
    const shares = isStream ? this.#streams : this.#unary;
    const connection = connectionOf(request);
    const streams = this.#onConnection.get(connection) ?? 0;
    if (isStream && streams >= this.#perConnection) return false;
    if (!shares.take(address)) return false;
    if (isStream) this.#onConnection.set(connection, streams + 1);
    response.once("close", () => {
      shares.release(address);
      if (isStream) this.#onConnection.set(connection, (this.#onConnection.get(connection) ?? 1) - 1);
    });
    return true;
  }
}

function connectionOf(request: HttpRequest): object {
  return ("stream" in request ? request.stream.session : undefined) ?? request.socket;
}
