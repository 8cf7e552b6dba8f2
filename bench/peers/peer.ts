import { join } from "node:path";

/** A running gateway in front of the model server of the bench. */
export type Peer = {
  /** Its name and version. */
  readonly version: string;
  readonly url: string;
  readonly pid: number;
  /** Whether it charges each call. */
  readonly isMetered: boolean;
  readonly model: string;
  /** The bearer token of its callers. */
  readonly secret: string;
  /** More header lines that its callers send. */
  readonly headers: string;
};

/** Starts a gateway in front of a model server. Throws Unavailable if it cannot be installed. */
export type StartPeer = (cleanup: AsyncDisposableStack, upstream: string) => Promise<Peer>;

/** Where peers are installed. git ignores it. */
export const PEERS = join(import.meta.dirname, "..", "..", ".clients", "peers");
