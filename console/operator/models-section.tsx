import { useState } from "preact/hooks";
import type { CatalogModel, ModelUpstream } from "../../gen/vx/admin/v1/admin_pb.js";
import type { UpstreamHealth } from "../../gen/vx/admin/v1/console_pb.js";
import { Button } from "../shared/button.tsx";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { OtherPrices } from "../shared/other-prices.tsx";
import { EmptyState } from "../shared/states.tsx";
import { usePages } from "../shared/use-pages.ts";
import { useLiveFigures } from "./live-figures.tsx";
import { useApi } from "./operator-session.ts";
import { PriceHistoryDialog } from "./price-history-dialog.tsx";
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
        Prices are per million tokens. To change models or prices, edit models.yaml and send SIGHUP to the
        server.
      </p>
      {opened && <PriceHistoryDialog model={opened.id} onClose={() => setOpened(undefined)} />}
    </>
  );
}

function columnsOf(
  onOpen: (model: CatalogModel) => void,
  health: readonly UpstreamHealth[],
): readonly Column<CatalogModel>[] {
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
    { header: "Input", isNumber: true, cell: ({ prices }) => <Money micros={prices?.input ?? 0n} /> },
    {
      header: "Cached input",
      isNumber: true,
      cell: ({ prices }) => <Money micros={prices?.cachedInput ?? 0n} />,
    },
    { header: "Output", isNumber: true, cell: ({ prices }) => <Money micros={prices?.output ?? 0n} /> },
    { header: "Other", cell: ({ prices }) => <OtherPrices prices={prices} /> },
    {
      header: "Actions",
      isAction: true,
      cell: (model) => (
        <Button onClick={() => onOpen(model)} aria-label={`Price history of ${model.id}`}>
          Price history
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

function Upstream({ upstream: { kind, baseUrl, model, weight }, health }: UpstreamProps) {
  const details = [hostOf(baseUrl), model, weight > 0 ? `weight ${weight}` : ""].filter(
    (text) => text !== "",
  );
  return (
    <>
      {kind} {health && <Health upstream={health} />}
      {details.length > 0 && <div class="muted small wrap">{details.join(" · ")}</div>}
    </>
  );
}

/** The live figures name an upstream by its kind, its address and its model. */
function isNamed(name: string, { kind, baseUrl, model }: ModelUpstream): boolean {
  return name.startsWith(`${kind} ${hostOf(baseUrl)}`.trim()) && name.endsWith(model);
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}
