import { join } from "node:path";

/** A running gateway in front of the model server of the bench. */
export type Peer = {
  /** Its name and version. */
  readonly version: string;
  readonly url: string;
  readonly pid: number;
  readonly model: string;
  /** The bearer token of its callers. */
  readonly secret: string;
  /** More header lines that its callers send. */
  readonly headers: string;
  /** Undefined if it does not charge calls. */
  readonly meter?: Meter;
};

/** A gateway that charges each call to a limited balance, quota or budget of the key. */
export type Meter = {
  /** What limits the key, and where charges are stored. */
  readonly name: string;
  /** The charges of the key, in any unit and above any start. */
  readSpent(): Promise<number>;
  /** Starts the gateway again after its processes were killed, with the same address, settings and data. */
  restart(): Promise<void>;
};

/** Starts a gateway in front of a model server. Throws Unavailable if it cannot be installed. */
export type StartPeer = (cleanup: AsyncDisposableStack, upstream: string) => Promise<Peer>;

/** Where peers are installed. git ignores it. */
export const PEERS = join(import.meta.dirname, "..", "..", ".clients", "peers");
