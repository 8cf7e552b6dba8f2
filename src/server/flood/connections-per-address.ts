import type { Socket } from "node:net";
import { networkOf } from "../../domain/network.ts";

/** Limits the open connections of each remote address. */
export class ConnectionsPerAddress {
  readonly #maxConnections: number;
  readonly #counts = new Map<string, number>();

  /** 0: no limit. */
  constructor(maxConnections: number) {
    this.#maxConnections = maxConnections;
  }

  /** Counts a connection until it closes; false if the address is at its limit. */
  admit(socket: Socket): boolean {
    const address = addressOf(socket);
    const count = this.#counts.get(address) ?? 0;
    if (this.#maxConnections > 0 && count >= this.#maxConnections) return false;
    this.#counts.set(address, count + 1);
    socket.once("close", () => {
      const remaining = (this.#counts.get(address) ?? 1) - 1;
      if (remaining > 0) this.#counts.set(address, remaining);
      else this.#counts.delete(address);
    });
    return true;
  }
}

/** The remote address as far as limits are concerned. */
export function addressOf(socket: Socket): string {
  return networkOf(socket.remoteAddress ?? "");
}
