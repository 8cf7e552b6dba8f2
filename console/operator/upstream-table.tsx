import type { UpstreamHealth } from "../../gen/vx/admin/v1/console_pb.js";
import { type Column, DataTable } from "../shared/data-table.tsx";
import { numberText } from "../shared/money.tsx";
import { Badge, EmptyState } from "../shared/states.tsx";

const COLUMNS: readonly Column<UpstreamHealth>[] = [
  { header: "Upstream", isRowHeader: true, cell: ({ name }) => <span class="wrap">{name}</span> },
  { header: "Health", cell: (upstream) => <Health upstream={upstream} /> },
  { header: "Running", isNumber: true, cell: ({ running }) => numberText(running) },
  { header: "Waiting", isNumber: true, cell: ({ waiting }) => numberText(waiting) },
  { header: "Succeeded", isNumber: true, cell: ({ succeeded }) => numberText(succeeded) },
  { header: "Failed", isNumber: true, cell: ({ failed }) => numberText(failed) },
];

/** The upstreams as the server sees them. */
export function UpstreamTable({ upstreams }: { readonly upstreams: readonly UpstreamHealth[] }) {
  if (upstreams.length === 0) return <EmptyState title="No upstreams" />;
  return <DataTable caption="Upstreams" columns={COLUMNS} rows={upstreams} keyOf={({ name }) => name} />;
}

/** An open breaker means that the server sends no calls for now. */
export function Health({ upstream }: { readonly upstream: UpstreamHealth }) {
  const { openBreakers, openAccounts, failed } = upstream;
  if (openBreakers > 0) return <Badge tone="bad">No calls: it fails</Badge>;
  if (openAccounts > 0) return <Badge tone="warn">Fails for {numberText(openAccounts)} accounts</Badge>;
  if (failed > 0n) return <Badge tone="warn">Some calls fail</Badge>;
  return <Badge tone="good">Healthy</Badge>;
}
