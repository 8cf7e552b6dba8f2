import type { Socket } from "node:net";
import { networkOf } from "../../domain/network.ts";

/** The number of open connections of each remote address. */
export class AddressCount {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Counts a connection until it closes; false if the address is at its limit. */
  enter(socket: Socket): boolean {
    const address = networkOf(socket.remoteAddress ?? "");
    const open = this.#open.get(address) ?? 0;
    if (this.#most > 0 && open >= this.#most) return false;
    this.#open.set(address, open + 1);
    socket.once("close", () => {
      const left = (this.#open.get(address) ?? 1) - 1;
      if (left > 0) this.#open.set(address, left);
      else this.#open.delete(address);
    });
    return true;
  }
}
