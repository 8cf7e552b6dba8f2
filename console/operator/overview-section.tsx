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
  const { latest: last, retryAt } = useLiveFigures();
  return (
    <>
      <PageHeader title="Overview">
        <Badge tone={retryAt === undefined ? "good" : "warn"}>
          {retryAt === undefined ? (last ? "Live" : "Connecting") : "Not connected"}
        </Badge>
      </PageHeader>
      <LiveStats last={last} />
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
        Calls, errors, charges and upstreams: the server that this page is connected to, since its start; the attempts of
        upstreams are those of the last minute. Running generations, holds, usage and servers: the whole service.
      </p>
    </>
  );
}

type FiguresProps = { readonly last: WatchOverviewResponse | undefined };

function LiveStats({ last }: FiguresProps) {
  const server = last?.server;
  const hour = last?.lastHour;
  const minutes = hour?.minutes ?? [];
  const failed = failedCalls(last);
  return (
    <Stats>
      <Stat
        label="Calls per second"
        value={server?.callsPerSecond.toFixed(1)}
        note={
          hour && (
            <>
              {numberText(hour.calls)} calls {hourText(hour.seconds)}
              <Sparkline label="Calls in each minute of the last hour" values={minutes.map(({ calls }) => Number(calls))} />
            </>
          )
        }
      />
      <Stat
        label="Errors"
        value={hour && shareText(failed, hour.calls)}
        note={
          hour && (
            <>
              {numberText(failed)} of {numberText(hour.calls)} calls
              <Sparkline
                label="Errors in each minute of the last hour"
                values={minutes.map(({ failedCalls }) => Number(failedCalls))}
              />
            </>
          )
        }
      />
      <Stat
        label="Charges"
        value={hour && <Money micros={hour.chargedMicros} />}
        note={
          hour && (
            <>
              {hourText(hour.seconds)}
              <Sparkline
                label="Charges in each minute of the last hour"
                values={minutes.map(({ chargedMicros }) => Number(chargedMicros))}
              />
            </>
          )
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

function Failures({ last }: FiguresProps) {
  const failures = last?.lastHour?.failures ?? [];
  if (failures.length === 0) return null;
  type Row = (typeof failures)[number];
  const columns: readonly Column<Row>[] = [
    { header: "Error", isRowHeader: true, cell: ({ reason }) => <code>{reason}</code> },
    { header: "Calls", isNumber: true, cell: ({ calls }) => numberText(calls) },
  ];
  return (
    <section class="part" aria-labelledby="errors">
      <h2 id="errors">Errors {hourText(last?.lastHour?.seconds ?? 0)}</h2>
      <div class="panel">
        <DataTable caption="Errors" columns={columns} rows={failures} keyOf={({ reason }) => reason} />
      </div>
    </section>
  );
}

function DatabaseStats({ last }: FiguresProps) {
  const database = last?.database;
  const isReachable = database?.reachable === true;
  return (
    <Stats>
      <Stat
        label="State"
        value={database && <Badge tone={isReachable ? "good" : "bad"}>{isReachable ? "Available" : "Not available"}</Badge>}
      />
      <Stat label="Response time" value={database && (isReachable ? `${database.latencyMs.toFixed(1)} ms` : "–")} />
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
  return (last?.lastHour?.failures ?? []).reduce((sum, { calls }) => sum + calls, 0n);
}

function shareText(part: bigint, whole: bigint): string {
  if (whole === 0n) return "–";
  return `${((Number(part) / Number(whole)) * 100).toFixed(1)} %`;
}

/** The server may have started less than an hour ago. */
function hourText(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes >= 59) return "in the last hour";
  return minutes <= 1 ? "in the last minute" : `in the last ${minutes} minutes`;
}
