import { join } from "node:path";

/** A running gateway in front of the model server of the bench. */
export type Peer = {
  readonly version: string;
  readonly url: string;
  readonly pid: number;
  /** The bearer token of its callers. */
  readonly secret: string;
  /** More header lines that its callers send. */
  readonly headers: string;
};

/** Where peers are installed. git ignores it. */
export const PEERS = join(import.meta.dirname, "..", "..", ".clients", "peers");
