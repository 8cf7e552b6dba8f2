import { networkOf } from "../../domain/network.ts";
import { type HttpRequest, type HttpResponse, remoteAddressOf } from "./message.ts";

type OpenCallLimits = {
  /** Concurrent unary calls without a key in one process. */
  readonly openUnaryCalls: number;
  /** The same for streams, such as health watches. */
  readonly openStreams: number;
  readonly openStreamsPerConnection: number;
};

/**
 * Limits the concurrent calls without a key: each uses memory until its caller has read the response. Unary
 * calls have their own limit, so streams cannot make a health check fail.
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

  /** Counts a call until its response closes; false if a limit is reached. */
  admit(isStream: boolean, request: HttpRequest, response: HttpResponse): boolean {
    const address = networkOf(remoteAddressOf(request));
    const shares = isStream ? this.#streams : this.#unary;
    const connection = connectionOf(request);
    const streams = this.#onConnection.get(connection) ?? 0;
    if (isStream && streams >= this.#perConnection) return false;
    if (!shares.acquire(address)) return false;
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

/**
 * A number of slots that all remote addresses share. An address gets another slot while it has fewer slots
 * than are free. So one address gets at most half of them, and other addresses still get some.
 */
class AddressShares {
  readonly #slots: number;
  readonly #held = new Map<string, number>();
  #inUse = 0;

  constructor(slots: number) {
    this.#slots = slots;
  }

  /** False if the address already has its share. The caller releases each acquired slot. */
  acquire(address: string): boolean {
    const held = this.#held.get(address) ?? 0;
    if (held >= this.#slots - this.#inUse) return false;
    this.#held.set(address, held + 1);
    this.#inUse++;
    return true;
  }

  release(address: string): void {
    const remaining = (this.#held.get(address) ?? 0) - 1;
    if (remaining > 0) this.#held.set(address, remaining);
    else this.#held.delete(address);
    this.#inUse--;
  }
}
