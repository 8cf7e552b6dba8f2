/** What a connection may cost before it has shown a key. Units last in the name. */
export const defaultLimits = {
  connections: 10_000,
  /** 0: no limit. */
  connectionsPerAddress: 2_000,
  /** Requests, streams and ends of connections that one turn of the event loop takes on, about; see ReadingTurns. */
  workPerTurn: 128,
  /** From connecting to the first bytes that tell HTTP/1.1 from HTTP/2. */
  prefaceMs: 10_000,
  tlsHandshakeMs: 10_000,
  /** From the first byte of an HTTP/1.1 request to the end of its headers. */
  headersMs: 15_000,
  /** From the first byte of an HTTP/1.1 request to the end of its body. */
  requestMs: 120_000,
  /** How often the two above are looked at. */
  timeoutCheckMs: 1_000,
  /** An idle HTTP/1.1 connection; longer than the 60 s after which common load balancers let go. */
  keepAliveMs: 75_000,
  /** A caller over HTTP/1.1 who goes on sending after the last answer of the connection. */
  lingerMs: 30_000,
  /** A caller over HTTP/1.1 who does not read the answer. */
  http1ReadIdleMs: 120_000,
  /** A caller over HTTP/2 who neither sends the rest of a request nor reads the answer; and a session without calls. */
  http2StreamIdleMs: 120_000,
  http2SessionIdleMs: 600_000,
  /** From connecting over HTTP/2 to the first call. */
  http2FirstCallMs: 60_000,
  /** Requests sent over one connection of HTTP/1.1 without waiting for an answer. */
  http1Pipelined: 32,
  /** All of them may be asked for, or taken back, in one packet: what a connection can make of one turn. */
  http2ConcurrentStreams: 128,
  /** More of them in one packet can only be ones that it also takes back. */
  http2StreamsPerTurn: 160,
  http2ResetBurst: 128,
  http2ResetsPerSecond: 33,
  http2SessionMemoryMb: 64,
  /** Calls without a key (health, reflection); all remote addresses share them, see AddressShares. */
  openUnaryCalls: 8_192,
  openStreams: 1_024,
  openStreamsPerConnection: 16,
  headerBytes: 16_384,
  headerCount: 100,
} as const;

export type Limits = { readonly [Name in keyof typeof defaultLimits]: number };

/** What one process takes of the bodies of all its calls; enough for 64 requests of the largest message at once. */
export const bodyBudget = {
  maxBytes: 469_762_048,
  smallBytes: 67_108_864,
  bodyMs: 120_000,
} as const;
