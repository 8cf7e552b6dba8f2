import { FairShare } from "../../domain/fairness.ts";
import { networkOf } from "../../domain/network.ts";
import { type HttpRequest, type HttpResponse, remoteAddressOf } from "./message.ts";

type OpenCallLimits = {
  /** Concurrent unary calls without a key in one process. */
  readonly openUnaryCalls: number;
  /** The same for streams, such as health watches. */
  readonly openStreams: number;
  readonly openStreamsPerConnection: number;
};

/** One address gets at most half of what the others leave, so other addresses still get some. */
const MAX_SHARE = 1 / 2;

/**
 * Limits the concurrent calls without a key: each uses memory until its caller has read the response. Unary
 * calls have their own limit, so streams cannot make a health check fail.
 */
export class OpenCalls {
  readonly #limits: OpenCallLimits;
  readonly #unary = new FairShare(MAX_SHARE);
  readonly #streams = new FairShare(MAX_SHARE);
  readonly #onConnection = new WeakMap<object, number>();

  constructor(limits: OpenCallLimits) {
    this.#limits = limits;
  }

  /** Counts a call until its response closes; false if a limit is reached. */
  admit(isStream: boolean, request: HttpRequest, response: HttpResponse): boolean {
    const address = networkOf(remoteAddressOf(request));
    const { openStreams, openUnaryCalls, openStreamsPerConnection } = this.#limits;
    const [shares, max] = isStream ? [this.#streams, openStreams] : [this.#unary, openUnaryCalls];
    const connection: object = ("stream" in request ? request.stream.session : undefined) ?? request.socket;
    const streams = this.#onConnection.get(connection) ?? 0;
    if (isStream && streams >= openStreamsPerConnection) return false;
    if (!shares.acquire(address, 1, max)) return false;
    if (isStream) this.#onConnection.set(connection, streams + 1);
    response.once("close", () => {
      shares.release(address, 1);
      if (isStream) this.#onConnection.set(connection, (this.#onConnection.get(connection) ?? 1) - 1);
    });
    return true;
  }
}
