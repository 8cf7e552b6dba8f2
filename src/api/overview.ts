import type { ServiceFigures } from "../store/service-figures.ts";

/** The state of an upstream, and its attempts in the window. */
type UpstreamFigures = {
  readonly name: string;
  readonly openBreakers: number;
  readonly openAccounts: number;
  readonly running: number;
  readonly waiting: number;
  readonly succeeded: number;
  readonly failed: number;
};

type MinuteFigures = {
  readonly calls: number;
  readonly failedCalls: number;
  readonly chargedMicros: number;
};

/** Figures of the running service, for the console. */
export type Overview = {
  readonly time: Date;
  readonly server: {
    readonly windowSeconds: number;
    readonly callsPerSecond: number;
    readonly calls: number;
    /** The most frequent first. */
    readonly failures: readonly { readonly reason: string; readonly calls: number }[];
    readonly chargedMicros: number;
    readonly runningGenerations: number;
    readonly upstreams: readonly UpstreamFigures[];
  };
  readonly lastHour: {
    readonly seconds: number;
    readonly calls: number;
    readonly failures: readonly { readonly reason: string; readonly calls: number }[];
    readonly chargedMicros: number;
    /** The oldest first. */
    readonly minutes: readonly MinuteFigures[];
  };
  /** Undefined if the database does not respond. */
  readonly service: ServiceFigures | undefined;
  readonly database: {
    readonly isReachable: boolean;
    readonly latencyMs: number;
    readonly connections: number;
    readonly statements: number;
  };
};

/** Sends the current figures at once and then at regular times, until the signal is aborted or the server stops. */
export type WatchOverview = (operatorId: string, signal: AbortSignal) => AsyncIterable<Overview>;
