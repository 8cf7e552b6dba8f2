import type { Model } from "../../gen/vx/v1/model_pb.js";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { OtherPrices } from "../shared/other-prices.tsx";
import { EmptyState } from "../shared/states.tsx";
import { usePages } from "../shared/use-pages.ts";
import type { Viewer } from "./viewer.ts";

const COLUMNS: readonly Column<Model>[] = [
  { header: "Model", isRowHeader: true, cell: ({ id }) => id },
  { header: "Input", isNumber: true, cell: (model) => <Price model={model} kind="input" /> },
  { header: "Cached input", isNumber: true, cell: (model) => <Price model={model} kind="cachedInput" /> },
  { header: "Output", isNumber: true, cell: (model) => <Price model={model} kind="output" /> },
  { header: "Other", cell: ({ prices }) => <OtherPrices prices={prices} /> },
];

type PriceProps = { readonly model: Model; readonly kind: "input" | "cachedInput" | "output" };

function Price({ model: { prices }, kind }: PriceProps) {
  return (
    <>
      <Money micros={prices?.[kind] ?? 0n} />
      {prices?.tiers.map((tier) => (
        <div key={tier.aboveInputTokens} class="muted small">
          <Money micros={tier[kind]} /> above {numberText(tier.aboveInputTokens)} input tokens
        </div>
      ))}
    </>
  );
}

/** What the models cost this account. */
export function PricesSection({ viewer }: { readonly viewer: Viewer }) {
  const pages = usePages(async (pageToken, signal) => {
    const page = await viewer.modelService.listModels({ pageToken, pageSize: 25 }, { signal });
    return { rows: page.data, nextPageToken: page.nextPageToken };
  }, "");
  return (
    <>
      <PageHeader title="Prices" />
      <p>What the models cost your account, per million tokens; images and requests have a price of their own.</p>
      <PagedTable
        caption="Prices"
        columns={COLUMNS}
        keyOf={({ id }) => id}
        pages={pages}
        empty={<EmptyState title="No models" />}
      />
    </>
  );
}
