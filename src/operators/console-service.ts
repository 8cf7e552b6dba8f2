import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ConsoleService, type WatchOverviewResponseSchema } from "../../gen/vx/admin/v1/console_pb.js";
import { defineService, type ServiceDeps } from "../api/define-service.ts";
import { limitStreams, MAX_LONG_READS, watchAudit } from "../audit/run-audit.ts";
import { DomainError } from "../domain/errors.ts";
import type { ServiceFigures } from "./service-figures.ts";

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
  /** Undefined if the database does not respond. */
  readonly audit:
    | {
        /** Undefined before the first complete one. */
        readonly last:
          | {
              readonly startedAt: Date;
              readonly seconds: number;
              readonly entries: bigint;
              readonly findings: number;
            }
          | undefined;
        /** Between the starts of two scheduled audits; 0 for none. */
        readonly hours: number;
        /** The next scheduled audit. */
        readonly nextAt: Date | undefined;
      }
    | undefined;
  readonly database: {
    readonly isReachable: boolean;
    readonly latencyMs: number;
    readonly connections: number;
    readonly statements: number;
  };
};

/** Sends the current figures at once and then at regular times, until the signal is aborted or the server stops. */
export type WatchOverview = (operatorId: string, signal: AbortSignal) => AsyncIterable<Overview>;

export type OperatorDeps = ServiceDeps & { readonly watchOverview: WatchOverview };

export const consoleService = defineService<typeof ConsoleService, OperatorDeps>(ConsoleService, {
  watchOverview: async function* (deps, _request, call) {
    for await (const overview of deps.watchOverview(call.operator.id, call.signal)) {
      // Without a database, no revocation can be stored, and the console shows that it is down.
      await call.recheck().catch(ifRefused);
      yield viewOverview(overview);
    }
  },
  watchAudit: limitStreams(MAX_LONG_READS, watchAudit),
});

function ifRefused(error: unknown): void {
  const isOutage = error instanceof DomainError && /^(unavailable|overloaded)$/.test(error.reason);
  if (!isOutage) throw error;
}

function viewOverview(overview: Overview): MessageInitShape<typeof WatchOverviewResponseSchema> {
  const { server, lastHour, service, audit, database } = overview;
  return {
    time: timestampFromDate(overview.time),
    server: {
      ...server,
      calls: BigInt(server.calls),
      failures: viewFailures(server.failures),
      chargedMicros: BigInt(server.chargedMicros),
      runningGenerations: BigInt(server.runningGenerations),
      upstreams: server.upstreams.map((upstream) => ({
        ...upstream,
        running: BigInt(upstream.running),
        waiting: BigInt(upstream.waiting),
        succeeded: BigInt(upstream.succeeded),
        failed: BigInt(upstream.failed),
      })),
    },
    lastHour: {
      seconds: lastHour.seconds,
      calls: BigInt(lastHour.calls),
      failures: viewFailures(lastHour.failures),
      chargedMicros: BigInt(lastHour.chargedMicros),
      minutes: lastHour.minutes.map((minute) => ({
        calls: BigInt(minute.calls),
        failedCalls: BigInt(minute.failedCalls),
        chargedMicros: BigInt(minute.chargedMicros),
      })),
    },
    ...(service && {
      service: {
        servers: Number(service.servers),
        runningGenerations: service.generations,
        heldMicros: service.held_micros,
      },
    }),
    ...(audit && {
      audit: {
        ...(audit.last && {
          lastStartedAt: timestampFromDate(audit.last.startedAt),
          lastSeconds: audit.last.seconds,
          lastEntries: audit.last.entries,
          lastFindings: audit.last.findings,
        }),
        everyHours: audit.hours,
        ...(audit.nextAt && { nextAt: timestampFromDate(audit.nextAt) }),
      },
    }),
    database: {
      reachable: database.isReachable,
      latencyMs: database.latencyMs,
      connections: database.connections,
      statements: database.statements,
    },
  };
}

function viewFailures(failures: Overview["server"]["failures"]) {
  return failures.map(({ reason, calls }) => ({ reason, calls: BigInt(calls) }));
}
