/** Limits of a connection before the gate has admitted a key. Names end in the unit. */
export const defaultLimits = {
  connections: 10_000,
  /** 0: no limit. */
  connectionsPerAddress: 2_000,
  /** Work of one turn of the event loop: starts and ends of requests, streams and connections; see ReadingTurns. */
  unitsPerTurn: 256,
  /** Data of one connection that is read ahead of its turn, besides one packet of at most 64 KiB. */
  socketBufferBytes: 16_384,
  /** From connecting to the first bytes that distinguish HTTP/1.1 from HTTP/2. */
  prefaceMs: 10_000,
  tlsHandshakeMs: 10_000,
  /** From the first byte of an HTTP/1.1 request to the end of its headers. */
  headersMs: 15_000,
  /** From the first byte of an HTTP/1.1 request to the end of its body. */
  requestMs: 120_000,
  /** Interval at which the two timeouts above are checked. */
  timeoutCheckMs: 1_000,
  /** Idle timeout of an HTTP/1.1 connection; longer than the 60 s of common load balancers. */
  keepAliveMs: 75_000,
  /** The same while the server stops gracefully: proxies that close idle connections earlier lose no request. */
  idleWhileStoppingMs: 5_000,
  /** Time for callers to see the first GOAWAY of a graceful stop before their streams are limited by the final one. */
  goawayMs: 1_000,
  /** For an HTTP/1.1 caller that keeps sending after the last response of the connection. */
  lingerMs: 30_000,
  /** For an HTTP/1.1 caller that does not read the response. */
  http1ReadIdleMs: 120_000,
  /**
   * For an HTTP/2 caller that neither sends the rest of a request nor reads the response, and for a session
   * without calls. Longer than bodyMs, after which the caller gets an error.
   */
  http2StreamIdleMs: 150_000,
  http2SessionIdleMs: 600_000,
  /** From connecting over HTTP/2 to the first call. */
  http2FirstCallMs: 60_000,
  /** Requests sent over one HTTP/1.1 connection without waiting for a response. */
  http1Pipelined: 32,
  /** One packet can open or reset all of them, so this bounds the work of a connection in one turn. */
  http2ConcurrentStreams: 128,
  /** Shared by all sessions of an address (see EarlyResets); for each session if the connections of an address are unlimited. */
  http2EarlyResetBurst: 4_096,
  http2EarlyResetsPerSecond: 256,
  http2SessionMemoryMb: 64,
  /** Concurrent calls without a key (health, reflection), shared by all remote addresses; see OpenCalls. */
  openUnaryCalls: 8_192,
  openStreams: 1_024,
  openStreamsPerConnection: 16,
  headerBytes: 16_384,
  headerCount: 100,
} as const;

export type Limits = { readonly [Name in keyof typeof defaultLimits]: number };

/** Limits for the requests of all calls in one process, as bodies and decoded. */
export const bodyBudget = {
  maxBytes: 335_544_320,
  smallBytes: 67_108_864,
  bodyMs: 120_000,
} as const;
