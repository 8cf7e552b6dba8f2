import { useState } from "preact/hooks";
import type { CatalogModel, ModelUpstream } from "../../gen/vx/admin/v1/admin_pb.js";
import type { UpstreamHealth } from "../../gen/vx/admin/v1/console_pb.js";
import type { Prices } from "../../gen/vx/v1/prices_pb.js";
import { Button } from "../shared/button.tsx";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { numberText } from "../shared/money.tsx";
import { OtherPrices } from "../shared/other-prices.tsx";
import { EmptyState } from "../shared/states.tsx";
import { usePages } from "../shared/use-pages.ts";
import { useLiveFigures } from "./live-figures.tsx";
import { useApi } from "./operator-session.ts";
import { PRICE_KINDS, Price, PriceHistoryDialog } from "./price-history-dialog.tsx";
import { Health } from "./upstream-table.tsx";

/** The models of the server's configuration, with their prices and upstreams. */
export function ModelsSection() {
  const api = useApi();
  const health = useLiveFigures().latest?.server?.upstreams ?? [];
  const [opened, setOpened] = useState<CatalogModel>();
  const pages = usePages(async (pageToken, signal) => {
    const page = await api.listModels({ pageToken, pageSize: 25 }, { signal });
    return { rows: page.models, nextPageToken: page.nextPageToken };
  }, "");
  return (
    <>
      <PageHeader title="Models" />
      <PagedTable
        caption="Models"
        columns={columnsOf(setOpened, health)}
        keyOf={({ id }) => id}
        pages={pages}
        empty={<EmptyState title="No models" />}
      />
      <p class="muted small">
        Prices and costs are per million tokens; those of images and requests are for each. To change models or prices, edit
        models.yaml and send SIGHUP to the server.
      </p>
      {opened && <PriceHistoryDialog model={opened.id} onClose={() => setOpened(undefined)} />}
    </>
  );
}

/** The prices with a column. The dialog has all of them. */
const LISTED = ["input", "cachedInput", "output"] as const;

function columnsOf(onOpen: (model: CatalogModel) => void, health: readonly UpstreamHealth[]): readonly Column<CatalogModel>[] {
  return [
    {
      header: "Model",
      isRowHeader: true,
      cell: ({ id, aliases, capabilities }) => (
        <>
          {id}
          {aliases.length > 0 && <div class="muted small regular">Also {aliases.join(", ")}</div>}
          {capabilities.length > 0 && <div class="muted small regular">{capabilities.join(", ")}</div>}
        </>
      ),
    },
    {
      header: "Upstreams",
      cell: ({ upstreams }) => (
        <ul class="plain-list">
          {upstreams.map((upstream) => (
            <li key={`${upstream.kind} ${upstream.baseUrl} ${upstream.model}`}>
              <Upstream upstream={upstream} health={health.find(({ name }) => isNamed(name, upstream))} />
            </li>
          ))}
        </ul>
      ),
    },
    {
      header: "Context",
      isNumber: true,
      cell: ({ contextWindow }) => numberText(contextWindow),
    },
    ...LISTED.map((kind) => ({
      header: PRICE_KINDS.find(([one]) => one === kind)?.[1] ?? kind,
      isNumber: true,
      cell: ({ prices }: CatalogModel) => <Price prices={prices} kind={kind} />,
    })),
    { header: "Other", cell: ({ prices }) => <OtherPrices prices={prices} /> },
    {
      header: "Actions",
      isAction: true,
      cell: (model) => (
        <Button onClick={() => onOpen(model)} aria-label={`All prices of ${model.id}`}>
          All prices
        </Button>
      ),
    },
  ];
}

type UpstreamProps = {
  readonly upstream: ModelUpstream;
  /** Undefined until a call has used the upstream. */
  readonly health: UpstreamHealth | undefined;
};

function Upstream({ upstream: { kind, baseUrl, model, weight, cost }, health }: UpstreamProps) {
  const details = [hostOf(baseUrl), model, weight > 0 ? `weight ${weight}` : ""].filter((text) => text !== "");
  return (
    <>
      {kind} {health && <Health upstream={health} />}
      {details.length > 0 && <div class="muted small wrap">{details.join(" · ")}</div>}
      {cost && <Cost cost={cost} />}
    </>
  );
}

/** What the operator pays, by kind. */
function Cost({ cost }: { readonly cost: Prices }) {
  const kinds = PRICE_KINDS.filter(([kind]) => [cost, ...cost.tiers].some((prices) => prices[kind] > 0n));
  return (
    <details class="small">
      <summary>Cost</summary>
      {kinds.map(([kind, name]) => (
        <div key={kind}>
          <span class="muted">{name}</span> <Price prices={cost} kind={kind} />
        </div>
      ))}
    </details>
  );
}

/** The live figures name an upstream by its kind, its address and its model. */
function isNamed(name: string, { kind, baseUrl, model }: ModelUpstream): boolean {
  return name.startsWith(`${kind} ${hostOf(baseUrl)}`.trim()) && name.endsWith(model);
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}
