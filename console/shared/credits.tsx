import type { Grant } from "../../gen/vx/v1/account_pb.js";
import { type Column, DataTable } from "./data-table.tsx";
import { Money } from "./money.tsx";
import { Badge } from "./states.tsx";
import { Time } from "./time.tsx";

const COLUMNS: readonly Column<Grant>[] = [
  { header: "Credit", isRowHeader: true, cell: ({ amountMicros }) => <Money micros={amountMicros} /> },
  { header: "Left", cell: ({ remainingMicros }) => <Money micros={remainingMicros} /> },
  { header: "Expires", cell: ({ expiresAt }) => <Time at={expiresAt} none="Never" /> },
  {
    header: "Kind",
    cell: ({ promotional }) => (promotional ? <Badge tone="good">Promotional</Badge> : "Paid"),
  },
];

/** The credits that expire or are promotional, in the order in which charges take them. */
export function Credits({ grants }: { readonly grants: readonly Grant[] }) {
  if (grants.length === 0) return null;
  return (
    <section class="usage" aria-labelledby="credits">
      <div>
        <h2 id="credits">Credits</h2>
        <p class="muted small">Charges take these credits first, in this order. The rest of the balance does not expire.</p>
      </div>
      <div class="panel">
        <DataTable caption="Credits" columns={COLUMNS} rows={grants} keyOf={({ id }) => id} />
      </div>
    </section>
  );
}
