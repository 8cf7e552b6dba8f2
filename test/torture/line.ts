import type { AddressInfo } from "node:net";
import { connect, createServer, type NetConnectOpts, type Server, type Socket } from "node:net";

/** Network conditions of a line. */
export type NetworkConditions = {
  /** Delay of every chunk. */
  readonly latencyMs: number;
  /** Every chunk is split into pieces of this size, each written separately; 0 leaves chunks unchanged. */
  readonly sliceBytes: number;
  /** Bytes to the target, or from it, wait until the conditions change. */
  readonly holdsForward: boolean;
  readonly holdsBack: boolean;
  /** Bytes are dropped and connections stay open, as if the peer had vanished. */
  readonly swallows: boolean;
  /** New connections are reset at once. */
  readonly refuses: boolean;
};

export const NORMAL: NetworkConditions = {
  latencyMs: 0,
  sliceBytes: 0,
  holdsForward: false,
  holdsBack: false,
  swallows: false,
  refuses: false,
};

/** A TCP proxy whose network conditions the test controls. */
export class Line {
  #target: NetConnectOpts;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  readonly #usual: NetworkConditions;
  #conditions: NetworkConditions;

  private constructor(target: NetConnectOpts, latencyMs: number) {
    this.#target = target;
    this.#usual = { ...NORMAL, latencyMs };
    this.#conditions = this.#usual;
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
  }

  /** @param latencyMs of the line while no test changes it */
  static async start(target: NetConnectOpts, latencyMs = 0): Promise<Line> {
    const proxy = new Line(target, latencyMs);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once("error", reject);
      proxy.#server.listen(0, "127.0.0.1", resolve);
    });
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Bytes from the target that wait to be sent to the client. */
  get heldBackBytes(): number {
    let bytes = 0;
    for (const pair of this.#pairs) bytes += pair.back.waitingBytes;
    return bytes;
  }

  /** Bytes to the target that wait on connections with this application_name. */
  heldForwardBytes(applicationName: string): number {
    let bytes = 0;
    for (const pair of this.#pairs) {
      if (pair.applicationName === applicationName) bytes += pair.forward.waitingBytes;
    }
    return bytes;
  }

  /** Whether an open connection has dropped bytes. */
  get hasSwallowed(): boolean {
    return [...this.#pairs].some((pair) => pair.hasSwallowed);
  }

  set(conditions: Partial<NetworkConditions>): void {
    this.#conditions = { ...this.#usual, ...conditions };
    for (const pair of this.#pairs) {
      // A connection that dropped bytes cannot continue: the returning peer does not know it.
      if (pair.hasSwallowed && !this.#conditions.swallows) pair.reset();
      else pair.pump();
    }
  }

  /** Sets the target of new connections; existing ones keep theirs. */
  retarget(target: NetConnectOpts): void {
    this.#target = target;
  }

  /**
   * Holds bytes to the target on all present connections, but not on new ones. The returned function releases
   * them.
   */
  stall(): () => void {
    const pairs = [...this.#pairs];
    for (const pair of pairs) pair.isStalled = true;
    return () => {
      for (const pair of pairs) {
        pair.isStalled = false;
        pair.pump();
      }
    };
  }

  /** Holds the replies on the present connections with this application_name. The returned function releases them. */
  holdReplies(applicationName: string): () => void {
    const pairs = [...this.#pairs].filter((pair) => pair.applicationName === applicationName);
    for (const pair of pairs) pair.holdsReplies = true;
    return () => {
      for (const pair of pairs) {
        pair.holdsReplies = false;
        pair.pump();
      }
    };
  }

  /** Resets every open connection. */
  cut(): void {
    for (const pair of this.#pairs) pair.reset();
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
  }

  #accept(client: Socket): void {
    if (this.#conditions.refuses) {
      client.on("error", () => undefined);
      client.resetAndDestroy();
      return;
    }
    const target = connect({ ...this.#target, noDelay: true } as NetConnectOpts);
    const pair = new Pair(client, target, () => this.#conditions);
    this.#pairs.add(pair);
    const forget = () => this.#pairs.delete(pair);
    client.once("close", forget);
    target.once("close", forget);
  }
}

class Pair {
  readonly forward: Flow;
  readonly back: Flow;
  readonly #client: Socket;
  readonly #target: Socket;
  hasSwallowed = false;
  isStalled = false;
  holdsReplies = false;
  /** From the first message of a connection to PostgreSQL. */
  applicationName: string | undefined;

  constructor(client: Socket, target: Socket, conditions: () => NetworkConditions) {
    this.#client = client;
    this.#target = target;
    const swallowed = () => {
      this.hasSwallowed = true;
    };
    this.forward = new Flow(target, () => this.isStalled || conditions().holdsForward, conditions, swallowed);
    this.back = new Flow(client, () => this.holdsReplies || conditions().holdsBack, conditions, swallowed);
    client.once("data", (chunk: Buffer) => {
      this.applicationName = /\0application_name\0([^\0]*)\0/.exec(chunk.toString("latin1"))?.[1];
    });
    for (const [from, flow, to] of [
      [client, this.forward, target],
      [target, this.back, client],
    ] as const) {
      from.on("data", (chunk: Buffer) => flow.add(chunk));
      from.on("end", () => flow.end());
      from.on("error", () => reset(to));
      from.on("close", () => {
        if (!conditions().swallows) flow.end();
      });
    }
  }

  pump(): void {
    this.forward.pump();
    this.back.pump();
  }

  reset(): void {
    reset(this.#client);
    reset(this.#target);
  }
}

/** A unix socket has no reset, so it is just closed. */
function reset(socket: Socket): void {
  if (socket.remoteAddress === undefined) socket.destroy();
  else socket.resetAndDestroy();
}

/** One direction of a connection. */
class Flow {
  readonly #to: Socket;
  readonly #isHeld: () => boolean;
  readonly #conditions: () => NetworkConditions;
  readonly #onSwallow: () => void;
  #waiting: { readonly chunk: Buffer | undefined; readonly dueAt: number }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(to: Socket, isHeld: () => boolean, conditions: () => NetworkConditions, onSwallow: () => void) {
    this.#to = to;
    this.#isHeld = isHeld;
    this.#conditions = conditions;
    this.#onSwallow = onSwallow;
  }

  get waitingBytes(): number {
    return this.#waiting.reduce((sum, { chunk }) => sum + (chunk?.length ?? 0), 0);
  }

  add(chunk: Buffer): void {
    const { swallows, latencyMs, sliceBytes } = this.#conditions();
    if (swallows) {
      this.#onSwallow();
      return;
    }
    const dueAt = performance.now() + latencyMs;
    const size = sliceBytes || chunk.length;
    for (let at = 0; at < chunk.length; at += size) {
      this.#waiting.push({ chunk: chunk.subarray(at, at + size), dueAt });
    }
    this.pump();
  }

  end(): void {
    this.#waiting.push({ chunk: undefined, dueAt: 0 });
    this.pump();
  }

  pump(): void {
    clearTimeout(this.#timer);
    while (this.#waiting.length > 0 && !this.#isHeld()) {
      const [next] = this.#waiting;
      if (!next) return;
      const waitMs = next.dueAt - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.pump(), waitMs);
        return;
      }
      this.#waiting.shift();
      if (this.#to.destroyed) continue;
      if (next.chunk === undefined) this.#to.end();
      else this.#to.write(next.chunk);
    }
  }
}
