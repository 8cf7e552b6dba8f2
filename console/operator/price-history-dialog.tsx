import type { PriceVersion } from "../../gen/vx/admin/v1/admin_pb.js";
import type { Prices } from "../../gen/vx/v1/prices_pb.js";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { Dialog } from "../shared/dialog.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { EmptyState } from "../shared/states.tsx";
import { Time } from "../shared/time.tsx";
import { usePages } from "../shared/use-pages.ts";
import { useApi } from "./operator-session.ts";

export const PRICE_KINDS = [
  ["input", "Input"],
  ["cachedInput", "Cached input"],
  ["cacheWrite", "Cache write"],
  ["cacheWrite1h", "Cache write for an hour"],
  ["output", "Output"],
  ["reasoning", "Reasoning"],
  ["image", "Image"],
  ["request", "Request"],
] as const;

const COLUMNS: readonly Column<PriceVersion>[] = [
  {
    header: "Since",
    isRowHeader: true,
    cell: ({ version, effectiveFrom }) => (
      <>
        <Time at={effectiveFrom} />
        <div class="muted small regular">Version {version}</div>
      </>
    ),
  },
  ...PRICE_KINDS.map(([kind, header]) => ({
    header,
    isNumber: true,
    cell: ({ prices }: PriceVersion) => <Price prices={prices} kind={kind} />,
  })),
];

type PriceProps = {
  readonly prices: Prices | undefined;
  readonly kind: (typeof PRICE_KINDS)[number][0];
};

/** A price with those of the tiers. */
export function Price({ prices, kind }: PriceProps) {
  return (
    <>
      <Money micros={prices?.[kind] ?? 0n} />
      {prices?.tiers.map((tier) => (
        <div key={tier.aboveInputTokens} class="muted small price-tier">
          <Money micros={tier[kind]} /> above {numberText(tier.aboveInputTokens)}
        </div>
      ))}
    </>
  );
}

type PriceHistoryDialogProps = { readonly model: string; readonly onClose: () => void };

/** All prices that a model has had. */
export function PriceHistoryDialog({ model, onClose }: PriceHistoryDialogProps) {
  const api = useApi();
  const pages = usePages(async (pageToken, signal) => {
    const page = await api.listPrices({ model, pageToken, pageSize: 10 }, { signal });
    return { rows: page.versions, nextPageToken: page.nextPageToken };
  }, model);
  return (
    <Dialog title={`Prices of ${model}`} onClose={onClose} isWide>
      <div class="dialog-body">
        <p class="muted small">
          Per million tokens; per unit for images and requests. A call with more input tokens than a bound has the prices above
          it.
        </p>
        <PagedTable
          caption={`Prices of ${model}`}
          columns={COLUMNS}
          keyOf={({ version }) => String(version)}
          pages={pages}
          empty={<EmptyState title="No prices yet" />}
        />
      </div>
    </Dialog>
  );
}
