import type { WatchOverviewResponse } from "../../gen/vx/admin/v1/console_pb.js";
import { type Column, DataTable } from "../shared/data-table.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { Sparkline } from "../shared/sparkline.tsx";
import { Stat, Stats } from "../shared/stat.tsx";
import { Badge, EmptyState } from "../shared/states.tsx";
import { useLiveFigures } from "./live-figures.tsx";
import { RecentUsage } from "./recent-usage.tsx";
import { UpstreamTable } from "./upstream-table.tsx";

/** What the service does now. */
export function OverviewSection({ params }: { readonly params: URLSearchParams }) {
  const { figures, retryAt } = useLiveFigures();
  const last = figures.at(-1);
  return (
    <>
      <PageHeader title="Overview">
        <Badge tone={retryAt === undefined ? "good" : "warn"}>
          {retryAt === undefined ? (last ? "Live" : "Connecting") : "Not connected"}
        </Badge>
      </PageHeader>
      <LiveStats figures={figures} />
      <Failures last={last} />
      <RecentUsage accountId="" splits={["model", "account"]} section="overview" params={params} />
      <section class="part" aria-labelledby="upstreams">
        <h2 id="upstreams">Upstreams</h2>
        <div class="panel">
          {last ? (
            <UpstreamTable upstreams={last.server?.upstreams ?? []} />
          ) : (
            <EmptyState title="Waiting for the first figures" />
          )}
        </div>
      </section>
      <section class="part" aria-labelledby="database">
        <h2 id="database">Database</h2>
        <DatabaseStats last={last} />
      </section>
      <p class="muted small">
        Calls, errors, revenue and upstreams: the server that this page is connected to, {windowText(last)}.
        Running generations, holds, usage and servers: the whole service.
      </p>
    </>
  );
}

type FiguresProps = { readonly figures: readonly WatchOverviewResponse[] };

function LiveStats({ figures }: FiguresProps) {
  const last = figures.at(-1);
  const server = last?.server;
  const failed = failedCalls(last);
  const windowSeconds = server?.windowSeconds ?? 0;
  return (
    <Stats>
      <Stat
        label="Calls per second"
        value={server?.callsPerSecond.toFixed(1)}
        note={
          <Sparkline
            label="Calls per second in the last minutes"
            values={figures.map((one) => one.server?.callsPerSecond ?? 0)}
          />
        }
      />
      <Stat
        label="Errors"
        value={server && shareText(failed, server.calls)}
        note={server && `${numberText(failed)} of ${numberText(server.calls)} calls`}
      />
      <Stat
        label="Revenue per minute"
        value={server && <Money micros={perMinute(server.chargedMicros, windowSeconds)} />}
        note={
          <Sparkline
            label="Revenue in the last minutes"
            values={figures.map((one) => Number(one.server?.chargedMicros ?? 0n))}
          />
        }
      />
      <Stat
        label="Running generations"
        value={last && (last.service ? numberText(last.service.runningGenerations) : "–")}
        note={
          last?.service && (
            <>
              <Money micros={last.service.heldMicros} /> held
            </>
          )
        }
      />
    </Stats>
  );
}

function Failures({ last }: { readonly last: WatchOverviewResponse | undefined }) {
  const failures = last?.server?.failures ?? [];
  if (failures.length === 0) return null;
  type Row = (typeof failures)[number];
  const columns: readonly Column<Row>[] = [
    { header: "Error", isRowHeader: true, cell: ({ reason }) => <code>{reason}</code> },
    { header: "Calls", isNumber: true, cell: ({ calls }) => numberText(calls) },
  ];
  return (
    <section class="part" aria-labelledby="errors">
      <h2 id="errors">Errors</h2>
      <div class="panel">
        <DataTable caption="Errors" columns={columns} rows={failures} keyOf={({ reason }) => reason} />
      </div>
    </section>
  );
}

function DatabaseStats({ last }: { readonly last: WatchOverviewResponse | undefined }) {
  const database = last?.database;
  const isReachable = database?.reachable === true;
  return (
    <Stats>
      <Stat
        label="State"
        value={
          database && (
            <Badge tone={isReachable ? "good" : "bad"}>{isReachable ? "Available" : "Not available"}</Badge>
          )
        }
      />
      <Stat
        label="Response time"
        value={database && (isReachable ? `${database.latencyMs.toFixed(1)} ms` : "–")}
      />
      <Stat
        label="Statements"
        value={database && numberText(database.statements)}
        note={database && `${numberText(database.connections)} connections`}
      />
      <Stat label="Servers" value={last && (last.service ? numberText(last.service.servers) : "–")} />
    </Stats>
  );
}

function failedCalls(last: WatchOverviewResponse | undefined): bigint {
  return (last?.server?.failures ?? []).reduce((sum, { calls }) => sum + calls, 0n);
}

function shareText(part: bigint, whole: bigint): string {
  if (whole === 0n) return "–";
  return `${((Number(part) / Number(whole)) * 100).toFixed(1)} %`;
}

function perMinute(micros: bigint, seconds: number): bigint {
  return seconds === 0 ? 0n : BigInt(Math.round((Number(micros) * 60) / seconds));
}

function windowText(last: WatchOverviewResponse | undefined): string {
  const seconds = Math.round(last?.server?.windowSeconds ?? 60);
  if (seconds >= 60) return "in the last minute";
  return seconds === 0 ? "from now on" : `in the last ${seconds} seconds`;
}
